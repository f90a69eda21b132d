// Package local is the engine of one machine. It drives runs in this process and keeps their journals in a
// store file that other processes may open, too. It depends on nothing but the store.
//
//	Start ─► claim ─► lease ─► load ─► driver: plan ─► flush ─► Do ─┐
//	Signal ─► inbox ───────────────────► take ▲                     │
//	Events ◄─ hub (this process) or store     └──── apply ◄─────────┘
//
// Each active run has one driver: a goroutine that owns the core and the end of the journal. It asks the core
// for the next commands and decides in place what can be decided in place. It stores these events together
// with the starts of the next attempts in one write, and only then starts them. A turn with one tool call
// therefore costs two commits: the model's response, the call, the verdict and the start of the call; and the
// call's result with the start of the next model call.
//
// A run that only waits for decisions is removed from memory: its row lists what it waits for, and its lease is
// free. When a process dies, the lease becomes free, too, but the row still says working. The next owner of the
// lease folds the journal and finds the interrupted attempts: a started event without a result. For each it stores an
// event. If a repeat is safe, as for a model call or an idempotent tool call, the event is interrupted and
// the core repeats the step. Otherwise the event is unknown: the call may have had its effect, so it is not repeated,
// and its result says that the outcome is unknown.
package local
