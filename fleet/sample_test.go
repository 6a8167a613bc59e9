package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSamplesAreOfExperimentsObservedSince(t *testing.T) {
	fresh, old, unseen := quiet(), quiet(), UnknownRow(exp1)
	fresh.ObservedAt, fresh.RowCount = noon+1, 5
	old.ObservedAt = noon
	got := Samples([]Row{fresh, old, unseen}, noon, noon+5*min1)
	assert.Equal(t, []Sample{{ID: exp1.ID, At: noon, Rows: 5, Fragments: 3, Bytes: -1, LastWrite: noon - 2*hour}}, got)
}
