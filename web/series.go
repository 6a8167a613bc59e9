package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"lancefleet/fleet"
)

// Series is an experiment's numbers over time: by the hour in which they changed,
// and as maintenance found and left them.
type Series struct {
	ID     string  `json:"id" doc:"kind:name"`
	Days   int     `json:"days"`
	From   int64   `json:"from"`
	To     int64   `json:"to"`
	Points []Point `json:"points" doc:"Oldest first. A number stays until the next point"`
	Marks  []Mark  `json:"marks" doc:"Maintenance, oldest first"`
}

// Point is what was known at one time. Unknown is null.
type Point struct {
	At        int64  `json:"at"`
	Rows      *int64 `json:"rows"`
	Fragments *int64 `json:"fragments"`
	Pending   *int64 `json:"pending_wal_generations"`
	Bytes     *int64 `json:"bytes"`
	By        string `json:"by" enum:"sample,maintenance,now" doc:"Who knew: a sample is true within the hour"`
}

// Mark is a piece of maintenance that ended.
type Mark struct {
	At      int64  `json:"at"`
	Kind    string `json:"kind"`
	Outcome string `json:"outcome"`
	Link    string `json:"link,omitempty" doc:"In Temporal's UI"`
}

const hourMS = 60 * 60 * 1000

type seriesInput struct {
	Name string `path:"name" doc:"kind:name, or bare"`
	Days int    `query:"days" default:"7" doc:"How far back; clamped to 1..30"`
}

type seriesOutput struct {
	Body Series
}

