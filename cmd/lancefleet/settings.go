package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// fileSettings resolves flags from a YAML file: one flat mapping, keys named as
// the flags are or as their environment variables (`scan-interval`, `SCAN_INTERVAL`).
type fileSettings map[string]any

// settingsFile is the flag that names the file.
type settingsFile string

// BeforeResolve reads the file in time for the flags to be set from it.
func (f settingsFile) BeforeResolve(ctx *kong.Context, trace *kong.Path) error {
	path := string(ctx.FlagValue(trace.Flag).(settingsFile))
	resolver, err := openSettings(kong.ExpandPath(path))
	if err != nil {
		return fmt.Errorf("--config %q: %w", path, err)
	}
	ctx.AddResolver(resolver)
	return nil
}

func openSettings(path string) (kong.Resolver, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return loadSettings(f)
}

func loadSettings(r io.Reader) (kong.Resolver, error) {
	var raw map[string]any
	if err := yaml.NewDecoder(r).Decode(&raw); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("config file: %w", err)
	}
	settings := fileSettings{}
	for key, value := range raw {
		if _, twice := settings[canonical(key)]; twice {
			return nil, fmt.Errorf("config file: %s is given twice, in two spellings", canonical(key))
		}
		settings[canonical(key)] = value
	}
	return settings, nil
}

func canonical(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// names are those a flag goes by in the file.
func names(flag *kong.Flag) []string {
	all := []string{canonical(flag.Name)}
	for _, env := range flag.Envs {
		all = append(all, canonical(env))
	}
	return all
}

// Validate refuses a file with a setting that no command has: a typo must not
// leave a default in force unnoticed.
func (s fileSettings) Validate(app *kong.Application) error {
	known := map[string]bool{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range names(flag) {
				known[name] = true
			}
		}
		return next(nil)
	})
	var unknown []string
	for key := range s {
		if !known[key] {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("config file: unknown setting %q; docs/configuration.md lists what is allowed", unknown[0])
	}
	return nil
}

// Resolve gives a flag its value from the file. The environment goes first.
func (s fileSettings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	for _, name := range names(flag) {
		if value, ok := s[name]; ok {
			return scalar(value), nil
		}
	}
	return nil, nil
}

// scalar makes lists what flags take: values with commas between.
func scalar(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	if len(list) > 0 {
		if _, mappings := list[0].(map[string]any); mappings {
			return list // overrides
		}
	}
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, ",")
}

// dropEmptySettings makes a variable that is set but empty the same as one that
// is not set: compose files and unit files produce such.
func dropEmptySettings() {
	for _, name := range settingVariables() {
		if value, set := os.LookupEnv(name); set && value == "" {
			_ = os.Unsetenv(name)
		}
	}
}

func settingVariables() []string {
	var found []string
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			if env := f.Tag.Get("env"); env != "" {
				found = append(found, strings.Split(env, ",")...)
			}
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[CLI]())
	return found
}
