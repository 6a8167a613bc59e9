package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Age words a duration in its largest unit: "45 s", "12 min", "2 h", "3 d".
// Negative ones (a clock runs ahead) read as "0 s".
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(d, 0)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/day)
}

// Ago words how long before now (both unix ms) something was: "2 h ago". 0 and
// less is unknown.
func Ago(at, now int64) string {
	if at <= 0 {
		return "at an unknown time"
	}
	return Age(span(at, now)) + " ago"
}

// Clock words a time as seen from now (both unix ms), in UTC: "14:05" on the same
// day, else "Nov 30 14:05", with the year where it differs.
func Clock(at, now int64) string {
	t, n := time.UnixMilli(at).UTC(), time.UnixMilli(now).UTC()
	switch {
	case t.Year() != n.Year():
		return t.Format("2006 Jan 2 15:04")
	case t.YearDay() != n.YearDay():
		return t.Format("Jan 2 15:04")
	}
	return t.Format("15:04")
}

// Count words a number of things: "1 fragment", "3 fragments", "2 entries",
// "17,204 rows", "unknown fragments".
func Count(n int64, thing string) string {
	switch {
	case n < 0:
		return "unknown " + plural(thing)
	case n == 1:
		return "1 " + thing
	}
	return Number(n) + " " + plural(thing)
}

// Number is a number as people read it: "17,204". Versions and other names that are
// numbers go without commas.
func Number(n int64) string {
	digits, sign := itoa(n), ""
	if n < 0 {
		digits, sign = digits[1:], "-"
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

func plural(thing string) string {
	if stem, ok := strings.CutSuffix(thing, "ry"); ok {
		return stem + "ries"
	}
	return thing + "s"
}

// span is the time from one unix ms to another.
func span(from, to int64) time.Duration { return time.Duration(to-from) * time.Millisecond }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }
