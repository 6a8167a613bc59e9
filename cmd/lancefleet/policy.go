package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"lancefleet/fleet"
)

// policyFlags say when experiments are merged, compacted and retired. The worker
// acts by them and the web server explains by them: give both the same file.
type policyFlags struct {
	RetireAfter            seconds     `help:"An experiment that nobody has written for so long is retired; 0 = never." default:"7d" env:"RETIRE_AFTER,STATS_COLD_RETIRE_SECS"`
	MergeMinGenerations    atLeastZero `help:"Pending generations that are worth a merge; 0 = never." default:"8" env:"MERGE_MIN_GENERATIONS,MERGE_WAL_MIN_GENERATIONS"`
	MergeTailsAfter        seconds     `help:"Fewer are merged too when nothing was written for so long; 0 = never." default:"1d" env:"MERGE_TAILS_AFTER,MERGE_WAL_TAIL_INTERVAL_SECS"`
	CompactMinFragments    atLeastZero `help:"Small fragments that are worth a compaction; 0 = never." default:"16" env:"COMPACT_MIN_FRAGMENTS,MIN_FRAGMENTS"`
	TargetRowsPerFragment  atLeastOne  `help:"Wanted rows of a fragment, at most." default:"1048576" env:"TARGET_ROWS_PER_FRAGMENT"`
	TargetBytesPerFragment byteSize    `help:"Wanted size of a fragment: where rows are wide it has fewer of them." default:"1GiB" env:"TARGET_BYTES_PER_FRAGMENT,COMPACTION_MAX_BYTES_PER_FILE"`
	CleanupOlderThan       seconds     `help:"Versions of experiments that are older go when they are optimized, except those that a tag or branch holds; 0 = never: history is the user's." default:"0" env:"CLEANUP_OLDER_THAN"`
	LiveShards             string      `help:"merge or leave: what to do with shards that were written within --live-within." enum:"merge,leave" default:"merge" env:"LIVE_SHARDS"`
	LiveWithin             seconds     `help:"A shard that was written within this is live; one that was not is taken to have lost its writer, and what that left unflushed is replayed." default:"1h" env:"LIVE_WITHIN"`
	QuietWindow            quietWindow `help:"Time of day in which no maintenance starts, UTC, such as 22:00-06:00; unset: none." env:"QUIET_WINDOW" placeholder:"FROM-TO"`
	CooldownAfterFailures  atLeastZero `help:"Failures in a row after which a kind of maintenance rests; 0 = never." default:"3" env:"COOLDOWN_AFTER_FAILURES,TASK_COOLDOWN_AFTER_FAILURES"`
	CooldownBase           seconds     `help:"How long it rests then; doubled with every further failure." default:"10m" env:"COOLDOWN_BASE,TASK_COOLDOWN_BASE_SECS"`
	CooldownMax            seconds     `help:"But never longer than this." default:"6h" env:"COOLDOWN_MAX,TASK_COOLDOWN_MAX_SECS"`
	MergeBudget            atLeastZero `help:"Merges that one round may start." default:"50" env:"MERGE_BUDGET"`
	CompactBudget          atLeastZero `help:"Compactions that one round may start." default:"50" env:"COMPACT_BUDGET"`
	RetireBudget           atLeastZero `help:"Retirements that one round may start." default:"50" env:"RETIRE_BUDGET"`
	SealSilentFor          folded      `name:"seal-silent-for" help:"One setting with --live-within now: refused." hidden:"" into:"--live-within (LIVE_WITHIN)" env:"SEAL_SILENT_FOR"`
	Overrides              overrides   `help:"What differs for some experiments: a list of mappings, best kept in the file; see docs/configuration.md." env:"OVERRIDES" placeholder:"YAML"`
}

