package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"lancefleet/fleet"
)

// maxEvents is the most that a request with events may carry. S3 sends one record,
// queues in between send batches.
const maxEvents = 1 << 20

const eventsPath = apiPrefix + "/events"

// Outcomes of single events, as metrics and answers have them.
const (
	eventTaken   = "taken"
	eventUnknown = "unknown"
	eventOwn     = "own"
	eventIgnored = "ignored"
)

type eventsInput struct {
	RawBody []byte `contentType:"application/json"`
}

// EventsTaken says what the events of one request were about.
type EventsTaken struct {
	Events      int `json:"events" doc:"In the request"`
	Taken       int `json:"taken" doc:"About an experiment of this fleet: the next round looks at it first, at a retired one somebody looks within seconds"`
	Experiments int `json:"experiments" doc:"Different ones among these"`
	Unknown     int `json:"unknown" doc:"About a name or a place where no known experiment is. A new one is found by the next round anyway"`
	Own         int `json:"own" doc:"About lancefleet's or lance-context's own tables"`
	Ignored     int `json:"ignored" doc:"Removals, tests, confirmations: nothing that brings rows"`
}

type eventsOutput struct {
	Body EventsTaken
}

// routeEvents registers the way in for events. Senders choose the shape and the
// content type of what they send, so the body is read as it comes.
func (s *Server) routeEvents(api huma.API, op func(method, path, id, summary string) huma.Operation) {
	o := op(http.MethodPost, "/events", "take-events", "Bucket notifications, or names of experiments that were written")
	o.SkipValidateBody = true
	o.DefaultStatus = http.StatusAccepted
	o.Description = "The next round looks at these experiments first; retired ones are looked at within seconds, and are hot again if they were written. " +
		"Nothing else of an event is believed, and rounds find the same without any. Allowed: " + strings.TrimPrefix(allowedEvents, "allowed are ") + "."
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {}}}
	handle(s, Notify, o, s.takeEvents, api)
	o.RequestBody.Content["application/json"] = eventsMediaType()
}

// eventsMediaType describes what is read by hand.
func eventsMediaType() *huma.MediaType {
	text := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: doc} }
	one := &huma.Schema{
		Type: huma.TypeObject, Description: "One event: " + allowedEvents,
		Properties: map[string]*huma.Schema{
			"name":    text("kind:name, or a bare name"),
			"uri":     text("Of the experiment, or of anything in it"),
			"Records": {Type: huma.TypeArray, Description: "S3's and MinIO's notifications", Items: &huma.Schema{Type: huma.TypeObject}},
			"detail":  {Type: huma.TypeObject, Description: "EventBridge's, with detail-type"},
			"Message": text("SNS's, with Type"),
		},
	}
	return &huma.MediaType{
		Schema: &huma.Schema{OneOf: []*huma.Schema{one, {Type: huma.TypeArray, Items: one}}},
		Examples: map[string]*huma.Example{
			"name":  {Summary: "By name", Value: map[string]any{"name": "rollout:exp-1"}},
			"names": {Summary: "Several", Value: []any{map[string]any{"name": "exp-1"}, map[string]any{"uri": "s3://bucket/fleet/exp-2.rollout.lance/_mem_wal/s1/wal/7"}}},
			"s3": {Summary: "S3 and MinIO", Value: map[string]any{"Records": []any{map[string]any{
				"eventName": "ObjectCreated:Put",
				"s3":        map[string]any{"bucket": map[string]any{"name": "bucket"}, "object": map[string]any{"key": "fleet/exp-1.rollout.lance/_versions/7.manifest"}},
			}}}},
		},
	}
}

func (s *Server) takeEvents(_ context.Context, in *eventsInput) (*eventsOutput, error) {
	if s.steer == nil {
		return nil, refuse(http.StatusServiceUnavailable, "this server has no connection to Temporal")
	}
	v := s.feed.moment().view
	if v == nil {
		return nil, refuse(http.StatusServiceUnavailable, "the fleet's table has not been read yet: send it again")
	}
	events, err := parseEvents(in.RawBody)
	if err != nil {
		return nil, err
	}
	places := v.places()
	out := EventsTaken{Events: len(events)}
	named := map[int32]bool{}
	for _, e := range events {
		switch places.outcome(e, s.dataDir, named) {
		case eventTaken:
			out.Taken++
		case eventOwn:
			out.Own++
		case eventIgnored:
			out.Ignored++
		default:
			out.Unknown++
		}
	}
	out.Experiments = len(named)
	s.countEvents(out)
	s.events.add(v, named)
	return &eventsOutput{Body: out}, nil
}

func (s *Server) countEvents(out EventsTaken) {
	for outcome, n := range map[string]int{eventTaken: out.Taken, eventUnknown: out.Unknown, eventOwn: out.Own, eventIgnored: out.Ignored} {
		if n > 0 {
			s.events.metrics.Events(outcome, n)
		}
	}
}

// places finds the experiment that an object belongs to.
type places struct {
	of *view
	at map[string]int32 // row by place
}

// places of a view are made when the first event asks for them, and go with it.
func (v *view) places() *places {
	v.placesOnce.Do(func() {
		v.placed = &places{of: v, at: make(map[string]int32, len(v.Rows))}
		for row := range v.Rows {
			v.placed.at[placeOf(v.Rows[row].URI)] = int32(row)
		}
	})
	return v.placed
}

// outcome says what an event is about, and adds the experiments to named.
func (p *places) outcome(e event, dataDir string, named map[int32]bool) string {
	switch {
	case e.noise:
		return eventIgnored
	case e.name != "":
		return p.byName(e.name, named)
	case len(e.place) > longestEventKey:
		return eventUnknown
	}
	for place := e.place; place != ""; place = parentPlace(place) {
		if row, ok := p.at[place]; ok {
			named[row] = true
			return eventTaken
		}
	}
	if ownPlace(e.place, dataDir) {
		return eventOwn
	}
	return eventUnknown
}

// byName takes every experiment that a name may mean: looking costs little.
func (p *places) byName(name string, named map[int32]bool) string {
	ref, err := fleet.ParseRef(name)
	if err != nil {
		return eventUnknown
	}
	found := p.of.matches(ref)
	for _, t := range found {
		named[t.at] = true
	}
	if len(found) == 0 {
		return eventUnknown
	}
	return eventTaken
}

// parentPlace is the folder of a place, "" above a bucket or a root.
func parentPlace(place string) string {
	at := strings.LastIndexByte(place, '/')
	if at <= 0 || strings.HasSuffix(place[:at], ":/") {
		return ""
	}
	return place[:at]
}

// ownPlace says whether a place belongs to tables about the fleet.
func ownPlace(place, dataDir string) bool {
	below, inside := strings.CutPrefix(place, placeOf(dataDir)+"/")
	first, _, _ := strings.Cut(below, "/")
	stem, _, _ := strings.Cut(first, ".")
	return inside && (stem == "_lancefleet" || fleet.Reserved(stem))
}
