package web

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// gate knows who may come in.
type gate struct {
	config Config
	now    func() time.Time
	log    *slog.Logger

	mu       sync.Mutex
	tokens   Tokens           // none = whoever reaches the address may do everything
	seen     time.Time        // the file's time of change, when it was read last
	left     map[string]int64 // sessions that were logged out, until they expire (unix s)
	failures *limits          // tokens that did not fit, by client
}

func newGate(config Config, now func() time.Time, log *slog.Logger) (*gate, error) {
	seen := changedAt(config.TokensFile) // before it is read: a later change must not be taken for this one
	tokens, err := config.allTokens()
	if err != nil {
		return nil, err
	}
	warnIfOthersRead(config.TokensFile, log)
	return &gate{config: config, now: now, log: log, tokens: tokens, seen: seen, left: map[string]int64{}, failures: newLimits(failedLogins, now)}, nil
}

// changedAt is when a file was last changed, zero if nobody can tell.
func changedAt(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// warnIfOthersRead tells of a file that others on the machine can read. It is no
// refusal: what mounts secrets often gives them such a mode and guards the folder.
func warnIfOthersRead(file string, log *slog.Logger) {
	if file == "" {
		return
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o007 != 0 {
		log.Warn("others on this machine may read or change the tokens file: chmod o= takes that away", "file", file, "mode", info.Mode().Perm().String())
	}
}

// shut says whether tokens are asked for. That does not change while a server runs.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.tokens) > 0
}

func (g *gate) known() Tokens {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tokens
}

// tokensEvery is how often the file of tokens is asked whether it was changed.
const tokensEvery = 5 * time.Second

// watch takes in changes of the file of tokens until the context ends.
func (g *gate) watch(ctx context.Context) {
	if g.config.TokensFile == "" {
		return
	}
	tick := time.NewTicker(tokensEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.renew()
		}
	}
}

// renew reads the file again if it was changed. One with a mistake changes nothing:
// what was in force stays so, and the log says it each time.
func (g *gate) renew() {
	changed := changedAt(g.config.TokensFile)
	if !changed.IsZero() && changed.Equal(g.seen) {
		return
	}
	tokens, err := g.config.allTokens()
	if err != nil {
		g.log.Error("the tokens file was changed and can't be used: the tokens from before stay in force", "error", err)
		return
	}
	g.mu.Lock()
	g.tokens, g.seen = tokens, changed
	g.mu.Unlock()
	g.log.Info("the tokens file was read again", "tokens", len(tokens))
	warnIfOthersRead(g.config.TokensFile, g.log)
}

// caller is who sent a request.
type caller struct {
	name    string // of the token; "" = not known
	role    Role   // "" = not known
	client  string // address it came from
	session *session
	wrong   bool // it brought a token that is none of ours
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	who, _ := ctx.Value(callerKey{}).(caller)
	return who
}

// recognise says who sends a request. Whether that is enough is for the route.
func (s *Server) recognise(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := caller{role: Operator}
		if s.gate.shut() {
			who = s.gate.recognise(r)
			w.Header().Set("Cache-Control", "private, no-cache")
		}
		who.client = s.clientOf(r)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

func (g *gate) recognise(r *http.Request) caller {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		if token, ok := g.known().find(strings.TrimSpace(secret)); ok && strings.EqualFold(scheme, "bearer") {
			return caller{name: token.Name, role: token.Role}
		}
		return caller{wrong: true}
	}
	if open, token, ok := g.sessionOf(r); ok {
		return caller{name: token.Name, role: token.Role, session: &open}
	}
	return caller{}
}
