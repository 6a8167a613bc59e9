package main

import "github.com/alecthomas/kong"

const (
	defaultDataDir = "./data"
	defaultServer  = "http://127.0.0.1:8090"
	configVariable = "LANCEFLEET_CONFIG"
)

// CLI is every command and its flags.
type CLI struct {
	Log    logFlags        `embed:""`
	Config kong.ConfigFlag `help:"YAML file of settings, by the names of the flags. Also LANCEFLEET_CONFIG." placeholder:"FILE"`

	Dev        devCommand        `cmd:"" help:"Everything in one process on this machine: Temporal, worker, web and a demo fleet, or your own data."`
	Worker     workerCommand     `cmd:"" help:"Run rounds for a fleet."`
	Web        webCommand        `cmd:"" help:"Serve pages, API and metrics."`
	Scan       scanCommand       `cmd:"" help:"Start a round now."`
	Ls         lsCommand         `cmd:"" name:"ls" help:"List experiments."`
	Show       showCommand       `cmd:"" help:"Show one experiment."`
	Pause      pauseCommand      `cmd:"" help:"Stop starting rounds."`
	Resume     resumeCommand     `cmd:"" help:"Start rounds again."`
	MakeFleet  makeFleetCommand  `cmd:"" help:"Make a fleet of datasets for trying out, tests and measurements."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	NativeExec nativeExecCommand `cmd:"" name:"native-exec" hidden:"" help:"Carry out a worker's heavy calls."`
	Completion completionCommand `cmd:"" help:"Print a completion script for your shell."`
}
