package cli

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/transcript"
)

// resultShown is the number of characters of a tool result that sessions show prints.
const resultShown = 400

// showMessages prints messages. Each result is below its call, because the calls of a turn have their results in one
// message after them.
func (a *app) showMessages(b *strings.Builder, list []*tenon.Message) {
	for i := 0; i < len(list); i++ {
		m, results := list[i], (*tenon.Message)(nil)
		if i+1 < len(list) && list[i+1].Role == tenon.RoleTool {
			results = list[i+1]
		}
		shown := a.showMessage(b, m, results)
		if results == nil {
			continue
		}
		i++
		for _, p := range results.Parts {
			if p.Result == nil || !shown[p.Result.ID] {
				a.showPart(b, results.Role, p)
			}
		}
	}
}

// showNumbered prints messages with their numbers. A result names its call, because it is in another message.
func (a *app) showNumbered(b *strings.Builder, list []transcript.Message) {
	names := map[string]string{}
	for _, m := range list {
		fmt.Fprintf(b, "\n%s", a.outStyle(dim, fmt.Sprintf("[%d] %s", m.N, m.Role)))
		if m.Role != tenon.RoleTool {
			a.showMessage(b, m.Message, nil)
			clear(names)
			if calls := m.Calls(); len(calls) > 1 {
				for _, c := range calls {
					names[c.ID] = c.Name
				}
			}
			continue
		}
		b.WriteByte('\n') // no empty line before a tool result
		for _, p := range m.Parts {
			if p.Result != nil {
				a.showCallResult(b, names[p.Result.ID], p.Result)
			} else {
				a.showPart(b, m.Role, p)
			}
		}
	}
}

// showMessage prints a message, and below its calls the results that another message contains. It returns the ids of
// the printed results.
func (a *app) showMessage(b *strings.Builder, m, results *tenon.Message) map[string]bool {
	shown := map[string]bool{}
	for _, p := range m.Parts {
		a.showPart(b, m.Role, p)
		if p.Call == nil || results == nil || shown[p.Call.ID] {
			continue
		}
		for _, r := range results.Parts {
			if r.Result != nil && r.Result.ID == p.Call.ID {
				shown[p.Call.ID] = true
				a.showCallResult(b, "", r.Result)
			}
		}
	}
	if list := sourceLines(m.Citations()); len(list) > 0 {
		fmt.Fprintf(b, "\n%s\n", strings.Join(list, "\n"))
	}
	if m.Partial {
		fmt.Fprintf(b, "%s\n", a.outStyle(dim, stoppedHere))
	}
	return shown
}

// showPart prints a part of a message.
func (a *app) showPart(b *strings.Builder, role tenon.Role, p tenon.Part) {
	switch {
	case p.Type == tenon.PartText && p.Text != "" && role == tenon.RoleUser:
		fmt.Fprintf(b, "\n%s\n", a.outStyle(bold, "> "+safeText(strings.TrimSpace(p.Text))))
	case p.Type == tenon.PartText && p.Text != "" && role == tenon.RoleSystem:
		fmt.Fprintf(b, "\n%s\n", a.outStyle(dim, "[system] "+safeText(strings.TrimSpace(p.Text))))
	case p.Type == tenon.PartText && p.Text != "":
		fmt.Fprintf(b, "\n%s\n", safeText(strings.TrimSpace(p.Text)))
	case p.Type == tenon.PartThinking && p.Text != "":
		fmt.Fprintf(b, "\n%s\n", a.outStyle(dim, safeText(strings.TrimSpace(p.Text))))
	case p.Call != nil:
		fmt.Fprintf(b, "\n%s %s %s\n", a.outStyle(cyan, "●"), safeLine(p.Call.Name),
			a.outStyle(dim, safeLine(string(p.Call.Arguments)+p.Call.Malformed)))
	case p.Result != nil:
		a.showCallResult(b, "", p.Result)
	case p.Type == tenon.PartImage || p.Type == tenon.PartFile:
		what := cmp.Or(p.Text, p.URI) + " " + p.MimeType
		if p.Data != "" {
			what += fmt.Sprintf(", %d bytes", base64.StdEncoding.DecodedLen(len(p.Data))-strings.Count(p.Data, "="))
		}
		fmt.Fprintf(b, "\n%s\n", a.outStyle(dim, safeLine("["+p.Type+" "+strings.TrimSpace(what)+"]")))
	}
}

// showCallResult prints a result, with the name of its call unless it is empty.
func (a *app) showCallResult(b *strings.Builder, call string, r *tenon.ToolResult) {
	mark := green
	if r.IsError {
		mark = red
	}
	var said []string
	for _, c := range r.Content {
		if c.Type == tenon.ContentText {
			said = append(said, c.Text)
		} else {
			said = append(said, contentNote(c))
		}
	}
	if call != "" {
		call = safeLine(call) + ": "
	}
	fmt.Fprintf(b, "  %s %s\n", a.outStyle(mark, "→"),
		a.outStyle(dim, call+shorten(safeLine(strings.Join(said, "\n")), resultShown)))
}
