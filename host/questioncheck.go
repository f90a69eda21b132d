package host

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// check returns an error if parts of the question are missing, malformed, or contradict each other.
func (q *Question) check() error {
	if strings.TrimSpace(q.Text) == "" {
		return tenon.Errorf(tenon.CodeInvalid, "the question is empty")
	}
	if q.MaxTurns < 0 {
		return tenon.Errorf(tenon.CodeInvalid, "MaxTurns must not be negative")
	}
	if len(q.History) > 0 && q.Session != "" {
		return tenon.Errorf(tenon.CodeInvalid, "a history begins a new session; it cannot be put "+
			"into session %s", q.Session)
	}
	if q.Fork && q.Session == "" {
		return tenon.Errorf(tenon.CodeInvalid, "a fork needs a session to leave")
	}
	for i := range q.Files {
		if err := checkFile(&q.Files[i]); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "Files[%d] %w", i, err)
		}
	}
	for i, f := range q.DataFiles {
		if f == nil {
			return tenon.Errorf(tenon.CodeInvalid, "DataFiles[%d] is nil; make it with io.NewSectionReader", i)
		}
	}
	return checkHistory(q.History)
}

// checkFile returns an error if a part is no file of a question. The error continues the name of the part.
func checkFile(p *tenon.Part) error {
	const remedy = "make it with host.FilePart or host.AddressPart"
	switch {
	case p.Type == tenon.PartText && p.Text == "":
		return tenon.Errorf(tenon.CodeInvalid, "is an empty text; leave it out, or %s", remedy)
	case p.Type == tenon.PartText:
		return nil
	case p.Type != tenon.PartImage && p.Type != tenon.PartFile:
		return tenon.Errorf(tenon.CodeInvalid, "is of type '%s', which is no file; %s", tenon.Visible(p.Type), remedy)
	case p.Data == "" && p.URI == "":
		return tenon.Errorf(tenon.CodeInvalid, "has neither Data nor a URI; %s", remedy)
	case p.URI != "" && !isAddress(p.URI):
		return tenon.Errorf(tenon.CodeInvalid, "has a URI that does not begin with https://, gs://, s3:// or file-id:; "+
			"%s", remedy)
	case p.Data != "" && p.MimeType == "":
		return tenon.Errorf(tenon.CodeInvalid, "has no MimeType, such as image/png; %s", remedy)
	case p.Data != "":
		if _, err := base64.StdEncoding.DecodeString(p.Data); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "has Data that is not base64 (%w); %s", err, remedy)
		}
	}
	return nil
}

// checkHistory returns an error if messages are not the history of a question: a message is missing, has no author or
// no content, or calls a tool whose result does not follow.
func checkHistory(history []*tenon.Message) error {
	roles := []tenon.Role{tenon.RoleUser, tenon.RoleAssistant, tenon.RoleTool, tenon.RoleSystem}
	for i, m := range history {
		switch {
		case m == nil:
			return tenon.Errorf(tenon.CodeInvalid, "History[%d] is nil; leave it out", i)
		case !slices.Contains(roles, m.Role):
			return tenon.Errorf(tenon.CodeInvalid, "History[%d] has the role '%s'; it must be user, assistant, tool "+
				"or system", i, tenon.Visible(string(m.Role)))
		case len(m.Parts) == 0:
			return tenon.Errorf(tenon.CodeInvalid, "History[%d], of the %s, has no parts; leave it out", i, m.Role)
		}
		for j, p := range m.Parts {
			if p.Type == tenon.PartCall && p.Call == nil || p.Type == tenon.PartResult && p.Result == nil ||
				p.Type == "" {
				return tenon.Errorf(tenon.CodeInvalid, "Parts[%d] of History[%d] is empty: type '%s'; leave it out", j,
					i, p.Type)
			}
		}
		if calls, results := len(m.Calls()), 0; calls > 0 {
			if i+1 < len(history) && history[i+1] != nil && history[i+1].Role == tenon.RoleTool {
				results = len(history[i+1].Parts)
			}
			if results != calls {
				return tenon.Errorf(tenon.CodeInvalid, "History[%d] calls %d tools, and %d results follow; the next "+
					"message needs the role tool and one result for each call", i, calls, results)
			}
		}
	}
	return nil
}
