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

// Decode reads "5s", "2m", "7d" or "300".
func (s *seconds) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("duration")
	if err != nil {
		return err
	}
	d, err := parseDuration(fmt.Sprint(token.Value))
	*s = seconds(d)
	return err
}

// days are what policies are thought in.
var days = regexp.MustCompile(`^(\d{1,5})d$`)

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if n, numeric := strconv.ParseInt(text, 10, 64); numeric == nil && n <= longestSeconds {
		d, err = time.Duration(n)*time.Second, nil
	}
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // at most five digits
		d, err = time.Duration(n)*24*time.Hour, nil
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: a duration such as 5s, 10m, 12h or 7d is allowed, or whole seconds, at least 0", text)
	}
	return d, nil
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
