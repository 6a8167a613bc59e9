package web

import (
	"fmt"
	"time"

	"lancefleet/fleet"
)

// silent is how long a writer may be quiet and alive.
const silent = time.Hour

// health says in one sentence how an experiment is.
func health(e shown, now int64) string {
	row := e.row
	switch {
	case e.entry != nil:
		return "At rest: every row is in the base table, nothing pending, nothing stranded; verified " + fleet.Ago(e.entry.Evidence.VerifiedAt, now) + "."
	case row.Failing():
		return failing(row, now)
	case !row.Known:
		return "Never observed: no round has reached it yet."
	case row.MissingRounds > 0:
		return fmt.Sprintf("No source named it in the last %s: after two it leaves the list.", plural(row.MissingRounds, "round"))
	case row.StrandedEntries > 0:
		return count(row.StrandedEntries) + " WAL entries in no generation and not in the base: stranded."
	case row.TailEntries > 0 && row.StrandedEntries < 0 && row.LastWrite > 0 && now-row.LastWrite > silent.Milliseconds():
		return fmt.Sprintf("%s past the flush cursor and nothing written for %s: perhaps the cursor only lags, perhaps a writer died before it flushed them. Verify tells.",
			fleet.Count(row.TailEntries, "WAL entry"), fleet.Age(time.Duration(now-row.LastWrite)*time.Millisecond))
	case row.PendingWAL > fleet.ReadCap:
		return fmt.Sprintf("%s pending generations: above %s lance-context workers refuse to read it.", count(row.PendingWAL), count(fleet.ReadCap))
	case row.PendingWAL > fleet.BacklogWarning:
		return count(row.PendingWAL) + " pending generations: reads get slow."
	case row.PendingWAL > 0:
		return fmt.Sprintf("Healthy; %s not in the base table yet.", plural(row.PendingWAL, "generation"))
	case row.PendingWAL < 0:
		return "Observed; whether generations are pending is unknown."
	case row.TailEntries > 0 && row.StrandedEntries == 0 && now-row.LastWrite > silent.Milliseconds():
		return "Healthy; the flush cursor lags behind " + fleet.Count(row.TailEntries, "WAL entry") + " whose rows are in the table or in a generation."
	case row.TailEntries > 0:
		return "Healthy; newest writes are in the WAL and not flushed yet."
	default:
		return "Healthy; nothing pending."
	}
}

func failing(row *fleet.Row, now int64) string {
	s := "The last observation failed"
	if row.FailingSince > 0 {
		s = "Observations have failed since " + exact(row.FailingSince)
	}
	if row.ErrorClass != "" {
		s += " (" + row.ErrorClass + ")"
	}
	switch {
	case row.Known && row.ObservedAt > 0:
		s += "; the numbers are from " + fleet.Ago(row.ObservedAt, now)
	case !row.Known:
		s += "; it was never observed"
	}
	if next := row.NextAttempt(now); next > now {
		s += ". Next attempt " + relative(next, now)
	}
	return s + "."
}
