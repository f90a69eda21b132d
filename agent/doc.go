// Package agent is the loop of an agent as a pure core: which model call comes
// next, which tool calls it led to, what was decided about them, when the run
// is over. It has no clock, does no I/O and starts nothing; an engine feeds it
// the events of the journal and has its commands carried out.
//
// One turn, and the events of it:
//
//	model "1"            the model's answer, with its tool calls
//	proposed "1.0"       one for each call
//	decided "1.0"        allow, ask or deny, by the policy
//	decision "1.0"       where it asked: what a person said (a signal)
//	started "1.0"        an attempt begins
//	result | unknown     how it ended; input_required in between, if need be
//
// A step's id is "turn" for a model call and "turn.index" for a tool call,
// never the provider's id, which can be empty or repeat. Every call of a turn
// has exactly one result before the model is asked again, whatever happened to
// it, so that the history is always one that a provider takes.
//
// The way in is from package host, which makes a [State] from a [Spec] and the
// messages of the run's ancestors; surfaces read the same events with [Fold]
// and [Calls].
package agent
