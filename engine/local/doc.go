// Package local is the engine of one machine: it drives runs in this process,
// keeps their journals in a store file that other processes may have open, too,
// and needs nothing else.
//
//	Start ─► claim ─► lease ─► load ─► driver: plan ─► flush ─► Do ─┐
//	Signal ─► inbox ───────────────────► take ▲                     │
//	Events ◄─ hub (this process) or store     └──── apply ◄─────────┘
//
// Each run that is worked on has one driver, a goroutine that owns the core and
// the end of the journal. It asks the core what is next, decides in place what
// can be decided in place, stores what happened together with what is about to
// start in one write, and only then starts it. So a turn with one tool call
// costs two commits: the answer, the call, the verdict and the start of the call;
// and the call's result with the start of the next model call.
//
// A run that only waits is put down: its row says what it waits for, its lease is
// free, nothing of it is in memory. The same happens when a process dies, except
// that the row still says working. Whoever takes the lease next folds the journal
// and finds the steps that were in flight.
package local
