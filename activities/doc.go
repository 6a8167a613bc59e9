// Package activities does what workflows decide: one struct per group, its
// dependencies as fields. Only activities write.
//
// An attempt may outlive its lease: a worker that is cut off from Temporal is not
// cancelled by it, while the next attempt already runs elsewhere. So every attempt
// ends itself before its heartbeat timeout (lease.go), what it stages has a key of
// its own, and every mutation of a table is one conditional commit.
package activities
