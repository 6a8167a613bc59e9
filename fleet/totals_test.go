package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestTotalsLeaveOutWhatIsUnknownAndSaySo(t *testing.T) {
	known := func(rows, pending, written int64) Row {
		row := at("a", noon, rows)
		row.RowsExact, row.FragmentCount, row.Bytes, row.PendingWAL, row.LastWrite = true, 2, 100, pending, written
		return row
	}
	failing := Failed(exp1, nil, "gone", "", noon, fiveMinutes)
	failing.RowCount, failing.PendingWAL = 99, 99 // as lance-context stored it: never observed
	missing := known(3, 1000, 0)
	missing.MissingRounds, missing.ScannedAt = 1, noon-hour
	rows := []Row{known(10, 1001, noon-min1), known(20, 4097, noon-2*hour), failing, missing}
	assert.Equal(t, Totals{
		Experiments: 4, Unknown: 1, Rows: 33, Fragments: 6, Pending: 6098, PendingMax: 4097, PendingOver1k: 2, PendingOverReadCap: 1,
		Failing: 1, Missing: 1, Bytes: 300, WrittenLastHour: 1, WrittenLastDay: 2, NewestWrite: noon - min1, OldestScan: noon - hour,
	}, Total(rows, noon))
	assert.True(t, Total(rows[:2], noon).RowsExact)
	assert.Equal(t, Totals{RowsExact: true}, Total(nil, noon))

	unknown := known(-1, -1, 0)
	assert.False(t, Total([]Row{unknown}, noon).RowsExact)
	assert.Zero(t, Total([]Row{unknown}, noon).Rows, "-1 is not added")
}

func TestAPriceADayFollowsFromARoundAndItsInterval(t *testing.T) {
	round := Requests{List: 2500, Head: 27_500} // 10,000 experiments with one shard
	sheet := DefaultPriceSheet()
	assert.InDelta(t, 0.0235, sheet.Price(round), 1e-9)
	assert.InDelta(t, 0.0235*288, sheet.PricePerDay(round, 300), 1e-9)
	assert.Zero(t, sheet.PricePerDay(round, 0), "nothing is scheduled")
	assert.Zero(t, PriceSheet{}.PricePerDay(round, 300), "local disk")
	each := PriceSheet{List: 1e6, Head: 1e7, Get: 1e8, Put: 1e9, Delete: 1e10}
	assert.InDelta(t, 11111, each.Price(Requests{1, 1, 1, 1, 1}), 1e-9)
}

func TestRequestsAddUpKindByKind(t *testing.T) {
	assert.Equal(t, Requests{11, 22, 33, 44, 55}, Requests{1, 2, 3, 4, 5}.Add(Requests{10, 20, 30, 40, 50}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1000)
		draw := func() Requests {
			return Requests{n.Draw(t, "list"), n.Draw(t, "head"), n.Draw(t, "get"), n.Draw(t, "put"), n.Draw(t, "delete")}
		}
		a, b := draw(), draw()
		assert.Equal(t, a.Add(b), b.Add(a))
		assert.Equal(t, a.Total()+b.Total(), a.Add(b).Total())
	})
}
