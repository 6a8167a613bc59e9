package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// session is what a browser has after a login: when it ends and which one it is,
// signed with a key that only the token's secret gives. Nothing is kept here, so a
// restart ends none, and several servers with the same tokens know each other's.
type session struct {
	id  string
	end int64 // unix s
}

// Where the connection is secret, the cookie has a name that no other host of the
// domain can set and no unprotected page can read.
const (
	plainCookie  = "lancefleet"
	secureCookie = "__Host-lancefleet"
)

func cookieName(secret bool) string {
	if secret {
		return secureCookie
	}
	return plainCookie
}

// overTLS says whether the browser talks https, to us or to a proxy that says so.
// Whoever lies about it gets a cookie that he can't use.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

func (s session) text() string { return strconv.FormatInt(s.end, 10) + "." + s.id }

func (s session) sign(token Token) string {
	mac := hmac.New(sha256.New, token.key)
	mac.Write([]byte(s.text()))
	return s.text() + "." + hex.EncodeToString(mac.Sum(nil))
}

// begin makes the cookie of a new session.
func (g *gate) begin(r *http.Request, token Token) *http.Cookie {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	s := session{id: hex.EncodeToString(id[:]), end: g.now().Add(g.config.SessionTime).Unix()}
	return cookie(r, s.sign(token), int(g.config.SessionTime/time.Second))
}

// end forgets a session: the browser's cookie, and a copy that somebody made of it.
func (g *gate) end(r *http.Request, s *session) *http.Cookie {
	if s != nil {
		now := g.now().Unix()
		g.mu.Lock()
		for id, until := range g.left {
			if until < now {
				delete(g.left, id)
			}
		}
		g.left[s.id] = s.end
		g.mu.Unlock()
	}
	return cookie(r, "", -1)
}

func cookie(r *http.Request, value string, age int) *http.Cookie {
	secret := overTLS(r)
	return &http.Cookie{
		Name: cookieName(secret), Value: value, Path: "/", MaxAge: age,
		Secure: secret, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// sessionOf finds the session of a request, and the token that began it.
func (g *gate) sessionOf(r *http.Request) (session, Token, bool) {
	c, err := r.Cookie(cookieName(overTLS(r)))
	if err != nil {
		return session{}, Token{}, false
	}
	end, rest, _ := strings.Cut(c.Value, ".")
	id, _, _ := strings.Cut(rest, ".")
	until, err := strconv.ParseInt(end, 10, 64)
	if err != nil || until <= g.now().Unix() {
		return session{}, Token{}, false
	}
	s := session{id: id, end: until}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, gone := g.left[id]; gone {
		return session{}, Token{}, false
	}
	for _, token := range g.tokens {
		if hmac.Equal([]byte(s.sign(token)), []byte(c.Value)) {
			return s, token, true
		}
	}
	return session{}, Token{}, false
}
