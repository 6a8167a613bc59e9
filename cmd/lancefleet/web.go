package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"

	"lancefleet/control"
	"lancefleet/fleet"
	"lancefleet/lance"
	"lancefleet/metrics"
	"lancefleet/store"
	"lancefleet/web"
	"lancefleet/worker"
	"lancefleet/workflows"
)

// httpFlags say where pages and API are served.
type httpFlags struct {
	HTTPAddr     string   `name:"http-addr" help:"host:port of pages and API. Unset: MASTER_HOST and MASTER_PORT, else 127.0.0.1:8090." env:"HTTP_ADDR"`
	MasterHost   string   `help:"Host part of --http-addr, lance-context's name." hidden:"" env:"MASTER_HOST" default:"127.0.0.1"`
	MasterPort   string   `help:"Port of --http-addr, lance-context's name." hidden:"" env:"MASTER_PORT" default:"8090"`
	Insecure     bool     `help:"Allow an address that others can reach without tokens: whoever reaches it can pause the fleet and have experiments rewritten." env:"LANCEFLEET_INSECURE"`
	AllowedHosts []string `help:"Names that a proxy in front sends as Host." env:"ALLOWED_HOSTS"`
	accessFlags
}

// accessFlags say who may look and who may act.
type accessFlags struct {
	TokensFile     string   `help:"File of tokens, NAME:ROLE:SECRET a line, ROLE viewer, operator or notifier (events only). With any, here or in LANCEFLEET_TOKENS, nobody gets in without. Read again when it changes." env:"LANCEFLEET_TOKENS_FILE" placeholder:"FILE"`
	Tokens         string   `help:"Tokens themselves; meant for the variable, as others can read a command line." hidden:"" env:"LANCEFLEET_TOKENS"`
	SessionTime    seconds  `help:"How long a browser stays logged in." default:"12h" env:"SESSION_TIME"`
	OpenMetrics    bool     `help:"Show /metrics without a token." env:"OPEN_METRICS"`
	TrustedProxies []string `help:"Addresses and networks of proxies whose X-Forwarded-For is believed." env:"TRUSTED_PROXIES"`
	StorageReads   int      `name:"storage-reads-per-minute" help:"Per client: observations on demand, verifications, dry runs, searches beyond the table; half of them at once. 0 = no limit." default:"120" env:"STORAGE_READS_PER_MINUTE"`
}

// into puts them into a configuration whose address is set and not checked yet, one
// after the other: what is refused is the one that was put in last.
func (f accessFlags) into(config *web.Config) error {
	config.OpenMetrics = f.OpenMetrics
	for _, one := range []struct {
		setting string
		put     func()
	}{
		{"--session-time (SESSION_TIME)", func() { config.SessionTime = time.Duration(f.SessionTime) }},
		{"--storage-reads-per-minute (STORAGE_READS_PER_MINUTE)", func() { config.StorageReads = f.StorageReads }},
		{"--trusted-proxies (TRUSTED_PROXIES)", func() { config.TrustedProxies = f.TrustedProxies }},
		{"LANCEFLEET_TOKENS", func() { config.Tokens = f.Tokens }},
		{"--tokens-file (LANCEFLEET_TOKENS_FILE)", func() { config.TokensFile = f.TokensFile }},
	} {
		one.put()
		if err := config.ValidateAccess(); err != nil {
			return usageError{fmt.Errorf("%s: %w", one.setting, err)}
		}
	}
	return nil
}

// webConfig is web.Config as flags have it. It is checked before anybody can reach
// the address.
func (f httpFlags) webConfig() (web.Config, error) {
	config := web.DefaultConfig()
	address, err := f.addr()
	if err != nil {
		return config, err
	}
	if err := f.into(&config); err != nil {
		return config, err
	}
	config.Addr, config.Insecure = address, f.Insecure
	if err := config.Validate(); err != nil {
		return config, usageError{fmt.Errorf("--http-addr (HTTP_ADDR, MASTER_HOST, MASTER_PORT): %w", err)}
	}
	config.AllowedHosts = f.AllowedHosts
	if err := config.Validate(); err != nil {
		return config, usageError{fmt.Errorf("--allowed-hosts (ALLOWED_HOSTS): %w", err)}
	}
	return config, nil
}

