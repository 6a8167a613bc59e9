package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// listen opens the address that a flag names. Port 0 takes any free one.
func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address) //nolint:noctx // a numeric address opens at once
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usageError{fmt.Errorf("%s is in use: choose another address with --%s", address, flag)}
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--%s %q: host:port is allowed: %w", flag, address, err)}
	}
	return l, nil
}

// hostPort is an address that a child will listen on.
type hostPort struct {
	host string
	port int
}

func (a hostPort) String() string { return net.JoinHostPort(a.host, strconv.Itoa(a.port)) }

// reserve makes sure that the addresses are free and gives port 0 a number. They
// are opened together, so that none is given twice, and closed again for the child.
func reserve(wanted ...struct{ flag, address string }) ([]hostPort, error) {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			l.Close()
		}
	}()
	var found []hostPort
	for _, w := range wanted {
		l, err := listen(w.flag, w.address)
		if err != nil {
			return nil, err
		}
		open = append(open, l)
		host, _, _ := net.SplitHostPort(w.address)
		found = append(found, hostPort{host: host, port: l.Addr().(*net.TCPAddr).Port})
	}
	return found, nil
}
