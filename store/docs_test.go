package store

import (
	"os"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

func TestEveryColumnIsExplainedInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/data-directory.md")
	require.NoError(t, err)
	for _, schema := range []*arrow.Schema{
		statsCodec.schema, markCodec.schema, shardCodec.schema, roundCodec.schema, actionCodec.schema, registryCodec.schema,
		ledgerCodec.schema, sampleCodec.schema,
	} {
		for _, f := range schema.Fields() {
			require.Contains(t, string(text), "`"+f.Name+"`")
		}
	}
}
