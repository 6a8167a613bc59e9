package web

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATokensFileThatOthersReadIsToldAndNotRefused(t *testing.T) {
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "tokens")
	config := DefaultConfig()
	config.TokensFile = path
	write := func(mode os.FileMode, text string) {
		log.Reset()
		_ = os.Remove(path)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
	}
	write(0o644, "ops:operator:"+opsSecret)
	gate, err := newGate(config, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	require.Contains(t, log.String(), "others on this machine may read")
	require.Contains(t, log.String(), path)
	require.Contains(t, log.String(), "-rw-r--r--")
	require.NotContains(t, log.String(), opsSecret)

	write(0o640, "grafana:viewer:"+lookSecret)
	gate.renew()
	require.Contains(t, log.String(), "was read again")
	require.NotContains(t, log.String(), "others on this machine")
	write(0o602, "ops:operator:"+opsSecret)
	gate.renew()
	require.Contains(t, log.String(), "others on this machine may read or change")
}
