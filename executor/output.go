package executor

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// checkOutput checks a run's last answer against the run's output schema, if it has one.
func checkOutput(schema json.RawMessage, a *agent.Answered) {
	if len(schema) == 0 {
		return
	}
	s, err := catalog.NewValueSchema(schema)
	if err != nil {
		a.Misfit = err.Error() // not expected, because the schema was valid when the run began
		return
	}
	text := unfenced(a.Message.Text())
	if err := s.Check([]byte(text)); err != nil {
		a.Misfit = err.Error()
		return
	}
	var flat bytes.Buffer
	if json.Compact(&flat, []byte(text)) == nil { // checked above
		a.Output = flat.Bytes()
	}
}

// unfenced removes the code fence that models often put around JSON.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	lang, body, ok := strings.Cut(rest, "\n")
	body, closed := strings.CutSuffix(strings.TrimSpace(body), "```")
	if !ok || !closed || strings.Contains(body, "```") ||
		lang != "" && !strings.EqualFold(strings.TrimSpace(lang), "json") {
		return text
	}
	return strings.TrimSpace(body)
}
