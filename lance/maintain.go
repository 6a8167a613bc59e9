package lance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lancefleet/fleet"
)

// What follows rewrites experiments. Each call makes at most one bounded step and
// says what it did, so that whoever calls it can stop between two of them; each
// may be tried again at any time, and by two callers at once, without harm. The
// protocol is told in native/README.md and docs/retirement.md.

// Refusal says why a step was not made although it was asked for. Nothing was
// touched (see SealSpec for the one exception). Its codes are stable, its sentence is for people.
type Refusal struct {
	Code     string `json:"code"` // restarted_counter, mark_erased, twice_listed, schema, blob, sealed, live, unknown_tail
	Sentence string `json:"sentence"`
}

// MergeSpec asks for one pass over one shard: the contiguous run of generations
// after the recorded mark, oldest first, at most MaxGenerations and MaxBytes (a
// single larger one still moves).
type MergeSpec struct {
	URI            string `json:"uri"`
	Shard          string `json:"shard"`           // uuid
	RememberedMark uint64 `json:"remembered_mark"` // newest mark that our journal knows; 0 = none. A lower one in the table is refused
	MaxGenerations int    `json:"max_generations"`
	MaxBytes       int64  `json:"max_bytes"`
}

// Merged is what one pass did. Generations is 0 when nothing was pending.
type Merged struct {
	Shard          string         `json:"shard"`
	Refused        *Refusal       `json:"refused,omitempty"`
	From           uint64         `json:"from"` // generations From..To went into the base
	To             uint64         `json:"to"`
	Generations    int64          `json:"generations"`
	Rows           int64          `json:"rows"`    // that survived, newest per key
	Deletes        int64          `json:"deletes"` // tombstones applied
	Bytes          int64          `json:"bytes"`   // of the generations, -1 unknown
	Drained        int64          `json:"drained"` // taken out of the shard's manifest, those of an earlier attempt included
	VersionBefore  uint64         `json:"version_before"`
	Version        uint64         `json:"version"`
	MarkBefore     uint64         `json:"mark_before"`
	Mark           uint64         `json:"mark"`
	CoveredThrough uint64         `json:"covered_through"` // WAL entries up to here are in the base by proof; the flush cursor now says so
	Left           int64          `json:"left"`            // generations still pending
	Requests       fleet.Requests `json:"storage_requests"`
}

// CompactSpec asks for one pass over small fragments.
type CompactSpec struct {
	URI                string `json:"uri"`
	TargetRows         int64  `json:"target_rows"` // per fragment
	MaxSourceFragments int    `json:"max_source_fragments"`
	MaxSourceBytes     int64  `json:"max_source_bytes"`
	MinFragments       int    `json:"min_fragments"` // fewer that can be merged: no-op
}

// Compacted is what one pass did. Tasks is 0 when the plan was empty.
type Compacted struct {
	VersionBefore    uint64         `json:"version_before"`
	Version          uint64         `json:"version"`
	Tasks            int64          `json:"tasks"`
	FragmentsBefore  int64          `json:"fragments_before"`
	FragmentsAfter   int64          `json:"fragments_after"`
	FragmentsRemoved int64          `json:"fragments_removed"`
	FragmentsAdded   int64          `json:"fragments_added"`
	Rows             int64          `json:"rows"`
	Bytes            int64          `json:"bytes"` // read, -1 unknown
	More             bool           `json:"more"`  // another pass has something to do
	Requests         fleet.Requests `json:"storage_requests"`
}

// SealSpec asks to replay the stranded entries of one shard into a generation, by
// opening and closing a writer. Entries that are proven to be in the base or in a
// generation are stepped over first, so that they are not replayed. A tail too long
// to be looked at as a whole is refused (unknown_tail), but what is proven of it is
// stepped over all the same: the next call gets further.
type SealSpec struct {
	URI          string        `json:"uri"`
	Shard        string        `json:"shard"`
	SilentFor    time.Duration `json:"-"`             // refused (live) when the shard was touched within this
	AllowUnknown bool          `json:"allow_unknown"` // an operator decided: entries of unknown state are replayed too
}

// Sealed is what sealing did, or would do.
type Sealed struct {
	Shard      string         `json:"shard"`
	Refused    *Refusal       `json:"refused,omitempty"`
	Entries    []TailEntry    `json:"entries"` // replayed
	Rows       int64          `json:"rows"`
	Generation uint64         `json:"generation"` // that they went into; 0 = none
	Epoch      uint64         `json:"epoch"`
	Manifest   uint64         `json:"manifest"` // of the shard, afterwards
	Requests   fleet.Requests `json:"storage_requests"`
}

