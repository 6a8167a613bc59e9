package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"lancefleet/web"
)

// clientFlags say which server answers.
type clientFlags struct {
	Server string `help:"Base address of lancefleet's web server." default:"${server}" env:"LANCEFLEET_SERVER" placeholder:"URL"`
	Token  string `help:"Sent as a bearer token: the secret of one of the server's tokens, or what a proxy in front asks for." env:"LANCEFLEET_TOKEN"`
	JSON   bool   `name:"json" help:"Print one JSON document and nothing else on stdout, field names as in the API."`
}

// callTimeout bounds one request; long polls are asked for less.
const callTimeout = 90 * time.Second

// api calls the HTTP API of one server.
type api struct {
	base  *url.URL
	token string
	http  *http.Client
	tell  io.Writer // is told once which fleet answers; nil = nobody looks
}

func (f clientFlags) api() (*api, error) {
	base, err := url.Parse(f.Server)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, usageError{fmt.Errorf("--server %q: an address such as %s is allowed", f.Server, defaultServer)}
	}
	a := &api{base: base, token: f.Token, http: &http.Client{Timeout: callTimeout}}
	if isTerminal(os.Stderr) && !f.JSON {
		a.tell = os.Stderr
	}
	return a, nil
}

// answered tells a person, once, which fleet of which server answers: whoever has
// several must not take one for another.
func (a *api) answered(answer *http.Response) {
	if a.tell == nil {
		return
	}
	fleet := answer.Header.Get(web.FleetHeader)
	if fleet == "" {
		return
	}
	fmt.Fprintf(a.tell, "fleet %s at %s\n", fleet, a.base.Redacted())
	a.tell = nil
}

// apiError is an answer that is not a success, or no answer (status 0).
type apiError struct {
	status    int
	message   string
	ambiguous bool // the name has several matches
	err       error
}

func (e *apiError) Error() string { return e.message }

func (e *apiError) Unwrap() error { return e.err }

func (e *apiError) exitCode() int {
	switch e.status {
	case 0, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return exitUnreachable
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict:
		if !e.ambiguous {
			return exitFailed
		}
		return exitAmbiguous
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return exitUsage
	default:
		return exitFailed
	}
}

// experimentPath is the path of one experiment; its name is one segment.
func experimentPath(name experimentName) string {
	return "/api/v1/experiments/" + url.PathEscape(string(name))
}

func (a *api) get(ctx context.Context, path string, query url.Values, into any) (int, error) {
	return a.call(ctx, http.MethodGet, path, query, nil, into)
}

func (a *api) post(ctx context.Context, path string, body, into any) error {
	_, err := a.call(ctx, http.MethodPost, path, nil, body, into)
	return err
}

// call sends one request. path is already escaped.
func (a *api) call(ctx context.Context, method, path string, query url.Values, body, into any) (int, error) {
	request, err := a.request(ctx, method, path, query, body)
	if err != nil {
		return 0, err
	}
	answer, err := a.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, &apiError{message: fmt.Sprintf("no answer from %s: %v; %s", a.base, cause(err), advice(method, err)), err: err}
	}
	defer answer.Body.Close()
	a.answered(answer)
	return answer.StatusCode, decode(answer, into)
}

// advice says what to think of a request without an answer. One that never reached
// a server changed nothing.
func advice(method string, err error) string {
	var dialed *net.OpError
	if method == http.MethodGet || errors.As(err, &dialed) && dialed.Op == "dial" {
		return "is it running, and is --server right?"
	}
	return unknownEffect
}

const unknownEffect = "whether what was asked for took effect is not known"

func (a *api) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	address := strings.TrimRight(a.base.String(), "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, usageError{err}
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "lancefleet/"+version)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	return request, nil
}

func decode(answer *http.Response, into any) error {
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		message := "the answer broke off: " + err.Error()
		if answer.Request.Method != http.MethodGet {
			message += "; " + unknownEffect
		}
		return &apiError{message: message, err: err}
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return refusal(answer, text)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s did not answer as lancefleet does: %w; is --server right?", answer.Request.URL.Redacted(), err)
	}
	return nil
}

func refusal(answer *http.Response, text []byte) error {
	var body web.ErrorBody
	if json.Unmarshal(text, &body) != nil || body.Message == "" {
		return notOurs(answer)
	}
	if len(body.Candidates) > 0 && !strings.Contains(body.Message, body.Candidates[0]) {
		body.Message += ": " + strings.Join(body.Candidates, ", ")
	}
	if answer.StatusCode == http.StatusUnauthorized {
		body.Message += " (--token, LANCEFLEET_TOKEN)"
	}
	return &apiError{status: answer.StatusCode, message: body.Message, ambiguous: len(body.Candidates) > 0}
}

// notOurs is a refusal by something else: a proxy in front, or another server.
func notOurs(answer *http.Response) error {
	e := &apiError{status: answer.StatusCode, message: fmt.Sprintf("%s: %s; is --server right?", answer.Request.URL.Redacted(), answer.Status)}
	if answer.StatusCode == http.StatusNotFound {
		return errors.New(e.message) // no experiment is missing: no lancefleet answers there
	}
	if answer.StatusCode == http.StatusUnauthorized {
		e.message += " (--token, LANCEFLEET_TOKEN)"
	}
	return e
}

// cause leaves out the method and address that net/http puts before it.
func cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
