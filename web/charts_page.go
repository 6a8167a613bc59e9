package web

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
)

// picture is a chart as a page shows it: an image of its own in each theme, and in
// words for those who don't see it.
type picture struct {
	Title, Says string
	Light, Dark string // addresses
}

// numberOfSeries is one of the numbers that experiments have charts of.
type numberOfSeries struct {
	name, title string
	binary      bool
	of          func(Point) *int64
}

var seriesNumbers = []numberOfSeries{
	{"pending", "Pending generations", false, func(p Point) *int64 { return p.Pending }},
	{"fragments", "Fragments", false, func(p Point) *int64 { return p.Fragments }},
	{"rows", "Rows", false, func(p Point) *int64 { return p.Rows }},
	{"size", "Size", true, func(p Point) *int64 { return p.Bytes }},
}

// chart of one of a series' numbers.
func (n numberOfSeries) chart(in Series) chart {
	c := chart{title: n.title + " of " + in.ID, from: in.From, to: in.To, binary: n.binary, steps: true, word: wordOf(n.binary)}
	for _, p := range in.Points {
		value := -1.0
		if v := n.of(p); v != nil {
			value = float64(*v)
		}
		c.points = append(c.points, chartPoint{p.At, value})
	}
	for _, m := range in.Marks {
		c.marks = append(c.marks, chartMark{m.At, !succeeded(m.Outcome)})
	}
	c.desc = c.says(in.Days)
	if len(in.Marks) > 0 {
		c.desc += ". " + plural(int64(len(in.Marks)), "piece") + " of maintenance"
	}
	return c
}

// fleetNumber is one of the numbers that the fleet has charts of.
type fleetNumber struct {
	name, title string
	word        func(float64) string
	steps       bool
	of          func(FleetSeries) []chartPoint
}

var fleetNumbers = []fleetNumber{
	{"duration", "Duration of rounds", wordSeconds, false, roundNumber(func(r RoundPoint) float64 { return r.DurationSeconds })},
	{"requests", "Storage requests of rounds", wordOf(false), false, roundNumber(func(r RoundPoint) float64 { return float64(r.Requests) })},
	{"failed", "Failed observations of rounds", wordOf(false), false, roundNumber(func(r RoundPoint) float64 { return float64(r.Failed) })},
	{"backlog", "Pending generations of the fleet", wordOf(false), true, func(in FleetSeries) []chartPoint {
		var out []chartPoint
		for _, b := range in.Backlog {
			out = append(out, chartPoint{b.At, float64(b.Pending)})
		}
		return out
	}},
}

func roundNumber(of func(RoundPoint) float64) func(FleetSeries) []chartPoint {
	return func(in FleetSeries) []chartPoint {
		var out []chartPoint
		for _, r := range in.Rounds {
			out = append(out, chartPoint{r.At, of(r)})
		}
		return out
	}
}

func (n fleetNumber) chart(in FleetSeries) chart {
	c := chart{title: n.title, from: in.From, to: in.To, steps: n.steps, word: n.word, points: n.of(in)}
	c.desc = c.says(in.Days)
	return c
}

func wordOf(binary bool) func(float64) string {
	if binary {
		return func(v float64) string { return size(whole(v)) }
	}
	return func(v float64) string { return short(whole(v)) }
}

// whole is v as a number of things; more than there can be is the most there can be.
func whole(v float64) int64 {
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

func wordSeconds(v float64) string {
	switch {
	case v == 0:
		return "0 s"
	case v < 60:
		return strconv.FormatFloat(v, 'f', -1, 64) + " s"
	}
	return span(time.Duration(v * float64(time.Second)))
}

// says what a chart shows in one sentence.
func (c chart) says(days int) string {
	first, last, low, high := -1.0, -1.0, -1.0, -1.0
	for _, p := range c.points {
		if p.value < 0 {
			continue
		}
		if first < 0 {
			first, low, high = p.value, p.value, p.value
		}
		last, low, high = p.value, min(low, p.value), max(high, p.value)
	}
	if first < 0 {
		return fmt.Sprintf("%s: nothing is known of the last %d days", c.title, days)
	}
	return fmt.Sprintf("%s, last %d days: from %s to %s, between %s and %s", c.title, days, c.word(first), c.word(last), c.word(low), c.word(high))
}

// pictures of one experiment; newest makes their addresses change with the data.
func (in Series) pictures() []picture {
	if len(in.Points) == 0 {
		return nil
	}
	out := []picture{}
	for _, n := range seriesNumbers {
		out = append(out, pictureOf(n.chart(in), n.title, experimentPath(in.ID)+"/charts/"+n.name, in.Days, in.To))
	}
	return out
}

func (in FleetSeries) pictures() []picture {
	out := []picture{}
	for _, n := range fleetNumbers {
		if c := n.chart(in); len(c.points) > 0 {
			out = append(out, pictureOf(c, n.title, "/operations/charts/"+n.name, in.Days, in.To))
		}
	}
	return out
}

// dayLinks offer how far back charts go.
func dayLinks(path, anchor string, days int) []workChip {
	out := []workChip{}
	for _, d := range []int{7, 30} {
		out = append(out, workChip{Text: strconv.Itoa(d) + " days", Href: path + "?days=" + strconv.Itoa(d) + "#" + anchor, On: d == days})
	}
	return out
}

// pictureOf names the minute in the address, so that a page that is refreshed gets a
// new picture and one that is looked at twice the old one.
func pictureOf(c chart, title, path string, days int, at int64) picture {
	address := func(theme string) string {
		q := url.Values{"days": {strconv.Itoa(days)}, "theme": {theme}, "at": {strconv.FormatInt(at/60_000, 10)}}
		return path + "?" + q.Encode()
	}
	return picture{Title: title, Says: c.desc, Light: address("light"), Dark: address("dark")}
}

// experimentChart serves one picture.
func (s *Server) experimentChart(c echo.Context) error {
	id, err := fleet.ParseStatsName(c.Param("name"))
	if err != nil {
		return refuse(http.StatusBadRequest, err.Error())
	}
	for _, n := range seriesNumbers {
		if n.name != c.Param("chart") {
			continue
		}
		in, err := s.series(c.Request().Context(), s.feed.moment(), id, daysAsked(c.QueryParam("days")))
		if err != nil {
			return err
		}
		if len(in.Points) == 0 {
			return refuse(http.StatusNotFound, fmt.Sprintf("nothing is known of %s over the last %d days", id, in.Days))
		}
		return serveChart(c, n.chart(in))
	}
	return errNoChart
}

func (s *Server) fleetChart(c echo.Context) error {
	for _, n := range fleetNumbers {
		if n.name != c.Param("chart") {
			continue
		}
		in, err := s.fleetSeries(c.Request().Context(), s.feed.moment(), daysAsked(c.QueryParam("days")))
		drawing := n.chart(in)
		if err != nil && len(drawing.points) == 0 { // else what could be read is drawn
			return err
		}
		return serveChart(c, drawing)
	}
	return errNoChart
}

// chartPolicy lets a picture carry its own styles, and nothing else: it can load
// nothing and run nothing, wherever it is opened.
const chartPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

func serveChart(c echo.Context, drawing chart) error {
	drawing.dark = c.QueryParam("theme") == "dark"
	svg, err := drawing.draw()
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Security-Policy", chartPolicy)
	h.Set("Cache-Control", "private, max-age=60")
	return c.Blob(http.StatusOK, "image/svg+xml", svg)
}
