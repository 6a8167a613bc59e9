package fleet

import "fmt"

// CompactOptions is the text by which an empty compaction plan is remembered:
// with other options there may be something to do.
func (p Policy) CompactOptions() string {
	return fmt.Sprintf("min %d fragments, target %d rows, %d bytes", p.CompactMinFragments, p.TargetRows, p.TargetBytes)
}

func wantsCompact(r Row, p Policy, h History) Decision {
	words := Count(r.FragmentCount, "fragment")
	minimum := Number(p.CompactMinFragments)
	switch {
	case p.CompactMinFragments <= 0:
		return none(words+", never compacted", 0)
	case r.FragmentCount < 0:
		return none(words, 0)
	case r.FragmentCount < p.CompactMinFragments:
		return none(words+", below "+minimum, 0)
	case r.SmallFragments >= 0 && r.SmallFragments < p.CompactMinFragments:
		return none(words+", "+Number(r.SmallFragments)+" of them small, below "+minimum, 0)
	case h.NoOpVersion > 0 && h.NoOpVersion == r.Version && h.NoOpOptions == p.CompactOptions():
		return none(words+", nothing to compact in version "+itoa(r.Version), 0)
	}
	if r.SmallFragments >= 0 {
		words = Count(r.SmallFragments, "small fragment")
	}
	return do(DoCompact, words+", compacted from "+minimum+" on")
}
