package main

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"lancefleet/fleet"
)

// overrides change the policy of the experiments that they match.
type overrides []fleet.Override

// Decode reads the list of the file, or YAML (so JSON too) of a flag or a variable.
func (o *overrides) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("list of overrides")
	if err != nil {
		return err
	}
	list, isList := token.Value.([]any)
	if text, isText := token.Value.(string); isText {
		isList = yaml.Unmarshal([]byte(text), &list) == nil
	}
	if !isList {
		return fmt.Errorf("%q: a list of mappings is allowed, such as [{pattern: eval-*, retire-after: 30d}]", token)
	}
	*o = nil
	for i, item := range list {
		one, err := parseOverride(item)
		if err != nil {
			return fmt.Errorf("override %d: %w", i+1, err)
		}
		*o = append(*o, one)
	}
	return nil
}

// overrideFields read what an override may set, by the names of the flags.
var overrideFields = map[string]func(o *fleet.Override, value string) error{
	"pattern": func(o *fleet.Override, v string) error {
		if _, err := path.Match(v, ""); err != nil || v == "" {
			return fmt.Errorf("%q: a shell pattern with *, ? and [..] over the bare name is allowed", v)
		}
		o.Pattern = v
		return nil
	},
	"kind": func(o *fleet.Override, v string) (err error) {
		o.Kind, err = fleet.ParseKind(v)
		return err
	},
	"maintenance": func(o *fleet.Override, v string) error {
		on := v == "on" || v == "true" // YAML takes on for true
		if !on && v != "off" && v != "false" {
			return fmt.Errorf("%q: on or off is allowed", v)
		}
		o.Maintain = &on
		return nil
	},
	"paused": func(o *fleet.Override, v string) error {
		o.Paused = &v
		return nil
	},
	"retire-after":             durationField(func(o *fleet.Override) **time.Duration { return &o.RetireAfter }),
	"merge-tails-after":        durationField(func(o *fleet.Override) **time.Duration { return &o.MergeTailsAfter }),
	"cleanup-older-than":       durationField(func(o *fleet.Override) **time.Duration { return &o.CleanupOlderThan }),
	"merge-min-generations":    countField(0, func(o *fleet.Override) **int64 { return &o.MergeMinGenerations }),
	"compact-min-fragments":    countField(0, func(o *fleet.Override) **int64 { return &o.CompactMinFragments }),
	"target-rows-per-fragment": countField(1, func(o *fleet.Override) **int64 { return &o.TargetRows }),
	"target-bytes-per-fragment": func(o *fleet.Override, v string) error {
		n, err := parseSize(v)
		bytes := int64(n)
		o.TargetBytes = &bytes
		return err
	},
	"live-shards": func(o *fleet.Override, v string) error {
		shards := fleet.LiveShards(v)
		if shards != fleet.MergeLiveShards && shards != fleet.LeaveLiveShards {
			return fmt.Errorf("%q: merge or leave is allowed", v)
		}
		o.LiveShards = &shards
		return nil
	},
	"quiet-window": func(o *fleet.Override, v string) error {
		w, err := parseWindow(v)
		window := fleet.Window(w)
		o.QuietWindow = &window
		return err
	},
}

func durationField(at func(*fleet.Override) **time.Duration) func(*fleet.Override, string) error {
	return func(o *fleet.Override, v string) error {
		d, err := parseDuration(v)
		*at(o) = &d
		return err
	}
}

func countField(least int64, at func(*fleet.Override) **int64) func(*fleet.Override, string) error {
	return func(o *fleet.Override, v string) error {
		n, err := parseCount(v, least)
		*at(o) = &n
		return err
	}
}

func parseOverride(item any) (fleet.Override, error) {
	var o fleet.Override
	fields, ok := item.(map[string]any)
	if !ok {
		return o, fmt.Errorf("%v: a mapping is allowed, such as {pattern: eval-*, retire-after: 30d}", item)
	}
	allowed := slices.Sorted(maps.Keys(overrideFields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		read := overrideFields[canonical(key)]
		if read == nil {
			return o, fmt.Errorf("%q is not a setting that can differ; allowed: %s", key, strings.Join(allowed, ", "))
		}
		if err := read(&o, text(fields[key])); err != nil {
			return o, fmt.Errorf("%s: %w", canonical(key), err)
		}
	}
	if o.Pattern == "" && o.Kind == "" {
		return o, errors.New("it says neither pattern nor kind: which experiments are meant?")
	}
	return o, nil
}

// text is a scalar as it was written: YAML has turned some into numbers.
func text(value any) string {
	if b, ok := value.(bool); ok {
		return strconv.FormatBool(b)
	}
	return fmt.Sprint(value)
}
