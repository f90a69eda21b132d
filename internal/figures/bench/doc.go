// Package bench is the measuring half of the figures. It sends one kind of call, an echo of 64 bytes, through
// any connection of a client and a server, and reports its duration and cost. It does not depend on the
// measured code, and imports only the standard library.
//
//	internal/figures ──orders──► runner process ──calls──► server process
//	      ▲                        (one Peer)               (echo and stat)
//	      └─────── reports ────────────┘
//
// Every candidate (a floor, ours, a rival) gets its own runner process and server process, so that no
// candidate uses a heap filled by another. The runners of one round run at the same time and take turns of a
// few hundred calls. If the machine becomes slower, it becomes slower for all of them. [Serve] is the
// runner's side of the orders, [Runner] the other side.
package bench
