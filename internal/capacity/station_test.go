package capacity

import (
	"math"
	"math/rand/v2"
	"testing"
)

// near reports values that differ by more than a part of the wanted one.
func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*math.Abs(want) {
		t.Errorf("%s: %.5g, want %.5g within %.0f %%", what, got, want, part*100)
	}
}

// erlangC is the probability that an arrival waits in M/M/c with offered load a.
func erlangC(c int, a float64) float64 {
	b := 1.0 // Erlang B by its recursion
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	rho := a / float64(c)
	return b / (1 - rho*(1-b))
}

// waitMDc is the mean wait in M/D/c with a service time of 1: the chain of the numbers in the system at the times 0, 1,
// 2, … is exact for constant service times, because all that are served at a time have left one later (Crommelin).
func waitMDc(c int, lambda float64) float64 {
	const states = 200
	arrivals := make([]float64, states)
	for k, p := 0, math.Exp(-lambda); k < states; k++ {
		arrivals[k] = p
		p *= lambda / float64(k+1)
	}
	p := make([]float64, states)
	p[0] = 1
	for range 1000 {
		next := make([]float64, states)
		for i, pi := range p {
			left := max(i-c, 0)
			for k := 0; left+k < states; k++ {
				next[left+k] += pi * arrivals[k]
			}
		}
		p = next
	}
	queued := 0.0
	for i := c + 1; i < states; i++ {
		queued += float64(i-c) * p[i]
	}
	return queued / lambda // Little's law
}

const customers = 300_000

// open lets customers arrive at random, and returns the mean of the time that each of them measures.
func open(seed uint64, lambda float64, serve func(c *clock, r *rand.Rand, done func())) float64 {
	c, r := &clock{}, rand.New(rand.NewPCG(seed, 1))
	sum, n := 0.0, 0
	var arrive func()
	arrive = func() {
		began := c.now
		serve(c, r, func() {
			sum += c.now - began
			n++
		})
		if n < customers {
			c.after(r.ExpFloat64()/lambda, arrive)
		}
	}
	c.after(0, arrive)
	c.run(math.Inf(1))
	return sum / float64(n)
}

func TestProcessor(t *testing.T) {
	for _, c := range []struct {
		cores int
		load  float64 // of all cores
	}{{1, 0.5}, {1, 0.8}, {2, 0.7}, {4, 0.8}} {
		lambda := c.load * float64(c.cores) // the service rate is 1
		var p *processor
		got := open(7, lambda, func(clock *clock, r *rand.Rand, done func()) {
			if p == nil {
				p = newProcessor(clock, float64(c.cores))
			}
			p.work("x", r.ExpFloat64(), done)
		})
		// With exponential demands, M/M/c-PS has the same number of jobs as M/M/c.
		want := 1 + erlangC(c.cores, lambda)/(float64(c.cores)-lambda)
		near(t, "response in M/M/"+string(rune('0'+c.cores)), got, want, 0.03)
		_, spent := p.spent()
		near(t, "utilisation", spent/p.clock.now/float64(c.cores), c.load, 0.02)
	}
}

// TestProcessorConstant: with one core, the mean time depends on the mean demand only (M/G/1-PS).
func TestProcessorConstant(t *testing.T) {
	var p *processor
	got := open(8, 0.7, func(clock *clock, _ *rand.Rand, done func()) {
		if p == nil {
			p = newProcessor(clock, 1)
		}
		p.work("x", 1, done)
	})
	near(t, "response in M/D/1-PS", got, 1/(1-0.7), 0.03)
}

func TestPool(t *testing.T) {
	for _, c := range []struct {
		servers int
		load    float64
		want    func(lambda float64) float64 // mean wait
	}{
		{1, 0.7, func(l float64) float64 { return l / (2 * (1 - l)) }}, // Pollaczek and Khinchine
		{2, 0.8, func(l float64) float64 { return waitMDc(2, l) }},
		{8, 0.9, func(l float64) float64 { return waitMDc(8, l) }},
	} {
		lambda := c.load * float64(c.servers)
		p := &pool{free: c.servers}
		got := open(9, lambda, func(clock *clock, _ *rand.Rand, done func()) {
			p.take(func() {
				done() // measures the wait
				clock.after(1, p.give)
			})
		})
		near(t, "wait in M/D/c", got, c.want(lambda), 0.05)
	}
	near(t, "M/D/1 by the chain and by the formula", waitMDc(1, 0.6), 0.6/0.8, 1e-6)
}

// TestRepairman has a closed form, too: customers that think for a random time, and one server (M/M/1//N).
func TestRepairman(t *testing.T) {
	const n, think, until = 10, 5.0, 100_000.0
	c, r := &clock{}, rand.New(rand.NewPCG(3, 1))
	p := newProcessor(c, 1)
	served := 0
	var begin func()
	begin = func() {
		c.after(r.ExpFloat64()*think, func() {
			p.work("x", r.ExpFloat64(), func() {
				served++
				begin()
			})
		})
	}
	for range n {
		begin()
	}
	c.run(until)
	idle, term := 0.0, 1.0
	for k := 0; k <= n; k++ {
		idle += term
		term *= float64(n-k) / think
	}
	near(t, "throughput", float64(served)/until, 1-1/idle, 0.02)
}

func TestDisk(t *testing.T) {
	c := &clock{}
	d := &disk{clock: c, seconds: 2}
	var ends []float64
	for _, at := range []float64{0, 0.5, 1, 2.5, 9} { // the second flush takes 0.5 and 1, the third 2.5
		c.after(at, func() { d.flush(func() { ends = append(ends, c.now) }) })
	}
	c.run(100)
	want := []float64{2, 4, 4, 6, 11}
	for i, w := range want {
		if ends[i] != w {
			t.Fatalf("flushes end at %v, want %v", ends, want)
		}
	}
	if d.busy != 8 {
		t.Errorf("busy for %v s, want 8", d.busy)
	}
}
