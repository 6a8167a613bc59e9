package fleet

import (
	"strings"
	"time"
)

// ShardTail is what a close look at one shard's write-ahead log has found, as far as
// it is decided by.
type ShardTail struct {
	Shard       string
	Stranded    int64 // WAL entries that are in no generation and not in the base
	Unknown     int64 // of which nobody can tell
	NewestTime  int64 // of the newest entry with rows, unix ms
	TouchedTime int64 // of anything, unix ms
	Words       string
}

// ShardStep is what a merge does with one shard.
type ShardStep int

// The steps.
const (
	LeaveShard ShardStep = iota // to its live writer
	DrainShard                  // merge its generations
	SealShard                   // have its unflushed entries replayed, then merge
)

// Reach says which shards a merge keeps away from.
type Reach struct {
	LeaveWithin int64 // ms; those written within this are their writer's business; 0 = none is
	SilentFor   int64 // ms; the writer of one touched within this may live
}

// Reach of merges under a policy.
func (p Policy) Reach() Reach {
	r := Reach{SilentFor: p.LiveWithin.Milliseconds()}
	if p.LiveShards == LeaveLiveShards {
		r.LeaveWithin = r.SilentFor
	}
	return r
}

// Step is what a merge does with a shard, and a dry run says that it would do.
func (r Reach) Step(t ShardTail, now int64) ShardStep {
	switch {
	case within(t.NewestTime, r.LeaveWithin, now):
		return LeaveShard
	case t.Stranded > 0 && !r.Live(t, now):
		return SealShard
	}
	return DrainShard
}

// Live says whether the writer of a shard may live: what it has not flushed it may
// flush yet.
func (r Reach) Live(t ShardTail, now int64) bool { return within(t.TouchedTime, r.SilentFor, now) }

// within says whether a time is less than so many ms ago.
func within(at, ms, now int64) bool { return ms > 0 && at > now-ms }

// Unflushed words the entries of a shard that are in no generation. Only those whose
// writer is gone are stranded.
func (r Reach) Unflushed(t ShardTail, now int64) string {
	if !r.Live(t, now) {
		return t.Words
	}
	words := "shard " + t.Shard + ": " + Count(t.Stranded, "WAL entry") + " not flushed yet by a writer that may live (touched " + Ago(t.TouchedTime, now) +
		"); replayed after " + Age(time.Duration(r.SilentFor)*time.Millisecond) + " of silence"
	if t.Unknown > 0 {
		words += "; of " + Count(t.Unknown, "other") + " nobody can tell whether the base has or had their rows"
	}
	return words
}

// Reword says of entries that the native library calls stranded, since it knows no
// policy, whether their writer may live.
func (r Reach) Reword(sentences []string, tails []ShardTail, now int64) []string {
	out := make([]string, len(sentences))
	for i, sentence := range sentences {
		out[i] = sentence
		for _, t := range tails {
			if t.Words == sentence && t.Stranded > 0 {
				out[i] = r.Unflushed(t, now)
			}
		}
	}
	return out
}

// ForeseenMerge is one shard's part of a dry run.
type ForeseenMerge struct {
	Shard       string
	Refused     string // why not; "" = it would be merged
	Generations int64
}

// Foreseen sorts what stands in the way of a retirement before it begins.
type Foreseen struct {
	Clears []string // the run takes it away itself
	Stops  []string // it is still there when the run verifies, which refuses then
}

// Ends of sentences of the native library (native/src/verify.rs) about what a merge
// does away with. Whatever is worded otherwise stops.
const (
	notMergedYet  = " not merged yet"
	takenOutByOne = ": a merge takes them out"
)

// Foresee says what would become of a retirement: by the same steps for each shard
// as those of the run. sentences are what a verification would list now.
func (r Reach) Foresee(merges []ForeseenMerge, tails []ShardTail, sentences []string, now int64) Foreseen {
	var f Foreseen
	steps, refused, worded := map[string]ShardStep{}, map[string]bool{}, map[string]ShardTail{}
	for _, t := range tails {
		steps[t.Shard] = r.Step(t, now)
		if t.Words != "" {
			worded[t.Words] = t
		}
	}
	for _, m := range merges {
		if m.Refused != "" {
			refused[m.Shard] = true
			f.Stops = append(f.Stops, "shard "+m.Shard+": "+m.Refused)
		}
	}
	for _, sentence := range sentences {
		shard := shardOf(sentence)
		t, tail := worded[sentence]
		step, known := steps[shard]
		merged := known && step != LeaveShard && !refused[shard]
		switch {
		case tail && t.Unknown == 0 && step == SealShard:
			f.Clears = append(f.Clears, sentence)
		case tail:
			f.Stops = append(f.Stops, r.Unflushed(t, now))
		case refused[shard]: // said above
		case merged && (strings.HasSuffix(sentence, notMergedYet) || strings.HasSuffix(sentence, takenOutByOne)):
			f.Clears = append(f.Clears, sentence)
		case known && step == LeaveShard:
			f.Stops = append(f.Stops, sentence+" (left to its live writer)")
		default:
			f.Stops = append(f.Stops, sentence)
		}
	}
	return f
}

// shardOf is the shard that a sentence is about, "" if none.
func shardOf(sentence string) string {
	rest, ok := strings.CutPrefix(sentence, "shard ")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, " ")
	return strings.TrimSuffix(id, ":")
}
