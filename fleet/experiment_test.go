package fleet

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNamesThatWouldEscapeOrConfuseAreRefused(t *testing.T) {
	for why, name := range map[string]string{
		"empty":                     "",
		"this folder":               ".",
		"the folder above":          "..",
		"a way out":                 "../../etc/passwd",
		"a subfolder":               "a/b",
		"a backslash":               `a\b`,
		"hidden":                    ".ssh",
		"looks like an option":      "-rf",
		"a line end":                "a\n",
		"a NUL":                     "a\x00b",
		"a space":                   "a b",
		"a wildcard":                "a*",
		"a percent sign":            "a%2e",
		"another prefix":            "rollout:a",
		"letters beyond ASCII":      "größe",
		"a broken encoding":         "a\xff",
		"a quote":                   "a'b",
		"longer than an object key": strings.Repeat("a", MaxNameLength+1),
		"our own statistics":        "_stats",
		"the registry":              "_registry",
		"our ledger":                "_retired",
		"our journal":               "_journal",
		"our rounds":                "_rounds",
		"our samples":               "_samples",
		"our objects":               "_lancefleet",
	} {
		t.Run(why, func(t *testing.T) { require.Error(t, ValidateName(name)) })
	}
}

func TestOrdinaryNamesAreAccepted(t *testing.T) {
	for _, name := range []string{"a", "_", "_mine", "run-7", "v1.2_final", "0", "A..b", "_stats2", strings.Repeat("a", MaxNameLength)} {
		require.NoError(t, ValidateName(name), name)
	}
}

func TestAFolderNameSaysKindAndName(t *testing.T) {
	for folder, want := range map[string]string{
		"x.rollout.lance":         "rollout:x",
		"x.generic.lance":         "generic:x",
		"x.datagen.lance":         "datagen:x",
		"x.lance":                 "table:x",
		"a.b.rollout.lance":       "rollout:a.b",
		"rollout.lance":           "table:rollout",
		"x.rollouts.lance":        "table:x.rollouts",
		"x.rollout.lance.lance":   "table:x.rollout.lance",
		"_stats.rollout.lance":    "",
		"_registry.datagen.lance": "",
		"_retired.lance":          "",
		".rollout.lance":          "",
		".lance":                  "",
		"lance":                   "",
		"x.parquet":               "",
		"x.LANCE":                 "",
		"-x.lance":                "",
		"..lance":                 "",
		"a b.lance":               "",
	} {
		t.Run(folder, func(t *testing.T) {
			id, ok := KindOfFolder(folder)
			assert.Equal(t, want != "", ok)
			if ok {
				assert.Equal(t, want, id.String())
				assert.Equal(t, folder, id.Folder())
			}
		})
	}
}

func TestWhatAPersonTypesMeansTheExperimentsItMatches(t *testing.T) {
	bare, err := ParseRef("x")
	require.NoError(t, err)
	assert.Equal(t, "x", bare.String())
	assert.True(t, bare.Matches(ID{Rollout, "x"}))
	assert.True(t, bare.Matches(ID{Table, "x"}))
	assert.False(t, bare.Matches(ID{Rollout, "y"}))

	full, err := ParseRef("table:x")
	require.NoError(t, err)
	assert.Equal(t, "table:x", full.String())
	assert.True(t, full.Matches(ID{Table, "x"}))
	assert.False(t, full.Matches(ID{Rollout, "x"}))

	for _, wrong := range []string{"", ":", "table:", ":x", "tables:x", "table:a:b", "table:_stats", "Table:x"} {
		_, err := ParseRef(wrong)
		require.Error(t, err, wrong)
	}
}

func TestABareNameInTheStatisticsIsARollout(t *testing.T) {
	id, err := ParseStatsName("x")
	require.NoError(t, err)
	assert.Equal(t, ID{Rollout, "x"}, id)
	_, err = ParseStatsName("generic:../x")
	require.Error(t, err, "the name is validated after the prefix")
}

func drawName(t *rapid.T) string {
	name := rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9._-]{0,20}`).Draw(t, "name")
	if Reserved(name) {
		return "x" + name
	}
	return name
}

func drawID(t *rapid.T) ID {
	return ID{rapid.SampledFrom(Kinds()).Draw(t, "kind"), drawName(t)}
}

func TestEveryFormOfAnIDReadsBackAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := drawID(t)
		stats, err := ParseStatsName(id.StatsName())
		require.NoError(t, err)
		assert.Equal(t, id, stats)
		full, err := ParseStatsName(id.String())
		require.NoError(t, err)
		assert.Equal(t, id, full)
	})
}

func TestIDsAreOrderedAsTheirTextIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawID(t), drawID(t)
		assert.Equal(t, strings.Compare(a.String(), b.String()), a.Compare(b))
	})
}

func TestNoParserAcceptsWhatTheNameRuleRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "anything")
		if id, err := ParseStatsName(s); err == nil {
			require.NoError(t, ValidateName(id.Name))
			assert.True(t, slices.Contains(Kinds(), id.Kind))
		}
		if id, ok := KindOfFolder(s + ".lance"); ok {
			require.NoError(t, ValidateName(id.Name))
		}
	})
}