func (s *Server) getSeries(ctx context.Context, in *seriesInput) (*seriesOutput, error) {
	m := s.feed.moment()
	if m.view == nil {
		return nil, notLoaded(m)
	}
	t, err := s.resolve(ctx, m.view, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := s.series(ctx, m, t.exp.ID, in.Days)
	if err != nil {
		return nil, err
	}
	return &seriesOutput{Body: out}, nil
}

// series reads samples and journal of one experiment.
func (s *Server) series(ctx context.Context, m moment, id fleet.ID, days int) (Series, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	samples, err := s.samples.Of(ctx, id, 0)
	if err != nil {
		return Series{}, fmt.Errorf("reading the samples: %w", err)
	}
	actions, err := s.journal.Of(ctx, id, 0)
	if err != nil {
		return Series{}, fmt.Errorf("reading the journal: %w", err)
	}
	out := window(s.now().UnixMilli(), days)
	out.ID = id.String()
	out.Points = pointsOf(samples, actions, out.From)
	if m.view != nil {
		if at, ok := m.view.find(id); ok && m.view.retired[at] == nil {
			out.addNow(m.view.Rows[at])
		}
	}
	for _, r := range runsOf(actions) {
		if a := r.own; a.At >= out.From && isMark(a.Kind) {
			out.Marks = append(out.Marks, Mark{At: a.At, Kind: a.Kind, Outcome: a.Outcome, Link: s.workflowPath(a.WorkflowID, a.RunID)})
		}
	}
	slices.Reverse(out.Marks)
	return out, nil
}

func window(now int64, days int) Series {
	days = min(max(days, 1), 30)
	return Series{Days: days, From: now - int64(days)*dayMS, To: now, Points: []Point{}, Marks: []Mark{}}
}

// isMark says which entries of a journal are marks on a chart.
func isMark(kind string) bool {
	return slices.Contains([]string{fleet.ActOptimize, fleet.ActRetire, fleet.ActMergeWAL, fleet.ActCompact, fleet.ActSeal, fleet.ActReturn, fleet.ActForeign}, kind)
}

// pointsOf puts samples and what maintenance saw in order. What was last known
// before the window stands at its beginning. samples and actions are newest first.
func pointsOf(samples []fleet.Sample, actions []fleet.Action, from int64) []Point {
	var all []Point
	exact := map[int64]bool{} // hours in which maintenance looked: a sample's minute is not known
	for i := range actions {
		a := &actions[i]
		for _, seen := range []struct {
			at   int64
			text string
		}{{a.At, a.After}, {a.At - a.DurationMS, a.Before}} {
			if f := fleet.ParseFacts(seen.text); f.Fragments >= 0 || f.Pending >= 0 {
				exact[seen.at/hourMS] = true
				all = append(all, Point{At: seen.at, Rows: numberOf(true, f.Rows), Fragments: numberOf(true, f.Fragments), Pending: numberOf(true, f.Pending), Bytes: numberOf(true, f.Bytes), By: "maintenance"})
			}
		}
	}
	for i := range samples {
		if p := &samples[i]; !exact[p.At/hourMS] {
			all = append(all, Point{At: p.At, Rows: numberOf(true, p.Rows), Fragments: numberOf(true, p.Fragments), Pending: numberOf(true, p.Pending), Bytes: numberOf(true, p.Bytes), By: "sample"})
		}
	}
	slices.SortStableFunc(all, func(a, b Point) int { return cmp.Compare(a.At, b.At) })
	first := 0
	for first < len(all) && all[first].At < from {
		first++
	}
	if first > 0 { // what was known then still held
		first--
		all[first].At = from
	}
	return append([]Point{}, all[first:]...)
}

// addNow ends the series with the row, observed as it was at the end of the time.
func (s *Series) addNow(r *fleet.Row) {
	if !r.Known {
		return
	}
	p := Point{At: s.To, Rows: numberOf(true, r.RowCount), Fragments: numberOf(true, r.FragmentCount), Pending: numberOf(true, r.PendingWAL), Bytes: numberOf(true, r.Bytes), By: "now"}
	if seen := max(r.ObservedAt, s.From); len(s.Points) == 0 || s.Points[len(s.Points)-1].At < seen {
		was := p
		was.At = seen
		s.Points = append(s.Points, was)
	}
	s.Points = append(s.Points, p)
}

// FleetSeries is what rounds did and what the backlog was over time.
type FleetSeries struct {
	Days    int            `json:"days"`
	From    int64          `json:"from"`
	To      int64          `json:"to"`
	Rounds  []RoundPoint   `json:"rounds" doc:"Oldest first. Where there are many, several as one: the worst of each number"`
	Backlog []BacklogPoint `json:"backlog" doc:"Oldest first, by the hour, from the samples; the last one is what the table says now"`
}

// RoundPoint is one round, or the worst of several.
type RoundPoint struct {
	At              int64   `json:"at" doc:"When it finished"`
	DurationSeconds float64 `json:"duration_seconds"`
	Requests        int64   `json:"requests"`
	Failed          int64   `json:"failed"`
	Observed        int64   `json:"observed"`
}

// BacklogPoint is a sum over the fleet.
type BacklogPoint struct {
	At      int64 `json:"at"`
	Pending int64 `json:"pending_wal_generations"`
}

// roundsDrawn is how many points a chart can show apart.
const roundsDrawn = 240

type fleetSeriesInput struct {
	Days int `query:"days" default:"7" doc:"How far back; clamped to 1..30"`
}

type fleetSeriesOutput struct {
	Body FleetSeries
}

func (s *Server) getFleetSeries(ctx context.Context, in *fleetSeriesInput) (*fleetSeriesOutput, error) {
	out, err := s.fleetSeries(ctx, s.feed.moment(), in.Days)
	if err != nil {
		return nil, err
	}
	return &fleetSeriesOutput{Body: out}, nil
}

func (s *Server) fleetSeries(ctx context.Context, m moment, days int) (FleetSeries, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	w := window(s.now().UnixMilli(), days)
	out := FleetSeries{Days: w.Days, From: w.From, To: w.To, Rounds: []RoundPoint{}, Backlog: []BacklogPoint{}}
	records, err := s.rounds.Latest(ctx, deepest)
	if err != nil {
		return out, fmt.Errorf("reading the rounds: %w", err)
	}
	out.Rounds = roundPoints(records, w.From, w.To)
	samples, err := s.samples.All(ctx)
	if err != nil {
		return out, fmt.Errorf("reading the samples: %w", err)
	}
	d, err := s.journalled(ctx)
	if err != nil {
		return out, err
	}
	out.Backlog = s.backlogs.since(w.From, w.To, w.Days, samples, d.actions)
	if m.view != nil {
		out.Backlog = append(out.Backlog, BacklogPoint{At: w.To, Pending: m.view.totals.Pending})
	}
	return out, nil
}

// backlogKept is how long sums over the fleet stand: they take a look at all that is
// known, and tell of hours. A page asks for them, each of its pictures does, and
// everybody's page.
const backlogKept = time.Minute

// backlogs remembers the sums of each window.
type backlogs struct {
	mu   sync.Mutex
	kept map[int]*renewed[struct{}, []BacklogPoint] // by days
}

// since answers the points from a time on; the caller may add to them.
func (b *backlogs) since(from, now int64, days int, samples []fleet.Sample, actions []fleet.Action) []BacklogPoint {
	made := b.of(days).ask(struct{}{}, now, backlogKept.Milliseconds(), func() []BacklogPoint { return backlogPoints(samples, actions, from) })
	points := slices.Clone(made)
	for i := range points {
		points[i].At = max(points[i].At, from)
	}
	return points
}

func (b *backlogs) of(days int) *renewed[struct{}, []BacklogPoint] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = map[int]*renewed[struct{}, []BacklogPoint]{}
	}
	if b.kept[days] == nil {
		b.kept[days] = &renewed[struct{}, []BacklogPoint]{}
	}
	return b.kept[days]
}

