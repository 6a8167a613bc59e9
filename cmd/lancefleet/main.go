// Command lancefleet is the whole product: a development fleet in one process,
// the worker, the web server, and commands for those who operate a fleet.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/alecthomas/kong"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cli CLI
	exit := -1
	parser, err := newParser(&cli, stdout, stderr, func(code int) { exit = code })
	if err != nil {
		return report(stderr, usageError{err})
	}
	parsed, err := parser.Parse(clientFlagsLast(joinNegatives(args)))
	if exit >= 0 { // --help was answered
		return exit
	}
	if err != nil {
		return report(stderr, mistaken(err))
	}
	io := streams{in: os.Stdin, out: stdout, err: stderr}
	log, err := cli.Log.logger(stderr)
	if err != nil {
		return report(stderr, usageError{err})
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return report(stderr, byFlag(parsed.Run(io, log, parser.Model, givenOn(parsed)), parsed.Selected()))
}

func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "lancefleet:", err)
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintln(stderr, "lancefleet --help lists commands, lancefleet COMMAND --help their flags")
	}
	return exitCode(err)
}

// streams is where commands print: results to out, everything else to err; and
// where they read what a person answers.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func newParser(cli *CLI, stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	dropEmptySettings()
	options := []kong.Option{
		kong.Name("lancefleet"),
		kong.Description("Keeps a fleet of Lance datasets observed, merged and compacted, and retires those that nobody writes any more. Settings come from flags, the environment and a YAML file, in this order."),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.KindMapper(reflect.Int, kong.MapperFunc(wholeNumber)),
		kong.KindMapper(reflect.Int64, kong.MapperFunc(wholeNumber)),
		kong.KindMapper(reflect.Float64, kong.MapperFunc(realNumber)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"data_dir": defaultDataDir, "server": defaultServer},
	}
	if path := os.Getenv(configVariable); path != "" {
		resolver, err := openSettings(path)
		if err != nil {
			return nil, fmt.Errorf("%s=%q: %w", configVariable, path, err)
		}
		options = append(options, kong.Resolvers(resolver))
	}
	return kong.New(cli, options...)
}
