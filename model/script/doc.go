// Package script implements a model that answers from a file of steps. It replaces a provider's
// adapter, needs no network and no key, and is deterministic. The examples, the demo and the tests
// use it (--model script:FILE).
//
//	steps:
//	  - expect: weather                  # must occur in the last message or the system prompt
//	    text: Let me look.
//	    calls:
//	      - {name: get_weather, arguments: {location: London}}
//	  - expect: 15°C
//	    text: It is 15°C and cloudy.
//
// The keys of a step are the fields of [Step]. A file may contain several conversations instead,
// selected by the question. It then has the key `conversations` ([Conversation]) instead of
// `steps`.
//
// # Selecting the step
//
// The model keeps no state. Every answer contains an opaque part of wire "script" that names its
// step. The run's journal stores the part like the opaque part of any provider, so an interrupted
// run resumes with the correct step, even in another process. The step for a request is the one
// after the step of the last answer with such a part. A user message after the last step restarts
// the script, so each run of a session plays it once. After an answer without calls of a step that
// repeats forever, a user message may select another conversation. If no answer has such a part, the step is the
// number of assistant messages after the last user message.
//
// A request after the last step is an error that names the missing step. An unused step is an error
// of [Model.Unconsumed], which checks the messages of a finished run.
//
// Besides package config, only this package imports the YAML library.
package script
