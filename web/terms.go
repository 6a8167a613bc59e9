package web

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mistake is something in a query that was not understood: the word, where it is,
// and what would be.
type Mistake struct { //nolint:errname // what people read, and the name in the API
	Parameter string `json:"parameter" doc:"Of the query in the address"`
	At        int    `json:"at" doc:"Where the word begins in the parameter, in characters from 0"`
	Length    int    `json:"length" doc:"Of the word, in characters"`
	Word      string `json:"word"`
	Message   string `json:"message"`
}

// Error implements error.
func (m Mistake) Error() string {
	switch {
	case m.Parameter == "":
		return m.Message
	case m.Length == 0:
		return m.Parameter + ": " + m.Message
	}
	return fmt.Sprintf("%s: %s at %d: %s", m.Parameter, quoted(m.Word), m.At, m.Message)
}

// term is one word of a query's text: a part of a name, or what somebody asks of an
// experiment, such as `state:retired` or `pending:>=100`.
type term struct {
	raw    string // as typed, with quotes and minus
	at     int    // in characters
	not    bool   // a minus before it turns it round
	key    string // before the colon; "" = none
	value  string // without quotes
	quoted bool   // the value began with a quote: it is a word and nothing else

	q      *qualifier // nil = a part of a name
	flag   bool       // it stands alone
	needle string     // of a word that names must have as it is, in lower case; else ""
	values []string   // of one that lists, in lower case
	test   test       // nil = it was not understood
}

// split takes a text apart at white space outside of quotes.
func split(text string) ([]term, []Mistake) {
	var terms []term
	var wrong []Mistake
	at := 0 // characters before what is left
	for text != "" {
		blank := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
		at += utf8.RuneCountInString(text[:blank])
		if text = text[blank:]; text == "" {
			break
		}
		n, open := wordEnd(text)
		t := readTerm(text[:n], at)
		if open >= 0 {
			wrong = append(wrong, t.mistake(`a quote is not closed; write \" for one that belongs to the word`))
		}
		terms = append(terms, t)
		at += utf8.RuneCountInString(text[:n])
		text = text[n:]
	}
	return terms, wrong
}

// wordEnd is where the first word ends, and where a quote begins that does not, or -1.
func wordEnd(text string) (end, open int) {
	open = -1
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case open >= 0 && r == '\\':
			escaped = true
		case r == '"' && open >= 0:
			open = -1
		case r == '"':
			open = i
		case open < 0 && unicode.IsSpace(r):
			return i, -1
		}
	}
	return len(text), open
}

func readTerm(raw string, at int) term {
	t := term{raw: raw, at: at}
	rest := raw
	if len(rest) > 1 && rest[0] == '-' {
		t.not, rest = true, rest[1:]
	}
	if i := strings.IndexAny(rest, `:"`); i > 0 && rest[i] == ':' {
		t.key, rest = strings.ReplaceAll(strings.ToLower(rest[:i]), "_", "-"), rest[i+1:]
	}
	t.quoted = strings.HasPrefix(rest, `"`)
	t.value = unquote(rest)
	return t
}

// unquote takes away quotes, and the backslashes before those that stay.
func unquote(s string) string {
	var b strings.Builder
	inside, escaped := false, false
	for _, r := range s {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case inside && r == '\\':
			escaped = true
		case r == '"':
			inside = !inside
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// literal is a word as a text must have it to mean nothing but a part of a name.
func literal(word string) string {
	plain := word != "" && !strings.HasPrefix(word, "-") && !strings.ContainsFunc(word, func(r rune) bool {
		return unicode.IsSpace(r) || r == '"' || r == ':'
	})
	if plain && flags[word] == nil {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

func (t term) mistake(message string) Mistake {
	return Mistake{Parameter: "q", At: t.at, Length: utf8.RuneCountInString(t.raw), Word: t.raw, Message: message}
}

// isWord says whether the term is a part of a name.
func (t term) isWord() bool {
	return t.test != nil && (t.q == nil || t.q.name == "name")
}

// asks says whether a term asks for this value of a qualifier that lists, or, with
// no value, for a flag.
func (t term) asks(name, value string) bool {
	if t.not || t.q == nil || t.q.name != name || t.test == nil {
		return false
	}
	return value == "" && t.flag || slices.Contains(t.values, value)
}
