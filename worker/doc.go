// Package worker builds the process that does the work of one fleet: it makes sure
// that data directory and Temporal belong together, registers what Temporal needs
// to know, keeps the schedule of rounds alive and runs the activities.
package worker
