package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// event says that something was written: to an experiment by name, or to a place.
type event struct {
	name  string
	place string // see placeOf
	noise bool   // a removal, a test: nothing that brings rows
}

// eventBody is every shape that an event may have. Which one it is shows by what is
// there: senders have no other sign in common.
type eventBody struct {
	Name  *string `json:"name"` // ours
	URI   *string `json:"uri"`  // ours
	Event string  `json:"Event"`

	Records   []s3Record `json:"Records"`   // S3, and in MinIO's envelope
	EventName string     `json:"EventName"` // MinIO's envelope
	Key       string     `json:"Key"`       // bucket/key

	DetailType string    `json:"detail-type"` // EventBridge
	Detail     *s3Detail `json:"detail"`

	Type         string `json:"Type"` // SNS
	Message      string `json:"Message"`
	SubscribeURL string `json:"SubscribeURL"`
}

// s3Record is one of S3's own. Its key is encoded as in a query: a space is a plus.
type s3Record struct {
	EventName string `json:"eventName"`
	S3        struct {
		Bucket struct {
			Name string `json:"name"`
		} `json:"bucket"`
		Object struct {
			Key string `json:"key"`
		} `json:"object"`
	} `json:"s3"`
}

// s3Detail is EventBridge's. Its key is not encoded.
type s3Detail struct {
	Bucket struct {
		Name string `json:"name"`
	} `json:"bucket"`
	Object struct {
		Key string `json:"key"`
	} `json:"object"`
}

const (
	mostEventDepth  = 4    // lists and envelopes in each other
	longestEventKey = 4096 // S3 allows 1,024 bytes
	allowedEvents   = `allowed are {"name": "..."}, {"uri": "..."}, notifications of S3, MinIO, EventBridge and SNS, and lists of these`
)

// parseEvents reads a body. What is no event at all is refused; an event about
// something that is none of ours is not, since a bucket may hold more than a fleet.
func parseEvents(body []byte) ([]event, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, refuse(http.StatusBadRequest, "a body of JSON is needed; "+allowedEvents)
	}
	if !json.Valid(body) {
		return nil, refuse(http.StatusBadRequest, "the body is not JSON")
	}
	return parseEvent(body, mostEventDepth)
}

func parseEvent(body []byte, depth int) ([]event, error) {
	if depth == 0 {
		return nil, refuse(http.StatusUnprocessableEntity, "lists or envelopes are nested too deep")
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		return parseEventList(trimmed, depth)
	}
	var b eventBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "no event: "+quoted(string(body))+"; "+allowedEvents)
	}
	switch {
	case b.Name != nil:
		return []event{{name: *b.Name}}, nil
	case b.URI != nil:
		return []event{{place: placeOf(*b.URI)}}, nil
	case b.Records != nil:
		return recordEvents(b.Records)
	case b.EventName != "" && b.Key != "":
		return []event{{place: bucketPlace(b.Key), noise: !creates(b.EventName)}}, nil
	case b.Detail != nil:
		created := strings.HasPrefix(b.DetailType, "Object Created")
		return []event{{place: bucketPlace(b.Detail.Bucket.Name + "/" + b.Detail.Object.Key), noise: !created}}, nil
	case b.Type == "Notification":
		return parseEvent([]byte(b.Message), depth-1)
	case b.Type == "SubscriptionConfirmation", b.Type == "UnsubscribeConfirmation", b.Event == "s3:TestEvent":
		return []event{{noise: true}}, nil
	}
	return nil, refuse(http.StatusUnprocessableEntity, "no event: "+quoted(string(body))+"; "+allowedEvents)
}

func parseEventList(body []byte, depth int) ([]event, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "no list of events: "+err.Error())
	}
	var all []event
	for i, item := range items {
		some, err := parseEvent(item, depth-1)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

func recordEvents(records []s3Record) ([]event, error) {
	all := make([]event, 0, len(records))
	for i, r := range records {
		key, err := url.QueryUnescape(r.S3.Object.Key)
		if err != nil {
			return nil, refuse(http.StatusUnprocessableEntity, fmt.Sprintf("record %d: the key %s is not percent-encoded", i+1, quoted(r.S3.Object.Key)))
		}
		all = append(all, event{place: bucketPlace(r.S3.Bucket.Name + "/" + key), noise: !creates(r.EventName)})
	}
	return all, nil
}

// creates says whether an event brought an object: s3:ObjectCreated:Put, with or
// without the prefix.
func creates(eventName string) bool {
	return strings.HasPrefix(strings.TrimPrefix(eventName, "s3:"), "ObjectCreated")
}

// placeOf makes one form of all that name the same place: a path as it is, a URL as
// "scheme://bucket/key". s3a:// and s3+ddb:// are ways to talk to S3.
func placeOf(uri string) string {
	scheme, rest, isURL := strings.Cut(uri, "://")
	if !isURL {
		return strings.TrimRight(uri, "/")
	}
	rest, _, _ = strings.Cut(rest, "?")
	switch scheme = strings.ToLower(scheme); scheme {
	case "s3a", "s3n", "s3+ddb":
		scheme = "s3"
	case "file":
		return strings.TrimRight(rest, "/")
	}
	return scheme + "://" + strings.TrimRight(rest, "/")
}

// bucketPlace is where an S3 event happened: bucket/key.
func bucketPlace(bucketAndKey string) string { return "s3://" + strings.TrimRight(bucketAndKey, "/") }
