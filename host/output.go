package host

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// output puts the schema of a question into a spec, and tells the model of it: a
// provider that holds answers to schemas may not take this one, or not beside tools.
func (h *Host) output(q Question, spec *agent.Spec) error {
	if len(q.Output) == 0 {
		return nil
	}
	s, err := catalog.NewValueSchema(q.Output)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "output schema: %w", err)
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, s.Raw()); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "output schema: %w", err)
	}
	spec.Output = flat.Bytes()
	spec.System = strings.TrimSpace(spec.System + "\n\n" + agent.OutputInstructions(spec.Output))
	return nil
}

// holdToSchema holds a last answer to the schema of the run, if it has one.
func holdToSchema(schema json.RawMessage, a *agent.Answered) {
	if len(schema) == 0 {
		return
	}
	s, err := catalog.NewValueSchema(schema)
	if err != nil {
		a.Misfit = err.Error() // it was good when the run began
		return
	}
	text := unfenced(a.Message.Text())
	if err := s.Check([]byte(text)); err != nil {
		a.Misfit = err.Error()
		return
	}
	var flat bytes.Buffer
	if json.Compact(&flat, []byte(text)) == nil { // it was checked
		a.Output = flat.Bytes()
	}
}

// unfenced takes off the fence that models like to put around JSON.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	lang, body, ok := strings.Cut(rest, "\n")
	body, closed := strings.CutSuffix(strings.TrimSpace(body), "```")
	if !ok || !closed || strings.Contains(body, "```") || lang != "" && !strings.EqualFold(strings.TrimSpace(lang), "json") {
		return text
	}
	return strings.TrimSpace(body)
}
