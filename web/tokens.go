package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Role is what a token lets its holder do.
type Role string

// The roles. An operator may look, too.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Notifier Role = "notifier" // of what was written, and nothing else: for a bucket's notifications
)

func (r Role) may(a Access) bool {
	return a == Open || r == Operator || r == Viewer && a == Read || r == Notifier && a == Notify
}

// words say what a role is not enough for.
func (r Role) words() string {
	if r == Viewer {
		return "look and not change anything: this needs an operator's token"
	}
	return "only say what was written: this needs a viewer's or an operator's token"
}

func (r Role) known() bool { return r == Viewer || r == Operator || r == Notifier }

// Token is one secret's name and role. The secret itself is not kept: only what
// compares with it, and what signs the sessions it began.
type Token struct {
	Name string
	Role Role

	hash [sha256.Size]byte
	key  []byte
}

// Tokens are those that a server takes.
type Tokens []Token

const (
	shortestSecret = 24
	longestSecret  = 256
	fewestLetters  = 10 // different ones, so that nobody counts aaaa… as a secret
	howToMakeOne   = "openssl rand -hex 32 makes one"
)

var (
	tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,39}$`)
	// tokenSecret are the letters that a bearer token may have (RFC 6750).
	tokenSecret = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]+$`)
)

// ParseTokens reads NAME:ROLE:SECRET, one a line or with commas between. What
// follows # at the beginning of a line is a comment. No error has in it what might be
// a secret.
func ParseTokens(text string) (Tokens, error) {
	var all Tokens
	for i, row := range strings.Split(text, "\n") {
		if row = strings.TrimSpace(row); strings.HasPrefix(row, "#") {
			continue
		}
		for entry := range strings.SplitSeq(row, ",") {
			if entry = strings.TrimSpace(entry); entry == "" {
				continue
			}
			token, err := parseToken(entry)
			if err == nil {
				err = all.clash(token)
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			all = append(all, token)
		}
	}
	return all, nil
}

func parseToken(entry string) (Token, error) {
	name, rest, _ := strings.Cut(entry, ":")
	role, secret, whole := strings.Cut(rest, ":")
	switch {
	case !whole:
		return Token{}, errors.New("a token is written NAME:ROLE:SECRET")
	case !tokenName.MatchString(name):
		return Token{}, errors.New("the name of a token: up to 40 letters, digits and . _ @ - are allowed")
	case !Role(role).known():
		return Token{}, fmt.Errorf("the role of token %s: viewer, operator and notifier are allowed", name)
	}
	if err := checkSecret(secret); err != nil {
		return Token{}, fmt.Errorf("token %s: %w", name, err)
	}
	return newToken(name, Role(role), secret), nil
}

// newToken keys sessions by the secret: whoever takes the token away ends them all,
// and every server that knows the token knows them.
func newToken(name string, role Role, secret string) Token {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("lancefleet session"))
	return Token{Name: name, Role: role, hash: sha256.Sum256([]byte(secret)), key: mac.Sum(nil)}
}

// checkSecret refuses what can be guessed.
func checkSecret(secret string) error {
	different := map[rune]bool{}
	for _, r := range secret {
		different[r] = true
	}
	switch {
	case len(secret) < shortestSecret || len(secret) > longestSecret:
		return fmt.Errorf("the secret has %d characters: %d to %d are allowed; %s", len(secret), shortestSecret, longestSecret, howToMakeOne)
	case !tokenSecret.MatchString(secret):
		return errors.New("the secret: letters, digits and . _ ~ + / = - are allowed; " + howToMakeOne)
	case len(different) < fewestLetters:
		return fmt.Errorf("the secret has %d different characters: at least %d are allowed; %s", len(different), fewestLetters, howToMakeOne)
	}
	return nil
}

// clash refuses one secret for two tokens: nobody could say whose it is. One name
// may have two secrets, while one replaces the other, and then one role.
func (all Tokens) clash(token Token) error {
	for _, other := range all {
		if other.hash == token.hash {
			return fmt.Errorf("token %s: its secret is that of %s too", token.Name, other.Name)
		}
		if other.Name == token.Name && other.Role != token.Role {
			return fmt.Errorf("token %s: it is %s and %s", token.Name, other.Role, token.Role)
		}
	}
	return nil
}

// find compares with all of them, in the same time whichever it is.
func (all Tokens) find(secret string) (Token, bool) {
	hash := sha256.Sum256([]byte(secret))
	at := -1
	for i := range all {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(all[i].hash[:], hash[:]), i, at)
	}
	if at < 0 {
		return Token{}, false
	}
	return all[at], true
}

// ReadTokens reads a file of tokens, which must have one at least.
func ReadTokens(path string) (Tokens, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokens file: %w", err)
	}
	tokens, err := ParseTokens(string(text))
	if err != nil {
		return nil, fmt.Errorf("tokens file %s: %w", path, err)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("tokens file %s: it has no token", path)
	}
	return tokens, nil
}

// allTokens are those of the settings and those of the file.
func (c Config) allTokens() (Tokens, error) {
	tokens, err := ParseTokens(c.Tokens)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if c.TokensFile == "" {
		return tokens, nil
	}
	fromFile, err := ReadTokens(c.TokensFile)
	if err != nil {
		return nil, err
	}
	for _, token := range fromFile {
		if err := tokens.clash(token); err != nil {
			return nil, fmt.Errorf("tokens file %s: %w", c.TokensFile, err)
		}
	}
	return slices.Concat(tokens, fromFile), nil
}
