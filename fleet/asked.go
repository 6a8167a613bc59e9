package fleet

// FewestFragments can be made one.
const FewestFragments = 2

// AskedFor is policy and history as they count when a person asks for maintenance:
// neither the back-off after failures, nor the quiet window, nor the number of
// generations or fragments that makes it worth while keep it from being done. What
// is never done is still never done, and what is paused stays paused.
func AskedFor(p Policy, h History) (Policy, History) {
	h.Merge, h.Compact, h.Retire = Tries{}, Tries{}, Tries{}
	p.QuietWindow = Window{}
	p.MergeMinGenerations = min(p.MergeMinGenerations, 1)
	p.CompactMinFragments = min(p.CompactMinFragments, FewestFragments)
	return p, h
}
