package main

const (
	defaultDataDir = "./data"
	defaultServer  = "http://127.0.0.1:8090"
	configVariable = "LANCEFLEET_CONFIG"
)

// CLI is every command and its flags.
type CLI struct {
	Log    logFlags     `embed:""`
	Config settingsFile `help:"YAML file of settings, by the names of the flags. Also LANCEFLEET_CONFIG." placeholder:"FILE"`

	Dev        devCommand        `cmd:"" help:"Everything in one process on this machine: Temporal, worker, web and a demo fleet, or your own data."`
	Worker     workerCommand     `cmd:"" help:"Run rounds for a fleet."`
	Web        webCommand        `cmd:"" help:"Serve pages, API and metrics."`
	Status     statusCommand     `cmd:"" help:"Where the fleet stands: schedule, rounds, what is next, what is blocked, retirement, failures."`
	Failures   failuresCommand   `cmd:"" help:"What fails now, by cause."`
	Scan       scanCommand       `cmd:"" help:"Start a round now."`
	Ls         lsCommand         `cmd:"" name:"ls" help:"List experiments."`
	Show       showCommand       `cmd:"" help:"Show one experiment."`
	Retire     retireCommand     `cmd:"" help:"Retire one experiment: merge, compact, verify, take it out of the hot table."`
	Optimize   optimizeCommand   `cmd:"" help:"Merge and compact one experiment."`
	Wake       wakeCommand       `cmd:"" help:"Look at a retired experiment now: written since, it is hot again."`
	Verify     verifyCommand     `cmd:"" help:"Reopen one experiment and list what is pending, stranded or unknown; fails if anything is."`
	Seal       sealCommand       `cmd:"" help:"Replay the stranded WAL entries of one shard; shows them and asks."`
	Accept     acceptCommand     `cmd:"" help:"Decide about what merges refuse: a restored or overwritten table, a shard made anew; shows it and asks."`
	Plan       planCommand       `cmd:"" help:"What the next round would start, and why not for the rest."`
	History    historyCommand    `cmd:"" help:"What was done with one experiment."`
	Pause      pauseCommand      `cmd:"" help:"Stop starting rounds."`
	Resume     resumeCommand     `cmd:"" help:"Start rounds again."`
	Doctor     doctorCommand     `cmd:"" help:"Check data directory, storage, Temporal and this machine, and say what to do."`
	MakeFleet  makeFleetCommand  `cmd:"" help:"Make a fleet of datasets for trying out, tests and measurements."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	NativeExec nativeExecCommand `cmd:"" name:"native-exec" hidden:"" help:"Carry out a worker's heavy calls."`
	Completion completionCommand `cmd:"" help:"Print a completion script for your shell."`
}
