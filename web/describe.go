package web

import (
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// answers of operations that have several, by status. huma sees one type.
var answers = map[string]map[int]any{
	"get-round":       {http.StatusOK: Round{}, http.StatusAccepted: RunningRound{}},
	"get-maintenance": {http.StatusOK: MaintenanceEnded{}, http.StatusAccepted: RunningRound{}},
	"retire":          {http.StatusOK: MaintenancePlan{}, http.StatusAccepted: MaintenanceStarted{}},
	"optimize":        {http.StatusOK: MaintenancePlan{}, http.StatusAccepted: MaintenanceStarted{}},
	"seal":            {http.StatusOK: MaintenancePlan{}, http.StatusAccepted: MaintenanceStarted{}},
	"accept":          {http.StatusOK: MaintenancePlan{}, http.StatusAccepted: MaintenanceStarted{}},
	"add-batch":       {http.StatusOK: BatchPlan{}, http.StatusAccepted: BatchStarted{}},
	"wake":            {http.StatusAccepted: MaintenanceStarted{}},
}

// everyError are the statuses that any operation may answer with: the token's, the
// rations', a name's, storage's.
var everyError = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
	http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError,
}

// errorExamples are what such an answer says.
var errorExamples = map[int]ErrorBody{
	http.StatusBadRequest:            {Message: `name "a/b": letters, digits and . _ - are allowed`},
	http.StatusUnauthorized:          {Message: "this server wants to know who asks: send a token as Authorization: Bearer …"},
	http.StatusForbidden:             {Message: "grafana may look and not change anything: this needs an operator's token"},
	http.StatusNotFound:              {Message: `no source names an experiment "exp-0"`},
	http.StatusConflict:              {Message: `"exp-1" could be generic:exp-1 or table:exp-1`, Candidates: []string{"generic:exp-1", "table:exp-1"}},
	http.StatusRequestTimeout:        {Message: "the body did not arrive in time, or not as announced"},
	http.StatusRequestEntityTooLarge: {Message: "the body is larger than 64 KiB"},
	http.StatusUnsupportedMediaType:  {Message: `the body is called "text/plain"; send JSON and say Content-Type: application/json`},
	http.StatusUnprocessableEntity:   {Message: `"limti": there is no such parameter; allowed: limit, offset`},
	http.StatusTooManyRequests:       {Message: "too many looks at storage: try again in 10 s"},
	http.StatusServiceUnavailable:    {Message: "the fleet's table has not been read yet"},
	http.StatusInternalServerError:   {Message: "something went wrong here; the log has the cause under request id 6f0c6c1e9b534e7a"},
}

// namePattern is what fleet.ParseRef takes, for readers of the description: a name
// that is not one is answered by ParseRef's own words.
const namePattern = `^((rollout|generic|datagen|table):)?[A-Za-z0-9_][A-Za-z0-9._-]*$`

// securityOf says which tokens an operation takes: any of these ways.
func securityOf(access Access) []map[string][]string {
	if access == Open {
		return []map[string][]string{{}}
	}
	return []map[string][]string{{"token": {}}, {"session": {}}}
}

// describe completes the description of the API, after every operation is registered.
func (s *Server) describe(api huma.API) {
	doc := api.OpenAPI()
	doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token":   {Type: "http", Scheme: "bearer", Description: "The secret of a token. A viewer's is enough for GET. Where the server has no tokens, nothing is asked for."},
		"session": {Type: "apiKey", In: "cookie", Name: plainCookie, Description: "What the login gives a browser; over https its name is " + secureCookie},
	}
	s.describeRest(doc)
	shown := examples()
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post} {
			if op != nil {
				complete(doc, op, shown)
			}
		}
	}
	nullable(doc.Components.Schemas)
}

// nullIsUnset says of a body's optional fields what is true of them: null is the same
// as not to give them.
func nullIsUnset(doc *huma.OpenAPI, op *huma.Operation) {
	if op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return
	}
	schema := op.RequestBody.Content["application/json"].Schema
	if schema != nil && schema.Ref != "" {
		schema = doc.Components.Schemas.SchemaFromRef(schema.Ref)
	}
	if schema == nil {
		return
	}
	for name, field := range schema.Properties {
		if field.Ref == "" && !slices.Contains(schema.Required, name) {
			field.Nullable = true
		}
	}
}

