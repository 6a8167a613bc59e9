package main

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"lancefleet/fleet"
)

// seconds is a duration that may be written as lance-context does: a bare number
// of seconds.
type seconds time.Duration

const longestSeconds = math.MaxInt64 / int64(time.Second)

// Decode reads "5s", "2m" or "300".
func (s *seconds) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("duration")
	if err != nil {
		return err
	}
	text := fmt.Sprint(token.Value)
	d, err := time.ParseDuration(text)
	if n, numeric := strconv.ParseInt(text, 10, 64); numeric == nil && n <= longestSeconds {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < 0 {
		return fmt.Errorf("%q: a duration such as 5s or 10m is allowed, or whole seconds, at least 0", text)
	}
	*s = seconds(d)
	return nil
}

// wholeNumber reads flags of kind int.
func wholeNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("whole number")
	if err != nil {
		return err
	}
	text := fmt.Sprint(token.Value)
	n, err := strconv.ParseInt(text, 10, target.Type().Bits())
	if err != nil {
		return fmt.Errorf("%q: a whole number is allowed", text)
	}
	target.SetInt(n)
	return nil
}

// realNumber reads flags of kind float.
func realNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("number")
	if err != nil {
		return err
	}
	text := fmt.Sprint(token.Value)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return fmt.Errorf("%q: a number is allowed", text)
	}
	target.SetFloat(n)
	return nil
}

// experimentName is an experiment as people name it: kind:name, or bare.
type experimentName string

// Validate refuses what names nothing before a server is asked.
func (n experimentName) Validate() error {
	_, err := fleet.ParseRef(string(n))
	return err
}

var negative = regexp.MustCompile(`^-(\d|\.\d|[iI]nf)`)

// joinNegatives makes "--rows -3" "--rows=-3": no flag of ours begins with a digit,
// so -3 is a value, to be refused as one.
func joinNegatives(args []string) []string {
	var joined []string
	for i, arg := range args {
		if arg == "--" {
			return append(joined, args[i:]...)
		}
		last := len(joined) - 1
		if negative.MatchString(arg) && last >= 0 && strings.HasPrefix(joined[last], "--") && !strings.Contains(joined[last], "=") {
			joined[last] += "=" + arg
			continue
		}
		joined = append(joined, arg)
	}
	return joined
}
