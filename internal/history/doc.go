// Package history checks the body of a model request against the rules of its
// provider, as far as they concern the conversation: who may speak when, that
// each call has one result and each result its call, that ids match, that
// signatures are where they have to be.
//
// It stands beside the adapters and is used by tests only: those of the adapters
// themselves, and those of whatever may leave a history behind (a run that was
// cancelled, cut off, stopped at a limit, resumed after a crash or moved to
// another model), because a history that a provider refuses cannot be continued.
//
// The rules are those that the providers' references and recorded refusals name,
// written down a second time: nothing here is shared with the adapters, so that a
// mistake of theirs is found.
package history
