// Package fleet is the domain of lancefleet: values, policies and decisions.
//
// Everything here is pure: no I/O, no clock, no SDK. Functions take the time as
// an argument. Times are unix milliseconds in UTC, sizes are bytes, counts are
// int64 as in the tables they are stored in.
package fleet
