package web

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
)

const apiPrefix = "/api/v1"

// routeAPI registers the documented API. A route that changes anything is a POST.
func (s *Server) routeAPI() {
	config := huma.DefaultConfig("lancefleet", s.build)
	config.Info.Description = "One fleet of Lance datasets: what it holds, what its rounds saw, and how to steer them. " +
		"Times are unix milliseconds, sizes bytes, unknown is null. Errors are {\"error\": \"...\"}."
	config.OpenAPIPath = ""
	config.DocsPath = ""
	config.SchemasPath = ""
	config.CreateHooks = nil // no $schema in answers
	api := humaecho.New(s.echo, config)
	api.UseMiddleware(s.nameFleet)

	op := func(method, path, id, summary string) huma.Operation {
		return huma.Operation{Method: method, Path: apiPrefix + path, OperationID: id, Summary: summary}
	}
	handle(s, Read, op(http.MethodGet, "/experiments", "list-experiments", "A page of experiments"), s.listExperiments, api)
	handle(s, Read, op(http.MethodGet, "/experiments/{name}", "get-experiment", "Everything known about one experiment"), s.getExperiment, api)
	handle(s, Operate, op(http.MethodPost, "/experiments/{name}/rescan", "rescan-experiment", "Observe one experiment in full and store it"), s.rescanExperiment, api)
	scan := op(http.MethodPost, "/rescan", "rescan", "Start a round")
	scan.DefaultStatus = http.StatusAccepted
	handle(s, Operate, scan, s.startRound, api)
	handle(s, Read, op(http.MethodGet, "/rounds", "list-rounds", "Finished rounds, newest first"), s.listRounds, api)
	handle(s, Read, op(http.MethodGet, "/rounds/{workflow_id}/{run_id}", "get-round", "One round; waits for it to end"), s.getRound, api)
	handle(s, Read, op(http.MethodGet, "/schedule", "get-schedule", "The schedule that starts rounds"), s.getSchedule, api)
	handle(s, Operate, op(http.MethodPost, "/schedule/pause", "pause", "Start no more rounds"), s.pauseSchedule, api)
	handle(s, Operate, op(http.MethodPost, "/schedule/resume", "resume", "Start rounds again"), s.resumeSchedule, api)
	s.routeMaintenance(api, op)
	s.routeBatches(api, op)
	handle(s, Read, op(http.MethodGet, "/operations", "get-operations", "What runs, what is next, what was done, what fails and why"), s.getOperations, api)
	handle(s, Read, op(http.MethodGet, "/series", "get-fleet-series", "Rounds and backlog over time"), s.getFleetSeries, api)
	s.routeEvents(api, op)
	handle(s, Read, op(http.MethodGet, "/status", "get-status", "This server and its fleet at a glance"), s.getStatus, api)

	s.get(Open, apiPrefix+"/openapi.json", func(c echo.Context) error { return c.JSON(http.StatusOK, api.OpenAPI()) })
	counting := Read
	if s.config.OpenMetrics {
		counting = Open
	}
	s.get(counting, apiPrefix+"/metrics", s.serveMetrics)
	s.get(counting, "/metrics", s.serveMetrics)
	s.get(Open, "/healthz", func(c echo.Context) error { return c.JSON(http.StatusOK, Health{Status: "ok"}) })
	s.get(Open, "/readyz", s.serveReadiness)
	s.describe(api)
}

// routeMaintenance registers what is done with single experiments, and what tells
// of it.
func (s *Server) routeMaintenance(api huma.API, op func(method, path, id, summary string) huma.Operation) {
	one := "/experiments/{name}"
	accepted := func(path, id, summary string) huma.Operation {
		o := op(http.MethodPost, path, id, summary)
		o.DefaultStatus = http.StatusAccepted
		return o
	}
	handle(s, Operate, accepted(one+"/retire", "retire", "Merge, compact, verify, and take it out of the hot table"), s.retire, api)
	handle(s, Operate, accepted(one+"/optimize", "optimize", "Merge and compact it"), s.optimize, api)
	handle(s, Operate, accepted(one+"/wake", "wake", "Look at a retired one now: written since, it is hot again"), s.wake, api)
	handle(s, Operate, accepted(one+"/seal", "seal", "Replay one shard's stranded WAL entries"), s.seal, api)
	handle(s, Operate, accepted(one+"/accept", "accept", "Decide about what merges refuse: a table that was restored or overwritten, a shard that was made anew"), s.accept, api)
	handle(s, Read, op(http.MethodGet, one+"/plan", "plan-experiment", "What maintenance would do with it: a dry run"), s.getExperimentPlan, api)
	handle(s, Read, op(http.MethodGet, one+"/history", "get-history", "What was done with it, newest first"), s.getHistory, api)
	handle(s, Read, op(http.MethodGet, one+"/series", "get-series", "Its numbers over time, and maintenance as marks"), s.getSeries, api)
	handle(s, Read, op(http.MethodGet, one+"/verify", "verify", "Reopen everything: what is pending, stranded or unknown"), s.getVerification, api)
	handle(s, Read, op(http.MethodGet, "/plan", "get-plan", "What the next round would start, and why not for the rest"), s.getPlan, api)
	handle(s, Read, op(http.MethodGet, "/maintenance/{workflow_id}/{run_id}", "get-maintenance", "What became of a run; waits for it to end"), s.getMaintenance, api)

	// lance-context's routes.
	handle(s, Read, op(http.MethodGet, "/tasks", "list-tasks", "Maintenance, newest first, as lance-context lists it"), s.listTasks, api)
	handle(s, Operate, accepted("/tasks", "add-task", "Merge and compact one experiment"), s.addTask, api)
	handle(s, Read, op(http.MethodGet, "/tasks/{id}", "get-task", "One task"), s.getTask, api)
	handle(s, Operate, accepted(one+"/compact", "compact", "Merge and compact it"), s.compact, api)
	handle(s, Read, op(http.MethodGet, one+"/compact/status", "get-compact-status", "Its newest compaction"), s.getCompactStatus, api)
}

// get registers a route that only looks.
func (s *Server) get(access Access, path string, h echo.HandlerFunc) {
	s.access[http.MethodGet+" "+path] = access
	s.echo.GET(path, h)
}

// post registers a route that changes something.
func (s *Server) post(path string, h echo.HandlerFunc) {
	s.access[http.MethodPost+" "+path] = Operate
	s.echo.POST(path, inBounds(h))
}

// open registers a route that changes nothing of the fleet: logging in and out.
func (s *Server) open(path string, h echo.HandlerFunc) {
	s.access[http.MethodPost+" "+path] = Open
	s.echo.POST(path, h)
}

func (s *Server) serveMetrics(c echo.Context) error {
	if s.metrics == nil {
		return refuse(http.StatusNotFound, "this server keeps no metrics")
	}
	s.metrics.ServeHTTP(c.Response(), c.Request())
	return nil
}