// AcceptSpec asks that an operator's decision about shards count, which every merge
// refuses (restarted_counter, mark_erased): their table was restored or overwritten,
// or they were removed and made anew.
type AcceptSpec struct {
	URI             string            `json:"uri"`
	RememberedMarks map[string]uint64 `json:"remembered_marks"` // by shard
	LeaveOut        bool              `json:"leave_out"`        // what is listed is taken out without being merged
	Seen            string            `json:"seen"`             // of the preview that was looked at: anything else is refused (moved)
	Decision        string            `json:"decision"`         // whose it is: the same one is carried out once
}

// Accepted is what a decision did, or would do. Nothing is merged by it: merges go on
// from the marks that it sets.
type Accepted struct {
	Refused       *Refusal        `json:"refused,omitempty"` // nothing_refused, moved, mixed
	Seen          string          `json:"seen"`              // what is there, in a word
	VersionBefore uint64          `json:"version_before"`
	Version       uint64          `json:"version"`
	Shards        []AcceptedShard `json:"shards"` // those that stand refused, and no others
	Requests      fleet.Requests  `json:"storage_requests"`
}

// AcceptedShard is one shard's part of an Accepted.
type AcceptedShard struct {
	Shard       string   `json:"shard"`
	Code        string   `json:"code"` // restarted_counter, mark_erased
	MarkBefore  uint64   `json:"mark_before"`
	Mark        uint64   `json:"mark"`        // of the table, from then on
	Remembered  uint64   `json:"remembered"`  // newest mark that journal or history know
	Generations int64    `json:"generations"` // that are merged from then on, or left out
	Rows        int64    `json:"rows"`        // in these, at most
	Bytes       int64    `json:"bytes"`       // -1 unknown
	Sentences   []string `json:"sentences"`   // the cause, what would be done, what comes of it
}

// TailEntry is one WAL entry past the flush cursor that has rows.
type TailEntry struct {
	Position uint64 `json:"position"`
	Rows     int64  `json:"rows"`
	Time     int64  `json:"time"`  // unix ms
	State    string `json:"state"` // contained, in_base, superseded, stranded, unknown
}

// Tail says what the WAL entries past one shard's flush cursor are.
type Tail struct {
	Shard          string      `json:"shard"`
	Cursor         uint64      `json:"cursor"`
	Next           uint64      `json:"next"`    // first position without an entry
	Entries        int64       `json:"entries"` // with rows
	Contained      int64       `json:"contained"`
	InBase         int64       `json:"in_base"`
	Superseded     int64       `json:"superseded"`
	Stranded       int64       `json:"stranded"`
	Unknown        int64       `json:"unknown"`
	StrandedRows   int64       `json:"stranded_rows"`
	Damaged        int64       `json:"damaged"`         // of the unknown ones, those that can't be read
	CoveredThrough uint64      `json:"covered_through"` // every entry up to here is contained, in the base or superseded
	NewestTime     int64       `json:"newest_time"`     // of the newest entry with rows, also of one that was flushed, unix ms
	TouchedTime    int64       `json:"touched_time"`    // of the newest entry at all or of the shard's manifest: claims and our own drains count
	Listed         []TailEntry `json:"listed"`          // at most 32, those not accounted for first
	Sentence       string      `json:"sentence,omitempty"`
}

// Seen is the tail as decisions take it.
func (t Tail) Seen() fleet.ShardTail {
	return fleet.ShardTail{
		Shard: t.Shard, Stranded: t.Stranded, Unknown: t.Unknown, NewestTime: t.NewestTime, TouchedTime: t.TouchedTime, Words: t.Sentence,
	}
}

// SeenTails are all of them.
func SeenTails(tails []Tail) []fleet.ShardTail {
	seen := make([]fleet.ShardTail, len(tails))
	for i, t := range tails {
		seen[i] = t.Seen()
	}
	return seen
}

// SweepSpec asks for the folders of drained generations to go.
type SweepSpec struct {
	URI          string        `json:"uri"`
	Grace        time.Duration `json:"-"` // since the drain, where a mark proves that the base has the generation
	UnknownGrace time.Duration `json:"-"` // for folders without such proof
}

// Swept lists what went and what stays why.
type Swept struct {
	Deleted  []SweptFolder  `json:"deleted"`
	Kept     []SweptFolder  `json:"kept"`
	Bytes    int64          `json:"bytes"` // freed
	Requests fleet.Requests `json:"storage_requests"`
}

// SweptFolder is one generation's folder that no manifest names.
type SweptFolder struct {
	Shard string `json:"shard"`
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Why   string `json:"why,omitempty"` // it stays
	Due   int64  `json:"due,omitempty"` // unix ms at which only waiting is left; 0 = waiting does not help
}

