// Package makefleet makes fleets of Lance datasets that look like those of real
// workers: for demonstrations, tests and measurements. What it makes follows from
// the plan and its seed alone; only times are relative to now.
package makefleet