// roundPoints are those of records, newest first, that finished since from.
func roundPoints(records []fleet.RoundRecord, from, to int64) []RoundPoint {
	out := []RoundPoint{}
	if oldest := len(records) - 1; oldest >= 0 { // a young fleet's chart begins with its first round
		from = max(from, records[oldest].FinishedAt)
	}
	width := max((to-from)/roundsDrawn, 1)
	for i := len(records) - 1; i >= 0; i-- {
		r := &records[i]
		if r.FinishedAt < from {
			continue
		}
		p := RoundPoint{At: r.FinishedAt, DurationSeconds: r.DurationSeconds, Requests: r.StorageRequests.Total(), Failed: r.Failed, Observed: r.Observed}
		if n := len(out); n > 0 && out[n-1].At/width == p.At/width {
			q := &out[n-1]
			q.At, q.DurationSeconds = p.At, max(q.DurationSeconds, p.DurationSeconds)
			q.Requests, q.Failed, q.Observed = max(q.Requests, p.Requests), max(q.Failed, p.Failed), max(q.Observed, p.Observed)
			continue
		}
		out = append(out, p)
	}
	return out
}

// backlogPoints sum up what is pending, hour by hour: of each experiment what was
// last known of it. samples and actions are newest first.
func backlogPoints(samples []fleet.Sample, actions []fleet.Action, from int64) []BacklogPoint {
	type known struct {
		at      int64
		target  string
		pending int64
	}
	all := make([]known, 0, len(samples))
	for i := range samples {
		if p := &samples[i]; p.Pending >= 0 {
			all = append(all, known{p.At, p.ID.String(), p.Pending})
		}
	}
	for i := range actions {
		if a := &actions[i]; a.Target != "" && a.After != "" && a.At >= from-dayMS {
			if f := fleet.ParseFacts(a.After); f.Pending >= 0 {
				all = append(all, known{a.At, a.Target, f.Pending})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b known) int { return cmp.Compare(a.at, b.at) })
	var sum int64
	last := map[string]int64{}
	out := []BacklogPoint{}
	for _, k := range all {
		sum += k.pending - last[k.target]
		last[k.target] = k.pending
		at := max(k.at-k.at%hourMS, from)
		if n := len(out); n > 0 && out[n-1].At == at {
			out[n-1].Pending = sum
			continue
		}
		out = append(out, BacklogPoint{At: at, Pending: sum})
	}
	return out
}

// daysAsked reads how far back a page looks.
func daysAsked(text string) int {
	if text == "30" {
		return 30
	}
	return 7
}

var errNoChart = refuse(http.StatusNotFound, "there is no such chart")
