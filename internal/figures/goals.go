package main

import (
	"fmt"
	"slices"
	"strings"
)

// goal is the limit of one figure.
type goal struct {
	id    string
	op    string // "<=" or ">="
	bound float64
}

// goals contains the limits that the project sets for its figures, including goals that later issues added.
// docs/figures.md shows them.
var goals = []goal{
	{"CHAT.p50", "<=", 1.1},
	{"CL.acp", "<=", 1.2},
	{"CL.agui", "<=", 1.1},
	{"CL.responses", "<=", 1.1},
	{"GW.idle", "<=", 64},
	{"GW.list", "<=", 2.0},
	{"HD-SC-002", "<=", 0.01},
	{"LIST.slow", "<=", 0.5},
	{"P1.bytes", "<=", 4000},
	{"P1.p50", "<=", 1.15},
	{"P1.rps64", ">=", 0.9},
	{"P10.cache", "<=", 0.05},
	{"P10.call", "<=", 1.05},
	{"P10.decide", "<=", 0.08},
	{"P10.list", "<=", 1.3},
	{"P10.reshape", "<=", 0.08},
	{"P11.cpu", "<=", 60},
	{"P11.step5", ">=", 0.73},
	{"P11.task10", ">=", 0.5},
	{"P12.bin", "<=", 55},
	{"P12.cpu", "<=", 2.8},
	{"P12.mem", "<=", 40},
	{"P13.parse", ">=", 1.2},
	{"P13.websearch", ">=", 0.8},
	{"P2.2025", "<=", 1.2},
	{"P2.2025.rps64", ">=", 0.8},
	{"P2.2026", "<=", 1.2},
	{"P2.2026.rps64", ">=", 0.8},
	{"P3.big", "<=", 1.2},
	{"P3.cpu", "<=", 1.1},
	{"P3.durable", "<=", 1.5},
	{"P3.p50", "<=", 1.0},
	{"P3.rps64", ">=", 0.9},
	{"P4", "<=", 2.0},
	{"P5.growth", "<=", 1.2},
	{"P5.journal", "<=", 1.5},
	{"P5.memory", "<=", 100},
	{"P6.cpu", "<=", 0.5},
	{"P6.p50", "<=", 1.02},
	{"P7.resume", "<=", 0.6},
	{"P7.steps", ">=", 0.7},
	{"P8.runs", "<=", 8},
	{"P8.server", "<=", 32},
	{"P8.unused", "<=", 0},
	{"P9.cached", "<=", 6},
	{"P9.cold", "<=", 1.0},
	{"PG.follow", "<=", 100},
	{"PG.steps", ">=", 0.7},
	{"PG.takeover", "<=", 2},
	{"PG.turn", "<=", 1.5},
	{"PR.calls", "<=", 1.3},
	{"PR.parse", "<=", 1},
	{"PR.replay", "<=", 50},
	{"PR.tokens100", "<=", 0.05},
	{"PR.tokens30", "<=", 0.2},
	{"REL.build", "<=", 90},
	{"SB.call", "<=", 1.05},
	{"SB.proxy", "<=", 1.5},
	{"SB.start", "<=", 8},
	{"SSE.followers", "<=", 128},
	{"T1", "<=", 2.0},
	{"T3", "<=", 2.6},
	{"T4", "<=", 0.5},
	{"TEMPORAL.events", "<=", 60},
	{"TEMPORAL.history", "<=", 200},
	{"TG-7", "<=", 2.0},
	{"TUI.cpu", "<=", 0.1},
	{"TUI.key", "<=", 16},
	{"TUI.start", "<=", 60},
	{"WB.bundle", "<=", 350},
	{"WB.chat", "<=", 100},
	{"WB.run", "<=", 100},
	{"WB.tools", "<=", 100},
	{"WF.calls", "<=", 1.4},
}

// rows contains the limits set by rows of the acceptance table and by issues, in addition to the goals.
var rows = []goal{
	{"PRUNE", "<=", 20},
	{"STATS", "<=", 0.5},
	{"STATS.first", "<=", 3},
	{"STATS.search", "<=", 0.5},
	{"STATS.search.first", "<=", 3},
	{"STATS.writers", "<=", 0.5},
	{"T2.check", "<=", 1.2},
	{"T2.concat", "<=", 1.2},
	{"WF.steps", "<=", 1.1},
	{"WB.cpu.chat", "<=", 100},
	{"WB.cpu.run", "<=", 100},
	{"WB.cpu.tools", "<=", 100},
	{"WB.paint", "<=", 0.35},
	{"WB.tasks.clicks", "<=", 0.95},
	{"WB.tasks.seconds", "<=", 0.95},
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

// String formats the limit, such as "<= 2.0".
func (g goal) String() string {
	n := number(g.bound)
	if !strings.Contains(n, ".") && g.bound < 10 && g.bound > 0 {
		n += ".0"
	}
	return fmt.Sprintf("%s %s", g.op, n)
}

// holds reports whether a value is within the limit.
func (g goal) holds(v float64) bool {
	if g.op == ">=" {
		return v >= g.bound
	}
	return v <= g.bound
}
