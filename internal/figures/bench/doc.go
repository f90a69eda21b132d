// Package bench is the measuring half of the figures: it sends one kind of
// call, an echo of 64 bytes, through whatever joins a client to a server, and
// reports how long that took and what it cost. It knows nothing of what it
// measures, and imports the standard library only.
//
//	internal/figures ──orders──► runner process ──calls──► server process
//	      ▲                        (one Peer)               (echo and stat)
//	      └─────── reports ────────────┘
//
// Every candidate (a floor, ours, a rival) gets a runner process and a server
// process of its own, so that none is measured in a heap which another one has
// filled. The runners of one round live at the same time and work in turns of
// a few hundred calls, so that a machine that becomes slower becomes slower for
// all of them. [Serve] is the runner's end of the orders, [Runner] the other.
package bench
