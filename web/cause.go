package web

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// wording is the sentence of a cause. What differs between two experiments with one
// trouble is taken out of it: names, paths and ids for good, numbers where they are
// not the same for all.
type wording struct {
	parts   []string // between the numbers
	numbers []string // one fewer
}

var (
	aPath   = regexp.MustCompile(`[a-z0-9]+://[^\s,;:"']+|(?:/[A-Za-z0-9._@%+=-]+){2,}`)
	aUUID   = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	aNumber = regexp.MustCompile(`\b[0-9](?:[0-9,.:]*[0-9])?\b`)
)

// longestCause is what is read of a sentence.
const longestCause = 300

// wordingOf reads what is said about one experiment.
func wordingOf(text, id string) wording {
	if id != "" {
		text = strings.ReplaceAll(text, id, "…")
		if _, name, found := strings.Cut(id, ":"); found && len(name) > 2 {
			text = strings.ReplaceAll(text, name, "…")
		}
	}
	text = aPath.ReplaceAllString(text, "…")
	text = aUUID.ReplaceAllString(text, "…")
	if len(text) > longestCause {
		text = strings.ToValidUTF8(text[:longestCause], "") + "…"
	}
	text = cmp.Or(line(text), "no words were kept")
	return wording{aNumber.Split(text, -1), aNumber.FindAllString(text, -1)}
}

// key is the same for all that have this cause.
func (w wording) key() string { return strings.Join(w.parts, "…") }

// with takes in one more of the same key, and gives the sentence that holds for all.
func (w *wording) with(other wording) string {
	w.numbers = slices.Clone(w.numbers)
	var text strings.Builder
	for i, part := range w.parts {
		text.WriteString(part)
		if i == len(w.numbers) {
			break
		}
		if w.numbers[i] != other.numbers[i] {
			w.numbers[i] = "…"
		}
		text.WriteString(w.numbers[i])
	}
	return text.String()
}
