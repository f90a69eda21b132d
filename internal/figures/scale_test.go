package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/tenonhq/tenon/internal/capacity"
)

// TestScaleDemands computes demands from values that have them exactly, and from values that are not possible.
func TestScaleDemands(t *testing.T) {
	values := map[string]float64{"listener.server": 1e-5, "1x1.steps": 100, "1x1.flush": 2e-3,
		fmt.Sprintf("1x%d.steps", scaleRuns): 1e9}
	for runs, batch := range map[int]float64{1: 1, 16: 12, scaleRuns: 50} {
		at := fmt.Sprintf("1x%d.", runs)
		values[at+"batch"] = batch
		values[at+"replica"] = 50e-6 + 300e-6/batch
		values[at+"server"] = 80e-6 + 900e-6/batch
	}
	d := demandsOf(values)
	for what, c := range map[string][2]float64{
		"replica, step": {d.ReplicaStep, 50e-6}, "replica, transaction": {d.ReplicaBatch, 300e-6},
		"server, step": {d.ServerStep, 80e-6}, "server, transaction": {d.ServerBatch, 890e-6},
		"flush": {d.Flush, 2e-3}, "delay": {d.Delay, 10e-3 - 350e-6 - 980e-6 - 2e-3},
		"delay of a step": {d.DelayStep, 0},
	} {
		if math.Abs(c[0]-c[1]) > 1e-9 {
			t.Errorf("%s: %g, want %g", what, c[0], c[1])
		}
	}
	values[fmt.Sprintf("1x%d.steps", scaleRuns)] = 500
	slow := demandsOf(values)
	got := capacity.Simulate(capacity.Fleet{Replicas: 1, ServerCores: cores(), Working: scaleRuns}, slow, 5, 1)
	if math.Abs(got.Steps-500) > 10 {
		t.Errorf("the measured replica makes %.0f steps a second in the simulation, and 500 in truth", got.Steps)
	}
	values["1x1.server"] = 1e-6 // a step in a large transaction cannot cost more than one alone
	if d := demandsOf(values); d.ServerBatch < 0 || d.ServerStep <= 0 {
		t.Errorf("a negative demand: %+v", d)
	}
}

// TestScaleFile predicts from the values of a round of TestScale, if a file has them.
func TestScaleFile(t *testing.T) {
	file := os.Getenv("TENON_SCALE_VALUES")
	if file == "" {
		t.Skip("TENON_SCALE_VALUES names no file with the values of store/postgres.TestScale")
	}
	b, err := os.ReadFile(file)
	var v map[string]float64
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", demandsOf(v))
	d := demandsOf(v)
	for _, n := range []int{1, 2, 4} {
		r := capacity.Simulate(capacity.Fleet{Replicas: n, ServerCores: cores(), Working: scaleRuns}, d, 5, 1)
		t.Logf("%d: %.0f steps/s, measured %.0f: %+v", n, r.Steps, v[fmt.Sprintf("%dx%d.steps", n, scaleRuns)], r)
	}
	f := fleetOf(v)
	r := capacity.Simulate(f, demandsOf(v), 10, 1)
	t.Logf("fleet: %+v", r)
	f.Think = 0
	r = capacity.Simulate(f, demandsOf(v), 3, 1)
	t.Logf("fleet whose models answer at once: %+v", r)
}
