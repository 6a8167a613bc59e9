package main

import (
	"context"
	"os"

	"lancefleet/lance"
	"lancefleet/lance/subprocess"
)

// nativeExecCommand is the child process in which a worker runs what needs much
// memory. It is of no use to people.
type nativeExecCommand struct{}

// Run carries out what arrives on stdin until that ends.
func (c *nativeExecCommand) Run(ctx context.Context) error {
	return subprocess.Serve(ctx, os.Stdin, os.Stdout, lance.Options{})
}
