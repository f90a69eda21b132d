package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSimulateAlone: a run that is alone waits for nothing, so the time of a step is the sum of its parts.
func TestSimulateAlone(t *testing.T) {
	d := Demands{ReplicaStep: 1e-3, ServerStep: 2e-3, ReplicaBatch: 0.5e-3, ServerBatch: 1e-3, Flush: 3e-3,
		Delay: 0.5e-3}
	r := Simulate(Fleet{Replicas: 1, ReplicaCores: 1, ServerCores: 1, Working: 1}, d, 80, 1)
	near(t, "steps a second", r.Steps, 1/8e-3, 0.001)
	near(t, "latency", r.Latency, 8e-3, 0.001)
	near(t, "steps in a transaction", r.Batch, 1, 0)
	near(t, "PostgreSQL", r.Server, 3.0/8, 0.001)
	near(t, "replica", r.Replica, 1.5/8, 0.001)
	near(t, "log", r.Log, 3.0/8, 0.001)
}

// TestSimulateLimits has one resource that is used up in each case. Throughput follows from its demand only.
func TestSimulateLimits(t *testing.T) {
	few := Demands{ReplicaStep: 1e-6, ServerStep: 1e-6, ServerBatch: 1e-6, Flush: 1e-6}
	for name, c := range map[string]struct {
		change func(*Demands)
		limit  string
		steps  float64 // a second
	}{
		"replica": {func(d *Demands) { d.ReplicaStep = 1e-3 }, "CPU of the replicas", 4 * 1 / 1e-3},
		"server":  {func(d *Demands) { d.ServerStep = 1e-3 }, "CPU of PostgreSQL", 2 / 1e-3},
	} {
		t.Run(name, func(t *testing.T) {
			d := few
			c.change(&d)
			r := Simulate(Fleet{Replicas: 4, ReplicaCores: 1, ServerCores: 2, Working: 50, Think: 1e-4}, d, 3, 1)
			near(t, "steps a second", r.Steps, c.steps, 0.03)
			if limit, used := r.Limit(); limit != c.limit || used < 0.97 {
				t.Errorf("the limit is %q at %.2f, want %q", limit, used, c.limit)
			}
		})
	}
}

// TestSimulateDuties: with long pauses, steps a second are runs divided by the pause, and duties take their part of
// CPU.
func TestSimulateDuties(t *testing.T) {
	d := Demands{ReplicaStep: 1e-5, ServerStep: 1e-5, ServerBatch: 1e-5, Flush: 1e-5, Listener: 1e-6}
	f := Fleet{Replicas: 10, ReplicaCores: 1, ServerCores: 4, Working: 100, Think: 2,
		Duties: []Duty{{Name: "search", Every: 0.5, Server: 2e-3, Replica: 1e-3},
			{Name: "beat", Every: 5, Server: 1e-3}}}
	r := Simulate(f, d, 40, 1)
	near(t, "steps a second", r.Steps, 1000/2.0, 0.03)
	near(t, "cores of searches", r.Cores["search"], 10*2e-3/0.5, 0.03)
	near(t, "cores of heartbeats", r.Cores["beat"], 10*1e-3/5, 0.03)
	near(t, "cores of notifications", r.Cores[CauseNotifications], r.Steps*10*1e-6, 0.03)
	f.Duties[0].Server = 10 // more than there is time for
	r = Simulate(f, d, 100, 1)
	near(t, "PostgreSQL", r.Server, 1, 0.01)
	if r.Cores["search"] < 3.5 {
		t.Errorf("searches have %.1f of 4 cores", r.Cores["search"])
	}
	// A notification that covers the writes of a longer time costs less.
	f.Duties, d.NotifyEvery = nil, 0.1
	r = Simulate(f, d, 40, 1)
	if most := 10 / 0.1 * 10 * 1e-6; r.Cores[CauseNotifications] > most*1.001 {
		t.Errorf("notifications use %v cores, and at most %v", r.Cores[CauseNotifications], most)
	}
}

func TestSimulateSame(t *testing.T) {
	f := Fleet{Replicas: 3, ServerCores: 2, Working: 20, Think: 0.01, Duties: []Duty{{"look", 0.1, 1e-3, 1e-3}}}
	d := Demands{ReplicaStep: 1e-4, ServerStep: 1e-4, ReplicaBatch: 1e-4, ServerBatch: 1e-3, Flush: 2e-3,
		Listener: 1e-5}
	if diff := cmp.Diff(Simulate(f, d, 3, 5), Simulate(f, d, 3, 5)); diff != "" {
		t.Errorf("the same seed gives another result: %s", diff)
	}
	if cmp.Diff(Simulate(f, d, 3, 5), Simulate(f, d, 3, 6)) == "" {
		t.Error("another seed gives the same result")
	}
}
