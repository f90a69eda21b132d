package workflow

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// Sizes in the picture, in pixels.
const (
	boxWide, boxHigh = 200, 46
	gapWide, gapHigh = 60, 18
	laneHigh         = 10
	margin           = 20
)

var boxColours = map[string]string{"input": "#dbeafe", "output": "#dcfce7", "message": "#dcfce7", StepTool: "#fef3c7",
	StepHTTP: "#fef3c7", StepAgent: "#fae8ff"}

// layout holds the positions in the picture. An arrow that passes a level has a lane there, between the
// boxes. All arrows from one box share the lane.
type layout struct {
	level  map[string]int
	last   map[string]int // last level in which the box has a lane
	middle map[lane]int   // vertical centre of boxes and lanes
	deep   int            // number of levels after the first
	high   int
}

// lane identifies a box, or the continuation of its arrows, in a level.
type lane struct {
	of    string
	level int
}

func (g Graph) layout() *layout {
	l := &layout{level: map[string]int{}, last: map[string]int{}, middle: map[lane]int{}, high: margin}
	levels := map[int][]string{}
	for _, n := range g.Nodes {
		l.level[n.ID], l.deep = n.Level, max(l.deep, n.Level)
		levels[n.Level] = append(levels[n.Level], n.ID)
	}
	into := map[string][]string{}
	for _, e := range g.Edges {
		into[e.To] = append(into[e.To], e.From)
		l.last[e.From] = max(l.last[e.From], l.level[e.To]-1)
	}
	var before []string // boxes and lanes of the previous level, from top to bottom
	for at := range l.deep + 1 {
		height := map[string]float64{} // average height of the sources
		var slots []string
		for _, id := range before {
			if l.last[id] >= at {
				slots = append(slots, id)
				height[id] = float64(l.middle[lane{id, at - 1}])
			}
		}
		for _, id := range levels[at] {
			slots = append(slots, id)
			for _, from := range into[id] {
				height[id] += float64(l.middle[lane{from, at - 1}]) / float64(len(into[id]))
			}
		}
		slices.SortStableFunc(slots, func(a, b string) int { return cmp.Compare(height[a], height[b]) })
		top := margin
		for _, id := range slots {
			size := laneHigh
			if l.level[id] == at {
				size = boxHigh
			}
			l.middle[lane{id, at}] = top + size/2
			top += size + gapHigh
		}
		l.high, before = max(l.high, top-gapHigh), slots
	}
	return l
}

// left returns the x position of the boxes of a level.
func left(level int) int { return margin + level*(boxWide+gapWide) }

// SVG draws the graph as an SVG image, with levels from left to right.
func (g Graph) SVG() []byte {
	l := g.layout()
	var b bytes.Buffer
	width, height := left(l.deep)+boxWide+margin, l.high+margin
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" `+
			`font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escaped(g.Name))
	b.WriteString(
		`<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" ` +
			`orient="auto"><path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>` + "\n")
	const line = `fill="none" stroke="#64748b"`
	curve := func(of string, level, to int) string { // draws an arrow from a level to the next
		x1, y1, x2 := left(level)+boxWide, l.middle[lane{of, level}], left(level+1)
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+gapWide/2, y1, x2-gapWide/2, to, x2, to)
	}
	for _, n := range g.Nodes {
		for at := n.Level; at < l.last[n.ID]; at++ {
			fmt.Fprintf(&b, `<path d="%sH%d" %s/>`+"\n", curve(n.ID, at, l.middle[lane{n.ID, at + 1}]),
				left(at+1)+boxWide, line)
		}
	}
	for _, e := range g.Edges {
		to := l.level[e.To]
		fmt.Fprintf(&b, `<path d="%s" %s marker-end="url(#tip)"/>`+"\n",
			curve(e.From, to-1, l.middle[lane{e.To, to}]), line)
	}
	for _, n := range g.Nodes {
		n.box(&b, l)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// box draws a box. Text that does not fit is shortened; the tooltip has the full text.
func (n GraphNode) box(b *bytes.Buffer, l *layout) {
	colour := cmp.Or(boxColours[n.Kind], "#f1f5f9")
	what := strings.TrimSpace(n.Kind + " " + n.Label)
	x, y := left(n.Level), l.middle[lane{n.ID, n.Level}]-boxHigh/2
	fmt.Fprintf(b, "<g><title>%s</title>\n", escaped(n.ID+": "+what))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="#94a3b8"/>`+"\n", x, y, boxWide,
		boxHigh, colour)
	fmt.Fprintf(b, `<svg x="%d" y="%d" width="%d" height="%d">`, x+10, y, boxWide-16, boxHigh)
	fmt.Fprintf(b, `<text y="19" font-weight="bold">%s</text>`, escaped(short(n.ID, 22)))
	fmt.Fprintf(b, `<text y="36" fill="#475569" font-size="11">%s</text></svg></g>`+"\n", escaped(short(what, 29)))
}

func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}
