package capacity

import (
	"cmp"
	"math"
	"math/rand/v2"
)

// Demands are the costs of the work, in seconds.
type Demands struct {
	// ReplicaStep and ServerStep are the CPU time of a step in its replica and in PostgreSQL.
	ReplicaStep, ServerStep float64
	// ReplicaBatch and ServerBatch are the CPU time of a transaction, whatever it contains.
	ReplicaBatch, ServerBatch float64
	// Flush is the time of a flush of the log.
	Flush float64
	// Delay is the time that a transaction takes beside CPU time and flush: network, schedulers. DelayStep is what
	// each of its steps adds.
	Delay, DelayStep float64
	// Listener and Heard are the CPU time of PostgreSQL and of a listening replica for a notification of this replica.
	// Each transaction of a replica is followed by a notification, at most one per NotifyEvery.
	Listener, Heard, NotifyEvery float64
}

// Duty is work of a replica at regular intervals.
type Duty struct {
	Name            string
	Every           float64 // seconds between the starts; a duty that lasts longer begins again at its end
	Server, Replica float64 // CPU time of one time, in seconds
}

// Fleet is a number of replicas on one PostgreSQL.
type Fleet struct {
	Replicas     int
	ReplicaCores float64 // of the machine of each replica; 0 means that all are on the machine of PostgreSQL
	ServerCores  float64 // of the machine of PostgreSQL
	Conns        int     // connections of a replica; 0 means 8
	Working      int     // runs at work in each replica
	Think        float64 // mean time in seconds that models and tools take for a step
	Duties       []Duty  // of each replica
}

// Result is what a fleet did.
type Result struct {
	Steps   float64 // steps a second
	Batch   float64 // steps in a transaction
	Latency float64 // mean time in seconds from the result of a step until it is stored and the next one begins
	// Server, Replica, Log and Writer are the utilisations of PostgreSQL's cores, a replica's cores, the log's disk,
	// and the connection of a replica that appends: 1 is all of it.
	Server, Replica, Log, Writer float64
	Cores                        map[string]float64 // PostgreSQL's cores in use, by cause
}

// Limit returns the name of the resource with the highest utilisation, and the utilisation. A connection is busy
// while its transaction waits for other resources, and commits share the flushes of a busy log. So these two are the
// limit only if no CPU is used up.
func (r Result) Limit() (name string, used float64) {
	const full = 0.9
	name, used = "CPU of PostgreSQL", r.Server
	if r.Replica > used {
		name, used = "CPU of the replicas", r.Replica
	}
	if used < full && r.Writer > used {
		name, used = "the connection of a replica that appends", r.Writer
	}
	if used < full && r.Log > used {
		name, used = "flushes of the log", r.Log
	}
	return name, used
}

// maxBatch is the maximum number of steps in a transaction, as in store/postgres.
const maxBatch = 256

// The causes in [Result.Cores] beside the names of duties.
const (
	CauseSteps         = "steps"
	CauseNotifications = "notifications"
)

// Simulate lets a fleet work for some seconds, after a start of as many that is not counted.
func Simulate(f Fleet, d Demands, seconds float64, seed uint64) Result {
	s := &simulation{fleet: f, demands: d, random: rand.New(rand.NewPCG(seed, 19))}
	s.server = newProcessor(&s.clock, f.ServerCores)
	s.log = &disk{clock: &s.clock, seconds: d.Flush}
	for range f.Replicas {
		s.add()
	}
	s.clock.run(seconds)
	before := s.counts()
	s.clock.run(2 * seconds)
	return s.result(before, seconds)
}

// simulation is one call of [Simulate].
type simulation struct {
	fleet    Fleet
	demands  Demands
	random   *rand.Rand
	clock    clock
	server   *processor
	log      *disk
	replicas []*replica

	steps, batches int
	stored         float64 // sum of the latencies
	writing        float64 // sum of the times of transactions
}

// replica is a process with its runs.
type replica struct {
	s         *simulation
	cpu       *processor
	conns     pool
	computing int   // runs that compute
	waiting   []run // runs whose step waits for the writer
	writing   bool
	notified  float64 // time of the last notification
	notifying bool
	heard     float64 // CPU time of notifications that the replica has received and not yet paid for
}

// run is a run with a step to store.
type run struct{ began float64 }

func (s *simulation) add() {
	r := &replica{s: s, cpu: s.server, conns: pool{free: s.fleet.Conns}, notified: math.Inf(-1)}
	r.conns.free = cmp.Or(r.conns.free, 8)
	if s.fleet.ReplicaCores > 0 {
		r.cpu = newProcessor(&s.clock, s.fleet.ReplicaCores)
	}
	s.replicas = append(s.replicas, r)
	for range s.fleet.Working {
		r.think()
	}
	for _, d := range s.fleet.Duties {
		s.clock.after(s.random.Float64()*d.Every, func() { r.duty(d) })
	}
}

