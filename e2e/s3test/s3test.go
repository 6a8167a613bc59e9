// Package s3test starts an S3 server for tests and benchmarks: versitygw over a
// folder. It enforces conditional puts, as real stores do, and logs every request,
// so that requests can be counted by somebody else than us.
package s3test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lancefleet/e2e/notrun"
	"lancefleet/internal/child"
)

const (
	// BinaryVariable names the versitygw program; without it the one in the
	// user's cache is taken, where tools/ensure puts it.
	BinaryVariable = "LANCEFLEET_VERSITYGW"

	accessKey = "lancefleet"
	secretKey = "lancefleet-secret"
	region    = "us-east-1"

	startAttempts = 5 // a free port may be taken before the server has it
	startTimeout  = 30 * time.Second
	healthPath    = "/healthz-of-the-gateway"
)

// Server is a running S3 server.
type Server struct {
	Endpoint string // http://127.0.0.1:port
	root     string // buckets are its folders
	log      string // of requests
	process  *child.Process
}

// Start runs a server for a test and stops it at its end. Without the program the
// test is not run.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if _, err := Binary(); err != nil {
		notrun.Skip(tb, "S3 server (versitygw)", err.Error())
	}
	s, err := Launch(tb.Context(), tb.TempDir())
	if err != nil {
		tb.Fatalf("start an S3 server: %v", err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// Binary finds the versitygw program.
func Binary() (string, error) {
	path := os.Getenv(BinaryVariable)
	if path == "" {
		cache := os.Getenv("LANCEFLEET_CACHE")
		if cache == "" {
			base, err := os.UserCacheDir()
			if err != nil {
				return "", err
			}
			cache = filepath.Join(base, "lancefleet")
		}
		path = filepath.Join(cache, "bin", "versitygw")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no program %s; tools/ensure versitygw builds it", path)
	}
	return path, nil
}

// Launch runs a server over a folder until Stop is called. The context only
// bounds the start.
func Launch(ctx context.Context, dir string) (*Server, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		s, err := launch(ctx, binary, dir)
		if err == nil || attempt == startAttempts || ctx.Err() != nil {
			return s, err
		}
	}
}

func launch(ctx context.Context, binary, dir string) (*Server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Endpoint: "http://" + address,
		root:     filepath.Join(dir, "buckets"),
		log:      filepath.Join(dir, "access.log"),
	}
	sidecar := filepath.Join(dir, "attributes")
	for _, folder := range []string{s.root, sidecar} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	args := []string{"--port", address, "--region", region, "--health", healthPath, "--quiet", "--keep-alive", "--access-log", s.log, "posix"}
	if !hasAttributes(dir) {
		args = append(args, "--sidecar", sidecar)
	}
	cmd := exec.Command(binary, append(args, s.root)...)
	// GOGC: a real server does not collect garbage on the machine of its clients.
	cmd.Env = append(os.Environ(), "GOGC=400", "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	if s.process, err = child.Start(cmd); err != nil {
		return nil, err
	}
	if err := s.waitUntilHealthy(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// freeAddress asks the kernel for a port that is free now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// waitUntilHealthy polls: the server gives no other sign that it listens.
func (s *Server) waitUntilHealthy(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+healthPath, nil)
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(req); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-s.process.Done():
			return fmt.Errorf("the server ended at once: %s", s.process.Ended())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer on %s: %w", s.Endpoint, ctx.Err())
		}
	}
}

// Stop ends the server. Stopping again does nothing.
func (s *Server) Stop() {
	_ = s.process.Kill() // it fails only where nothing is left to kill
}

// Bucket makes an empty bucket, if there is none of that name, and returns its uri.
func (s *Server) Bucket(tb testing.TB, name string) string {
	tb.Helper()
	if err := os.MkdirAll(filepath.Join(s.root, name), 0o755); err != nil {
		tb.Fatalf("make the bucket %s: %v", name, err)
	}
	return "s3://" + name
}

// Path is where a bucket's objects lie as files, for tests that damage them.
func (s *Server) Path(bucket string) string { return filepath.Join(s.root, bucket) }

// StorageOptions are what object stores need to find the server; give them to
// lance.Options, or to pylance as storage_options.
func (s *Server) StorageOptions() map[string]string { return OptionsFor(s.Endpoint) }

// OptionsFor are the options for the server behind another address, such as a
// proxy that adds latency.
func OptionsFor(endpoint string) map[string]string {
	return map[string]string{
		"aws_endpoint":                     endpoint,
		"aws_region":                       region,
		"aws_access_key_id":                accessKey,
		"aws_secret_access_key":            secretKey,
		"allow_http":                       "true",
		"aws_virtual_hosted_style_request": "false",
	}
}

// Environment is the same for programs that take their credentials from there.
func (s *Server) Environment() []string { return EnvironmentFor(s.Endpoint) }

// EnvironmentFor is Environment for another address.
func EnvironmentFor(endpoint string) []string {
	return []string{
		"AWS_ENDPOINT=" + endpoint, "AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=" + region, "AWS_DEFAULT_REGION=" + region,
		"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey,
		"AWS_ALLOW_HTTP=true", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST=false", "AWS_EC2_METADATA_DISABLED=true",
	}
}
