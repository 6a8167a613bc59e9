package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancefleet/workflows"
)

func usable() Config {
	c := DefaultConfig()
	c.DataDir = "/data"
	return c
}

func TestTheDefaultsWork(t *testing.T) {
	require.NoError(t, usable().Validate())
	off := usable()
	off.ScanInterval = 0
	require.NoError(t, off.Validate())
	require.Positive(t, off.watchEvery())
}

func TestABadValueIsRefusedWithItsNameTheValueAndWhatIsAllowed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`FLEET="Not/This": allowed is 1 to 42 lower-case letters, digits and inner dashes`: func(c *Config) { c.Fleet = "Not/This" },
		`DATA_DIR="": allowed is an absolute path`:                                         func(c *Config) { c.DataDir = "" },
		`SOURCES="both": allowed is registry, folder`:                                      func(c *Config) { c.Sources = "both" },
		`STATS_SCAN_INTERVAL_SECS=-1s: allowed is 1s to 24h0m0s`:                           func(c *Config) { c.ScanInterval = -time.Second },
		`STATS_SCAN_INTERVAL_SECS=1.5s: allowed is whole seconds`:                          func(c *Config) { c.ScanInterval = 1500 * time.Millisecond },
		`SCAN_PAGE_SIZE=0: allowed is 1 to 10000`:                                          func(c *Config) { c.PageSize = 0 },
		`SCAN_PAGES_AT_ONCE=1000: allowed is 1 to 256`:                                     func(c *Config) { c.MaxPagesAtOnce = 1000 },
		`SCAN_CONCURRENCY=0: allowed is 1 to 4096`:                                         func(c *Config) { c.ScanConcurrency = 0 },
		`ACTIVITY_SLOTS=1: allowed is 2 to 1000`:                                           func(c *Config) { c.ActivitySlots = 1 },
		`PROBE_TIMEOUT=0s: allowed is 100ms to 5m0s`:                                       func(c *Config) { c.ProbeTimeout = 0 },
		`OBSERVE_TIMEOUT=1h0m0s: allowed is 100ms to 5m0s`:                                 func(c *Config) { c.ObserveTimeout = time.Hour },
		`STATS_FRESHNESS=0s: allowed is 1s to 24h0m0s`:                                     func(c *Config) { c.Freshness = 0 },
		`WORKER_STOP_TIMEOUT=0s: allowed is 1s to 10m0s`:                                   func(c *Config) { c.StopTimeout = 0 },
		`TARGET_ROWS_PER_FRAGMENT=0: allowed is 1 or more`:                                 func(c *Config) { c.TargetRows = 0 },
	} {
		t.Run(want, func(t *testing.T) {
			c := usable()
			change(&c)
			require.ErrorContains(t, c.Validate(), want)
		})
	}
}

func TestEveryBadValueIsNamedAtOnce(t *testing.T) {
	err := Config{}.Validate()
	for _, name := range []string{"FLEET", "DATA_DIR", "SCAN_PAGE_SIZE", "SCAN_CONCURRENCY", "PROBE_TIMEOUT"} {
		require.ErrorContains(t, err, name)
	}
}

func TestTwoFleetsShareNoIdNorQueue(t *testing.T) {
	a, b := workflows.Names{Fleet: "default"}, workflows.Names{Fleet: "blue"}
	require.Equal(t, "lancefleet-scan", a.ScanSchedule())
	require.NotEqual(t, a.ScanSchedule(), b.ScanSchedule())
	require.NotEqual(t, a.ScanQueue(), b.ScanQueue())
	require.NotEqual(t, a.ScanNow(), b.ScanNow())
	require.NotEqual(t, a.Record("x"), b.Record("x"))
}
