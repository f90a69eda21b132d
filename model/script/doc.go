// Package script is a model that answers from a file of steps. It stands where
// a provider's adapter stands, needs no network and no key, and always says the
// same: the examples, the demo and the tests run on it (--model script:FILE).
//
//	steps:
//	  - expect: weather                  # must occur in the last message or the system prompt
//	    text: Let me look.
//	    calls:
//	      - {name: get_weather, arguments: {location: London}}
//	  - expect: 15°C
//	    text: It is 15°C and cloudy.
//
// The keys of a step are the fields of [Step]. A file with several
// conversations, chosen by the question, has `conversations` ([Conversation])
// instead of `steps`.
//
// # Which step comes
//
// The model keeps no state. Every answer carries an opaque part of wire
// "script" that names the step it came from; it lives in the run's journal like
// any provider's opaque part, so a run that was killed goes on with the right
// step, in another process too. A request's step is the one after that of the
// last answer with such a part. A user message behind the last step starts the
// script over, so that each run of a session plays it once. Without any such
// part the assistant messages behind the last user message are counted.
//
// A request past the end is an error that names the step that is not there, and
// a step that was not used is one too: [Model.Unconsumed], asked with the
// messages of a run that has ended.
//
// The package is, beside package config, the one that imports the YAML library.
package script
