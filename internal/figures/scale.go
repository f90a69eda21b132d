package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"

	"github.com/tenonhq/tenon/internal/capacity"
)

// The fleet that is simulated for SCALE.fleet.…, beside what is measured.
const (
	fleetReplicas     = 100
	fleetReplicaCores = 2
	fleetServerCores  = 16
	fleetWorking      = 10_000 // runs in all replicas
	fleetWaiting      = 1_000_000
	fleetThink        = 5.0  // seconds that models and tools take for a step
	fleetLease        = 10.0 // seconds

	simulated = 20.0 // seconds
)

// measureScale measures one, two and four replicas on this machine, predicts the last two from the first, and simulates
// a fleet that no machine at hand can hold. Each round is a run of store/postgres.TestScale.
func measureScale(s *session) error {
	test := []string{"go", "test", "-count=1", "-timeout=10m", "-run", "^TestScale$", "./store/postgres"}
	all, err := databaseRounds(s, "postgres.sh", test, "TENON_SCALE=on", "TENON_POSTGRES_FSYNC=on")
	if err != nil {
		return err
	}
	for _, n := range []int{1, 2, 4} {
		at := fmt.Sprintf("%dx%d.", n, scaleRuns)
		of := fmt.Sprintf("%s with %d runs each on one PostgreSQL and one machine", replicas(n), scaleRuns)
		id := fmt.Sprint("SCALE.", n)
		s.add(id, of+": durable steps", "1/s", all[at+"steps"])
		s.add(id+".replica", of+": CPU of the replicas per step", "µs", scaled(all[at+"replica"], 1e6))
		s.add(id+".server", of+": CPU of PostgreSQL per step", "µs", scaled(all[at+"server"], 1e6))
		s.add(id+".batch", of+": steps per transaction", "", all[at+"batch"])
	}
	var errs []float64
	predicted := map[int][]float64{}
	for round := range all["1x1.steps"] {
		values := map[string]float64{}
		for id, v := range all {
			values[id] = v[round]
		}
		worst, demands := 0.0, demandsOf(values)
		for _, n := range []int{2, 4} {
			got := capacity.Simulate(capacity.Fleet{Replicas: n, ServerCores: cores(), Working: scaleRuns},
				demands, simulated/4, 1)
			predicted[n] = append(predicted[n], got.Steps)
			worst = max(worst, math.Abs(got.Steps/values[fmt.Sprintf("%dx%d.steps", n, scaleRuns)]-1))
		}
		errs = append(errs, worst)
	}
	for _, n := range []int{2, 4} {
		s.add(fmt.Sprintf("SCALE.%d.predicted", n), replicas(n)+": durable steps by the simulation, which knows only "+
			"one replica", "1/s", predicted[n])
	}
	s.add("SCALE.error", "simulation of two and of four replicas against the measured steps: the larger difference",
		"ratio", errs)
	medians := map[string]float64{}
	for id, v := range all {
		medians[id] = median(v)
	}
	s.addFleet(medians)
	return nil
}

// scaleRuns is the number of runs of a replica in TestScale.
const scaleRuns = 64

func replicas(n int) string {
	if n == 1 {
		return "one replica"
	}
	return fmt.Sprint(n, " replicas")
}

func scaled(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * by
	}
	return out
}

// demandsOf computes the demands of the parts of the work from the measured values of one replica. The CPU time per
// step is a part for the step and a part for its transaction, which the steps of a transaction share.
func demandsOf(v map[string]float64) capacity.Demands {
	var d capacity.Demands
	d.ReplicaStep, d.ReplicaBatch = split(v, "replica")
	d.ServerStep, d.ServerBatch = split(v, "server")
	d.Listener, d.Heard = max(v["listener.server"], 0), max(v["listener.replica"], 0)
	d.ServerBatch = max(d.ServerBatch-d.Listener, 0)
	d.Flush = cmp.Or(v["1x1.flush"], v[fmt.Sprintf("1x%d.flush", scaleRuns)])
	d.Delay = max(1/v["1x1.steps"]-v["1x1.replica"]-v["1x1.server"]-d.Flush, 0)
	// The rest of the time of a busy replica is in proportion to the steps: goroutines and processes that wait for a
	// core.
	one := capacity.Fleet{Replicas: 1, ServerCores: cores(), Working: scaleRuns}
	if got := capacity.Simulate(one, d, simulated/4, 1).Steps; got > 0 {
		d.DelayStep = max(1/v[fmt.Sprintf("1x%d.steps", scaleRuns)]-1/got, 0)
	}
	return d
}