// CleanedVersions is what a cleanup of an experiment's old versions did.
type CleanedVersions struct {
	Removed  int64          `json:"removed"`
	Bytes    int64          `json:"bytes"`
	Held     []HeldVersion  `json:"held"` // by tags and branches
	Requests fleet.Requests `json:"storage_requests"`
}

// HeldVersion is one that a tag or branch keeps.
type HeldVersion struct {
	By      string `json:"by"` // "tag v1", "branch dev"
	Version uint64 `json:"version"`
}

// VerifyOptions of [Reader.Verify].
type VerifyOptions struct {
	Deep bool // also compare rows with distinct keys: reads the key columns
}

// PreviewSpec asks what maintenance would do, by the same limits.
type PreviewSpec struct {
	URI              string            `json:"uri"`
	RememberedMarks  map[string]uint64 `json:"remembered_marks"` // by shard
	TargetRows       int64             `json:"target_rows"`
	MinFragments     int               `json:"min_fragments"`
	CleanupOlderThan time.Duration     `json:"-"` // 0 = no cleanup
}

// Preview is what maintenance would find. Nothing is written.
type Preview struct {
	Merge    []MergePreview  `json:"merge"`
	Compact  Compacted       `json:"compact"`  // the whole plan, not one pass
	Versions CleanedVersions `json:"versions"` // that a cleanup would remove
	Tails    []Tail          `json:"tails"`
	Blocking []string        `json:"blocking"` // sentences: what stops a retirement now
	Requests fleet.Requests  `json:"storage_requests"`
}

// MergePreview is one shard's part of a Preview.
type MergePreview struct {
	Shard       string   `json:"shard"`
	Refused     *Refusal `json:"refused,omitempty"`
	Generations int64    `json:"generations"`
	Rows        int64    `json:"rows"`  // at most: repeated keys included; -1 unknown
	Bytes       int64    `json:"bytes"` // -1 unknown
}

// Carrier takes an operation of maintenance to a native library, this process's or
// another's, and brings back its answer.
type Carrier func(ctx context.Context, op, uri string, args json.RawMessage) (json.RawMessage, error)

// Maintainer makes the calls of maintenance through a carrier.
type Maintainer struct{ carry Carrier }

// NewMaintainer makes the calls through c; [Engine.Carry] is the other end.
func NewMaintainer(c Carrier) *Maintainer { return &Maintainer{c} }

// Maintainer makes the calls in this process. A worker makes them in a child
// process instead: see package subprocess.
func (e *Engine) Maintainer() *Maintainer { return NewMaintainer(e.Carry) }

// operations of maintenance; nothing else is carried.
const (
	opMerge    = "merge_wal"
	opCompact  = "compact"
	opSeal     = "seal_shard"
	opAccept   = "accept_shards"
	opSweep    = "sweep_generations"
	opCleanup  = "cleanup_dataset"
	opClassify = "classify_tail"
	opVerify   = "verify"
	opPreview  = "preview"
)

// Carry runs one operation of maintenance as it arrived from a [Carrier].
func (e *Engine) Carry(ctx context.Context, op, uri string, args json.RawMessage) (json.RawMessage, error) {
	switch op {
	case opMerge, opCompact, opSeal, opAccept, opSweep, opCleanup, opClassify, opVerify:
		return e.carry(ctx, op, uri, args)
	}
	return nil, &Error{Class: Invalid, Op: op, URI: uri, Message: fmt.Sprintf("%q is no operation of maintenance", op)}
}

func (r *Reader) carry(ctx context.Context, op, uri string, args json.RawMessage) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, r, op, uri, args, nil)
}

// MergeWAL makes one merge pass.
func (m *Maintainer) MergeWAL(ctx context.Context, s MergeSpec) (Merged, error) {
	return maintain[Merged](ctx, m.carry, opMerge, s.URI, struct {
		MergeSpec
		Property string `json:"property"`
	}{s, fleet.ActionProperty})
}

// Compact makes one compaction pass. A conflict with a writer is [ErrConflict].
func (m *Maintainer) Compact(ctx context.Context, s CompactSpec) (Compacted, error) {
	return maintain[Compacted](ctx, m.carry, opCompact, s.URI, struct {
		CompactSpec
		Property string `json:"property"`
	}{s, fleet.ActionProperty})
}

// SealShard replays one shard's stranded entries into a generation.
func (m *Maintainer) SealShard(ctx context.Context, s SealSpec) (Sealed, error) {
	return maintain[Sealed](ctx, m.carry, opSeal, s.URI, sealArgs{s, milliseconds(s.SilentFor), false})
}

// PreviewSeal says what SealShard would replay.
func (r *Reader) PreviewSeal(ctx context.Context, s SealSpec) (Sealed, error) {
	return maintain[Sealed](ctx, r.carry, opSeal, s.URI, sealArgs{s, milliseconds(s.SilentFor), true})
}

