package temporaltest

import (
	"io"
	"sync"
	"testing"
)

// LastWords is a writer for what somebody says during a test. Its end is shown if
// the test fails. Unlike tb.Output it may be written to when the test is over.
func LastWords(tb testing.TB, who string) io.Writer {
	l := &lastWords{}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("%s said last:\n%s", who, l)
		}
	})
	return l
}

type lastWords struct {
	mu  sync.Mutex
	end []byte
}

const keptWords = 16 << 10 // bytes

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, p...)
	l.end = l.end[max(0, len(l.end)-keptWords):]
	return len(p), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.end)
}
