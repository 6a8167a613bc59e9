package s3test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Requests are what the server has answered, by its own log.
type Requests struct {
	List, Head, Get, Put, Delete int64
	Other                        map[string]int64 // by S3 operation
	Refused                      int64            // of all these: 403 and 5xx
}

// Total is the number of requests of any kind.
func (r Requests) Total() int64 {
	n := r.List + r.Head + r.Get + r.Put + r.Delete
	for _, other := range r.Other {
		n += other
	}
	return n
}

// Since is what was added after an earlier count.
func (r Requests) Since(earlier Requests) Requests {
	diff := Requests{
		List: r.List - earlier.List, Head: r.Head - earlier.Head, Get: r.Get - earlier.Get,
		Put: r.Put - earlier.Put, Delete: r.Delete - earlier.Delete, Refused: r.Refused - earlier.Refused,
		Other: map[string]int64{},
	}
	for op, n := range r.Other {
		if n -= earlier.Other[op]; n > 0 {
			diff.Other[op] = n
		}
	}
	return diff
}

// A line of the log: "... s3_HeadObject key /bucket/key status error ...".
var logged = regexp.MustCompile(` s3_([A-Za-z0-9]+) .* /[^ ]* ([0-9]{3}) `)

// Requests counts what the server has logged so far, for keys with this prefix
// ("/bucket/..."; "" = all). A request is logged before it is answered, so a count
// taken after the answer has it.
func (s *Server) Requests(prefix string) (Requests, error) {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return Requests{}, fmt.Errorf("read the log of requests: %w", err)
	}
	counted := Requests{Other: map[string]int64{}}
	for line := range bytes.Lines(text) {
		found := logged.FindSubmatch(line)
		if found == nil || !strings.Contains(string(line), " "+prefix) {
			continue
		}
		counted.add(string(found[1]), string(found[2]))
	}
	return counted, nil
}

func (r *Requests) add(operation, status string) {
	if status == "403" || status[0] == '5' {
		r.Refused++
	}
	switch operation {
	case "ListObjectsV2", "ListObjects":
		r.List++
	case "HeadObject":
		r.Head++
	case "GetObject":
		r.Get++
	case "PutObject":
		r.Put++
	case "DeleteObject", "DeleteObjects":
		r.Delete++
	default:
		r.Other[operation]++
	}
}
