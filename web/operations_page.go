package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"lancefleet/fleet"
)

type operationsContent struct {
	chrome
	Ops        Operations
	Steer      steerContent
	Filters    []workChips
	Mistake    string
	Pictures   []picture
	NoPictures string // why there are none
	Series     FleetSeries
	Days       int
	Newer      string
	Older      string
	StartsAll  int
	Starts     []Planned
	Waiting    []Planned
}

// steerContent is the schedule and what can be done with it.
type steerContent struct {
	Paused, Able bool   // able: Temporal answers and there is a schedule
	Reason       string // as typed, when it could not be done
	Back         string // which page to come back to
}

// workChips are links of which one is chosen.
type workChips struct {
	Label string
	Chips []workChip
}

type workChip struct {
	Text, Href string
	Count      int
	On         bool
}

const (
	workPerPage    = 25
	shownOfAList   = 10
	roundsOnTheTop = 8
)

func (s *Server) operationsPage(c echo.Context) error {
	return s.showOperations(c, http.StatusOK, "", "")
}

func (s *Server) showOperations(c echo.Context, status int, problem, reason string) error {
	m := s.feed.moment()
	q, mistake := workFilter(c.QueryParam("kind"), c.QueryParam("outcome"))
	offset, _ := strconv.Atoi(c.QueryParam("offset")) // nonsense is the first page
	q.Limit, q.Offset = workPerPage, min(max(offset, 0), 1<<30)
	p := operationsContent{Ops: s.operations(c.Request().Context(), m, q), Mistake: mistake, Days: daysAsked(c.QueryParam("days"))}
	p.chrome = s.chrome(c, m, "operations", "Operations")
	p.Problem = problem
	p.Steer = p.steering(m, reason)
	p.trim()
	p.page(q)
	p.filter(q)
	series, err := s.fleetSeries(c.Request().Context(), m, p.Days)
	if err != nil {
		p.NoPictures = sentence(err)
	}
	p.Series, p.Pictures = series, series.pictures()
	return s.show(c, status, s.pages.operations, p)
}

// steering is for whoever may, where it can be done.
func (c chrome) steering(m moment, reason string) steerContent {
	return steerContent{
		Paused: m.schedule != nil && m.schedule.Paused, Reason: reason, Back: c.Page,
		Able: c.CanOperate && m.temporalProblem == "" && m.schedule != nil && m.schedule.Exists,
	}
}

// trim keeps a page short: the counts tell of the rest, and the API has it.
func (p *operationsContent) trim() {
	p.Ops.Rounds = cut(p.Ops.Rounds, roundsOnTheTop)
	if plan := p.Ops.Plan; plan != nil {
		p.StartsAll, p.Starts, p.Waiting = len(plan.Starts), cut(plan.Starts, shownOfAList), cut(plan.Waiting, 5)
	}
	if r := p.Ops.Retirement; r != nil {
		r.Candidates, r.Blocked = cut(r.Candidates, 5), cut(r.Blocked, shownOfAList)
		r.Retired, r.Returned = cut(r.Retired, shownOfAList), cut(r.Returned, shownOfAList)
	}
}

func (p *operationsContent) page(q workQuery) {
	if q.Offset > 0 {
		p.Newer = workHref(q.Kind, q.Outcome, max(q.Offset-workPerPage, 0))
	}
	if p.Ops.Work.Total > q.Offset+workPerPage {
		p.Older = workHref(q.Kind, q.Outcome, q.Offset+workPerPage)
	}
}

func workHref(kind, outcome string, offset int) string {
	q := url.Values{}
	for name, value := range map[string]string{"kind": kind, "outcome": outcome} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if offset > 0 {
		q.Set("offset", strconv.Itoa(offset))
	}
	if len(q) == 0 {
		return "/operations#work"
	}
	return "/operations?" + q.Encode() + "#work"
}

// filter offers the kinds and outcomes that there are, and the chosen ones.
func (p *operationsContent) filter(q workQuery) {
	kinds := workChips{Label: "Kind", Chips: []workChip{{Text: "All kinds", Href: workHref("", q.Outcome, 0), On: q.Kind == ""}}}
	for _, kind := range chosenToo(p.Ops.Work.Kinds, q.Kind) {
		kinds.Chips = append(kinds.Chips, workChip{Text: kind, Href: workHref(kind, q.Outcome, 0), Count: p.Ops.Work.Kinds[kind], On: q.Kind == kind})
	}
	outcomes := workChips{Label: "Outcome", Chips: []workChip{{Text: "All outcomes", Href: workHref(q.Kind, "", 0), On: q.Outcome == ""}}}
	for _, outcome := range chosenToo(p.Ops.Work.Outcomes, q.Outcome) {
		outcomes.Chips = append(outcomes.Chips, workChip{Text: outcomeTitle(outcome), Href: workHref(q.Kind, outcome, 0), Count: p.Ops.Work.Outcomes[outcome], On: q.Outcome == outcome})
	}
	p.Filters = []workChips{kinds, outcomes}
}

func chosenToo(counts map[string]int, chosen string) []string {
	names := slices.Sorted(maps.Keys(counts))
	if chosen != "" && !slices.Contains(names, chosen) {
		names = append(names, line(chosen))
	}
	return names
}

// DayLinks offer how far back the charts go.
func (p operationsContent) DayLinks() []workChip { return dayLinks("/operations", "recent", p.Days) }

// Shown are the last rows of a table of numbers: the newest first.
func (p operationsContent) Shown() []RoundPoint {
	rows := slices.Clone(p.Series.Rounds)
	slices.Reverse(rows)
	return cut(rows, 60)
}

// Fleetwide says what an operation without a target is about.
func (o Operation) Fleetwide() string {
	if o.Kind == fleet.ActTables {
		return "own tables"
	}
	return "the fleet"
}