// split fits step + batch / (steps per transaction) to the measured CPU time per step, by least squares. Neither part
// is negative.
func split(v map[string]float64, what string) (step, batch float64) {
	var n, sx, sy, sxx, sxy float64
	for _, runs := range []int{1, 16, scaleRuns} {
		at := fmt.Sprintf("1x%d.", runs)
		x, y := 1/v[at+"batch"], v[at+what]
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	batch = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	step = (sy - batch*sx) / n
	switch {
	case batch < 0:
		return sy / n, 0
	case step < 0:
		return 0, sxy / sxx
	}
	return step, batch
}

// fleetOf returns the fleet with its duties; see host/supervise.go, store/postgres/lease.go and watch.go, and
// engine/local/engine.go for the intervals.
func fleetOf(v map[string]float64) capacity.Fleet {
	f := capacity.Fleet{Replicas: fleetReplicas, ReplicaCores: fleetReplicaCores, ServerCores: fleetServerCores,
		Working: fleetWorking / fleetReplicas, Think: fleetThink}
	// All replicas together search as often as four. A search for expired waits uses an index, so that its cost is
	// one for all runs that wait; TestScale has 20,000 of them.
	const searches = fleetReplicas / 4
	for _, d := range []struct {
		id, name string
		every    float64
		rows     float64
	}{
		{"beat", "heartbeats", fleetLease / 3, 1},
		{"look", "searches for runs of dead replicas", 0.5 * searches, fleetWorking},
		{"expired", "searches for waits that have expired", max(5, 0.5*searches), 1},
		{"poll", "polls for changes", 1, fleetWorking},
		{"inbox", "reads of the inbox", 0.05, 1},
	} {
		f.Duties = append(f.Duties, capacity.Duty{Name: d.name, Every: d.every,
			Server: max(v[d.id+".server"], 0) * d.rows, Replica: max(v[d.id+".replica"], 0) * d.rows})
	}
	return f
}

// addFleet simulates the fleet and adds what it uses. The models answer in fleetThink seconds first, and then at once,
// so that something must saturate.
func (s *session) addFleet(v map[string]float64) {
	fleet := fmt.Sprintf("simulated fleet: %d replicas, PostgreSQL with %d such cores, %d runs at work, %d that wait, "+
		"%g s for a step: ", fleetReplicas, fleetServerCores, fleetWorking, fleetWaiting, fleetThink)
	f, d := fleetOf(v), demandsOf(v)
	r := capacity.Simulate(f, d, simulated, 1)
	one := func(id, name, unit string, value float64) { s.add("SCALE.fleet."+id, name, unit, []float64{value}) }
	one("steps", fleet+"steps", "1/s", r.Steps)
	one("latency", fleet+"until a step is stored", "ms", r.Latency*1e3)
	one("server", fleet+"CPU of PostgreSQL in use", "%", r.Server*100)
	one("replica", fleet+"CPU of a replica with two cores in use", "%", r.Replica*100)
	one("log", fleet+"time of the log's disk in flushes, which commits share", "%", r.Log*100)
	one("writer", fleet+"time of a replica's connection that appends in use", "%", r.Writer*100)
	for i, cause := range slices.Sorted(maps.Keys(r.Cores)) {
		one(fmt.Sprint("cores", i+1), fleet+"PostgreSQL's cores in use for "+cause, "", r.Cores[cause])
	}
	f.Think = 0
	most := capacity.Simulate(f, d, simulated/4, 1)
	first, used := most.Limit()
	one("most", fmt.Sprintf("the same fleet with models that answer at once: steps, limited by %s (%.0f %% in use)",
		first, used*100), "1/s", most.Steps)
}

// cores is the number of cores of this machine.
func cores() float64 { return float64(runtime.NumCPU()) }