// policies are those that the flags describe. Where maintenance is off, no
// override turns it on.
func (f policyFlags) policies(maintain bool) (fleet.Policies, error) {
	p := fleet.Policies{Default: fleet.Policy{
		Maintain: maintain, RetireAfter: time.Duration(f.RetireAfter),
		MergeMinGenerations: int64(f.MergeMinGenerations), MergeTailsAfter: time.Duration(f.MergeTailsAfter),
		CompactMinFragments: int64(f.CompactMinFragments), TargetBytes: int64(f.TargetBytesPerFragment), TargetRows: int64(f.TargetRowsPerFragment),
		CleanupOlderThan: time.Duration(f.CleanupOlderThan), LiveShards: fleet.LiveShards(f.LiveShards), LiveWithin: time.Duration(f.LiveWithin),
		QuietWindow: fleet.Window(f.QuietWindow), CooldownAfter: int64(f.CooldownAfterFailures),
		CooldownBase: time.Duration(f.CooldownBase), CooldownMax: time.Duration(f.CooldownMax),
	}}
	for _, o := range f.Overrides {
		if !maintain {
			o.Maintain = nil
		}
		p.Overrides = append(p.Overrides, o)
	}
	if err := p.Validate(); err != nil {
		return p, usageError{fmt.Errorf("policy: %w", err)}
	}
	return p, nil
}

func (f policyFlags) budgets() fleet.Budgets {
	return fleet.Budgets{Merge: int(f.MergeBudget), Compact: int(f.CompactBudget), Retire: int(f.RetireBudget)}
}

// folded is a setting of earlier versions that another one stands for now. Giving it
// is refused: left alone it would say something that nobody acts by.
type folded struct{}

// Decode names the setting to use.
func (folded) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("value")
	if err != nil {
		return err
	}
	return fmt.Errorf("%q: it is one setting with %s now: give that", fmt.Sprint(token.Value), ctx.Value.Tag.Get("into"))
}

// atLeastZero is a count.
type atLeastZero int64

// Decode reads a whole number.
func (n *atLeastZero) Decode(ctx *kong.DecodeContext) error {
	read, err := countFrom(ctx, 0)
	*n = atLeastZero(read)
	return err
}

// atLeastOne is a count that can't be none.
type atLeastOne int64

// Decode reads a whole number.
func (n *atLeastOne) Decode(ctx *kong.DecodeContext) error {
	read, err := countFrom(ctx, 1)
	*n = atLeastOne(read)
	return err
}

const mostCount = 1 << 40

func countFrom(ctx *kong.DecodeContext, least int64) (int64, error) {
	token, err := ctx.Scan.PopValue("whole number")
	if err != nil {
		return 0, err
	}
	return parseCount(fmt.Sprint(token.Value), least)
}

func parseCount(text string, least int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > mostCount {
		return 0, fmt.Errorf("%q: a whole number is allowed, at least %d", text, least)
	}
	return n, nil
}

// byteSize is a number of bytes.
type byteSize int64

// Decode reads "1GiB", "512MiB" or a number of bytes.
func (n *byteSize) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("size")
	if err != nil {
		return err
	}
	*n, err = parseSize(fmt.Sprint(token.Value))
	return err
}

var sizePattern = regexp.MustCompile(`^(\d+)\s*([KMGT]i?B?|B)?$`)

// parseSize reads sizes; K, M, G and T are powers of 1024 however they are written.
func parseSize(text string) (byteSize, error) {
	m := sizePattern.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q: a size such as 512MiB or 1GiB is allowed, or bytes", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := 0
	if m[2] != "" {
		shift = 10 * (strings.IndexByte("BKMGT", m[2][0]))
	}
	if err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q: a size such as 512MiB or 1GiB is allowed, or bytes", text)
	}
	return byteSize(n << shift), nil
}

// quietWindow is a time of day.
type quietWindow fleet.Window

// Decode reads "22:00-06:00".
func (w *quietWindow) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("time of day")
	if err != nil {
		return err
	}
	*w, err = parseWindow(fmt.Sprint(token.Value))
	return err
}

func parseWindow(text string) (quietWindow, error) {
	from, to, found := strings.Cut(strings.TrimSpace(text), "-")
	begin, err := time.Parse("15:04", strings.TrimSpace(from))
	end, err2 := time.Parse("15:04", strings.TrimSpace(to))
	if !found || err != nil || err2 != nil {
		return quietWindow{}, fmt.Errorf("%q: two times of day such as 22:00-06:00 are allowed, UTC", text)
	}
	return quietWindow{From: sinceMidnight(begin), To: sinceMidnight(end)}, nil
}

func sinceMidnight(t time.Time) time.Duration {
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}