type sealArgs struct {
	SealSpec
	SilentMS int64 `json:"silent_ms"`
	DryRun   bool  `json:"dry_run"`
}

// AcceptShards makes a decision count, by one commit to the table.
func (m *Maintainer) AcceptShards(ctx context.Context, s AcceptSpec) (Accepted, error) {
	return accept(ctx, m.carry, s, false)
}

// PreviewAccept says what a decision would be about, and what would come of it.
func (r *Reader) PreviewAccept(ctx context.Context, s AcceptSpec) (Accepted, error) {
	return accept(ctx, r.carry, s, true)
}

func accept(ctx context.Context, carry Carrier, s AcceptSpec, dry bool) (Accepted, error) {
	if s.RememberedMarks == nil {
		s.RememberedMarks = map[string]uint64{}
	}
	return maintain[Accepted](ctx, carry, opAccept, s.URI, struct {
		AcceptSpec
		DryRun   bool   `json:"dry_run"`
		Property string `json:"property"`
	}{s, dry, fleet.ActionProperty})
}

// SweepGenerations deletes the folders of drained generations whose grace is over.
func (m *Maintainer) SweepGenerations(ctx context.Context, s SweepSpec) (Swept, error) {
	return maintain[Swept](ctx, m.carry, opSweep, s.URI, struct {
		SweepSpec
		GraceMS        int64 `json:"grace_ms"`
		UnknownGraceMS int64 `json:"unknown_grace_ms"`
	}{s, milliseconds(s.Grace), milliseconds(s.UnknownGrace)})
}

// CleanExperiment removes versions older than olderThan that no tag or branch
// holds, and their files. Files that nobody can prove to be unused stay.
func (m *Maintainer) CleanExperiment(ctx context.Context, uri string, olderThan time.Duration) (CleanedVersions, error) {
	return maintain[CleanedVersions](ctx, m.carry, opCleanup, uri, struct {
		URI         string `json:"uri"`
		OlderThanMS int64  `json:"older_than_ms"`
	}{uri, milliseconds(olderThan)})
}

// ClassifyTail says what the WAL entries past the flush cursors are, for every shard.
func (m *Maintainer) ClassifyTail(ctx context.Context, uri string) ([]Tail, error) {
	return classifyTail(ctx, m.carry, uri)
}

// ClassifyTail is [Maintainer.ClassifyTail] in this process: it only reads.
func (r *Reader) ClassifyTail(ctx context.Context, uri string) ([]Tail, error) {
	return classifyTail(ctx, r.carry, uri)
}

func classifyTail(ctx context.Context, carry Carrier, uri string) ([]Tail, error) {
	answer, err := maintain[struct {
		Shards []Tail `json:"shards"`
	}](ctx, carry, opClassify, uri, struct {
		URI string `json:"uri"`
	}{uri})
	return answer.Shards, err
}

// Verify reopens everything, without caches, and says what is pending, stranded
// or unknown. An experiment that moved while it was looked at is [ErrConflict].
func (m *Maintainer) Verify(ctx context.Context, uri string, o VerifyOptions) (fleet.Evidence, error) {
	return verify(ctx, m.carry, uri, o)
}

// Verify is [Maintainer.Verify] in this process: it only reads.
func (r *Reader) Verify(ctx context.Context, uri string, o VerifyOptions) (fleet.Evidence, error) {
	return verify(ctx, r.carry, uri, o)
}

func verify(ctx context.Context, carry Carrier, uri string, o VerifyOptions) (fleet.Evidence, error) {
	return maintain[fleet.Evidence](ctx, carry, opVerify, uri, struct {
		URI  string `json:"uri"`
		Deep bool   `json:"deep"`
	}{uri, o.Deep})
}

// Preview says what maintenance would do.
func (r *Reader) Preview(ctx context.Context, s PreviewSpec) (Preview, error) {
	if s.RememberedMarks == nil {
		s.RememberedMarks = map[string]uint64{}
	}
	return maintain[Preview](ctx, r.carry, opPreview, s.URI, struct {
		PreviewSpec
		OlderThanMS int64 `json:"older_than_ms"`
	}{s, milliseconds(s.CleanupOlderThan)})
}

func maintain[T any](ctx context.Context, carry Carrier, op, uri string, args any) (T, error) {
	var answer T
	if err := checkURI(op, uri); err != nil {
		return answer, err
	}
	sent, err := json.Marshal(args)
	if err != nil {
		return answer, &Error{Class: Invalid, Op: op, URI: uri, Message: err.Error()}
	}
	js, err := carry(ctx, op, uri, sent)
	if err != nil {
		return answer, err
	}
	return answer, decode(js, op, uri, &answer)
}
