package agent

import (
	"encoding/json"
	"fmt"

	"github.com/tenonhq/tenon"
)

// Answered is the data of an [EventModel]: a model's answer, and the executor's checks of it.
type Answered struct {
	tenon.Response
	// Output is the answer as JSON, if the run has a schema and the answer fits it.
	Output json.RawMessage `json:"output,omitempty"`
	// Misfit says why the answer does not fit the run's schema.
	Misfit string `json:"misfit,omitempty"`
	// Tried are the models that failed to answer before this one. By is the configured name of this model; it is
	// empty if it is the run's own model.
	Tried []Tried `json:"tried,omitempty"`
	By    string  `json:"by,omitempty"`
}

// Tried is a model that failed, so that the next fallback was asked.
type Tried struct {
	Model string       `json:"model"`
	Error *tenon.Error `json:"error"`
}

// maxMisfits is how often in a row a model may correct an answer that does not fit the schema.
const maxMisfits = 2

// applyMisfit asks the model to correct its answer, or ends the run after maxMisfits attempts.
func (s *State) applyMisfit(why string) {
	if s.misfits >= maxMisfits {
		s.stop, s.answered = tenon.StopEnd, true
		s.failed = misfit(why)
		return
	}
	s.misfits++
	s.add(tenon.UserMessage(fmt.Sprintf("Your answer cannot be used: %s. Answer again with one JSON value that fits "+
		"the schema, and nothing else.", why)))
	s.turn++
}

func misfit(why string) *tenon.Error {
	return tenon.Errorf(tenon.CodeModel, "the answer is not what the output schema asks for: %s", why)
}

// OutputInstructions returns the instructions about the schema of the last answer.
func OutputInstructions(schema json.RawMessage) string {
	return "Your last answer must be one JSON value that fits this JSON Schema, and nothing else: no additional " +
		"text, no code fence.\n\n" + string(schema)
}
