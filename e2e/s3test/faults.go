package s3test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// Fault is what happens to one request on its way to the server.
type Fault int

// What can happen to a request.
const (
	Pass   Fault = iota // nothing
	Refuse              // 403, as for credentials that may not
	Break               // 503, the server is not asked
	Hang                // no answer until the client gives up or the test ends
	Forget              // the server does it, the client is told 500
)

// Proxy stands before a server and troubles some requests.
type Proxy struct {
	Endpoint string
	mu       sync.RWMutex
	decide   func(*http.Request) Fault
	answered func(*http.Request)
	over     chan struct{}
}

// Behind starts a proxy. Signatures stay valid: they are over the address that the
// client has called, which is passed on.
func (s *Server) Behind(tb testing.TB, decide func(*http.Request) Fault) *Proxy {
	tb.Helper()
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		tb.Fatalf("endpoint %q: %v", s.Endpoint, err)
	}
	p := &Proxy{decide: decide, over: make(chan struct{})}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, forward) }))
	p.Endpoint = server.URL
	tb.Cleanup(func() {
		close(p.over)
		server.Close()
	})
	return p
}

// Decide changes what is troubled from now on.
func (p *Proxy) Decide(decide func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = decide
}

// Answered has f called with each request that passes from now on, once the server has
// answered.
func (p *Proxy) Answered(f func(*http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = f
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	p.mu.RLock()
	decide, answered := p.decide, p.answered
	p.mu.RUnlock()
	switch decide(r) {
	case Refuse:
		w.WriteHeader(http.StatusForbidden)
	case Break:
		w.WriteHeader(http.StatusServiceUnavailable)
	case Hang:
		select {
		case <-r.Context().Done():
		case <-p.over:
		}
	case Forget:
		next.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusInternalServerError)
	default:
		next.ServeHTTP(w, r)
		if answered != nil {
			answered(r)
		}
	}
}
