package web

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"time"

	"lancefleet/fleet"
)

// Config says where and how pages and API are served.
type Config struct {
	// Addr is host:port to listen on.
	Addr string
	// Insecure allows an address that others can reach. There are no accounts:
	// whoever reaches it can pause the fleet and start rounds.
	Insecure bool
	// AllowedHosts are names a proxy in front may send as Host, besides the
	// loopback names.
	AllowedHosts []string
	// RefreshEvery is how often the table is asked for a newer version, and
	// Temporal for the schedule. The question is one small request each.
	RefreshEvery time.Duration
	// Prices are what requests to the object store cost.
	Prices fleet.PriceSheet
	// TemporalUI is the address of Temporal's web UI; "" = no links to it.
	TemporalUI string
	// TemporalNamespace is the fleet's namespace there.
	TemporalNamespace string
}

// DefaultConfig listens on loopback.
func DefaultConfig() Config {
	return Config{
		Addr:              "127.0.0.1:8090",
		RefreshEvery:      2 * time.Second,
		Prices:            fleet.DefaultPriceSheet(),
		TemporalNamespace: "default",
	}
}

// Validate refuses what cannot work, naming the setting.
func (c Config) Validate() error {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf("http address %q: host:port is allowed: %w", c.Addr, err)
	}
	if c.RefreshEvery < 100*time.Millisecond {
		return fmt.Errorf("refresh interval %s: at least 100ms is allowed", c.RefreshEvery)
	}
	if !isLoopback(host) && !c.Insecure {
		return fmt.Errorf("http address %q: %w", c.Addr, ErrNotLoopback)
	}
	for _, name := range c.AllowedHosts {
		if _, err := netip.ParseAddr(name); err != nil && !hostName.MatchString(name) {
			return fmt.Errorf("host name %q: a name or address without scheme, port and path is allowed", name)
		}
	}
	return c.validateLinks()
}

// hostName is compared with a Host header whose port was taken off.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// validateLinks refuses what a page must not link to.
func (c Config) validateLinks() error {
	if c.TemporalUI == "" {
		return nil
	}
	u, err := url.Parse(c.TemporalUI)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("address %q: http:// or https:// and a host are allowed", c.TemporalUI)
	}
	return nil
}

// ErrNotLoopback refuses to serve others without protection.
var ErrNotLoopback = errors.New("others could reach it and there are no accounts yet; " +
	"use 127.0.0.1 behind an authenticating proxy, or say explicitly that it may be insecure")

// isLoopback is true for names and addresses only this machine can reach.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
