// Package web serves the browser's pages and the HTTP API of one fleet.
//
// Lists, plans and rows are answered from a snapshot of `_stats` held in memory, which
// background goroutines renew by version: a store that stops answering costs
// freshness, said on every page, not the pages. What asks storage for one answer (a
// fresh look, a verification, a dry run, history and charts) says when it can't.
// The package has no handle that can write to storage. What changes something
// (start a round, pause, refresh or maintain one experiment) goes through [Control],
// which starts Temporal workflows.
//
// A page is a template, a content struct and a handler in neighbouring files. The
// JSON of the API and the HTML of the pages come from the same structs.
//
// # Where what is
//
//   - What is known: feed.go renews a moment, view.go makes it ready, order.go sorts it,
//     names.go and cold.go add what only a source names.
//   - What is asked: query.go reads an address, terms.go its text, qualifiers.go and
//     compare.go each term, found.go remembers what a text finds, strict.go refuses
//     what a route does not take.
//   - Who asks: tokens.go, gate.go, session.go, access.go; how often and how long:
//     limits.go, deadline.go; the outside: security.go.
//   - What is answered: api.go and maintenance_api.go are the shapes, api_routes.go the
//     routes, experiments.go, rounds.go, plan.go, operations.go, series.go and tasks.go
//     the handlers, describe.go and examples.go the description.
//   - What is done: maintenance.go, dryrun.go, accept.go, batch.go, schedule.go.
//   - What is notified: events.go, eventformat.go, eventqueue.go.
//   - backend.go names what all this needs, wire.go gives it in production.
package web
