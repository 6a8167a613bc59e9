package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Kind says where an experiment comes from and which tool writes it.
type Kind string

// The kinds, as they stand before the colon of a name.
const (
	Rollout Kind = "rollout" // lance-context rollout store
	Generic Kind = "generic" // lance-context generic store
	Datagen Kind = "datagen" // lance-context datagen store
	Table   Kind = "table"   // any other *.lance in a folder or bucket
)

// MaxNameLength is the longest name accepted, in bytes: it must fit into a file
// name, an object key and a workflow id.
const MaxNameLength = 512

// Kinds lists every kind, the default of bare names first.
func Kinds() []Kind { return []Kind{Rollout, Generic, Datagen, Table} }

// ParseKind accepts exactly the four kinds.
func ParseKind(s string) (Kind, error) {
	for _, k := range Kinds() {
		if s == string(k) {
			return k, nil
		}
	}
	return "", fmt.Errorf("kind %q: want rollout, generic, datagen or table", s)
}

// ID names an experiment in the fleet.
type ID struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

// String gives "kind:name", the form used in URLs, commands and workflow ids.
func (id ID) String() string { return string(id.Kind) + ":" + id.Name }

// StatsName gives the name as the `name` column of `_stats` has it: bare for
// rollouts (lance-context's form), "kind:name" for every other kind.
func (id ID) StatsName() string {
	if id.Kind == Rollout {
		return id.Name
	}
	return id.String()
}

// Compare orders IDs as their String forms are ordered. No kind is a prefix of
// another, so kind and name can be compared one after the other.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Kind, other.Kind), cmp.Compare(id.Name, other.Name))
}

// ParseStatsName reads a `name` of `_stats`; a bare name is a rollout.
func ParseStatsName(s string) (ID, error) {
	ref, err := ParseRef(s)
	if err != nil {
		return ID{}, err
	}
	if ref.Kind == "" {
		ref.Kind = Rollout
	}
	return ID(ref), nil
}

// Ref is an experiment as a person names it: with a kind, or bare. A bare one
// means the rollout of that name, else the only experiment of that name.
type Ref struct {
	Kind Kind // "" = bare
	Name string
}

// ParseRef reads "kind:name" or a bare name. The name is validated after the prefix.
func ParseRef(s string) (Ref, error) {
	prefix, name, prefixed := strings.Cut(s, ":")
	if !prefixed {
		return Ref{Name: s}, ValidateName(s)
	}
	kind, err := ParseKind(prefix)
	if err != nil {
		return Ref{}, err
	}
	return Ref{Kind: kind, Name: name}, ValidateName(name)
}

// String gives back what a person would type.
func (r Ref) String() string {
	if r.Kind == "" {
		return r.Name
	}
	return ID(r).String()
}

// Matches says whether id is one of those that r may mean.
func (r Ref) Matches(id ID) bool {
	return r.Name == id.Name && (r.Kind == "" || r.Kind == id.Kind)
}

// Source says which listing named an experiment.
type Source string

// The sources.
const (
	FromRegistry Source = "registry"
	FromFolder   Source = "folder"
)

// Experiment is one Lance dataset known to the fleet.
type Experiment struct {
	ID
	URI       string `json:"uri"`        // absolute: a local path or scheme://...
	Source    Source `json:"source"`     // who named it
	CreatedAt int64  `json:"created_at"` // unix ms; 0 = unknown
}

// AllowedNames says what ValidateName accepts.
const AllowedNames = "letters (a-z, A-Z), digits, '_', '.' and '-' are allowed, and neither '.' nor '-' first"

// ValidateName accepts [A-Za-z0-9_][A-Za-z0-9._-]* that is not reserved. Names
// become parts of paths, object keys and workflow ids: everything else is hostile.
func ValidateName(name string) error {
	switch {
	case name == "":
		return errors.New("name is empty")
	case len(name) > MaxNameLength:
		return fmt.Errorf("name of %d bytes: at most %d", len(name), MaxNameLength)
	case !allowedName(name):
		return fmt.Errorf("name %q: %s", name, AllowedNames)
	case Reserved(name):
		return fmt.Errorf("name %q is reserved", name)
	}
	return nil
}

// allowedName goes byte by byte, so no encoding and no line end slips through.
func allowedName(name string) bool {
	for i := range len(name) {
		c := name[i]
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !word && (i == 0 || c != '.' && c != '-') {
			return false
		}
	}
	return true
}

// Reserved says whether a name belongs to lance-context's or lancefleet's own files.
func Reserved(name string) bool {
	switch name {
	case "_stats", "_registry", "_retired", "_journal", "_rounds", "_samples", "_lancefleet":
		return true
	}
	return false
}

// KindOfFolder reads a folder's name as it lies in a data directory:
// "x.rollout.lance" is rollout x, any other "x.lance" is table x. It says false
// for folders that are not experiments: no suffix, reserved or hostile names.
func KindOfFolder(folder string) (ID, bool) {
	stem, isLance := strings.CutSuffix(folder, ".lance")
	if !isLance {
		return ID{}, false
	}
	id := ID{Kind: Table, Name: stem}
	for _, kind := range []Kind{Rollout, Generic, Datagen} {
		if name, ok := strings.CutSuffix(stem, "."+string(kind)); ok {
			id = ID{Kind: kind, Name: name}
		}
	}
	return id, ValidateName(id.Name) == nil
}

// Folder is the inverse of KindOfFolder.
func (id ID) Folder() string {
	if id.Kind == Table {
		return id.Name + ".lance"
	}
	return id.Name + "." + string(id.Kind) + ".lance"
}
