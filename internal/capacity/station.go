package capacity

import (
	"container/heap"
	"maps"
	"slices"
)

// processor is a number of cores that all jobs share equally, like the scheduler of an operating system does. A job has
// at most one core.
type processor struct {
	clock *clock
	cores float64

	jobs   jobHeap
	count  int
	served float64 // CPU time that each job has received since the start of the simulation
	at     float64 // when served was computed
	next   *event
	asked  map[string]float64 // CPU time of all jobs so far by cause, with what is left of those under way
}

// job is work on a processor. It ends when served reaches ends.
type job struct {
	cause string
	ends  float64
	order int
	done  func()
}

func newProcessor(c *clock, cores float64) *processor {
	return &processor{clock: c, cores: cores, asked: map[string]float64{}}
}

// work does something that needs CPU time, and calls done at its end.
func (p *processor) work(cause string, seconds float64, done func()) {
	p.pass()
	p.asked[cause] += seconds
	p.count++
	heap.Push(&p.jobs, &job{cause: cause, ends: p.served + seconds, order: p.count, done: done})
	p.plan()
}

// rate is the CPU time that each job receives in a second.
func (p *processor) rate() float64 { return min(1, p.cores/float64(max(len(p.jobs), 1))) }

// pass accounts for the time since the last call.
func (p *processor) pass() {
	p.served += (p.clock.now - p.at) * p.rate()
	p.at = p.clock.now
}

// plan sets the event of the next job's end.
func (p *processor) plan() {
	if p.next != nil {
		p.next.do = nil
		p.next = nil
	}
	if len(p.jobs) > 0 {
		p.next = p.clock.after((p.jobs[0].ends-p.served)/p.rate(), p.end)
	}
}

// end ends the first job.
func (p *processor) end() {
	p.next = nil
	p.pass()
	j, _ := heap.Pop(&p.jobs).(*job)
	p.served = max(p.served, j.ends) // rounding
	p.plan()
	j.done()
}

// spent returns the CPU time so far by cause, and its sum.
func (p *processor) spent() (by map[string]float64, sum float64) {
	p.pass()
	by = maps.Clone(p.asked)
	for _, j := range p.jobs {
		by[j.cause] -= j.ends - p.served
	}
	for _, cause := range slices.Sorted(maps.Keys(by)) { // always in the same order, because sums of floats are rounded
		sum += by[cause]
	}
	return by, sum
}

// jobHeap implements [heap.Interface].
type jobHeap []*job

func (h jobHeap) Len() int { return len(h) }
func (h jobHeap) Less(i, j int) bool {
	return h[i].ends < h[j].ends || h[i].ends == h[j].ends && h[i].order < h[j].order
}
func (h jobHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *jobHeap) Push(x any) {
	j, _ := x.(*job)
	*h = append(*h, j)
}

// Pop implements [heap.Interface].
func (h *jobHeap) Pop() any {
	old := *h
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return j
}

// pool is a number of connections. Callers wait for a free one in the order of their calls.
type pool struct {
	free    int
	waiting []func()
}

// take calls have when a connection is free for it.
func (p *pool) take(have func()) {
	if p.free == 0 {
		p.waiting = append(p.waiting, have)
		return
	}
	p.free--
	have()
}

// give returns a connection.
func (p *pool) give() {
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	next := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	next()
}

// disk is the log of a database. One flush is under way at a time. All commits that wait at its end share the next one.
type disk struct {
	clock   *clock
	seconds float64 // of a flush
	busy    float64 // time spent in flushes

	flushing bool
	waiting  []func()
}

// flush calls done when everything written so far is on disk.
func (d *disk) flush(done func()) {
	d.waiting = append(d.waiting, done)
	if !d.flushing {
		d.begin()
	}
}

func (d *disk) begin() {
	batch := d.waiting
	d.waiting, d.flushing = nil, true
	d.busy += d.seconds
	d.clock.after(d.seconds, func() {
		d.flushing = false
		if len(d.waiting) > 0 {
			d.begin()
		}
		for _, done := range batch {
			done()
		}
	})
}

var _ heap.Interface = (*jobHeap)(nil)
