// Package store reads and writes everything that lies in a data directory beside
// the experiments themselves: the listings that name them (registries and
// folders), the statistics table `_stats`, the ledger of what has retired, the
// journal, the rounds, the samples, the staged objects of running rounds and the
// identity of the fleet.
//
// docs/data-directory.md says what lies where and what losing it costs;
// docs/decisions/0004-stats-table.md says why `_stats` is as it is.
//
// # Reading
//
// [Stats], [Sources], [Ledger], [Journal], [Rounds] and [Samples] hold a [Reader],
// which cannot write. [Browser] bundles them for the browsing side. What they return
// is shared and must not be changed by its caller. Tables are cached by version and
// e-tag: each question costs one cheap look at the head, and a table is read once
// per version and process however many ask. An answer is never older than the question.
//
// # Writing
//
// Only Temporal's activities hold a [Writer]. A snapshot of `_stats` is committed
// by compare-and-swap: whoever comes second gets [lance.ErrConflict], reads again
// and decides again. Retirements, actions, rounds and samples are appended; an append
// that is repeated is recognised by its id, and [LedgerWriter] reads the head back
// before it says that an entry is there. [Keeper] keeps all of these tables small.
// Objects are immutable: their keys hold their content's hash, or who wrote them and
// a random part.
package store
