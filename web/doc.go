// Package web serves the browser's pages and the HTTP API of one fleet.
//
// Everything is answered from a snapshot of `_stats` held in memory, which one
// background goroutine renews by version: serving never waits for storage, and a
// store that stops answering costs freshness, said on every page, not the pages.
// The package has no handle that can write to storage. What changes something
// (start a round, pause, refresh one experiment) goes through [Control], which
// starts Temporal workflows.
//
// A page is a template, a content struct and a handler in neighbouring files. The
// JSON of the API and the HTML of the pages come from the same structs, api.go.
package web
