package react

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model/textcall"
)

// isCopied reports whether a tool result of the conversation contains the call of a step, in the form of a step or in a
// form of package textcall. Then the model repeats the result's words. The user's own messages may contain steps.
func (r *reply) isCopied(reading Reading, step Step) bool {
	call := textcall.Call{Name: step.Action, Args: step.Args}
	if slices.Contains(reading.Repairs, otherForm) && textcall.Suggested([]textcall.Call{call}, r.messages, r.tools) {
		return true
	}
	var results []*tenon.Message
	for _, m := range r.messages {
		for _, p := range m.Parts {
			if p.Result == nil || len(p.Result.Found) > 0 || !names(p.Result, step.Action) {
				continue
			}
			for _, c := range p.Result.Content {
				if r.hasStep(c.Text, call) {
					return true
				}
			}
			results = append(results, &tenon.Message{Role: tenon.RoleTool, Parts: []tenon.Part{p}})
		}
	}
	if len(results) == 0 {
		return false
	}
	var written []textcall.Call // as it is written in a result whose line ends are escaped
	for _, mark := range inputs {
		call.Text = markAction + step.Action + mark + string(step.Args)
		written = append(written, call)
	}
	return textcall.Quoted(written, results, r.tools)
}

// names reports whether a tool result contains the name of a tool.
func names(result *tenon.ToolResult, tool string) bool {
	for _, c := range result.Content {
		if strings.Contains(lowered(c.Text), lowered(tool)) {
			return true
		}
	}
	return false
}

// hasStep reports whether a text contains a step with this call.
func (r *reply) hasStep(text string, call textcall.Call) bool {
	at := 0
	for line := range strings.Lines(text) {
		at += len(line)
		tail, ok := actionIn(line)
		if !ok {
			continue
		}
		rest := text[at:]
		read := &read{tools: r.tools, raw: rest}
		var step Step
		if read.action(&step, tail, untilAction(rest)) == nil && step.Action == call.Name &&
			textcall.IsSame(textcall.Call{Name: step.Action, Args: step.Args}, call) {
			return true
		}
	}
	return false
}

// actionIn returns the text behind the marker of an action in a line, which may stand within the line.
func actionIn(line string) (tail string, ok bool) {
	if mark, tail := marker(line); mark == markAction {
		return tail, true
	}
	i := strings.LastIndex(lowered(line), "action:")
	if i < 0 {
		return "", false
	}
	return strings.TrimSpace(line[i+len("action:"):]), true
}

// untilAction returns the beginning of a text, up to the line of the next action.
func untilAction(text string) string {
	at := 0
	for line := range strings.Lines(text) {
		if _, ok := actionIn(line); ok {
			return text[:at]
		}
		at += len(line)
	}
	return text
}
