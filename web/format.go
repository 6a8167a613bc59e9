package web

import (
	"fmt"
	"strings"
	"time"

	"lancefleet/fleet"
)

// count groups digits: 1234567 -> "1,234,567".
func count(n int64) string { return fleet.Number(n) }

// size is binary: 1536 -> "1.5 KiB".
func size(n int64) string {
	if n < 1024 {
		return count(n) + " B"
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		f /= 1024
		if f < 999.5 {
			if f < 9.95 {
				return fmt.Sprintf("%.1f %s", f, unit)
			}
			return fmt.Sprintf("%.0f %s", f, unit)
		}
	}
	return fmt.Sprintf("%.0f EiB", f)
}

// span says a length of time in one unit: "42 s", "3 min", "5 h", "12 d".
func span(d time.Duration) string {
	if d < 0 {
		d = -d
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int64(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int64(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int64(d/time.Hour))
	case d < 730*24*time.Hour:
		return fmt.Sprintf("%d d", int64(d/(24*time.Hour)))
	default:
		return fmt.Sprintf("%d y", int64(d/(365*24*time.Hour)))
	}
}

// relative says when something was or will be, seen from now.
func relative(ms, now int64) string {
	d := time.Duration(now-ms) * time.Millisecond
	switch {
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return "in " + span(d)
	default:
		return span(d) + " ago"
	}
}

// exact is the time in UTC to the second, for people.
func exact(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// machine is the time for the datetime attribute.
func machine(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// seconds says how long a round took.
func seconds(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 60:
		return fmt.Sprintf("%.1f s", s)
	default:
		return fmt.Sprintf("%d min %02d s", int64(s)/60, int64(s)%60)
	}
}

// dollars a day; small amounts keep their first digits.
func dollars(f float64) string {
	switch {
	case f == 0:
		return "$0"
	case f < 0.01:
		return "< $0.01"
	default:
		return fmt.Sprintf("$%.2f", f)
	}
}

// plural: "1 fragment", "3,000 fragments", "2 entries".
func plural(n int64, one string) string {
	if _, words, ok := strings.Cut(fleet.Count(n, one), " "); ok && n >= 0 {
		return count(n) + " " + words
	}
	return fleet.Count(n, one)
}
