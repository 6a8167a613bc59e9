package makefleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"lancefleet/fleet"
	"lancefleet/lance"
)

// registrySchema is lance-context's.
var registrySchema = arrow.NewSchema([]arrow.Field{
	{Name: "name", Type: arrow.BinaryTypes.String},
	{Name: "uri", Type: arrow.BinaryTypes.String},
	{Name: "created_at", Type: arrow.PrimitiveTypes.Int64},
}, nil)

// register names datasets in the registries of their kinds, one append each.
// Those that a registry names already are left out.
func register(ctx context.Context, engine *lance.Engine, dataDir string, datasets []Dataset) error {
	byKind := map[fleet.Kind][]Dataset{}
	for _, d := range datasets {
		if d.Kind != fleet.Table { // tables have no registry
			byKind[d.Kind] = append(byKind[d.Kind], d)
		}
	}
	for _, kind := range fleet.Kinds() {
		if err := registerKind(ctx, engine, registryURI(dataDir, kind), byKind[kind]); err != nil {
			return err
		}
	}
	return nil
}

func registryURI(dataDir string, kind fleet.Kind) string {
	return dataDir + "/_registry." + string(kind) + ".lance"
}

func registerKind(ctx context.Context, engine *lance.Engine, uri string, datasets []Dataset) error {
	if len(datasets) == 0 {
		return nil
	}
	known, err := registered(ctx, engine, uri)
	if err != nil {
		return err
	}
	rows := array.NewRecordBuilder(memory.DefaultAllocator, registrySchema)
	defer rows.Release()
	for _, d := range datasets {
		if known[d.Name] {
			continue
		}
		rows.Field(0).(*array.StringBuilder).Append(d.Name)
		rows.Field(1).(*array.StringBuilder).Append(d.URI)
		rows.Field(2).(*array.Int64Builder).Append(d.CreatedAt)
	}
	if rows.Field(0).Len() == 0 {
		return nil
	}
	record := rows.NewRecordBatch()
	defer record.Release()
	if _, err := engine.Append(ctx, uri, []arrow.RecordBatch{record}, registrySchema, lance.AppendOptions{Create: true}); err != nil {
		return fmt.Errorf("register %d experiments: %w", record.NumRows(), err)
	}
	return nil
}

func registered(ctx context.Context, engine *lance.Engine, uri string) (map[string]bool, error) {
	table, err := engine.ReadTable(ctx, uri, lance.ReadOptions{Columns: []string{"name"}})
	if errors.Is(err, lance.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	defer table.Release()
	names := map[string]bool{}
	for _, record := range table.Records {
		column, ok := record.Column(0).(*array.String)
		if !ok {
			return nil, fmt.Errorf("read registry %s: column name is %s, want utf8", uri, record.Column(0).DataType())
		}
		for i := range column.Len() {
			names[column.Value(i)] = true
		}
	}
	return names, nil
}
