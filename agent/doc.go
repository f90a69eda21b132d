// Package agent contains the loop of an agent as a pure core. It determines which model call comes next, which tool
// calls result from it, what was decided about them, and when the run is over. It has no clock, does no I/O and
// starts nothing. An engine applies the events of the journal to the core and executes its commands.
//
// One turn has these events:
//
//	model "1"            the model's answer, with its tool calls
//	proposed "1.0"       one for each call
//	decided "1.0"        allow, ask or deny, by the policy
//	decision "1.0"       if the policy asked: a person's decision (a signal)
//	started "1.0"        an attempt begins
//	result | unknown     how it ended; input_required may come before it
//
// The id of a step is "turn" for a model call and "turn.index" for a tool call. The provider's ids are not used,
// because they can be empty or repeat. Before the model is asked again, every call of a turn has exactly one result,
// whatever happened to it, so that every provider accepts the history.
//
// Package host makes a [State] from a [Spec] and the messages of the run's ancestors; surfaces read the same events
// with package view.
package agent
