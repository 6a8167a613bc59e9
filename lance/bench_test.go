package lance

import (
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// What a call costs before anything is done: the bridge, a cancel token, JSON.
func BenchmarkCall(b *testing.B) {
	f := openFake(b)
	f.answers(`{"version":3,"etag":"e","time":5}`)
	b.Run("one goroutine", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := f.Head(b.Context(), "/x"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := f.Head(b.Context(), "/x"); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// The same against the real library, which does no work for stats.
func BenchmarkCallOfTheRealLibrary(b *testing.B) {
	engine := openReal(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.Stats(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// Bytes through the bridge and back.
func BenchmarkBody(b *testing.B) {
	f := openFake(b)
	for _, size := range []int{1 << 10, 1 << 20, 1 << 26} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			body := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				err := f.call(b.Context(), "echo", "", struct{}{}, body, func(_, _ []byte) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTableEncodeAndDecode(b *testing.B) {
	records := []arrow.RecordBatch{texts(30_000)}
	b.ReportAllocs()
	for b.Loop() {
		stream, err := encodeTable("append", "/x", records, nil)
		if err != nil {
			b.Fatal(err)
		}
		table, err := decodeTable(stream)
		if err != nil {
			b.Fatal(err)
		}
		table.Release()
		b.SetBytes(int64(len(stream)))
	}
}
