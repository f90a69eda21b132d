// Package textcall reads tool calls that a model wrote as text. Small models, and models whose chat template went
// wrong, write a call in a form of their training instead of the form that was asked for. The text loop of package
// model/react uses this package for every reply that its own grammar does not understand.
//
//	text ─► [Split]  removes the text in thinking tags, which is never a call
//	     ─► [Find]   the call at the end of the text, in one of the usual forms
//	     ─► [Object] the arguments, with the usual errors of JSON corrected
//	     ─► [Name]   the tool, if exactly one can be meant
//
// [Wrap] does the same for models with native calls, which write a call as text by accident. It uses [Slips], which is
// stricter.
//
// The package corrects the spelling of a call, never its content. Each value in [Call.Args] was written by the model,
// and each correction has a line in [Call.Repairs]. A text that looks like a call and is not understood completely is
// an error that says why, so that the model can be asked again.
//
// The functions are pure and bounded: they read a text a constant number of times, and nesting is limited.
package textcall
