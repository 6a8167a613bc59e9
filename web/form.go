package web

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// formMost are the longest texts that a form's fields take, in characters: as many as
// the same fields of the API. Pages hold people to them; other programs are refused.
var formMost = map[string]int{"by": 100, "why": 500, "reason": 500, "shard": 100, "seen": 100, "q": 1000}

// inBounds refuses a form with a longer text.
func inBounds(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		form, err := c.FormParams()
		if err != nil {
			return refuse(http.StatusBadRequest, "the form can't be read")
		}
		for name, most := range formMost {
			for _, value := range form[name] {
				if n := utf8.RuneCountInString(value); n > most {
					return refuse(http.StatusUnprocessableEntity, fmt.Sprintf("%s: %d characters; at most %d are kept", name, n, most))
				}
			}
		}
		return h(c)
	}
}
