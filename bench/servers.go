package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// temporal is a development server with a database on disk.
type temporal struct {
	process *program
	address string // host:port
}

func startTemporal(ctx context.Context, b *bench) (*temporal, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	process, err := startProgram("temporal", filepath.Join(b.dir, "temporal.log"), nil, b.tools.temporal,
		"server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", strconv.Itoa(port),
		"--db-filename", filepath.Join(b.dir, "temporal.db"), "--log-level", "warn",
		"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL")
	if err != nil {
		return nil, err
	}
	if _, err := process.await(ctx, "Server:"); err != nil { // printed when it serves
		process.stop()
		return nil, err
	}
	return &temporal{process, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, nil
}

// proxy adds latency to each answer of a server.
type proxy struct {
	process  *program
	endpoint string // http://127.0.0.1:port
}

func startProxy(ctx context.Context, b *bench, upstream string, latencyMS int) (*proxy, error) {
	control, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	process, err := startProgram("toxiproxy", filepath.Join(b.dir, "toxiproxy.log"), []string{"GOGC=400"}, b.tools.toxiproxy,
		"-host", "127.0.0.1", "-port", strconv.Itoa(control))
	if err != nil {
		return nil, err
	}
	p := &proxy{process: process}
	if err := p.configure(ctx, fmt.Sprintf("http://127.0.0.1:%d", control), upstream, latencyMS); err != nil {
		process.stop()
		return nil, fmt.Errorf("set up toxiproxy: %w: %s", err, process.said.tail())
	}
	return p, nil
}

func (p *proxy) stop() { p.process.stop() }

func (p *proxy) configure(ctx context.Context, api, upstream string, latencyMS int) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := untilServed(ctx, api+"/version"); err != nil {
		return err
	}
	var made struct{ Listen string }
	err := post(ctx, api+"/proxies", map[string]any{
		"name": "s3", "listen": "127.0.0.1:0", "upstream": strings.TrimPrefix(upstream, "http://"), "enabled": true,
	}, &made)
	if err != nil {
		return err
	}
	p.endpoint = "http://" + made.Listen
	return post(ctx, api+"/proxies/s3/toxics", map[string]any{
		"name": "latency", "type": "latency", "stream": "downstream", "attributes": map[string]int{"latency": latencyMS, "jitter": 0},
	}, nil)
}

// untilServed polls: the proxy gives no other sign that it listens.
func untilServed(ctx context.Context, url string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx, http.MethodGet, url, nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func post(ctx context.Context, url string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return ask(ctx, http.MethodPost, url, text, into)
}

func ask(ctx context.Context, method, url string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s", method, url, answer.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// freePort asks the kernel for a port that is free now.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
