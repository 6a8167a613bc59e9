package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// description is what is looked at of the API's own description.
type description struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Security    []map[string][]string
		Responses   map[string]struct {
			Content map[string]struct{ Example json.RawMessage }
		}
	}
}

func TestTheDescriptionIsComplete(t *testing.T) {
	b := guarded(t)
	doc := decode[description](t, b.get("/api/v1/openapi.json"), 200)
	for _, r := range everyRoute {
		if !isAPI(r.path) || strings.HasSuffix(r.path, "/openapi.json") {
			continue
		}
		var parts []string
		for part := range strings.SplitSeq(r.path, "/") {
			if name, ok := strings.CutPrefix(part, ":"); ok {
				part = "{" + name + "}"
			}
			parts = append(parts, part)
		}
		op, ok := doc.Paths[strings.Join(parts, "/")][strings.ToLower(r.method)]
		require.True(t, ok, "not described: %s %s", r.method, r.path)
		answered, exemplified := false, false
		for status, response := range op.Responses {
			if status[0] != '2' {
				continue
			}
			answered = true
			for mime, content := range response.Content {
				exemplified = exemplified || len(content.Example) > 0 || mime != "application/json"
			}
		}
		require.True(t, answered, op.OperationID)
		require.True(t, exemplified, "no example of the answer to %s", op.OperationID)
		if r.access != Open {
			require.Contains(t, op.Responses, "401", op.OperationID)
			require.Contains(t, op.Responses, "403", op.OperationID)
			require.Len(t, op.Security, 2, op.OperationID)
		}
	}
}

func TestNullIsDescribedWhereItMeansUnset(t *testing.T) {
	b := guarded(t)
	doc := decode[struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Type any }
			}
		}
	}](t, b.get("/api/v1/openapi.json"), 200)
	var described []any
	for _, schema := range doc.Components.Schemas {
		if next, ok := schema.Properties["next"]; ok && next.Type != "integer" {
			described = append(described, next.Type)
		}
	}
	require.Equal(t, []any{[]any{"boolean", "null"}}, described)
}
