package web

import "slices"

// grams tells which names may have a word in them, without reading all: for each
// three characters in a row the names that have them, by number. Names take about 30
// numbers of four bytes each.
type grams struct {
	from  []uint32 // by gram, where its numbers begin in at; one more at the end
	names []int32
}

const (
	gramLength = 3
	gramCount  = 1 << (6 * gramLength)
)

// gramCode puts the characters that names are made of into 6 bits; all others share
// one code, as what is found is read anyway.
func gramCode(b byte) uint32 {
	switch {
	case b >= 'a' && b <= 'z':
		return uint32(b-'a') + 1
	case b >= '0' && b <= '9':
		return uint32(b-'0') + 27
	case b == '-':
		return 37
	case b == '_':
		return 38
	case b == '.':
		return 39
	}
	return 0
}

// eachGram calls f with the grams of a text, repeated ones too.
func eachGram(text string, f func(gram uint32)) {
	var gram uint32
	for i := range len(text) {
		gram = (gram<<6 | gramCode(text[i])) % gramCount
		if i >= gramLength-1 {
			f(gram)
		}
	}
}

// newGrams reads names in lower case.
func newGrams(names []string) *grams {
	g := &grams{from: make([]uint32, gramCount+1)}
	newest := make([]int32, gramCount) // name that was counted last, from 1
	for i, name := range names {
		eachGram(name, func(gram uint32) {
			if newest[gram] != int32(i)+1 {
				newest[gram] = int32(i) + 1
				g.from[gram+1]++
			}
		})
	}
	for gram := range gramCount {
		g.from[gram+1] += g.from[gram]
	}
	g.names = make([]int32, g.from[gramCount])
	next := make([]uint32, gramCount)
	copy(next, g.from)
	clear(newest)
	for i, name := range names {
		eachGram(name, func(gram uint32) {
			if newest[gram] != int32(i)+1 {
				newest[gram] = int32(i) + 1
				g.names[next[gram]] = int32(i)
				next[gram]++
			}
		})
	}
	return g
}

// maybe answers the fewest names among which all that have the word are, in order;
// ok is false where the word is too short to tell.
func (g *grams) maybe(word string) (names []int32, ok bool) {
	eachGram(word, func(gram uint32) {
		if few := g.names[g.from[gram]:g.from[gram+1]]; !ok || len(few) < len(names) {
			names, ok = few, true
		}
	})
	return names, ok
}

// candidates are the experiments, in order, among which all are that a query finds;
// every one of the view where neither its words nor its states tell.
func (q Query) candidates(v *view) (numbers []int32, all bool) {
	all = true
	if !q.wantsCold() && !slices.Contains(q.states(), Retired) {
		numbers, all = v.hot, false
	}
	for i := range q.terms {
		if t := &q.terms[i]; t.needle != "" && !t.not {
			if few, ok := v.grams.maybe(t.needle); ok && (all || len(few) < len(numbers)) {
				numbers, all = few, false
			}
		}
	}
	return numbers, all
}
