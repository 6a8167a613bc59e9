package activities

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancefleet/store"
)

func TestNamesThatCannotBeUsedAreToldOnceAndWhenTheyChange(t *testing.T) {
	var log bytes.Buffer
	a := &Scan{Log: slog.New(slog.NewTextHandler(&log, nil))}
	told := func(found ...store.Problem) int {
		log.Reset()
		a.tellProblems(t.Context(), found)
		return strings.Count(log.String(), "\n")
	}
	one, two := store.Problem{Name: "a b.lance", Why: "no"}, store.Problem{Name: "ü.lance", Why: "no"}
	require.Zero(t, told(), "nothing to tell")
	require.Equal(t, 2, told(one, two))
	require.Zero(t, told(one, two), "each round has them")
	require.Equal(t, 1, told(two))
	require.Equal(t, 1, told(), "mended")
	require.Zero(t, told())
	require.Equal(t, 2, told(two, one))
}
