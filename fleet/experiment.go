package fleet

// Kind says where an experiment comes from and which tool writes it.
type Kind string

const (
	Rollout Kind = "rollout" // lance-context rollout store
	Generic Kind = "generic" // lance-context generic store
	Datagen Kind = "datagen" // lance-context datagen store
	Table   Kind = "table"   // any other *.lance in a folder or bucket
)

// ID names an experiment in the fleet.
type ID struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

// Source says which listing named an experiment.
type Source string

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
