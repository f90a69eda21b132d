package agent

import (
	"encoding/json"
	"fmt"

	"github.com/tenonhq/tenon"
)

// Answered is the data of an [EventModel]: a model's answer, and what the executor found
// out about it.
type Answered struct {
	tenon.Response
	// Output is the answer as JSON, where the run has a schema and the answer fits it.
	Output json.RawMessage `json:"output,omitempty"`
	// Misfit says why the answer does not fit the run's schema.
	Misfit string `json:"misfit,omitempty"`
	// Tried are the models that were asked before this one and could not answer, and By is
	// the configured name of this one; empty where the run's own model answered.
	Tried []Tried `json:"tried,omitempty"`
	By    string  `json:"by,omitempty"`
}

// Tried is a model that gave no answer, so that another one was asked.
type Tried struct {
	Model string       `json:"model"`
	Error *tenon.Error `json:"error"`
}

// maxMisfits is how often in a row a model is asked to put an answer right that does
// not fit the schema.
const maxMisfits = 2

// applyMisfit has the model put its answer right, or ends the run where it was asked for
// that often enough.
func (s *State) applyMisfit(why string) {
	if s.misfits >= maxMisfits {
		s.stop, s.answered = tenon.StopEnd, true
		s.failed = misfit(why)
		return
	}
	s.misfits++
	s.add(tenon.UserMessage(fmt.Sprintf("Your answer cannot be used: %s. Answer again with one JSON value that fits the schema, and nothing else.", why)))
	s.turn++
}

func misfit(why string) *tenon.Error {
	return tenon.Errorf(tenon.CodeModel, "the answer is not what the output schema asks for: %s", why)
}

// OutputInstructions tells a model of the schema that its answer has to fit.
func OutputInstructions(schema json.RawMessage) string {
	return "Your last answer must be one JSON value that fits this JSON Schema, and nothing else: no other text, no code fence.\n\n" + string(schema)
}
