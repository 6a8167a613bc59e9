package web

import (
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancefleet/fleet"
)

func percentile(all []time.Duration, p int) time.Duration {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// drawRows makes few distinct values, so that ties are common.
func drawRows(t *rapid.T) []fleet.Row {
	seen := map[fleet.ID]bool{}
	var rows []fleet.Row
	for range rapid.IntRange(0, 60).Draw(t, "rows") {
		id := fleet.ID{
			Kind: rapid.SampledFrom(fleet.Kinds()).Draw(t, "kind"),
			Name: rapid.StringMatching(`[aAbB_][a-c0-1._-]{0,3}`).Draw(t, "name"),
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		r := fleet.UnknownRow(fleet.Experiment{ID: id, URI: "/x/" + id.Name})
		r.Known = rapid.Bool().Draw(t, "known")
		if r.Known {
			r.RowCount = rapid.Int64Range(-1, 3).Draw(t, "row count")
			r.PendingWAL = rapid.Int64Range(-1, 2).Draw(t, "pending")
			r.FragmentCount = rapid.Int64Range(-1, 2).Draw(t, "fragments")
			r.Bytes = rapid.Int64Range(-1, 2).Draw(t, "bytes")
		}
		r.LastWrite = rapid.Int64Range(0, 3).Draw(t, "last write")
		r.Failures = rapid.Int64Range(0, 1).Draw(t, "failures")
		rows = append(rows, r)
	}
	return rows
}

func viewOf(rows []fleet.Row, cold ...fleet.Experiment) *view {
	return newView(known{Snapshot: Snapshot{Version: 1, Rows: rows}, policies: fleet.Policies{Default: fleet.DefaultPolicy()},
		names: &naming{Experiments: cold}}, nil, testNow.UnixMilli())
}

func queryOf(t require.TestingT, text string) Query {
	q, mistakes := parseQuery(url.Values{"q": {text}})
	require.Empty(t, mistakes, text)
	return q
}

func TestPagesHaveNoRepeatsAndTrueTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		v := viewOf(rows, drawCold(t)...)
		word := rapid.SampledFrom([]string{"", "a", "B", "_", "%", "rollout:a", "generic:"}).Draw(t, "search")
		failing := rapid.Bool().Draw(t, "failing")
		q, _ := parseQuery(url.Values{"search": {word}, "failing": {strconv.FormatBool(failing)}})
		q.Down = rapid.Bool().Draw(t, "down")
		q.Limit = rapid.IntRange(1, 9).Draw(t, "limit")
		q.column = rapid.IntRange(0, len(columns)-1).Draw(t, "column")

		var want []int32
		for i := range int32(v.count()) {
			cold := word == "" && v.isCold(i)
			if !cold && plainMatch(word, failing, v.row(i), v.experiment(i).ID) {
				want = append(want, i)
			}
		}
		var got []int32
		for {
			page := q.run(&asking{moment{view: v}, testNow.UnixMilli()})
			if page.total != len(want) || page.totals.Experiments != int64(len(want)) {
				t.Fatalf("total %d and %d, want %d", page.total, page.totals.Experiments, len(want))
			}
			if len(page.rows) == 0 {
				break
			}
			got = append(got, page.rows...)
			q.Offset += q.Limit
		}
		requireOrdered(t, v, q, got)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("pages hold %v, want %v", got, want)
		}
	})
}

// drawCold makes names that may be those of rows too.
func drawCold(t *rapid.T) []fleet.Experiment {
	var named []fleet.Experiment
	for range rapid.IntRange(0, 30).Draw(t, "named") {
		named = append(named, fleet.Experiment{ID: fleet.ID{
			Kind: rapid.SampledFrom(fleet.Kinds()).Draw(t, "kind"), Name: rapid.StringMatching(`[aAbB_][a-c0-1._-]{0,3}`).Draw(t, "name"),
		}})
	}
	slices.SortFunc(named, func(a, b fleet.Experiment) int { return a.Compare(b.ID) })
	return slices.CompactFunc(named, func(a, b fleet.Experiment) bool { return a.ID == b.ID })
}

// plainMatch is the search written down as plainly as possible.
func plainMatch(search string, failing bool, r *fleet.Row, id fleet.ID) bool {
	if failing && r.Failures == 0 {
		return false
	}
	needle := strings.ToLower(search)
	if strings.Contains(needle, ":") && strings.Contains(strings.ToLower(id.String()), needle) {
		return true
	}
	return strings.Contains(strings.ToLower(id.Name), needle)
}

// requireOrdered: known values in order, then the unknown ones.
func requireOrdered(t *rapid.T, v *view, q Query, got []int32) {
	c := columns[q.column]
	if c.text != nil {
		texts := make([]string, len(got))
		for i, at := range got {
			texts[i] = c.text(v, at)
		}
		if q.Down {
			slices.Reverse(texts)
		}
		if !sort.StringsAreSorted(texts) {
			t.Fatalf("%s is out of order: %q", c.name, texts)
		}
		return
	}
	unknown := false
	var last int64
	for i, at := range got {
		n, known := c.number(v, at)
		switch {
		case known && unknown:
			t.Fatalf("%s: a known value after an unknown one", c.name)
		case known && i > 0 && (q.Down && n > last || !q.Down && n < last):
			t.Fatalf("%s: %d after %d", c.name, n, last)
		}
		unknown, last = !known, n
	}
}

func TestTheWholeViewIsInTheAddress(t *testing.T) {
	for _, raw := range []string{"", "q=gsm8k+state:retired+-kind:table+%22a+b%22+pending:>%3D100", "search=a%26b&kind=rollout&kind=table&failing=true&sort=bytes&order=asc&limit=100&offset=300",
		"state=hot&backlog=true&unseen=true", "sort=last_write&order=asc"} {
		in, err := url.ParseQuery(raw)
		require.NoError(t, err)
		q, mistakes := parseQuery(in)
		require.Empty(t, mistakes)
		again, _ := parseQuery(q.values())
		require.Equal(t, q.values(), again.values())
		require.Equal(t, q.Text, again.Text)
		require.Len(t, again.terms, len(q.terms))
	}
}

func TestNumbersAreReadableAndHonest(t *testing.T) {
	require.Equal(t, "1,234,567", count(1_234_567))
	require.Equal(t, "-1,000", count(-1000))
	require.Equal(t, "999", count(999))
	require.Equal(t, "1.5 KiB", size(1536))
	require.Equal(t, "1.0 GiB", size(1<<30))
	require.Equal(t, "1.0 MiB", size(1<<20-1))
	require.Equal(t, "in 3 min", relative(1_000_000+200_000, 1_000_000))
	require.Equal(t, "now", relative(1_000_000, 1_000_500))
	require.Equal(t, "2 h ago", relative(0, 2*3_600_000+5))
	require.Equal(t, "2026-11-30 09:30:00 UTC", exact(testNow.UnixMilli()))
	require.Equal(t, "< $0.01", dollars(0.004))
	require.Equal(t, "350 ms", seconds(0.35))
	require.Equal(t, "2 min 05 s", seconds(125.3))
}
