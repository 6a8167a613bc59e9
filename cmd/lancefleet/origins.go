package main

import (
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// givenFlags are the names of flags that stand on the command line.
type givenFlags map[string]bool

func givenOn(parsed *kong.Context) givenFlags {
	given := givenFlags{}
	for _, part := range parsed.Path {
		if part.Flag != nil && !part.Resolved {
			given[part.Flag.Name] = true
		}
	}
	return given
}

// policyFields are the flags that set a policy's values, by the values' names in the API.
var policyFields = map[string]string{
	"RetireAfter": "retire_after_secs", "MergeMinGenerations": "merge_min_generations", "MergeTailsAfter": "merge_tails_after_secs",
	"CompactMinFragments": "compact_min_fragments", "TargetRowsPerFragment": "target_rows_per_fragment", "TargetBytesPerFragment": "target_bytes_per_fragment",
	"CleanupOlderThan": "cleanup_older_than_secs", "LiveShards": "live_shards", "QuietWindow": "quiet_window", "CooldownAfterFailures": "cooldown_after_failures",
}

// policyOrigins says which flag or variable set a value of the policy. What neither
// did is the file's or the default's: the server tells those by the value.
func policyOrigins(given givenFlags) map[string]string {
	out := map[string]string{}
	flags := reflect.TypeFor[policyFlags]()
	for i := range flags.NumField() {
		field := flags.Field(i)
		name, ok := policyFields[field.Name]
		if !ok {
			continue
		}
		for _, variable := range strings.Split(field.Tag.Get("env"), ",") {
			if os.Getenv(variable) != "" {
				out[name] = "environment " + variable
				break // the first that is set counts
			}
		}
		if flag := kebab(field.Name); given[flag] {
			out[name] = "flag --" + flag
		}
	}
	return out
}

// kebab is a field's name as its flag has it.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
