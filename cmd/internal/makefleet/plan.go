package makefleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// Plan says what fleet to make.
type Plan struct {
	Experiments int
	Shards      int // MemWAL shards of each rollout, generic or datagen store
	Generations int // flushed and not merged, in each shard
	Rows        int // in each generation and each fragment
	Fragments   int // of each base table
	Tombstones  bool
	Stranded    bool
	ColdShare   float64 // of experiments last written more than a week ago, 0 to 1
	Kinds       []fleet.Kind
	Seed        int64
}

// More than these nobody makes on purpose, and memory would end before they are made.
const (
	mostExperiments = 1_000_000
	mostShards      = 1_000
	mostPieces      = 100_000 // generations of a shard, fragments of a base
	mostRows        = 1_000_000
)

// Validate refuses what cannot be made, naming the setting as the flag is named.
func (p Plan) Validate() error {
	for _, n := range []struct {
		name               string
		value, least, most int
	}{
		{"experiments", p.Experiments, 1, mostExperiments}, {"shards", p.Shards, 0, mostShards}, {"generations", p.Generations, 0, mostPieces},
		{"rows", p.Rows, 1, mostRows}, {"fragments", p.Fragments, 0, mostPieces},
	} {
		switch {
		case n.value < n.least:
			return fmt.Errorf("%s %d: at least %d is allowed", n.name, n.value, n.least)
		case n.value > n.most:
			return fmt.Errorf("%s %d: at most %d is allowed", n.name, n.value, n.most)
		}
	}
	switch {
	case !(p.ColdShare >= 0 && p.ColdShare <= 1): // NaN too
		return fmt.Errorf("cold-share %v: 0 to 1 is allowed", p.ColdShare)
	case p.Shards == 0 && (p.Tombstones || p.Stranded):
		return errors.New("shards 0: at least 1 is allowed with tombstones or stranded")
	case p.Generations == 0 && p.Tombstones:
		return errors.New("generations 0: at least 1 is allowed with tombstones")
	case len(p.Kinds) == 0:
		return errors.New("kinds: at least one of rollout, generic, table")
	}
	return nil
}

// ParseKinds reads names of kinds.
func ParseKinds(words []string) ([]fleet.Kind, error) {
	var kinds []fleet.Kind
	for _, word := range words {
		kind, err := fleet.ParseKind(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		if kind == fleet.Datagen {
			return nil, fmt.Errorf("kind %q: rollout, generic and table can be made", word)
		}
		if slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("kind %q: named twice", word)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// Dataset is one experiment to make: a copy of a template, or made like it.
type Dataset struct {
	fleet.ID
	URI       string
	CreatedAt int64 // unix ms
	Template  int   // index into Templates
}

// Ages of templates: how long ago the newest write was. Few, because each is made
// once and copied; most hot experiments were written within hours, as in a real fleet.
var (
	hotAges = []time.Duration{0, 4 * time.Minute, 25 * time.Minute, 2 * time.Hour, 9 * time.Hour, 26 * time.Hour,
		3 * 24 * time.Hour, 6 * 24 * time.Hour}
	coldAges = []time.Duration{8 * 24 * time.Hour, 13 * 24 * time.Hour, 34 * 24 * time.Hour, 80 * 24 * time.Hour}
)

var (
	methods = []string{"grpo", "ppo", "dpo", "sft", "rloo", "distill"}
	tasks   = []string{"math", "code", "tools", "web", "search", "chat", "logic", "swe"}
)

// Templates lists what experiments are copies of: each kind at each age, hot ages
// first.
func (p Plan) Templates() []lance.DatasetSpec {
	var all []lance.DatasetSpec
	for _, kind := range p.Kinds {
		for i, age := range slices.Concat(hotAges, coldAges) {
			all = append(all, p.template(kind, age, int64(i)))
		}
	}
	return all
}

func (p Plan) template(kind fleet.Kind, age time.Duration, number int64) lance.DatasetSpec {
	spec := lance.DatasetSpec{
		Kind: kind, Shards: p.Shards, Generations: p.Generations, Rows: p.Rows, Fragments: p.Fragments,
		Tombstones: p.Tombstones, Stranded: p.Stranded, Age: age, Seed: p.Seed + number,
	}
	if kind == fleet.Table { // written by append, without a write-ahead log
		spec.Shards, spec.Generations, spec.Tombstones, spec.Stranded = 0, 0, false, false
		spec.Fragments = max(spec.Fragments, 1)
	}
	return spec
}

// Datasets lists what the plan makes below dataDir, in order of their numbers.
// Experiment i is the same for every fleet size: a larger fleet of the same seed
// contains the smaller one.
func (p Plan) Datasets(dataDir string, now time.Time) []Dataset {
	all := make([]Dataset, p.Experiments)
	for i := range all {
		all[i] = p.dataset(i, dataDir, now)
	}
	return all
}

func (p Plan) dataset(i int, dataDir string, now time.Time) Dataset {
	random := rand.New(rand.NewPCG(uint64(p.Seed), uint64(i)))
	kind := i % len(p.Kinds)
	id := fleet.ID{
		Kind: p.Kinds[kind],
		Name: fmt.Sprintf("%s-%s-%05d", pick(random, methods), pick(random, tasks), i),
	}
	age := p.age(random)
	before := time.Duration(random.Int64N(int64(30 * 24 * time.Hour)))
	return Dataset{
		ID: id, URI: dataDir + "/" + folder(id), Template: kind*(len(hotAges)+len(coldAges)) + age,
		CreatedAt: now.Add(-slices.Concat(hotAges, coldAges)[age] - before).UnixMilli(),
	}
}

// age is an index into the hot ages and the cold ones after them.
func (p Plan) age(random *rand.Rand) int {
	if random.Float64() < p.ColdShare {
		return len(hotAges) + random.IntN(len(coldAges))
	}
	return random.IntN(len(hotAges))
}

func pick(random *rand.Rand, words []string) string { return words[random.IntN(len(words))] }

// folder is what lance-context calls the folder of a store; a plain table is its
// name and .lance, as in LanceDB.
func folder(id fleet.ID) string {
	if id.Kind == fleet.Table {
		return id.Name + ".lance"
	}
	return id.Name + "." + string(id.Kind) + ".lance"
}
