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
	// Insecure allows an address that others can reach without tokens: whoever
	// reaches it can pause the fleet and have experiments rewritten.
	Insecure bool
	// Tokens are NAME:ROLE:SECRET, with commas or line ends between. With any, here
	// or in the file, nothing is shown to and done for those who have none.
	Tokens string
	// TokensFile has such lines. It is read again when it changes.
	TokensFile string
	// SessionTime is how long a browser stays logged in.
	SessionTime time.Duration
	// OpenMetrics shows /metrics without a token.
	OpenMetrics bool
	// TrustedProxies are addresses and networks whose X-Forwarded-For is believed.
	TrustedProxies []string
	// StorageReads is how often a client may, within a minute, ask for what makes
	// this server look at storage: observations on demand, verifications, dry runs,
	// searches beyond the table. Half of it at once. 0 = as often as it likes.
	StorageReads int
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
		SessionTime:       12 * time.Hour,
		StorageReads:      120,
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
	if !isLoopback(host) && !c.Insecure && c.Tokens == "" && c.TokensFile == "" {
		return fmt.Errorf("http address %q: %w", c.Addr, ErrNotLoopback)
	}
	if err := c.ValidateAccess(); err != nil {
		return err
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

// ValidateAccess refuses what would let nobody in, or everybody.
func (c Config) ValidateAccess() error {
	tokens, err := c.allTokens()
	if err != nil {
		return err
	}
	if c.Tokens != "" && len(tokens) == 0 {
		return errors.New("tokens: there is none in them")
	}
	if c.SessionTime < time.Minute || c.SessionTime > longestSession {
		return fmt.Errorf("session time %s: 1m to 30d is allowed", c.SessionTime)
	}
	if c.StorageReads < 0 {
		return fmt.Errorf("storage reads %d: 0 and more are allowed", c.StorageReads)
	}
	if _, err := newAddresses(c.TrustedProxies); err != nil {
		return fmt.Errorf("trusted proxies: %w", err)
	}
	return nil
}

const longestSession = 30 * 24 * time.Hour

func (c Config) storageReads() allowance {
	return allowance{atOnce: max(c.StorageReads/2, 1), aMinute: c.StorageReads}
}

// ErrNotLoopback refuses to serve others without protection.
var ErrNotLoopback = errors.New("others could reach it and there are no tokens; " +
	"use 127.0.0.1, give it tokens, or say explicitly that it may be insecure")

// isLoopback is true for names and addresses only this machine can reach.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
