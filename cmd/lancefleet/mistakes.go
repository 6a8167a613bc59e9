package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"lancefleet/worker"
)

// summary is how kong names a flag, with its default: --scan-interval=5m: ...
var summary = regexp.MustCompile(`^(--[a-z0-9-]+)=("[^"]*"|\S*): `)

// mistaken words what was wrong with flags, variables or the file.
func mistaken(err error) error {
	text := summary.ReplaceAllString(err.Error(), "$1: ")
	text = strings.ReplaceAll(text, "(from envar ", "(from the environment: ")
	return usageError{errors.New(text)}
}

// byFlag names the settings of an error as whoever typed them knows them: by flag
// and by variable.
func byFlag(err error, command *kong.Node) error {
	var usage usageError
	if command == nil || !errors.As(err, &usage) {
		return err
	}
	all := []error{usage.error}
	if joined, ok := usage.error.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for i, e := range all {
		var setting *worker.SettingError
		if errors.As(e, &setting) {
			all[i] = nameSetting(setting, command)
		}
	}
	return usageError{errors.Join(all...)}
}

func nameSetting(e *worker.SettingError, command *kong.Node) error {
	for _, flags := range command.AllFlags(false) {
		for _, flag := range flags {
			if slices.Contains(flag.Envs, e.Name) {
				return fmt.Errorf("--%s (%s) %v: allowed is %s", flag.Name, strings.Join(flag.Envs, ", "), e.Value, e.Allowed)
			}
		}
	}
	return e
}
