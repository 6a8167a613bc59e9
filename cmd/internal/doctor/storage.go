package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/store"
)

// Storage is what the checks need of the engine; lance.Engine is one.
type Storage interface {
	store.Reader
	Observe(ctx context.Context, targets []lance.ObserveTarget, o lance.ObserveOptions) ([]lance.ObserveResult, error)
	Put(ctx context.Context, uri string, body []byte, o lance.PutOptions) (string, error)
	Delete(ctx context.Context, uris ...string) (int64, error)
}

const (
	sampled       = 20 // experiments that are looked at closely
	sampleTimeout = 10 * time.Second
	storageLimit  = 30 * time.Second // for one question
)

// Place is the data directory to look at.
type Place struct {
	DataDir  string
	Fleet    string
	Sources  store.SourceMode
	ReadOnly bool
	Now      func() time.Time
}

// Storage looks at the data directory. When it can't be read at all, nothing else of
// it is asked.
func (p Place) Storage(ctx context.Context, s Storage) []Finding {
	first := p.readable(ctx, s)
	if first.Status == Fail {
		return []Finding{first}
	}
	found := append([]Finding{first, p.identity(ctx, s)}, p.sources(ctx, s)...)
	return append(found, p.conditionalWrites(ctx, s)...)
}

func (p Place) readable(ctx context.Context, s Storage) Finding {
	ctx, cancel := context.WithTimeout(ctx, storageLimit)
	defer cancel()
	names, err := s.ListDirs(ctx, p.DataDir)
	if err != nil {
		return storageTrouble("data directory", "list "+p.DataDir, err)
	}
	return fine("data directory", "%s can be listed: %s", p.DataDir, fleet.Count(int64(len(names)), "folder"))
}

func (p Place) identity(ctx context.Context, s Storage) Finding {
	const check = "identity"
	there, err := store.ReadIdentity(ctx, s, p.DataDir)
	switch {
	case err != nil:
		return storageTrouble(check, "read _lancefleet/fleet.json", err)
	case there == nil:
		return trouble(Warn, check, "no fleet has claimed this directory yet", "no worker has ever run on it", "start a worker; it writes _lancefleet/fleet.json")
	case there.Name != p.Fleet:
		return trouble(Fail, check, fmt.Sprintf("it belongs to the fleet %q, not %q", there.Name, p.Fleet), "a worker with these settings refuses to start",
			"set FLEET="+there.Name+", or use another DATA_DIR")
	}
	return fine(check, "it belongs to the fleet %q, id %s", there.Name, there.FleetID)
}

func (p Place) sources(ctx context.Context, s Storage) []Finding {
	const check = "sources"
	listing, err := store.NewSources(s, p.DataDir, p.Sources).List(ctx)
	if err != nil {
		return []Finding{storageTrouble(check, "list experiments", err), skipped("experiments", "the sources could not be read")}
	}
	found := fine(check, "%s in %s", fleet.Count(int64(len(listing.Experiments)), "experiment"), strings.Join(listing.From, ", "))
	switch n := len(listing.Problems); {
	case n > 0:
		first := listing.Problems[0]
		found = trouble(Warn, check, fmt.Sprintf("%s of %d can't be used, the first is %q: %s", fleet.Count(int64(n), "name"), n+len(listing.Experiments), first.Name, first.Why),
			"these are left out of rounds; the others are not affected", "rename or remove them where they are named; the worker's log lists all")
	case len(listing.Experiments) == 0:
		found = trouble(Warn, check, "no source names an experiment", "there is nothing to look at", "check DATA_DIR and SOURCES (registry, folder, or registry,folder)")
	}
	return []Finding{found, p.experiments(ctx, s, listing.Experiments)}
}

// experiments looks at some, spread over all of them.
func (p Place) experiments(ctx context.Context, s Storage, all []fleet.Experiment) Finding {
	const check = "experiments"
	if len(all) == 0 {
		return skipped(check, "there are none")
	}
	n := min(len(all), sampled)
	targets := make([]lance.ObserveTarget, n)
	for i := range targets {
		targets[i].URI = all[i*len(all)/n].URI
	}
	answers, err := s.Observe(ctx, targets, lance.ObserveOptions{BatchOptions: lance.BatchOptions{Concurrency: n, Timeout: sampleTimeout}})
	if err != nil {
		return storageTrouble(check, "observe "+fleet.Count(int64(n), "experiment"), err)
	}
	var failed []string
	for i, answer := range answers {
		if answer.Err != nil {
			failed = append(failed, targets[i].URI+": "+answer.Err.Message)
		}
	}
	switch {
	case len(failed) == n:
		return trouble(Fail, check, fmt.Sprintf("none of %d looked at can be read, the first: %s", n, failed[0]), "credentials or paths are wrong for where the registry says they are",
			"check that uris in the registry are right as seen from here, and the permissions there")
	case len(failed) > 0:
		return trouble(Warn, check, fmt.Sprintf("%d of %d looked at can't be read, the first: %s", len(failed), n, failed[0]), "these keep their old numbers and are asked less and less often",
			"lancefleet ls --sort failures, or the list in the browser, shows all that fail")
	}
	return fine(check, "%d looked at, all can be read", n)
}

// conditionalWrites puts an object only if it is absent, twice: the second must be
// refused. Everything that lancefleet commits rests on that.
func (p Place) conditionalWrites(ctx context.Context, s Storage) []Finding {
	const check, clock = "conditional writes", "storage clock"
	if p.ReadOnly {
		return []Finding{skipped(check, "--read-only: nothing is written"), skipped(clock, "--read-only: nothing is written")}
	}
	uri, err := store.Locate(p.DataDir, "_lancefleet/doctor-"+rand.Text()+".probe")
	if err != nil {
		return []Finding{storageTrouble(check, "name a probe object", err)}
	}
	defer func() { _, _ = s.Delete(context.WithoutCancel(ctx), uri) }()
	before := p.Now()
	first, second := []byte("lancefleet doctor: may be removed\n"), []byte("a second write\n")
	if _, err := s.Put(ctx, uri, first, lance.PutOptions{IfAbsent: true}); err != nil {
		f := storageTrouble(check, "write a probe object", err)
		f.Means = "it can be read and not written: " + f.Means
		return []Finding{f, skipped(clock, "nothing could be written")}
	}
	_, err = s.Put(ctx, uri, second, lance.PutOptions{IfAbsent: true})
	object, readErr := s.Get(ctx, uri)
	if readErr != nil {
		return []Finding{storageTrouble(check, "read the probe object back", readErr), skipped(clock, "the probe object could not be read")}
	}
	agrees := Skew(clock, "storage", time.UnixMilli(object.Time), before.Truncate(time.Second), p.Now())
	switch {
	case !errors.Is(err, lance.ErrExists) || !bytes.Equal(object.Body, first):
		why := "a second write of the same object was not refused"
		if err != nil && !errors.Is(err, lance.ErrExists) {
			why = "a second write failed in another way: " + err.Error()
		}
		return []Finding{trouble(Fail, check, why, "two workers could overwrite each other's commits: this storage is not safe",
			"use storage with If-None-Match on PUT (S3, MinIO, R2, GCS, Azure have it), or s3+ddb:// with a DynamoDB table"), agrees}
	}
	return []Finding{fine(check, "a second write of the same object is refused"), agrees}
}
