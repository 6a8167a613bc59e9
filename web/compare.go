package web

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// span64 is a range of numbers, both ends in it.
type span64 struct{ from, to int64 }

func (s span64) has(n int64) bool { return s.from <= n && n <= s.to }

var anyNumber = span64{math.MinInt64, math.MaxInt64}

// comparison splits ">=100" into its sign and the rest.
func comparison(value string) (sign, rest string) {
	for _, s := range []string{">=", "<=", ">", "<", "="} {
		if rest, ok := strings.CutPrefix(value, s); ok {
			return s, strings.TrimSpace(rest)
		}
	}
	return "", value
}

// bounded is what a sign makes of one number.
func bounded(sign string, n int64) span64 {
	switch sign {
	case ">":
		return span64{addOne(n), math.MaxInt64}
	case ">=":
		return span64{n, math.MaxInt64}
	case "<":
		return span64{math.MinInt64, n - 1}
	case "<=":
		return span64{math.MinInt64, n}
	}
	return span64{n, n}
}

func addOne(n int64) int64 {
	if n == math.MaxInt64 {
		return n
	}
	return n + 1
}

func (t *term) compileNumber(q *qualifier) *Mistake {
	t.q = q
	if strings.EqualFold(t.value, "unknown") {
		t.test = func(a *asking, i int32) bool { _, known := q.number(a.view, i); return !known }
		return nil
	}
	within, err := readSpan(t.value, func(s string) (int64, error) { return readAmount(s, q.bytes) })
	if err != nil {
		return t.wrong("%s; wanted: %s", err, q.wanted())
	}
	t.test = func(a *asking, i int32) bool {
		n, known := q.number(a.view, i)
		return known && within.has(n)
	}
	return nil
}

// readSpan reads "12", ">=100", "10..20", "10..*".
func readSpan(value string, read func(string) (int64, error)) (span64, error) {
	low, high, ranged := strings.Cut(value, "..")
	if !ranged {
		sign, rest := comparison(value)
		n, err := read(rest)
		return bounded(sign, n), err
	}
	s := anyNumber
	var err error
	if low != "*" {
		if s.from, err = read(low); err != nil {
			return s, err
		}
	}
	if high != "*" {
		s.to, err = read(high)
	}
	return s, err
}

// amounts are what may follow a number.
func amounts(bytes bool) map[string]float64 {
	if bytes {
		return map[string]float64{
			"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
			"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
		}
	}
	return map[string]float64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9}
}

func readAmount(s string, bytes bool) (int64, error) {
	digits := strings.TrimRight(s, "bBkKmMgGtTiI ")
	unit, ok := amounts(bytes)[strings.ToLower(strings.TrimSpace(s[len(digits):]))]
	n, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
	if err != nil || !ok || n < 0 || math.IsNaN(n) {
		return 0, fmt.Errorf("%s is not an amount", quoted(s))
	}
	if n *= unit; n >= math.MaxInt64 {
		return math.MaxInt64, nil
	}
	return int64(n), nil
}

// compileTime reads ages (from now, so that a kept address stays meaningful) and
// dates in UTC.
func (t *term) compileTime(q *qualifier, value string) *Mistake {
	t.q = q
	switch strings.ToLower(value) {
	case "never", "unknown":
		t.test = func(a *asking, i int32) bool { return q.time(a.view, i) <= 0 }
		return nil
	}
	within, aged, err := readTimes(value)
	if err != nil {
		return t.wrong("%s; wanted: %s", err, q.wanted())
	}
	t.test = func(a *asking, i int32) bool {
		at := q.time(a.view, i)
		if aged && at > 0 {
			return within.has(a.now - at)
		}
		return at > 0 && within.has(at)
	}
	return nil
}

// compileThan reads Gmail's words for the last write: of two ages the larger is the
// older one, of two dates the earlier.
func (t *term) compileThan() *Mistake {
	older := t.key == olderThan
	if _, notAge := readAge(t.value); notAge != nil {
		older = !older
	}
	sign := "<"
	if older {
		sign = ">"
	}
	return t.compileTime(qualifiers["last-write"], sign+t.value)
}

// readTimes answers milliseconds: of age if aged, else since 1970.
func readTimes(value string) (within span64, aged bool, err error) {
	_, bare := comparison(value)
	first, _, _ := strings.Cut(bare, "..")
	if _, ageless := readAge(first); ageless == nil || first == "*" {
		if bare == value && !strings.Contains(value, "..") {
			return within, true, fmt.Errorf("%s says nothing: younger is <%s, older is >%s", quoted(value), value, value)
		}
		within, err = readSpan(value, readAge)
		return within, true, err
	}
	if day, dayErr := time.Parse(time.DateOnly, value); dayErr == nil { // that day
		return span64{day.UnixMilli(), day.Add(24*time.Hour).UnixMilli() - 1}, false, nil
	}
	if low, high, ranged := strings.Cut(value, ".."); ranged {
		from, err := readMoment(low, false)
		if err != nil {
			return within, false, err
		}
		to, err := readMoment(high, true)
		return span64{from, to}, false, err
	}
	sign, rest := comparison(value)
	at, err := readMoment(rest, sign == ">" || sign == "<=")
	return bounded(sign, at), false, err
}

// readMoment reads a date or an RFC 3339 time. A date is its first millisecond, or
// its last.
func readMoment(s string, last bool) (int64, error) {
	if at, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
		return at.UnixMilli(), nil
	}
	day, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%s is neither an age nor a date", quoted(s))
	}
	if last {
		day = day.Add(24*time.Hour - time.Millisecond)
	}
	return day.UnixMilli(), nil
}

var ages = map[string]time.Duration{
	"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	"mo": 30 * 24 * time.Hour, "y": 365 * 24 * time.Hour, "m": time.Minute,
}

func readAge(s string) (int64, error) {
	lower := strings.ToLower(s) // of another length, perhaps
	digits := strings.TrimRight(lower, "abcdefghijklmnopqrstuvwxyz ")
	unit, ok := ages[strings.TrimSpace(lower[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !ok || n < 0 || n > 1e6 {
		return 0, fmt.Errorf("%s is not an age: s, min, h, d, w, mo and y are allowed", quoted(s))
	}
	return int64(n * float64(unit.Milliseconds())), nil
}

func (t *term) wrong(format string, args ...any) *Mistake {
	m := t.mistake(fmt.Sprintf(format, args...))
	t.q, t.test, t.values = nil, nil, nil
	return &m
}

// meant suggests the term that is nearest to a word, if one is near.
func meant(word string) string {
	best, at := "", 3
	for _, name := range slices.Sorted(maps.Keys(qualifiers)) {
		if d := distance(word, name); d < at {
			best, at = name, d
		}
	}
	if best == "" {
		return "; allowed: " + strings.Join(qualifierNames(), ", ")
	}
	return "; did you mean " + best + "?"
}

// distance is how many letters must change to make one word of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := last
			if a[i] != b[j] {
				next = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
