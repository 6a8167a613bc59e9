// Package doctor looks at everything that a fleet needs and says in plain words what
// is wrong, what that means, and what to do. It changes nothing: it writes one probe
// object below `_lancefleet/` and removes it, and not even that when asked not to.
package doctor

import (
	"fmt"
	"time"

	"lancefleet/lance"
)

// Status of a finding.
type Status string

// The statuses. Only a failure is one: a fleet with warnings runs.
const (
	OK      Status = "ok"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Skipped Status = "skipped" // could not be looked at, or was not to be
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Found  string `json:"found"`           // one sentence
	Means  string `json:"means,omitempty"` // of warnings and failures
	Do     string `json:"do,omitempty"`
}

// Report is all of them, in the order in which things depend on each other.
type Report struct {
	Findings []Finding `json:"checks"`
	OK       int       `json:"ok"`
	Warn     int       `json:"warn"`
	Fail     int       `json:"fail"`
	Skipped  int       `json:"skipped"`
}

// Add counts findings in.
func (r *Report) Add(findings ...Finding) {
	for _, f := range findings {
		r.Findings = append(r.Findings, f)
		switch f.Status {
		case OK:
			r.OK++
		case Warn:
			r.Warn++
		case Fail:
			r.Fail++
		case Skipped:
			r.Skipped++
		}
	}
}

func fine(check, format string, args ...any) Finding {
	return Finding{Check: check, Status: OK, Found: fmt.Sprintf(format, args...)}
}

func skipped(check, why string) Finding {
	return Finding{Check: check, Status: Skipped, Found: why}
}

// trouble is a warning or a failure: what was found, what it means, what to do.
func trouble(status Status, check, found, means, do string) Finding {
	return Finding{Check: check, Status: status, Found: found, Means: means, Do: do}
}

// storageTrouble words a failure of storage by its class.
func storageTrouble(check, doing string, err error) Finding {
	f := trouble(Fail, check, doing+": "+err.Error(), "no round can run", "see the sentence; docs/operations.md, When rounds fail")
	switch lance.ClassOf(err) {
	case lance.Denied:
		f.Means = "the credentials of this process are missing, wrong, or may not do this"
		f.Do = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or the role, GOOGLE_*, AZURE_*) and the bucket's policy: docs/own-data.md lists what is needed"
	case lance.Unreachable, lance.Timeout:
		f.Means = "storage gives no answer"
		f.Do = "check AWS_ENDPOINT_URL, AWS_REGION, the network, and AWS_ALLOW_HTTP=true for a plain http endpoint"
	case lance.Gone:
		f.Means = "it is not there, or the name is wrong"
		f.Do = "check DATA_DIR; a bucket has to exist"
	case lance.Corrupt:
		f.Means = "a table of lancefleet or a registry is damaged"
		f.Do = "docs/data-directory.md says which may be moved away: they are made again"
	}
	return f
}

const (
	skewWarns = 5 * time.Second
	skewFails = time.Minute
)

// Skew judges a clock against ours. Ages, back-offs and graces are compared between
// the clocks of workers, storage and Temporal.
func Skew(check, whose string, theirs, before, after time.Time) Finding {
	var skew time.Duration
	switch { // theirs was read at some moment between
	case theirs.Before(before):
		skew = before.Sub(theirs)
	case theirs.After(after):
		skew = theirs.Sub(after)
	}
	found := fmt.Sprintf("the clock of %s differs from this machine's by %s", whose, skew.Round(100*time.Millisecond))
	const means, do = "ages, graces and retirements are judged wrongly by that much", "keep both by NTP or chrony"
	switch {
	case skew >= skewFails:
		return trouble(Fail, check, found, means, do)
	case skew >= skewWarns:
		return trouble(Warn, check, found, means, do)
	}
	return fine(check, "the clock of %s agrees with this machine's", whose)
}
