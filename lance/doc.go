// Package lance reads and commits Lance datasets through a small native library,
// loaded without cgo. It knows MemWAL: it can tell cheaply whether anything was
// written to a dataset, and measure it fully without reading data.
//
// [Open] loads the library and starts an engine: one pool of native threads and
// one client per bucket, shared by all calls. An [Engine] may be used by any
// number of goroutines; open one per process and close it at the end.
//
//	engine, err := lance.Open(lance.Options{})
//	if err != nil {
//		return err // errors.Is(err, lance.ErrLibrary): the library is missing or does not fit
//	}
//	defer engine.Close()
//	head, err := engine.Head(ctx, "s3://bucket/table.lance")
//
// A [Reader] is an engine that cannot write: hand it to code that only browses.
//
// # Batches
//
// [Reader.Probe] and [Reader.Observe] take many targets at once and answer one
// result for each, in order. A target that fails has its own error; the call as
// a whole only fails when nothing could be asked.
//
// # Errors
//
// Every error of this package is an [*Error] with a [Class] to act on. Use
// errors.Is with the sentinels ([ErrGone], [ErrConflict], ...), or [ClassOf].
//
// # Cancellation
//
// When the context of a call ends, the native side drops its work at the next
// point where it waits, and the call returns. A write that ends so may or may not have happened: look
// before trying again. A call that finished before it noticed reports success.
//
// # Threads
//
// A call blocks an operating system thread. An engine lets 128 calls in at once
// and keeps the others waiting as plain goroutines, so thousands of callers cost
// no thousands of threads. Prefer one batch of a thousand targets to a thousand
// calls.
//
// Times are unix milliseconds in UTC, sizes are bytes.
package lance
