package web

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"
)

// allowance is how much one client may do: so many at once, and then so many a minute.
type allowance struct {
	atOnce, aMinute int
}

// failedLogins of one client: somebody who mistypes is not kept, somebody who
// guesses is.
var failedLogins = allowance{atOnce: 10, aMinute: 6}

// limits counts by client. Clients that did nothing lately are forgotten; where more
// come than can be remembered, the new ones share one allowance.
type limits struct {
	allowance
	now func() time.Time

	mu     sync.Mutex
	by     map[string]*rate.Limiter
	others *rate.Limiter
}

const clientsKept = 10_000

func newLimits(a allowance, now func() time.Time) *limits {
	l := &limits{allowance: a, now: now, by: map[string]*rate.Limiter{}}
	l.others = l.fresh()
	return l
}

func (l *limits) fresh() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(l.aMinute)/60), l.atOnce)
}

func (l *limits) of(client string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.by[client]; found != nil {
		return found
	}
	if len(l.by) >= clientsKept {
		l.forget()
	}
	if len(l.by) >= clientsKept {
		return l.others
	}
	l.by[client] = l.fresh()
	return l.by[client]
}

// forget lets those go that have all of their allowance again.
func (l *limits) forget() {
	now := l.now()
	for client, limiter := range l.by {
		if limiter.TokensAt(now) >= float64(l.atOnce) {
			delete(l.by, client)
		}
	}
}

// take uses one of a client's allowance. If there is none it says after how long
// there will be one.
func (l *limits) take(client string) (wait time.Duration, ok bool) {
	if l.aMinute <= 0 {
		return 0, true
	}
	now, limiter := l.now(), l.of(client)
	if limiter.AllowN(now, 1) {
		return 0, true
	}
	return l.wait(limiter, now), false
}

// spent says whether a client has nothing left, without using anything.
func (l *limits) spent(client string) (wait time.Duration, spent bool) {
	now, limiter := l.now(), l.of(client)
	return l.wait(limiter, now), limiter.TokensAt(now) < 1
}

func (l *limits) wait(limiter *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - limiter.TokensAt(now)
	return time.Duration(missing / float64(limiter.Limit()) * float64(time.Second))
}

// tooMany is the answer to a client that asks too often.
func tooMany(what string, wait time.Duration) *ErrorBody {
	seconds := max(int(math.Ceil(wait.Seconds())), 1)
	e := refuse(http.StatusTooManyRequests, what+": try again in "+strconv.Itoa(seconds)+" s")
	return e.with("Retry-After", strconv.Itoa(seconds))
}

// spend counts one read that goes to storage against whoever asks for it.
func (s *Server) spend(ctx context.Context) error {
	who := callerOf(ctx)
	if wait, ok := s.reads.take(who.name + "|" + who.client); !ok {
		return tooMany("too many looks at storage", wait)
	}
	return nil
}

// clientOf is the address of who sent a request. Only proxies that the settings name
// are believed about whom they speak for.
func (s *Server) clientOf(r *http.Request) string {
	return neighbourhood(s.address(r))
}

// newAddresses says how the address of a client is found.
func newAddresses(proxies []string) (func(*http.Request) string, error) {
	direct := echo.ExtractIPDirect()
	if len(proxies) == 0 {
		return direct, nil
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, text := range proxies {
		network, err := networkOf(text)
		if err != nil {
			return nil, err
		}
		options = append(options, echo.TrustIPRange(network))
	}
	return echo.ExtractIPFromXFFHeader(options...), nil
}

// networkOf reads an address, or a network as 10.0.0.0/8.
func networkOf(text string) (*net.IPNet, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		one, wrong := netip.ParseAddr(text)
		if wrong != nil {
			return nil, fmt.Errorf("%q: addresses such as 10.0.0.1, and networks such as 10.0.0.0/8, are allowed", text)
		}
		prefix = netip.PrefixFrom(one, one.BitLen())
	}
	prefix = prefix.Masked()
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}, nil
}

// neighbourhood of an IPv6 address is its /64: one customer has all of it.
func neighbourhood(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
