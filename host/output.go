package host

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// output sets the schema of a question in a spec and describes the schema to the model. A provider that enforces
// schemas may reject this schema, or reject schemas together with tools.
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
