package web

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
)

var errorsOnce sync.Once

// useErrorBody makes huma answer its own errors in our shape and words too. huma
// keeps this in package variables.
func useErrorBody() {
	errorsOnce.Do(func() {
		huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
			return mistakes(nil, status, message, errs)
		}
		huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
			if status == http.StatusUnsupportedMediaType {
				return refuse(status, fmt.Sprintf("the body is called %q; send JSON and say Content-Type: application/json", ctx.Header("Content-Type")))
			}
			return mistakes(ctx.Operation(), status, message, errs)
		}
	})
}

// mistakes says in our own words what was wrong with a request. op is nil when it
// is not known.
func mistakes(op *huma.Operation, status int, message string, errs []error) *ErrorBody {
	var said []string
	var words []Mistake
	for _, err := range errs {
		var detail *huma.ErrorDetail
		var word Mistake
		switch {
		case err == nil:
		case errors.As(err, &word):
			said, words = append(said, sentence(err)), append(words, word)
		case errors.As(err, &detail) && status == http.StatusBadRequest:
			said = append(said, "the body is not JSON: "+detail.Message)
		case errors.As(err, &detail):
			said = append(said, mistake(op, detail))
		default:
			said = append(said, sentence(err))
		}
	}
	if len(said) > 0 {
		body := refuse(status, strings.Join(said, "; "))
		body.Mistakes = words
		return body
	}
	switch status {
	case http.StatusBadRequest:
		message = "a body of JSON is needed" + allowedFields(op)
	case http.StatusRequestEntityTooLarge:
		message = tooLarge(bodyLimit(operationPath(op)))
	case http.StatusRequestTimeout:
		message = "the body did not arrive in time"
	}
	return refuse(status, message)
}

func operationPath(op *huma.Operation) string {
	if op == nil {
		return ""
	}
	return op.Path
}

// mistake words one value that was not as it should be.
func mistake(op *huma.Operation, d *huma.ErrorDetail) string {
	_, name, inside := strings.Cut(d.Location, ".")
	if !inside {
		name = d.Location
	}
	if missing := ""; scan(d.Message, validation.MsgExpectedRequiredProperty, &missing) {
		return missing + ": must be given"
	}
	if d.Value == nil {
		return name + ": must be given, and not as null"
	}
	most := 0
	switch value := quoted(d.Value); {
	case d.Message == validation.MsgUnexpectedProperty:
		return name + ": there is no such field" + allowedFields(op)
	case d.Message == validation.MsgExpectedObject:
		return "the body is " + value + ", not an object" + allowedFields(op)
	case d.Message == validation.MsgExpectedString:
		return name + ": " + value + " is not text"
	case d.Message == validation.MsgExpectedBoolean, d.Message == "invalid boolean":
		return name + ": " + value + " is neither true nor false"
	case d.Message == validation.MsgExpectedInteger, d.Message == validation.MsgExpectedNumber, d.Message == "invalid integer":
		return name + ": " + value + " is not a whole number"
	case scan(d.Message, validation.MsgExpectedMaxLength, &most):
		return fmt.Sprintf("%s: longer than %d characters", name, most)
	default:
		return name + ": " + value + ": " + d.Message
	}
}

func scan(text, format string, into any) bool {
	n, err := fmt.Sscanf(text, format, into)
	return n == 1 && err == nil
}

// quoted is a value as JSON writes it, of bearable length.
func quoted(value any) string {
	text := fmt.Sprint(value)
	if s, ok := value.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	return sentence(errors.New(text))
}

const fieldsKey = "fields" // in an operation's metadata

// fieldsOf are the names that a body may have, by the type of a huma input.
func fieldsOf(input reflect.Type) []string {
	body, ok := input.FieldByName("Body")
	if !ok {
		return nil
	}
	t := body.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func allowedFields(op *huma.Operation) string {
	if op == nil {
		return ""
	}
	names, _ := op.Metadata[fieldsKey].([]string)
	if len(names) == 0 {
		return ""
	}
	return "; allowed: " + strings.Join(names, ", ")
}
