// Package capacity predicts how many steps a second a fleet of replicas makes on one PostgreSQL, and what limits it. It
// simulates discrete events. The demands of each part of the work are measured (store/postgres.TestScale), and the
// fleet may be larger than any machine at hand:
//
//	run ─► model and tools ─► CPU of its replica ─► writer ─► CPU of PostgreSQL ─► flush of the log ─┐
//	 ▲                                                one transaction for all that wait             │
//	 └──────────────────────────────────────────────────────────────────────────────────────────────┘
//
// Beside the steps, each replica has duties at regular intervals: heartbeats, searches, polls. Each transaction also
// wakes the connections of all replicas that listen.
//
// The package is pure: no clock, no I/O, and the same seed gives the same result. Its stations are tested against the
// closed forms of queueing theory (M/M/1, M/M/c, M/D/1, M/D/c, the machine repairman). internal/figures writes the
// results as the figures SCALE.….
package capacity
