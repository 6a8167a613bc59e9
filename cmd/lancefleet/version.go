package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

type versionDocument struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints what this program was built from.
func (c *versionCommand) Run(io streams) error {
	document := versionDocument{Version: version, Revision: revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if c.JSON {
		return printJSON(io.out, document)
	}
	_, err := fmt.Fprintf(io.out, "lancefleet %s %s %s\n", document.Version, document.Go, document.Platform)
	return err
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}
