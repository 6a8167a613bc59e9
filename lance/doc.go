// Package lance reads and commits Lance datasets through a small native library,
// loaded without cgo. It knows MemWAL: it can tell cheaply whether anything was
// written to a dataset, and measure it fully without reading data.
package lance
