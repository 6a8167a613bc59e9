package main

import "strings"

// clientValues are the flags of clients that take a value. People write them before
// the command as often as after it.
var clientValues = map[string]bool{"--server": true, "--token": true}

const jsonFlag = "--json"

// clientFlagsLast moves the flags of clients that stand before the command to the
// end of the line, or before a "--", where the command takes them. A command that has
// no such flag refuses them there.
func clientFlagsLast(args []string) []string {
	var first, moved []string
	at := 0
	for at < len(args) && strings.HasPrefix(args[at], "--") && args[at] != "--" {
		name, _, joined := strings.Cut(args[at], "=")
		n := 1
		if !joined && name != jsonFlag && name != "--help" && at+1 < len(args) {
			n = 2 // every other flag that may stand there has a value
		}
		if clientValues[name] || name == jsonFlag {
			moved = append(moved, args[at:at+n]...)
		} else {
			first = append(first, args[at:at+n]...)
		}
		at += n
	}
	rest := args[at:]
	for i, arg := range rest {
		if arg == "--" {
			return join(first, rest[:i], moved, rest[i:])
		}
	}
	return join(first, rest, moved)
}

func join(parts ...[]string) []string {
	var all []string
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}
