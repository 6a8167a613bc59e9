package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// bareAtOnce is as many as a worker asks at once by default.
const bareAtOnce = 256

// bare sends HEAD requests to a server that refuses them, as they are not signed, and
// does nothing else: as many requests can't take less time on this machine, whoever
// sends them. It returns the seconds of the second of two passes; the first connects.
func bare(ctx context.Context, endpoint string, requests int) (seconds float64, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: bareAtOnce, MaxConnsPerHost: bareAtOnce}}
	defer client.CloseIdleConnections()
	for range 2 {
		begun := time.Now()
		group, asking := errgroup.WithContext(ctx)
		group.SetLimit(bareAtOnce)
		for i := range requests {
			group.Go(func() error { return askBarely(asking, client, fmt.Sprintf("%s/%s/bare/%d", endpoint, bucket, i)) })
		}
		if err := group.Wait(); err != nil {
			return 0, fmt.Errorf("bare requests: %w", err)
		}
		seconds = time.Since(begun).Seconds()
	}
	return seconds, nil
}

func askBarely(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
