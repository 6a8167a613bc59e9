package web

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTwoHundredReadersGetNoErrorWhileViewsAreRebuilt reads over real connections
// while every look at storage brings another version. Times are logged, not judged.
func TestTwoHundredReadersGetNoErrorWhileViewsAreRebuilt(t *testing.T) {
	b := newBench(t, demoStore(5000))
	base := site(t, b)
	const readers, each = 200, 5
	client := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: readers}}
	targets := []string{"/", "/api/v1/experiments?sort=pending", "/api/v1/experiments?q=gsm8k", "/?q=failing", "/api/v1/experiments?q=last-write:<1h&offset=50"}
	var mu sync.Mutex
	var took []time.Duration
	problems := map[string]int{}
	var reading sync.WaitGroup
	for r := range readers {
		reading.Go(func() {
			for i := range each {
				began := time.Now()
				says := read(client, base+targets[(r+i)%len(targets)])
				mu.Lock()
				took = append(took, time.Since(began))
				if says != "" {
					problems[says]++
				}
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { reading.Wait(); close(done) }()
	for versions := uint64(900); ; versions++ {
		b.store.set(func(f *fakeStore) { f.snapshot.Version = versions })
		b.feed.readStorage(t.Context())
		select {
		case <-done:
			slices.Sort(took)
			t.Logf("%d answers beside %d rebuilds: p50 %s, p99 %s", len(took), versions-899, percentile(took, 50), percentile(took, 99))
			require.Empty(t, problems)
			return
		default:
		}
	}
}

func read(client *http.Client, address string) string {
	answer, err := client.Get(address)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return strconv.Itoa(answer.StatusCode)
	}
	return ""
}
