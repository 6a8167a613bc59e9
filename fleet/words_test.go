package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAgesAreWordedInTheirLargestUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 s", 0: "0 s", 45 * time.Second: "45 s", time.Minute: "1 min", 59 * time.Minute: "59 min", time.Hour: "1 h",
		47 * time.Hour: "47 h", 48 * time.Hour: "2 d", 400 * day: "400 d",
	} {
		assert.Equal(t, want, Age(d))
	}
	assert.Equal(t, "2 h ago", Ago(noon-2*hour, noon))
	assert.Equal(t, "at an unknown time", Ago(0, noon))
}

func TestTimesAreWordedAsFarAsTheyDiffer(t *testing.T) {
	assert.Equal(t, "12:05", Clock(noon+5*min1, noon))
	assert.Equal(t, "Dec 1 12:00", Clock(noon+24*hour, noon))
	assert.Equal(t, "2026 Nov 30 12:00", Clock(noon+365*24*hour, noon))
}

func TestCountsAreWordedWithTheirThing(t *testing.T) {
	assert.Equal(t, "0 fragments", Count(0, "fragment"))
	assert.Equal(t, "1 fragment", Count(1, "fragment"))
	assert.Equal(t, "2 WAL entries", Count(2, "WAL entry"))
	assert.Equal(t, "unknown fragments", Count(-1, "fragment"))
}

func TestPeopleReadLongNumbersInThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 17204: "17,204", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		assert.Equal(t, want, Number(n))
	}
	assert.Equal(t, "17,204 rows", Count(17204, "row"))
	policy := DefaultPolicy()
	row := Row{PendingWAL: 17204, FragmentCount: 1234, SmallFragments: 1200, Version: 12345}
	assert.Contains(t, wantsMerge(row, policy, History{}, noon).Reason, "17,204 pending generations")
	policy.CompactMinFragments = 2000
	assert.Contains(t, wantsCompact(row, policy, History{}).Reason, "1,234 fragments, below 2,000")
	policy.CompactMinFragments = 1000
	assert.Contains(t, wantsCompact(row, policy, History{NoOpVersion: 12345, NoOpOptions: policy.CompactOptions()}).Reason, "in version 12345", "a version is a name")
}