// think lets models and tools work on the next step of a run.
func (r *replica) think() {
	if r.s.fleet.Think <= 0 {
		r.compute()
		return
	}
	r.s.clock.after(r.s.random.ExpFloat64()*r.s.fleet.Think, r.compute)
}

// compute does what the replica does for a step, and hands it to the writer.
func (r *replica) compute() {
	r.computing++
	began, heard := r.s.clock.now, r.heard
	r.heard = 0
	r.cpu.work(CauseReplicas, r.s.demands.ReplicaStep+heard, func() {
		r.computing--
		r.waiting = append(r.waiting, run{began})
		r.write()
	})
}

// CauseReplicas is the cause of CPU time of replicas that share the machine of PostgreSQL.
const CauseReplicas = "replicas"

// write stores the waiting steps in one transaction. The writer yields to runs that compute: Go's scheduler puts a
// goroutine that yields behind all that can run.
func (r *replica) write() {
	if r.writing || len(r.waiting) == 0 || r.computing > 0 && len(r.waiting) < maxBatch {
		return
	}
	r.writing = true
	n := min(len(r.waiting), maxBatch)
	batch := append([]run(nil), r.waiting[:n]...)
	r.waiting = append(r.waiting[:0], r.waiting[n:]...)
	s, d, began := r.s, &r.s.demands, r.s.clock.now
	r.conns.take(func() {
		r.cpu.work(CauseReplicas, d.ReplicaBatch, func() {
			s.clock.after(d.Delay+float64(n)*d.DelayStep, func() {
				s.server.work(CauseSteps, d.ServerBatch+float64(n)*d.ServerStep, func() {
					s.log.flush(func() {
						r.conns.give()
						s.writing += s.clock.now - began
						r.stored(batch)
					})
				})
			})
		})
	})
}

// stored continues the runs of a transaction.
func (r *replica) stored(batch []run) {
	r.writing = false
	r.s.batches++
	r.s.steps += len(batch)
	for _, b := range batch {
		r.s.stored += r.s.clock.now - b.began
		r.think()
	}
	r.notify()
	r.write()
}

// notify wakes the connections of all replicas that listen. A notification that waits covers later writes.
func (r *replica) notify() {
	s, d := r.s, &r.s.demands
	if r.notifying || d.Listener <= 0 {
		return
	}
	r.notifying = true
	s.clock.after(r.notified+d.NotifyEvery-s.clock.now, func() {
		r.notified = s.clock.now
		s.server.work(CauseNotifications, d.Listener*float64(len(s.replicas)), func() { r.notifying = false })
		for _, o := range s.replicas {
			o.heard += d.Heard
		}
	})
}

// duty does a duty, and plans it again.
func (r *replica) duty(d Duty) {
	began := r.s.clock.now
	r.conns.take(func() {
		r.s.server.work(d.Name, d.Server, func() {
			r.conns.give()
			r.cpu.work(CauseReplicas, d.Replica, func() {
				r.s.clock.after(began+d.Every-r.s.clock.now, func() { r.duty(d) })
			})
		})
	})
}

// counts are the sums at a moment.
type counts struct {
	steps, batches                       int
	stored, writing, log, replica, total float64
	server                               map[string]float64
}

func (s *simulation) counts() counts {
	c := counts{steps: s.steps, batches: s.batches, stored: s.stored, writing: s.writing, log: s.log.busy}
	c.server, c.total = s.server.spent()
	if s.fleet.ReplicaCores > 0 {
		for _, r := range s.replicas {
			_, sum := r.cpu.spent()
			c.replica += sum
		}
	}
	return c
}

// result compares the sums with those at the start.
func (s *simulation) result(before counts, seconds float64) Result {
	now := s.counts()
	steps, batches := float64(now.steps-before.steps), float64(now.batches-before.batches)
	r := Result{Steps: steps / seconds, Server: (now.total - before.total) / seconds / s.fleet.ServerCores,
		Log:    (now.log - before.log) / seconds,
		Writer: (now.writing - before.writing) / seconds / float64(len(s.replicas)), Cores: map[string]float64{}}
	if steps > 0 {
		r.Batch, r.Latency = steps/batches, (now.stored-before.stored)/steps
	}
	if s.fleet.ReplicaCores > 0 {
		r.Replica = (now.replica - before.replica) / seconds / s.fleet.ReplicaCores / float64(len(s.replicas))
	}
	for cause, spent := range now.server {
		r.Cores[cause] = (spent - before.server[cause]) / seconds
	}
	return r
}
