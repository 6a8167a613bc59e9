package web

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"math"
	"regexp"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is one picture of one number over time.
type chart struct {
	title, desc string // for people who don't see it
	from, to    int64  // unix ms
	points      []chartPoint
	marks       []chartMark
	binary      bool // a size: ticks at powers of two
	steps       bool // the number stays until the next point; else points are joined
	word        func(float64) string
	dark        bool
}

type chartPoint struct {
	at    int64 // unix ms
	value float64
}

// chartMark is something that was done.
type chartMark struct {
	at     int64
	failed bool
}

// The size of a chart in its own units; the page scales it.
const (
	chartWidth  = vg.Length(420)
	chartHeight = vg.Length(132)
)

// ink are the colours of a theme: those of the style sheet.
type ink struct{ text, grid, line, fill, mark, failed color.Color }

func inks(dark bool) ink {
	if dark {
		return ink{text: rgb(0x93a0ab), grid: rgb(0x2a3036), line: rgb(0x62bccd), fill: rgb(0x17323a), mark: rgb(0x64c98d), failed: rgb(0xff8a80)}
	}
	return ink{text: rgb(0x5f6a74), grid: rgb(0xe3e6e9), line: rgb(0x14677a), fill: rgb(0xe4f1f4), mark: rgb(0x1b7a43), failed: rgb(0xb3261e)}
}

func rgb(hex uint32) color.Color {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 255}
}

// draw makes the picture.
func (c chart) draw() ([]byte, error) {
	p := plot.New()
	p.BackgroundColor = nil // the page shines through
	inks := inks(c.dark)
	c.axes(p, inks)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, inks.grid
	grid.Horizontal.Width = vg.Points(0.75)
	p.Add(grid)
	for _, part := range c.parts() {
		line, err := plotter.NewLine(part)
		if err != nil {
			return nil, fmt.Errorf("chart of %s: %w", c.title, err)
		}
		line.LineStyle.Color, line.LineStyle.Width, line.FillColor = inks.line, vg.Points(1.5), inks.fill
		if c.steps {
			line.StepStyle = plotter.PostStep
		}
		p.Add(line)
	}
	p.Add(drawnMarks{c.marks, inks})
	if !c.known() {
		p.Add(nothingKnown{inks})
	}
	canvas := vgsvg.New(chartWidth, chartHeight)
	p.Draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("chart of %s: %w", c.title, err)
	}
	return c.named(out.Bytes()), nil
}

// known says whether there is anything to draw.
func (c chart) known() bool {
	return slices.ContainsFunc(c.points, func(p chartPoint) bool { return p.value >= 0 && !math.IsInf(p.value, 0) })
}

// nothingKnown says so where the line would be.
type nothingKnown struct{ ink ink }

// Plot implements plot.Plotter.
func (n nothingKnown) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.X.Tick.Label
	style.Color, style.XAlign, style.YAlign = n.ink.text, draw.XCenter, draw.YCenter
	c.FillText(style, vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: (c.Min.Y + c.Max.Y) / 2}, "nothing known")
}

// axes go from 0, so that a small change looks small.
func (c chart) axes(p *plot.Plot, inks ink) {
	from := c.begin()
	p.X.Min, p.X.Max = float64(from), float64(max(c.to, from+1))
	p.X.Tick.Marker = plot.ConstantTicks(timeTicks(from, c.to))
	ticks := c.valueTicks()
	p.Y.Min, p.Y.Max = 0, 1
	if len(ticks) > 0 {
		p.Y.Max = ticks[len(ticks)-1].Value
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Width = 0
		axis.Tick.LineStyle.Color = inks.grid
		axis.Tick.Length = 0
		axis.Tick.Label.Color = inks.text
		axis.Tick.Label.Font.Variant = "Sans"
		axis.Tick.Label.Font.Size = vg.Points(10)
		axis.Padding = vg.Points(2)
	}
	p.X.LineStyle.Width, p.X.LineStyle.Color = vg.Points(0.75), inks.grid
}

// parts are the runs of points without a gap. A value below 0 is not known.
func (c chart) parts() []plotter.XYs {
	var parts []plotter.XYs
	var part plotter.XYs
	end := func() {
		if len(part) == 1 { // a single point has no length: draw a short piece
			part = append(part, c.shortPiece(part[0]))
		}
		if len(part) > 0 {
			parts = append(parts, part)
		}
		part = nil
	}
	for _, point := range c.points {
		if point.value < 0 || math.IsNaN(point.value) || math.IsInf(point.value, 0) {
			end()
			continue
		}
		part = append(part, plotter.XY{X: float64(point.at), Y: point.value})
	}
	end()
	return parts
}

