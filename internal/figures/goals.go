package main

import (
	"fmt"
	"slices"
	"strings"
)

// goal is the bound of one figure.
type goal struct {
	id    string
	op    string // "<=" or ">="
	bound float64
}

// goals is the one place where the bounds stand; docs/figures.md is made from
// it. Those of goals that come with later issues stand here already.
var goals = []goal{
	{"P1.bytes", "<=", 10240},
	{"P1.p50", "<=", 2.0},
	{"P1.rps64", ">=", 0.5},
	{"P2.2025", "<=", 1.5},
	{"P2.2025.rps64", ">=", 0.6},
	{"P2.2026", "<=", 1.5},
	{"P2.2026.rps64", ">=", 0.6},
	{"P3.big", "<=", 1.2},
	{"P3.cpu", "<=", 1.1},
	{"P3.p50", "<=", 1.0},
	{"P4", "<=", 2.0},
	{"P5.growth", "<=", 2.0},
	{"P5.journal", "<=", 1.5},
	{"P5.memory", "<=", 100},
	{"P6.cpu", "<=", 0.5},
	{"P6.p50", "<=", 1.05},
	{"P7.resume", "<=", 2.0},
	{"P7.steps", ">=", 0.7},
	{"P8.runs", "<=", 20},
	{"P8.server", "<=", 32},
	{"P8.unused", "<=", 0},
	{"P9.cached", "<=", 20},
	{"P9.cold", "<=", 1.15},
	{"P10.call", "<=", 1.05},
	{"P10.list", "<=", 2.0},
	{"P11.cpu", "<=", 200},
	{"P11.step5", ">=", 0.8},
	{"P11.task10", ">=", 0.5},
	{"P12.bin", "<=", 45},
	{"P12.cpu", "<=", 2.0},
	{"P12.mem", "<=", 40},
	{"P13.parse", ">=", 0.8},
}

// rows are the bounds that rows of the acceptance table and issues set, beside those
// goals.
var rows = []goal{
	{"P10.cache", "<=", 0.1},
	{"P10.decide", "<=", 0.1},
	{"P10.reshape", "<=", 0.1},
	{"CHAT.p50", "<=", 1.1},
	{"SSE.followers", "<=", 128},
	{"T1", "<=", 2.0},
	{"T2.check", "<=", 1.2},
	{"T2.concat", "<=", 1.2},
	{"T3", "<=", 3.0},
	{"T4", "<=", 2.0},
	{"TG-7", "<=", 2.0},
	{"HD-SC-002", "<=", 10},
	{"WF.steps", "<=", 1.1},
	{"WB.bundle", "<=", 350},
	{"WB.chat", "<=", 100},
	{"WB.cpu.chat", "<=", 100},
	{"WB.cpu.run", "<=", 100},
	{"WB.cpu.tools", "<=", 100},
	{"WB.run", "<=", 100},
	{"WB.tools", "<=", 100},
}

// goalOf returns the goal of a figure, if it has one.
func goalOf(id string) (goal, bool) {
	for _, g := range slices.Concat(goals, rows) {
		if g.id == id {
			return g, true
		}
	}
	return goal{}, false
}

// String returns the bound as it is printed: "<= 2.0".
func (g goal) String() string {
	n := number(g.bound)
	if !strings.Contains(n, ".") && g.bound < 10 && g.bound > 0 {
		n += ".0"
	}
	return fmt.Sprintf("%s %s", g.op, n)
}

// holds reports whether a value is within the bound.
func (g goal) holds(v float64) bool {
	if g.op == ">=" {
		return v >= g.bound
	}
	return v <= g.bound
}