func complete(doc *huma.OpenAPI, op *huma.Operation, shown map[string]any) {
	nullIsUnset(doc, op)
	for status, body := range answers[op.OperationID] {
		schema := doc.Components.Schemas.Schema(reflect.TypeOf(body), true, "")
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status), Content: map[string]*huma.MediaType{"application/json": {Schema: schema}},
		}
	}
	if tagged[op.Method+" "+echoPath(op.Path)] || op.OperationID == "list-experiments" {
		op.Responses["304"] = &huma.Response{Description: "Nothing has changed since the answer with the tag that If-None-Match names"}
		op.Responses["200"].Headers = withHeader(op.Responses["200"].Headers, "ETag", "Names what the answer is made from; send it as If-None-Match")
		if op.OperationID != "list-experiments" {
			op.Parameters = append(op.Parameters, &huma.Param{Name: "If-None-Match", In: "header", Schema: &huma.Schema{Type: "string"}})
		}
	}
	for _, p := range op.Parameters {
		if p.In == "path" && p.Name == "name" {
			p.Example, p.Schema.Pattern = "rollout:exp-1", namePattern
		}
	}
	for status, response := range op.Responses {
		completeResponse(status, response, shown)
	}
	if op.RequestBody != nil {
		for _, content := range op.RequestBody.Content {
			content.Example = shown[typeOf(content.Schema)]
		}
	}
}

// typeOf is the name of the type that a schema is of, if it has one.
func typeOf(s *huma.Schema) string {
	for s != nil && s.Ref == "" && len(s.AnyOf) > 0 {
		s = s.AnyOf[0]
	}
	if s == nil {
		return ""
	}
	return path.Base(s.Ref)
}

// nullable says that what is a pointer to a struct may be null: huma says it of
// everything else.
func nullable(all huma.Registry) {
	for name, schema := range all.Map() {
		t := all.TypeFromRef("#/components/schemas/" + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(t) {
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			property := schema.Properties[name]
			if property == nil || property.Ref == "" || f.Type.Kind() != reflect.Pointer || strings.Contains(rest, "omitempty") {
				continue
			}
			schema.Properties[name] = &huma.Schema{Description: f.Tag.Get("doc"), AnyOf: []*huma.Schema{{Ref: property.Ref}, {Type: "null"}}}
		}
	}
}

func completeResponse(status string, response *huma.Response, shown map[string]any) {
	response.Headers = withHeader(response.Headers, "X-Request-Id", "Under this the log has it")
	code, _ := strconv.Atoi(status)
	switch code {
	case http.StatusUnauthorized:
		response.Headers = withHeader(response.Headers, "WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		response.Headers = withHeader(response.Headers, "Retry-After", "Seconds")
	}
	content := response.Content["application/json"]
	if content == nil {
		return
	}
	if example, ok := errorExamples[code]; ok && typeOf(content.Schema) == "ErrorBody" {
		content.Example = example
	}
	if example, ok := shown[typeOf(content.Schema)]; ok {
		content.Example = example
	}
}

func withHeader(headers map[string]*huma.Param, name, doc string) map[string]*huma.Param {
	if headers == nil {
		headers = map[string]*huma.Param{}
	}
	headers[name] = &huma.Param{Description: doc, Schema: &huma.Schema{Type: "string"}}
	return headers
}

// describeRest describes what huma does not serve.
func (s *Server) describeRest(doc *huma.OpenAPI) {
	add := func(path, id, summary, mime string, body any, errors ...int) *huma.Operation {
		op := &huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Summary: summary, Responses: map[string]*huma.Response{}}
		schema := &huma.Schema{Type: "string"}
		if body != nil {
			schema = doc.Components.Schemas.Schema(reflect.TypeOf(body), true, "")
		}
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{mime: {Schema: schema}}}
		for _, status := range errors {
			op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: map[string]*huma.MediaType{
				"application/json": {Schema: doc.Components.Schemas.Schema(reflect.TypeFor[ErrorBody](), true, "")},
			}}
		}
		op.Security = securityOf(s.access["GET "+path])
		doc.AddOperation(op)
		return op
	}
	ready := add("/readyz", "get-readiness", "200 once the table is in memory; what is missing either way", "application/json", Readiness{}, http.StatusForbidden)
	ready.Responses["503"] = &huma.Response{Description: "Not yet", Content: ready.Responses["200"].Content}
	add("/healthz", "get-health", "200 while the process serves", "application/json", Health{}, http.StatusForbidden)
	for _, path := range []string{"/metrics", apiPrefix + "/metrics"} {
		add(path, "get"+map[bool]string{true: "-api"}[path != "/metrics"]+"-metrics", "Prometheus text", "text/plain", nil, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests)
	}
	for path, mime := range map[string]string{"/export.json": "application/json", "/export.csv": "text/csv"} {
		var body any
		if mime == "application/json" {
			body = ExperimentList{}
		}
		op := add(path, "export-"+path[len("/export."):], "Every experiment of a view; the query is that of the list", mime, body)
		op.Parameters = exportParameters(doc)
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError} {
			op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status) + "; as a page", Content: map[string]*huma.MediaType{"text/html": {Schema: &huma.Schema{Type: "string"}}}}
		}
	}
}

// exportParameters are those of the list.
func exportParameters(doc *huma.OpenAPI) []*huma.Param {
	var out []*huma.Param
	for _, p := range doc.Paths[apiPrefix+"/experiments"].Get.Parameters {
		if p.In == "query" {
			out = append(out, p)
		}
	}
	return out
}
