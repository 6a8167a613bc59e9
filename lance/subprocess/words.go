package subprocess

import (
	"strings"
	"sync"
)

// mostWords are kept of what a child wrote to stderr, in bytes.
const mostWords = 2 << 10

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, p...)
	if over := len(w.kept) - mostWords; over > 0 {
		w.kept = append(w.kept[:0], w.kept[over:]...)
	}
	return len(p), nil
}

// String is the end of what was written, as one valid line of text.
func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(w.kept)), "")
}
