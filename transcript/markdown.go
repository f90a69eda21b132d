package transcript

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// maxShown bounds the text of a tool's result in Markdown, in bytes.
const maxShown = 64 << 10

// ExportMarkdown writes the conversation of a session for people to read. Its texts cannot change the page: HTML and
// headings in them are escaped, images are not loaded, hidden characters are visible (see [tenon.Visible]). Calls are
// folded. Secrets that the redactor knows are masked. Errors: internal (w), store.
func (t *Transcripts) ExportMarkdown(ctx context.Context, w io.Writer, s tenon.Session) error {
	said, err := t.Messages(ctx, s.ID)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", plain(tenon.Shorten(s.Title, maxTitle)))
	fmt.Fprintf(&b, "Session `%s`, begun %s", s.ID, s.Created.UTC().Format("2006-01-02 15:04 UTC"))
	if s.Parent != "" {
		fmt.Fprintf(&b, ", forked from `%s`", s.Parent)
	}
	b.WriteString(".\n")
	unended := callsWithoutResult(said)
	for i, m := range said {
		m.Message = m.AsUser() // Markdown pages have no such role
		switch {
		case m.Role == tenon.RoleUser:
			fmt.Fprintf(&b, "\n## User\n")
		case m.Role == tenon.RoleAssistant && (i == 0 || said[i-1].Role == tenon.RoleUser):
			fmt.Fprintf(&b, "\n## Assistant\n")
		}
		for _, p := range m.Parts {
			if p.Call != nil && slices.Contains(unended, p.Call) {
				fmt.Fprintf(&b, "\n*[calls %s; the call has not ended]*\n", plain(p.Call.Name))
				continue
			}
			markdownPart(&b, p)
		}
		if m.Partial {
			b.WriteString("\n*[the answer was stopped here]*\n")
		}
	}
	if _, err := io.WriteString(w, tenon.Visible(t.cfg.Redactor.Text(b.String()))); err != nil {
		return tenon.Errorf(tenon.CodeInternal, "the export cannot be written: %w", err)
	}
	return nil
}

// callsWithoutResult returns the calls at the end of a conversation that have not ended. It relies on the results
// having the order of their calls.
func callsWithoutResult(said []Message) []*tenon.ToolCall {
	at := len(said) - 1
	if at < 0 {
		return nil
	}
	var results []tenon.Part
	if said[at].Role == tenon.RoleTool && at > 0 {
		results = said[at].Parts
		at--
	}
	return slices.DeleteFunc(said[at].Calls(), func(c *tenon.ToolCall) bool {
		if len(results) == 0 || results[0].Result == nil || results[0].Result.ID != c.ID ||
			results[0].Result.Name != c.Name {
			return false
		}
		results = results[1:]
		return true
	})
}

func markdownPart(b *strings.Builder, p tenon.Part) {
	switch {
	case p.Type == tenon.PartText && strings.TrimSpace(p.Text) != "":
		fmt.Fprintf(b, "\n%s\n", markdownText(p.Text))
		markdownSources(b, p.Citations)
	case p.URI != "":
		fmt.Fprintf(b, "\n*[%s of type %s at %s]*\n", p.Type, plain(p.MimeType), plain(p.URI))
	case p.Type == tenon.PartImage:
		fmt.Fprintf(b, "\n*[an image of type %s, %d bytes]*\n", plain(p.MimeType), len(p.Data)/4*3)
	case p.Type == tenon.PartFile:
		fmt.Fprintf(b, "\n*[file %s of type %s, %d bytes]*\n", plain(p.Text), plain(p.MimeType), len(p.Data)/4*3)
	case p.Call != nil:
		fmt.Fprintf(b, "\n<details><summary>calls <code>%s</code></summary>\n\n%s\n</details>\n",
			html.EscapeString(oneLine(p.Call.Name)), fenced("json", string(p.Call.Arguments)+p.Call.Malformed))
	case p.Result != nil:
		how := "result"
		if p.Result.IsError {
			how = "error"
		}
		fmt.Fprintf(b, "\n<details><summary>%s of <code>%s</code></summary>\n\n%s\n</details>\n", how,
			html.EscapeString(oneLine(p.Result.Name)), markdownResult(p.Result))
	}
}

// markdownSources writes the numbered sources of a text. Only addresses of the web are links.
func markdownSources(b *strings.Builder, list []tenon.Citation) {
	for i, s := range tenon.Sources(list) {
		if i == 0 {
			b.WriteString("\nSources:\n\n")
		}
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			fmt.Fprintf(b, "%d. %s\n", i+1, plain(s.Label()))
			continue
		}
		fmt.Fprintf(b, "%d. [%s](<%s>)\n", i+1, plain(cmp.Or(s.Title, u.Host)), linkAddress(u))
	}
}

// linkAddress returns the address in a form that cannot end a Markdown link.
func linkAddress(u *url.URL) string {
	return strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", "\n", "", `\`, "%5C").Replace(u.String())
}

func markdownResult(r *tenon.ToolResult) string {
	var parts []string
	for _, c := range r.Content {
		switch {
		case c.Text != "":
			parts = append(parts, fenced("", tenon.Elide(c.Text, maxShown)))
		case c.URI != "":
			parts = append(parts, fenced("", oneLine(c.Type+" "+c.URI)))
		default:
			parts = append(parts, fmt.Sprintf("*[%s %s, %d bytes]*", plain(c.Type), plain(c.MimeType), len(c.Data)/4*3))
		}
	}
	return strings.Join(parts, "\n\n")
}

// fenced returns a code block that contains a text. The fence is chosen so that the text cannot end the block.
func fenced(language, s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(s, "\n") + "\n" + fence
}

// markdownText escapes HTML, images and headings in a text. It keeps the other Markdown, including code blocks. It
// closes a code block that is still open at the end.
func markdownText(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	fence := ""
	for i, l := range lines {
		trimmed := strings.TrimLeft(l, " ")
		mark := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence != "":
			if len(mark) >= len(fence) && strings.TrimSpace(trimmed) == mark {
				fence = ""
			}
			continue
		case len(mark) >= 3 && len(l)-len(trimmed) < 4 && !strings.Contains(trimmed[len(mark):], "`"):
			fence, lines[i] = mark, plainFence(mark, trimmed)
			continue
		}
		lines[i] = plainLine(l, trimmed)
	}
	if fence != "" {
		lines = append(lines, fence)
	}
	return strings.Join(lines, "\n")
}

// plainFence returns the first line of a code block. It drops a language that is not one word.
func plainFence(mark, line string) string {
	word := strings.TrimSpace(line[len(mark):])
	for _, r := range word {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '-' {
			return mark
		}
	}
	return mark + word
}

func plainLine(l, trimmed string) string {
	l = strings.NewReplacer("&", "&amp;", "<", "&lt;", "![", `!\[`).Replace(l)
	if strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "===") || strings.HasPrefix(trimmed, "---") {
		l = strings.Repeat(" ", len(l)-len(strings.TrimLeft(l, " "))) + `\` + strings.TrimLeft(l, " ")
	}
	return l
}

// plain returns a text as one line without Markdown.
func plain(s string) string { return escapeMarkdown.Replace(oneLine(s)) }

var escapeMarkdown = strings.NewReplacer("&", "&amp;", "<", "&lt;", "[", `\[`, "]", `\]`, "*", `\*`, "_", `\_`,
	"`", "\\`", "\\", `\\`)

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
