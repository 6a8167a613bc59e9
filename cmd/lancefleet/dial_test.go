package main

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

func TestAServerThatIsJustStartingIsNoNews(t *testing.T) {
	for patience, told := range map[time.Duration]bool{0: true, time.Hour: false} {
		var log bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		logger := slog.New(slog.NewTextHandler(&log, nil))
		_, err := dial(ctx, client.Options{HostPort: "127.0.0.1:1", Logger: temporalLogger(logger)}, patience, logger)
		require.ErrorContains(t, err, "connect to temporal 127.0.0.1:1")
		require.Equal(t, told, bytes.Contains(log.Bytes(), []byte("waiting for temporal")), log.String())
	}
}
