package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script that completes commands and flags; docs/cli.md says where
// each shell wants it.
func (c *completionCommand) Run(io streams, app *kong.Application) error {
	var script strings.Builder
	switch c.Shell {
	case "fish":
		fishCompletion(&script, app)
	case "zsh": // zsh runs bash's completions
		script.WriteString("autoload -U +X bashcompinit && bashcompinit\n")
		bashCompletion(&script, app)
	default:
		bashCompletion(&script, app)
	}
	_, err := fmt.Fprint(io.out, script.String())
	return err
}

func commandsOf(app *kong.Application) []*kong.Node {
	var found []*kong.Node
	for _, node := range app.Children {
		if node.Type == kong.CommandNode && !node.Hidden {
			found = append(found, node)
		}
	}
	return found
}

func flagsOf(nodes ...*kong.Node) []string {
	var found []string
	for _, node := range nodes {
		for _, flag := range node.Flags {
			if !flag.Hidden {
				found = append(found, "--"+flag.Name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func bashCompletion(w io.Writer, app *kong.Application) {
	var names, cases []string
	for _, node := range commandsOf(app) {
		names = append(names, node.Name)
		cases = append(cases, fmt.Sprintf("    %s) words=%q ;;", node.Name, strings.Join(flagsOf(app.Node, node), " ")))
	}
	fmt.Fprintf(w, `_lancefleet() {
  local current=${COMP_WORDS[COMP_CWORD]} words
  case ${COMP_WORDS[1]} in
%s
    *) words=%q ;;
  esac
  [ "$COMP_CWORD" -gt 1 ] || words=%q
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case $current in --*) ;; *) [ "$COMP_CWORD" -gt 1 ] && COMPREPLY+=($(compgen -f -- "$current")) ;; esac
}
complete -F _lancefleet lancefleet
`, strings.Join(cases, "\n"), strings.Join(names, " "), strings.Join(append(names, flagsOf(app.Node)...), " "))
}

func fishCompletion(w io.Writer, app *kong.Application) {
	for _, node := range commandsOf(app) {
		fmt.Fprintf(w, "complete -c lancefleet -n __fish_use_subcommand -f -a %s -d %q\n", node.Name, node.Help)
		for _, flag := range flagsOf(app.Node, node) {
			fmt.Fprintf(w, "complete -c lancefleet -n '__fish_seen_subcommand_from %s' -l %s\n", node.Name, strings.TrimPrefix(flag, "--"))
		}
	}
}
