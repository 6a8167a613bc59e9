package lance_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// Ask whether datasets changed since they were last measured, and measure only
// those that did.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "lance-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	uri := filepath.Join(dir, "demo.rollout.lance")
	if _, err := engine.MakeDataset(ctx, lance.DatasetSpec{URI: uri, Kind: fleet.Rollout, Shards: 1, Generations: 2, Rows: 10, Fragments: 1}); err != nil {
		log.Fatal(err)
	}

	observed, err := engine.Observe(ctx, []lance.ObserveTarget{{URI: uri}}, lance.ObserveOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if observed[0].Err != nil {
		log.Fatal(observed[0].Err)
	}
	seen := observed[0].Observation
	fmt.Println("pending generations:", seen.Shards[0].Pending, "with rows:", seen.Shards[0].PendingRows)

	target := []lance.ProbeTarget{{URI: uri, Fingerprint: seen.Fingerprint}}
	probed, err := engine.Probe(ctx, target, lance.BatchOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("at once:", probed[0].State)

	// One more flush: it moves no version of the base table.
	if _, err := engine.MakeWrites(ctx, lance.WritesSpec{URI: uri, Rows: 5, Flush: true, Seed: 1}); err != nil {
		log.Fatal(err)
	}
	probed, err = engine.Probe(ctx, target, lance.BatchOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("after a flush:", probed[0].State)
	// Output:
	// pending generations: 2 with rows: 20
	// at once: unchanged
	// after a flush: changed
}

// Replace a small table by compare-and-swap: the commit fails when somebody else
// was first.
func ExampleEngine_CommitSnapshot() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "lance-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	schema := arrow.NewSchema([]arrow.Field{{Name: "name", Type: arrow.BinaryTypes.String}}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	builder.Field(0).(*array.StringBuilder).AppendValues([]string{"a", "b"}, nil)
	record := builder.NewRecordBatch()
	defer record.Release()

	uri := filepath.Join(dir, "names.lance")
	first, err := engine.CommitSnapshot(ctx, uri, 0, []arrow.RecordBatch{record}, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = engine.CommitSnapshot(ctx, uri, 0, nil, schema, nil)
	fmt.Println("again from nothing:", lance.ClassOf(err))

	table, err := engine.ReadTable(ctx, uri, lance.ReadOptions{Version: first.Version})
	if err != nil {
		log.Fatal(err)
	}
	defer table.Release()
	fmt.Println("rows:", table.Rows())
	// Output:
	// again from nothing: conflict
	// rows: 2
}

// Errors have a class to act on.
func ExampleClassOf() {
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	_, err = engine.Head(context.Background(), "/there/is/no/such.lance")
	fmt.Println(errors.Is(err, lance.ErrGone), lance.ClassOf(err))
	// Output: true gone
}
