package child

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Logged is a child whose output goes to a file.
type Logged struct {
	*Process
	path, log string
}

// StartLogged starts a program in the process group of this one. The file takes
// its output, from the start.
func StartLogged(log, path string, args ...string) (*Logged, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	defer file.Close()                 // the child has its own copy
	cmd := exec.Command(path, args...) //nolint:noctx // it lives until Stop, or as long as this process
	cmd.Stdout, cmd.Stderr = file, file
	p, err := Start(cmd)
	if err != nil {
		return nil, err
	}
	return &Logged{Process: p, path: path, log: log}, nil
}

// Err says why it ended, with the end of its log. Only after Done.
func (l *Logged) Err() error {
	return fmt.Errorf("%s ended by itself: %s; the end of %s:\n%s", l.path, l.Ended(), l.log, tail(l.log))
}

const tailBytes = 2000

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return strings.TrimSpace(string(text))
}