// shortPiece ends a line that has one point only, within the picture: what sticks out
// would widen its axis.
func (c chart) shortPiece(from plotter.XY) plotter.XY {
	length := float64(c.to-c.begin()) / 100
	if end := from.X + length; end <= float64(c.to) {
		return plotter.XY{X: end, Y: from.Y}
	}
	return plotter.XY{X: from.X - length, Y: from.Y}
}

// valueTicks are round numbers from 0 to above the largest value; none where nothing
// is known: an axis would look as if something had been measured.
func (c chart) valueTicks() []plot.Tick {
	most := 0.0
	if !c.known() {
		return nil
	}
	for _, p := range c.points {
		if !math.IsInf(p.value, 0) && p.value > most {
			most = p.value
		}
	}
	step := roundStep(most/3, c.binary)
	ticks := []plot.Tick{}
	for v := 0.0; ; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: c.word(v)})
		if v >= most && v > 0 {
			return ticks
		}
	}
}

// roundStep is the smallest of 1, 2, 5 times a power of ten that is at least x, or
// of sizes the power of two; and at least 1 of what is counted.
func roundStep(x float64, binary bool) float64 {
	if x <= 1 {
		return 1
	}
	if binary {
		return math.Pow(2, math.Ceil(math.Log2(x)))
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x {
			return m * power
		}
	}
	return 10 * power
}

// shortest is the least time that a chart covers.
const shortest = 10 * int64(time.Minute/time.Millisecond)

// begin is the left end: the window's, or where what is known begins, so that a
// young fleet's chart is not a sliver at the right.
func (c chart) begin() int64 {
	for _, p := range c.points {
		if p.value >= 0 {
			return max(c.from, min(p.at, c.to-shortest))
		}
	}
	return c.from
}

// timeTicks are midnights in UTC, or hours and minutes where the time is short: at
// most eight.
func timeTicks(from, to int64) []plot.Tick {
	const minute = int64(time.Minute / time.Millisecond)
	step, layout := 5*24*60*minute, "2 Jan"
	for _, s := range []int64{2, 5, 15, 60, 3 * 60, 6 * 60, 24 * 60, 2 * 24 * 60} {
		if (to-from)/(s*minute) <= 8 {
			step = s * minute
			break
		}
	}
	if step < 24*60*minute {
		layout = "15:04"
	}
	ticks := []plot.Tick{}
	for at := from - from%step + step; at <= to; at += step {
		label := time.UnixMilli(at).UTC().Format(layout)
		if margin := (to - from) / 30; at-from < margin || to-at < margin {
			label = "" // it would stick out
		}
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: label})
	}
	return ticks
}

// drawnMarks are thin lines; a failure's is broken and ends in a cross.
type drawnMarks struct {
	marks []chartMark
	ink   ink
}

// Plot implements plot.Plotter.
func (d drawnMarks) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, m := range d.marks {
		style := draw.LineStyle{Color: d.ink.mark, Width: vg.Points(1)}
		glyph := draw.GlyphStyle{Color: d.ink.mark, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
		if m.failed {
			style = draw.LineStyle{Color: d.ink.failed, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(3), vg.Points(2)}}
			glyph = draw.GlyphStyle{Color: d.ink.failed, Radius: vg.Points(3), Shape: draw.CrossGlyph{}}
		}
		at := x(float64(m.at))
		if at < c.Min.X || at > c.Max.X {
			continue
		}
		c.StrokeLine2(style, at, c.Min.Y, at, c.Max.Y-vg.Points(3))
		c.DrawGlyph(glyph, vg.Point{X: at, Y: c.Max.Y - vg.Points(3)})
	}
}

var (
	svgOpen  = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)
	svgFont  = regexp.MustCompile(`font-family:[^;"]*;`)
	svgStart = regexp.MustCompile(`xmlns:xlink="[^"]*">`)
)

// named gives the picture a title and a description of its own, lets it take the
// size of its place, and has it use the reader's font.
func (c chart) named(svg []byte) []byte {
	svg = svgOpen.ReplaceAll(svg, []byte(`<svg role="img" aria-labelledby="t d"`))
	svg = svgFont.ReplaceAll(svg, []byte("font-family:system-ui,sans-serif;"))
	at := svgStart.FindIndex(svg)
	if at == nil {
		return svg
	}
	names := fmt.Sprintf(`<title id="t">%s</title><desc id="d">%s</desc>`, html.EscapeString(c.title), html.EscapeString(c.desc))
	return append(append(append([]byte{}, svg[:at[1]]...), names...), svg[at[1]:]...)
}
