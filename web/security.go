package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// maxBody is the most a request may carry: the largest is a reason for a pause.
const maxBody = 64 << 10

// bodyLimit is the most that a route takes: events come in batches.
func bodyLimit(path string) int64 {
	if path == eventsPath {
		return maxEvents
	}
	return maxBody
}

func tooLarge(limit int64) string { return fmt.Sprintf("the body is larger than %d KiB", limit>>10) }

// contentPolicy lets a page load its own files and nothing else. No inline scripts or
// styles exist, so an injected one would not run.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

type requestIDKey struct{}

// requestID of the request being served, for messages and the log.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

var sensibleID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// protect wraps everything that is served, innermost last.
func (s *Server) protect(next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeError(w, refuse(http.StatusForbidden, "refused: the request came from another site"))
	}))
	h := s.recognise(next)
	h = sameOrigin.Handler(h)
	h = s.checkHost(h)
	h = limitBody(h)
	h = s.recoverPanics(h)
	h = headers(h)
	return identify(headAsGet(h))
}

// headAsGet answers HEAD as GET; the server sends no body.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			get := *r
			get.Method = http.MethodGet
			r = &get
		}
		next.ServeHTTP(w, r)
	})
}

// identify gives each request an id, its own if it brings a sensible one.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !sensibleID.MatchString(id) {
			var b [8]byte
			_, _ = rand.Read(b[:]) // never fails
			id = hex.EncodeToString(b[:])
		}
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p) //nolint:forbidigo // the server's own way of cutting a connection
			}
			s.log.Error("panic while serving", "panic", p, "path", r.URL.Path,
				"request_id", requestID(r.Context()), "stack", string(debug.Stack()))
			writeError(w, s.neutral(r.Context()))
		}()
		next.ServeHTTP(w, r)
	})
}

// bodyTime is how long a body may take to arrive.
const bodyTime = 15 * time.Second

// limitBody takes the body in before anything else looks at the request. A deadline
// for reading that were still set later would end the request's context with it, and
// so every answer that takes longer.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		limit := bodyLimit(r.URL.Path)
		if r.ContentLength > limit {
			writeError(w, refuse(http.StatusRequestEntityTooLarge, tooLarge(limit)))
			return
		}
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now().Add(bodyTime)) // tests' connections have none
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		_ = connection.SetReadDeadline(time.Time{})
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			writeError(w, refuse(http.StatusRequestEntityTooLarge, tooLarge(limit)))
			return
		case err != nil:
			writeError(w, refuse(http.StatusRequestTimeout, "the body did not arrive in time, or not as announced"))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// checkHost refuses names that are not ours while we listen on loopback: a foreign
// site whose name points to 127.0.0.1 would otherwise read and write as the user.
func (s *Server) checkHost(next http.Handler) http.Handler {
	bound, _, _ := net.SplitHostPort(s.config.Addr)
	if !isLoopback(bound) && len(s.config.AllowedHosts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.ToLower(strings.Trim(host, "[]"))
		allowed := func(name string) bool { return strings.EqualFold(name, host) }
		if !isLoopback(host) && !slices.ContainsFunc(s.config.AllowedHosts, allowed) {
			writeError(w, refuse(http.StatusForbidden, "refused: this server does not answer to that host name"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// writeError answers outside of pages and API handlers.
func writeError(w http.ResponseWriter, e *ErrorBody) {
	w.Header().Set("Content-Type", "application/json")
	for name := range e.header {
		w.Header().Set(name, e.header.Get(name))
	}
	w.WriteHeader(e.status)
	if err := json.NewEncoder(w).Encode(e); err != nil {
		return // the client is gone
	}
}

// neutral is what people see of a bug; the cause is in the log under the id.
func (s *Server) neutral(ctx context.Context) *ErrorBody {
	return refuse(http.StatusInternalServerError, "something went wrong here; the log has the cause under request id "+requestID(ctx))
}
