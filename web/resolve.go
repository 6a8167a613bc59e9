package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"lancefleet/fleet"
)

// target is an experiment somebody named: its row, or what a source says of it.
type target struct {
	exp fleet.Experiment
	row *fleet.Row // nil = no row
	at  int32      // of the row in the view
}

// resolve finds what a name means: kind:name, or bare: the rollout, else the
// unique match, else a conflict that names the candidates. Rows come first, then
// the sources.
func (s *Server) resolve(ctx context.Context, v *view, name string) (target, error) {
	ref, err := fleet.ParseRef(name)
	if err != nil {
		return target{}, refuse(http.StatusBadRequest, err.Error())
	}
	if t, ok, err := pick(name, v.matches(ref)); ok || err != nil {
		return t, err
	}
	if s.lookup == nil {
		return target{}, notNamed(name)
	}
	if err := s.spend(ctx); err != nil { // it may take a listing of every folder
		return target{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	named, err := s.lookup.Lookup(ctx, ref)
	if err != nil {
		return target{}, fmt.Errorf("looking for %s in the sources: %w", name, err)
	}
	found := make([]target, len(named))
	for i, exp := range named {
		found[i] = target{exp: exp}
	}
	if t, ok, err := pick(name, found); ok || err != nil {
		return t, err
	}
	return target{}, notNamed(name)
}

func notNamed(name string) error {
	return refuse(http.StatusNotFound, fmt.Sprintf("no source names an experiment %q", name))
}

// matches answers the rows a reference could mean.
func (v *view) matches(ref fleet.Ref) []target {
	kinds := fleet.Kinds()
	if ref.Kind != "" {
		kinds = []fleet.Kind{ref.Kind}
	}
	var out []target
	for _, k := range kinds {
		if i, ok := v.find(fleet.ID{Kind: k, Name: ref.Name}); ok {
			out = append(out, target{exp: v.Rows[i].Experiment, row: v.Rows[i], at: i})
		}
	}
	return out
}

// pick chooses among candidates; false = there are none.
func pick(name string, found []target) (target, bool, error) {
	if len(found) == 0 {
		return target{}, false, nil
	}
	if len(found) == 1 {
		return found[0], true, nil
	}
	names := make([]string, len(found))
	for i, t := range found {
		if t.exp.Kind == fleet.Rollout {
			return t, true, nil
		}
		names[i] = t.exp.String()
	}
	slices.Sort(names)
	e := refuse(http.StatusConflict, fmt.Sprintf("%q could be %s", name, strings.Join(names, " or ")))
	e.Candidates = names
	return target{}, false, e
}
