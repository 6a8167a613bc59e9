package web

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// parameters are what a route takes in its query. What it does not take is refused:
// a filter with a typo in its name would otherwise show everything.
type parameters struct {
	names   []string
	repeats []string // of these, those that may be given several times
}

// parametersOf reads the tags of a huma input.
func parametersOf(t reflect.Type) *parameters {
	p := &parameters{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("query"), ",")
		if name == "" {
			continue
		}
		p.names = append(p.names, name)
		if f.Type.Kind() == reflect.Slice {
			p.repeats = append(p.repeats, name)
		}
	}
	return p
}

// listParameters are those of a list of experiments, in pages, exports and API.
var listParameters = parametersOf(reflect.TypeFor[listInput]())

// check names what is wrong with a query, one sentence each.
func (p *parameters) check(raw string) (url.Values, []string) {
	values := url.Values{}
	var wrong []string
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(value)
		key, err2 := url.QueryUnescape(name)
		switch {
		case err != nil || err2 != nil || strings.Contains(pair, ";"):
			wrong = append(wrong, quoted(pair)+" in the query is not percent-encoded: % is written %25, ; is %3B")
		case !slices.Contains(p.names, key):
			wrong = append(wrong, quoted(key)+": there is no such parameter; "+p.allowed())
		case values.Has(key) && !slices.Contains(p.repeats, key):
			wrong = append(wrong, key+": given more than once")
		default:
			values.Add(key, plain)
		}
	}
	return values, wrong
}

func (p *parameters) allowed() string {
	if len(p.names) == 0 {
		return "none is allowed here"
	}
	return "allowed: " + strings.Join(p.names, ", ")
}

// strictQuery refuses queries with mistakes where a route has said what it takes.
func (s *Server) strictQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		p := s.strict[c.Request().Method+" "+c.Path()]
		if p == nil {
			return next(c)
		}
		if _, wrong := p.check(c.Request().URL.RawQuery); len(wrong) > 0 {
			return refuse(http.StatusUnprocessableEntity, strings.Join(wrong, "; "))
		}
		return next(c)
	}
}