func (f httpFlags) addr() (string, error) {
	if f.HTTPAddr != "" {
		return f.HTTPAddr, nil
	}
	port, err := strconv.ParseUint(f.MasterPort, 10, 16)
	if err != nil {
		return "", usageError{fmt.Errorf("MASTER_PORT %q: 0 to 65535 is allowed; --http-addr (HTTP_ADDR) goes before it", f.MasterPort)}
	}
	return net.JoinHostPort(f.MasterHost, strconv.FormatUint(port, 10)), nil
}

type webCommand struct {
	dataFlags
	temporalFlags
	httpFlags
	maintainFlag
	policyFlags
	TemporalUI string `name:"temporal-ui" help:"Address of Temporal's web UI, for links." env:"TEMPORAL_UI_URL"`
}

// Run serves until the context ends.
func (c *webCommand) Run(ctx context.Context, log *slog.Logger, given givenFlags) error {
	settings, err := c.settings()
	if err != nil {
		return err
	}
	if err := noFile(settings.DataDir); err != nil {
		return err
	}
	if settings.Policies, err = c.policies(c.on()); err != nil {
		return err
	}
	settings.Budgets = c.budgets()
	config, err := c.webConfig()
	if err != nil {
		return err
	}
	config.TemporalUI = c.TemporalUI
	if err := config.Validate(); err != nil {
		return usageError{fmt.Errorf("--temporal-ui (TEMPORAL_UI_URL): %w", err)}
	}
	listener, err := listen("http-addr", config.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	measured := metrics.New()
	options, client, err := c.client(log, measured)
	if err != nil {
		return err
	}
	defer client.Close()
	engine, err := lance.Open(lance.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	config.TemporalNamespace = options.Namespace
	server, err := newWebServer(webParts{config, settings, policyOrigins(given), engine.ReadOnly(), client, measured, log})
	if err != nil {
		return err
	}
	log.Info("serving", "address", "http://"+listener.Addr().String())
	return server.Serve(ctx, listener)
}

// client does not connect before it is used: pages work while Temporal is away.
func (c *webCommand) client(log *slog.Logger, m *metrics.Metrics) (client.Options, client.Client, error) {
	handler, err := m.TemporalHandler(log)
	if err != nil {
		return client.Options{}, nil, err
	}
	options, err := c.options(log, handler)
	if err != nil {
		return client.Options{}, nil, err
	}
	lazy, err := client.NewLazyClient(options)
	return options, lazy, err
}

// webParts is what a web server is wired from, in `web` and in `dev`.
type webParts struct {
	config   web.Config
	settings worker.Config
	origins  map[string]string // of the policy's values
	reader   *lance.Reader
	client   client.Client
	metrics  *metrics.Metrics
	log      *slog.Logger
}

// newWebServer gives the browsing side a handle that cannot write.
func newWebServer(p webParts) (*web.Server, error) {
	dataDir, fleetName := p.settings.DataDir, p.settings.Fleet
	browser := store.NewBrowser(p.reader, dataDir, p.settings.Sources)
	steer := control.New(p.client, workflows.Names{Fleet: fleetName})
	if !web.OnObjectStore(dataDir) {
		p.config.Prices = fleet.PriceSheet{}
	}
	shared := worker.Shared{
		Stats: browser.Stats, Rounds: browser.Rounds, Ledger: browser.Ledger, Journal: browser.Journal, Control: steer, Reader: p.reader,
	}
	if err := p.metrics.RegisterShared(shared, metrics.SharedOptions{Prices: p.config.Prices, Log: p.log}); err != nil {
		return nil, err
	}
	server, err := web.New(web.Deps{
		Config: p.config, Browser: browser, Reader: p.reader, Control: steer, Metrics: p.metrics,
		Version: version, DataDir: dataDir, Fleet: fleetName, Log: p.log,
		Policies: p.settings.Policies, Origins: p.origins, Budgets: p.settings.Budgets,
	})
	if err != nil {
		return nil, usageError{err}
	}
	return server, nil
}
