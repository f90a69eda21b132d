package workflow

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestLayout checks that boxes and lanes do not overlap.
func TestLayout(t *testing.T) {
	for name, edges := range map[string]string{
		"chain":         "a b, b c, c d",
		"past a chain":  "a b, b c, c d, a d, b d",
		"side by side":  "a c, b c, a d, b d",
		"all upon all":  "a b, a c, a d, a e, b c, b d, b e, c d, c e, d e",
		"two of a kind": "a b, a c, b d, c d, a d",
	} {
		t.Run(name, func(t *testing.T) {
			g := graphOf(edges)
			l := g.layout()
			for at := range l.deep + 1 {
				var taken [][2]int
				for slot, middle := range l.middle {
					high := laneHigh
					if l.level[slot.of] == slot.level {
						high = boxHigh
					}
					if slot.level != at {
						continue
					}
					for _, other := range taken {
						if middle-high/2 < other[1] && other[0] < middle+high/2 {
							t.Errorf("level %d: %s overlaps", at, slot.of)
						}
					}
					taken = append(taken, [2]int{middle - high/2, middle + high/2})
					if middle+high/2 > l.high {
						t.Errorf("level %d: %s is cut off", at, slot.of)
					}
				}
			}
			for _, e := range g.Edges {
				for at := l.level[e.From]; at < l.level[e.To]; at++ {
					if l.middle[lane{e.From, at}] == 0 {
						t.Errorf("the arrow from %s to %s has no lane in level %d", e.From, e.To, at)
					}
				}
			}
		})
	}
}

// graphOf returns a graph of the given arrows, which are ordered by their ends.
func graphOf(edges string) Graph {
	g := Graph{Name: "g"}
	level := map[string]int{}
	add := func(id string) {
		if _, ok := level[id]; !ok {
			level[id] = 0
			g.Nodes = append(g.Nodes, GraphNode{ID: id, Kind: StepTemplate})
		}
	}
	for _, e := range strings.Split(edges, ", ") {
		from, to, _ := strings.Cut(e, " ")
		add(from)
		add(to)
		g.Edges = append(g.Edges, GraphEdge{from, to})
	}
	for range g.Nodes {
		for _, e := range g.Edges {
			level[e.To] = max(level[e.To], level[e.From]+1)
		}
	}
	for i := range g.Nodes {
		g.Nodes[i].Level = level[g.Nodes[i].ID]
	}
	return g
}

// TestSVG checks that a picture is well-formed XML for any names and labels.
func TestSVG(t *testing.T) {
	g := graphOf("a b, b c, a c")
	g.Name, g.Nodes[0].Label = `<&"]]>`, "x < 3 && '\x01'\n"+strings.Repeat("世", 100)
	svg := string(g.SVG())
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(svg, "<rect "); n != 3 {
		t.Errorf("%d boxes", n)
	}
	if n := strings.Count(svg, "marker-end="); n != 3 {
		t.Errorf("%d arrows", n)
	}
	if empty := string(Graph{Name: "e"}.SVG()); !strings.Contains(empty, fmt.Sprintf(`width="%d"`, 2*margin+boxWide)) {
		t.Error(empty)
	}
}
