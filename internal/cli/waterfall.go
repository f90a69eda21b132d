package cli

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/view"
)

// waterfall draws when the steps of a run were at work. Its axis is the run's
// time, in which a stretch where nothing happened at all, such as a weekend until
// somebody decided, is no longer than a tenth of the rest.
type waterfall struct {
	cells int
	marks [3]string // marks for: working, waiting, too short to see
	edges []edge
}

// edge is a point of the axis: from the time at, steps are drawn from position to.
type edge struct{ at, to int64 }

func newWaterfall(steps []view.Step, cells int, unicode bool) *waterfall {
	w := &waterfall{cells: cells, marks: [3]string{"#", ".", "|"}}
	if unicode {
		w.marks = [3]string{"█", "░", "▏"}
	}
	var work []view.Span
	for _, s := range steps {
		for _, span := range s.Spans {
			if !span.Wait {
				work = append(work, span)
			}
		}
	}
	slices.SortFunc(work, func(a, b view.Span) int { return int(a.Start - b.Start) })
	// busy lists the periods with any work; total is their sum.
	var busy [][2]int64
	total := int64(0)
	for _, s := range work {
		if n := len(busy); n > 0 && s.Start <= busy[n-1][1] {
			busy[n-1][1] = max(busy[n-1][1], s.Start+s.Millis)
			continue
		}
		busy = append(busy, [2]int64{s.Start, s.Start + s.Millis})
	}
	for _, b := range busy {
		total += b[1] - b[0]
	}
	gap := max(total/10, 1)
	at, to := int64(0), int64(0)
	w.edges = append(w.edges, edge{})
	for _, b := range busy {
		to += min(b[0]-at, gap)
		w.edges = append(w.edges, edge{b[0], to})
		to += b[1] - b[0]
		w.edges = append(w.edges, edge{b[1], to})
		at = b[1]
	}
	end := at
	for _, s := range steps {
		for _, span := range s.Spans {
			end = max(end, span.Start+span.Millis)
		}
	}
	if end > at { // a wait that has not ended
		w.edges = append(w.edges, edge{end, to + min(end-at, gap)})
	}
	return w
}

// place returns the position of a time on the axis, in cells.
func (w *waterfall) place(at int64) int {
	last := w.edges[len(w.edges)-1]
	if last.to == 0 {
		return 0
	}
	i, found := slices.BinarySearchFunc(w.edges, at, func(e edge, at int64) int { return int(e.at - at) })
	pos := last.to
	switch {
	case found:
		pos = w.edges[i].to
	case i < len(w.edges) && i > 0:
		a, b := w.edges[i-1], w.edges[i]
		pos = a.to + (b.to-a.to)*(at-a.at)/(b.at-a.at)
	}
	return int(pos * int64(w.cells) / last.to)
}

// bar draws one step.
func (w *waterfall) bar(s view.Step) string {
	cells := make([]string, w.cells)
	for i := range cells {
		cells[i] = " "
	}
	for _, span := range s.Spans {
		from, to := w.place(span.Start), w.place(span.Start+span.Millis)
		mark := w.marks[0]
		if span.Wait {
			mark = w.marks[1]
		}
		if from == to {
			if from = min(from, w.cells-1); cells[from] == " " {
				cells[from] = w.marks[2]
			}
			continue
		}
		for i := from; i < to; i++ {
			cells[i] = mark
		}
	}
	return strings.Join(cells, "")
}

// unicode reports whether the terminal accepts more than ASCII according to the locale (POSIX environment variables).
// Without a locale it is assumed.
func (a *app) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, ok := a.env(name); ok {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
