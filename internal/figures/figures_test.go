package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGoals checks that the limits of figures equal the project's goals, if the file with the goals is available.
func TestGoals(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "goals.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs ../shared/goals.json")
	} else if err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID    string  `json:"id"`
		Bound float64 `json:"bound"`
		Op    string  `json:"op"`
	}
	var want, got []row
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	for _, g := range goals {
		got = append(got, row{g.id, g.bound, g.op})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("goals differ from shared/goals.json (-there +here):\n%s", diff)
	}
}

func TestGoalHolds(t *testing.T) {
	for _, c := range []struct {
		id    string
		value float64
		want  bool
		text  string
	}{
		{"P1.p50", 1.15, true, "<= 1.15"},
		{"P1.p50", 1.151, false, "<= 1.15"},
		{"P1.rps64", 0.9, true, ">= 0.9"},
		{"P1.rps64", 0.89, false, ">= 0.9"},
		{"P1.bytes", 4000, true, "<= 4000"},
		{"P8.unused", 0, true, "<= 0"},
	} {
		g, ok := goalOf(c.id)
		if !ok || g.holds(c.value) != c.want || g.String() != c.text {
			t.Errorf("%s: %q holds for %v = %v, want %q, %v", c.id, g, c.value, g.holds(c.value), c.text, c.want)
		}
	}
}

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"median odd", median([]float64{3, 1, 2}), 2},
		{"median even", median([]float64{4, 1, 2, 3}), 2.5},
		{"p50", percentile([]int64{5, 1, 4, 2, 3}, 50), 3},
		{"p99", percentile([]int64{5, 1, 4, 2, 3}, 99), 5},
		{"p0", percentile([]int64{5, 1}, 0), 1},
		{"ratio", median(ratios([]float64{2, 6, 3}, []float64{1, 2, 3})), 2},
		{"rounded", rounded(1.23456), 1.235},
		{"rounded big", rounded(12345.6), 12346},
		{"rounded small", rounded(0.0123456), 0.01235},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	if !math.IsNaN(median(nil)) || !math.IsNaN(percentile([]int64{}, 50)) {
		t.Error("the median of no values is a number")
	}
}

// TestSaveDocuments checks that saving a new measurement replaces only the row of its figure.
func TestSaveDocuments(t *testing.T) {
	dir := t.TempDir()
	first := []figure{
		{ID: "P12.bin", Name: "binary", Value: 20, Unit: "MB", Goal: "<= 45", Holds: true, Rounds: 1,
			Command: "make figures ID=P12"},
		{ID: "P1.p50", Name: "old", Value: 3, Unit: "ratio", Goal: "<= 2.0", Rounds: 5, Command: "make figures ID=P1"},
		{ID: "P1.bad", Name: "no number", Value: math.NaN()},
		{ID: "P1.cpu", Name: "told", Value: 1.5, Unit: "ratio", Holds: true, Rounds: 5, Command: "make figures ID=P1"},
	}
	second := []figure{{ID: "P1.p50", Name: "new", Value: 1.5, Unit: "ratio", Goal: "<= 2.0", Holds: true, Rounds: 5,
		Command: "make figures ID=P1"}}
	for _, rows := range [][]figure{first, second, nil} {
		if err := saveDocuments(dir, rows); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "figures.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got []figure
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]figure{second[0], first[3], first[0]}, got); diff != "" {
		t.Errorf("figures.json (-want +got):\n%s", diff)
	}
	md, err := os.ReadFile(filepath.Join(dir, "figures.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| P1.p50 | new | 1.5 × | ≤ 2.0 | yes | `make figures ID=P1` |\n",
		"| P1.cpu | told | 1.5 × |  |  | `make figures ID=P1` |\n",
		"| P12.bin | binary | 20 MB | ≤ 45 | yes | `make figures ID=P12` |\n",
	} {
		if !strings.Contains(string(md), want) {
			t.Errorf("figures.md lacks %q:\n%s", want, md)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"few rounds", "too few", []string{"-rounds", "3"}},
		{"unknown goal", "unknown id", []string{"-id", "P99"}},
	} {
		err := run(t.Context(), c.args)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// TestKeptFigures checks that the promised figures in docs/figures.json were measured by make figures and are within
// their limits.
func TestKeptFigures(t *testing.T) {
	b, err := os.ReadFile("../../docs/figures.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept []struct {
		ID, Goal, Command string
		Value             float64
		Holds             bool
	}
	if err := json.Unmarshal(b, &kept); err != nil {
		t.Fatal(err)
	}
	for id, goal := range map[string]string{"TG-7": "<= 2.0", "HD-SC-002": "<= 0.01"} {
		t.Run(id, func(t *testing.T) {
			for _, k := range kept {
				if k.ID != id {
					continue
				}
				if k.Goal != goal || !k.Holds || k.Value <= 0 || k.Value > 2 || k.Command != "make figures ID="+id {
					t.Errorf("%+v", k)
				}
				return
			}
			t.Error("the figure was never measured")
		})
	}
}
