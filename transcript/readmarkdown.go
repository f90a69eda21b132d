package transcript

import (
	"encoding/json"
	"html"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// The lines that structure a page of [Transcripts.ExportMarkdown].
const (
	userHeading      = "## User"
	assistantHeading = "## Assistant"
	detailsEnd       = "</details>"
)

var (
	titleLine   = lazyregexp.New(`^# (.+)$`)
	detailsLine = lazyregexp.New(`^<details><summary>(calls|result of|error of) <code>(.*)</code></summary>$`)
	fenceLine   = lazyregexp.New("^ {0,3}(`{3,})([^`]*)$")
)

// readMarkdown reads the title and the messages of a page that [Transcripts.ExportMarkdown] wrote, or that has the same
// headings. Such a page contains no images, no reasoning, and only the beginning of long results. Notes about images
// become text. Errors: invalid, too_large.
func readMarkdown(page string) (title string, messages []*tenon.Message, err error) {
	if len(page) > maxConversation {
		return "", nil, tenon.Errorf(tenon.CodeTooLarge, "the page has %d bytes; %d is the limit", len(page),
			maxConversation)
	}
	r := pageReader{lines: strings.Split(strings.ReplaceAll(page, "\r\n", "\n"), "\n")}
	for r.at < len(r.lines) && r.role == "" {
		line := r.lines[r.at]
		if m := titleLine().FindStringSubmatch(line); m != nil && title == "" {
			title = tenon.Shorten(unplain(m[1]), maxTitle)
		}
		r.heading(line)
		r.at++
	}
	if r.role == "" {
		return "", nil, tenon.Errorf(tenon.CodeInvalid,
			"the page has no conversation: messages of the user follow a line '%s', "+
				"messages of the assistant a line '%s'", userHeading, assistantHeading)
	}
	for r.at < len(r.lines) {
		if err := r.line(); err != nil {
			return "", nil, tenon.Errorf(tenon.CodeInvalid, "line %d of the page: %w", r.at+1, err)
		}
	}
	if r.fence != "" {
		return "", nil, tenon.Errorf(tenon.CodeInvalid, "a code block of the page does not end")
	}
	r.flush()
	if len(r.talk.messages) > maxMessages {
		return "", nil, tenon.Errorf(tenon.CodeTooLarge, "the page has %d messages; %d is the limit",
			len(r.talk.messages), maxMessages)
	}
	return title, r.talk.messages, r.talk.check()
}

// pageReader reads a page line by line.
type pageReader struct {
	lines []string
	at    int
	role  tenon.Role // of the current heading
	fence string     // the fence that ends the current code block
	text  []string   // lines not yet put into a message
	calls int        // number of calls read
	open  []*tenon.ToolCall
	talk  conversation
}

// heading reads a line that begins a message.
func (r *pageReader) heading(line string) {
	switch strings.TrimRight(line, " \t") {
	case userHeading:
		r.role = tenon.RoleUser
	case assistantHeading:
		r.role = tenon.RoleAssistant
	}
}

// line reads the element that begins at the current line.
func (r *pageReader) line() error {
	line := r.lines[r.at]
	if r.fence != "" {
		if mark := strings.TrimSpace(line); len(mark) >= len(r.fence) && strings.Trim(mark, "`") == "" {
			r.fence = ""
		}
		r.text = append(r.text, line)
		r.at++
		return nil
	}
	if m := detailsLine().FindStringSubmatch(line); m != nil {
		r.flush()
		return r.details(m[1], html.UnescapeString(m[2]))
	}
	if t := strings.TrimRight(line, " \t"); t == userHeading || t == assistantHeading {
		r.flush()
		r.heading(line)
		r.open = nil // calls and results are under the same heading
		r.at++
		return nil
	}
	if m := fenceLine().FindStringSubmatch(line); m != nil {
		r.fence = m[1]
		r.text = append(r.text, line)
	} else {
		r.text = append(r.text, unplainLine(line))
	}
	r.at++
	return nil
}

// flush adds the collected text as a part.
func (r *pageReader) flush() {
	text := strings.TrimSpace(strings.Join(r.text, "\n"))
	r.text = nil
	if text == "" {
		return
	}
	r.add(r.role, tenon.Part{Type: tenon.PartText, Text: text})
}

// add adds a part to the last message if that message has the current role. Otherwise it adds the part to a new
// message.
func (r *pageReader) add(role tenon.Role, p tenon.Part) {
	if n := len(r.talk.messages); n > 0 && r.talk.messages[n-1].Role == role {
		last := r.talk.messages[n-1]
		if k := len(last.Parts); p.Type == tenon.PartText && k > 0 && last.Parts[k-1].Type == tenon.PartText {
			last.Parts[k-1].Text += "\n\n" + p.Text
			return
		}
		last.Parts = append(last.Parts, p)
		return
	}
	r.talk.messages = append(r.talk.messages, &tenon.Message{Role: role, Parts: []tenon.Part{p}})
}

// details reads a folded call or result.
func (r *pageReader) details(what, name string) error {
	began := r.at
	var blocks []string
	for r.at++; ; r.at++ {
		if r.at >= len(r.lines) {
			r.at = began
			return tenon.Errorf(tenon.CodeInvalid, "%s %s: the line '%s' is missing after it", what, name, detailsEnd)
		}
		line := r.lines[r.at]
		if strings.TrimSpace(line) == detailsEnd {
			break
		}
		if m := fenceLine().FindStringSubmatch(line); m != nil {
			block, err := r.block(m[1])
			if err != nil {
				return err
			}
			blocks = append(blocks, block)
		} else if line = strings.TrimSpace(line); line != "" {
			blocks = append(blocks, unplain(strings.Trim(line, "*")))
		}
	}
	r.at++
	if what == "calls" {
		return r.call(name, strings.Join(blocks, "\n"))
	}
	return r.result(name, blocks, what == "error of")
}

// block returns the text of the code block that begins at the current line.
func (r *pageReader) block(fence string) (string, error) {
	began := r.at + 1
	for r.at++; r.at < len(r.lines); r.at++ {
		if strings.TrimRight(r.lines[r.at], " \t") == fence {
			return strings.Join(r.lines[began:r.at], "\n"), nil
		}
	}
	r.at = began - 1
	return "", tenon.Errorf(tenon.CodeInvalid, "the code block does not end")
}

func (r *pageReader) call(name, args string) error {
	if r.role != tenon.RoleAssistant {
		return tenon.Errorf(tenon.CodeInvalid, "a user cannot call tools")
	}
	if name == "" {
		return tenon.Errorf(tenon.CodeInvalid, "the call does not say which tool")
	}
	r.calls++
	c := &tenon.ToolCall{ID: "call_" + strconv.Itoa(r.calls), Name: name}
	if raw := json.RawMessage(args); isObject(raw) {
		c.Arguments = raw
	} else {
		c.Malformed = args
	}
	r.add(tenon.RoleAssistant, tenon.Part{Type: tenon.PartCall, Call: c})
	r.open = append(r.open, c)
	return nil
}

func (r *pageReader) result(name string, blocks []string, isError bool) error {
	if len(r.open) == 0 || r.open[0].Name != name {
		return tenon.Errorf(tenon.CodeInvalid, "a result of '%s', which was not called before it",
			tenon.Shorten(name, shortTitle))
	}
	out := &tenon.ToolResult{ID: r.open[0].ID, Name: name, IsError: isError, Content: []tenon.Content{}}
	r.open = r.open[1:]
	for _, b := range blocks {
		out.Content = append(out.Content, tenon.Text(b))
	}
	r.add(tenon.RoleTool, tenon.Part{Type: tenon.PartResult, Result: out})
	return nil
}

// unplainLine reverses plainLine.
func unplainLine(l string) string {
	trimmed := strings.TrimLeft(l, " ")
	for _, mark := range []string{`\#`, `\===`, `\---`} {
		if strings.HasPrefix(trimmed, mark) {
			l = l[:len(l)-len(trimmed)] + trimmed[1:]
			break
		}
	}
	return strings.NewReplacer("&lt;", "<", "&amp;", "&", `!\[`, "![").Replace(l)
}

// unplain reverses plain.
func unplain(s string) string {
	return strings.NewReplacer("&lt;", "<", "&amp;", "&", `\[`, "[", `\]`, "]", `\*`, "*", `\_`, "_", "\\`", "`",
		`\\`, `\`).Replace(s)
}
