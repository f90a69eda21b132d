// Package temporal lets the user's own Temporal cluster choose which process works on a run. It is a driver for
// [local.Engine]: the engine stores runs and signals as usual, and asks this package to dispatch them.
//
//	Start ─► first event in PostgreSQL ─► Dispatch: SignalWithStart ─► workflow (one for each run, with its id)
//	                                                                    │ activity Drive
//	                                      worker: Engine.Drive ◄────────┘ until the run is at rest or has ended
//
// The workflow has no state of an agent. Its input and its signals are the run's id, the number of an event and a
// label; the result of an activity is a state, a number and a time to wake. The journal stays in PostgreSQL, so the
// history of a workflow has some events for each rest of a run, however long the conversation is. Temporal decides
// which process tries; the lease in PostgreSQL decides which process may write.
//
// A worker that dies stops its heartbeats, and Temporal starts the activity at another worker, which waits for the
// lease. An error that stops a run leaves the run as it is; the workflow tries again after a growing pause. When a
// history becomes long, the workflow continues as new. Search attributes (TenonAgent, TenonSession, TenonPrincipal,
// TenonState) let Temporal's own pages find runs. A codec encrypts payloads, although they contain only ids.
package temporal
