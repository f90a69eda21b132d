package capacity

import (
	"container/heap"
	"math"
)

// clock is the time of a simulation in seconds, with the events to come.
type clock struct {
	now    float64
	count  int // number of events so far; events of the same time happen in their order
	events eventHeap
}

// event is something that happens at a time. A cancelled event has no do.
type event struct {
	time  float64
	order int
	do    func()
}

// after makes something happen after a time.
func (c *clock) after(seconds float64, do func()) *event {
	c.count++
	e := &event{time: c.now + max(seconds, 0), order: c.count, do: do}
	heap.Push(&c.events, e)
	return e
}

// run lets time pass until a moment. With +Inf, it ends after the last event.
func (c *clock) run(until float64) {
	for len(c.events) > 0 && c.events[0].time <= until {
		e, _ := heap.Pop(&c.events).(*event)
		if e.do == nil {
			continue
		}
		c.now = e.time
		e.do()
	}
	if !math.IsInf(until, 1) {
		c.now = until
	}
}

// eventHeap implements [heap.Interface].
type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].time < h[j].time || h[i].time == h[j].time && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *eventHeap) Push(x any) {
	e, _ := x.(*event)
	*h = append(*h, e)
}

// Pop implements [heap.Interface].
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}

var _ heap.Interface = (*eventHeap)(nil)
