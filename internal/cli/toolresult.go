package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/table"
)

// showResult prints the result of a tool, or writes it as a table.
func (a *app) showResult(ctx context.Context, cfg *config.Config, name string, result *tenon.Result, p *ports) error {
	if len(p.out) == 0 || result.IsError {
		return a.printResult(name, result)
	}
	file, err := p.resultFile()
	if err != nil {
		return err
	}
	w, err := (&tableOut{out: file}).options(a, cfg)
	if err != nil {
		return err
	}
	if p.columns == "" {
		rows, err := table.WriteResult(ctx, file, result, w)
		if err != nil {
			return err
		}
		return a.wrote(file, rows)
	}
	rows, err := table.ResultRows(result, p.columns)
	if err != nil {
		return tenon.Errorf(tenon.ErrorCode(err), "--columns: %w", err)
	}
	if err := table.WriteRows(ctx, file, rows, nil, w); err != nil {
		return tenon.Errorf(tenon.ErrorCode(err), "--columns: %w", err)
	}
	return a.wrote(file, int64(len(rows)))
}

// resultFile returns the file of --out for the result of a tool that is not a workflow. It is empty if the result goes
// to stdout.
func (p *ports) resultFile() (string, error) {
	if p.columns != "" && len(p.out) == 0 {
		return "", tenon.Errorf(tenon.CodeInvalid, "--columns needs --out")
	}
	to, err := p.targets("the tool's result", []string{table.ResultColumn})
	return to[table.ResultColumn], err
}

// printResult prints the result of a call. A failure that the tool reports is an error with code tool_error.
func (a *app) printResult(name string, r *tenon.Result) error {
	var failed error
	if r.IsError {
		text := cmp.Or(strings.TrimSpace(r.Text()), "it gave no reason")
		failed = direct{tenon.Errorf(tenon.CodeTool, "tool '%s' reported an error: %s", name, text)}
	}
	switch a.format {
	case formatText:
		if failed != nil {
			return failed
		}
		said := []string{}
		for _, c := range r.Content {
			if c.Type == tenon.ContentText || c.Type == tenon.ContentResource && c.Text != "" && c.Data == "" {
				said = append(said, c.Text)
			} else {
				a.hint("%s", contentNote(c))
			}
		}
		if nice, ok := indented(said, r.Structured); ok {
			if !a.unescaped {
				nice = string(tenon.EscapeJSON([]byte(nice)))
			}
			return a.printText(nice)
		}
		return a.printText(strings.Join(said, "\n"))
	case formatJSONL:
		raw, err := encodeJSON(r)
		if err != nil {
			return tenon.Errorf(tenon.CodeProtocol, "the result of tool '%s' is not JSON: %w", name, err)
		}
		line := append(append([]byte(`{"kind":"result","data":`), raw...), '}')
		if err := a.printRaw(line); err != nil || failed == nil {
			return err
		}
	default:
		raw := []byte(r.Raw)
		if len(raw) == 0 {
			var err error
			if raw, err = encodeJSON(r); err != nil {
				return tenon.Errorf(tenon.CodeProtocol, "the result of tool '%s' is not JSON: %w", name, err)
			}
		}
		if err := a.printRaw(raw); err != nil || failed == nil {
			return err
		}
	}
	a.note("tenon: %s", failed)
	return reported{failed}
}

// indented returns structured content for a person. same reports that the texts contain the same JSON, or that there
// are no texts. Numbers keep their digits.
func indented(texts []string, structured json.RawMessage) (string, bool) {
	var nice, one, other bytes.Buffer
	if len(structured) == 0 || json.Indent(&nice, structured, "", "  ") != nil {
		return "", false
	}
	same := len(texts) == 0 || json.Compact(&one, []byte(strings.Join(texts, "\n"))) == nil &&
		json.Compact(&other, structured) == nil && bytes.Equal(one.Bytes(), other.Bytes())
	return nice.String(), same
}

// contentNote describes a block that is not text.
func contentNote(c tenon.Content) string {
	parts := []string{c.Type}
	if c.MimeType != "" {
		parts = append(parts, c.MimeType)
	}
	if c.URI != "" {
		parts = append(parts, c.URI)
	}
	if c.Data != "" {
		parts = append(parts, plural(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(c.Data, "="))), "byte"))
	}
	return "[" + safeLine(strings.Join(parts, " ")) + "; -o json shows it]"
}
