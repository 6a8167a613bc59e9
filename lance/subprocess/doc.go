// Package subprocess runs the heavy calls of the native library in a child
// process of its own. Cancelling a call kills the child; its memory is watched
// against a ceiling and all of it comes back when the child ends; a crash of the
// engine is the error of one call. When memory runs out, the kernel takes the
// child before it takes the parent (Linux).
//
// The child is the same program: it calls [Serve]. Requests go to its stdin and
// answers come from its stdout, one JSON document a line. When its stdin ends, as
// it does when the parent is killed, the child ends at once.
package subprocess
