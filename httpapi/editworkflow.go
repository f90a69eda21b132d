package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// WorkflowText is the answer of GET /api/v1/config/workflows/{name}: the file of a workflow as it is now.
type WorkflowText struct {
	File   string `json:"file"`
	Digest string `json:"digest"`
	Text   string `json:"text"`
}

// WorkflowTextRequest is the body of PUT /api/v1/config/workflows/{name}.
type WorkflowTextRequest struct {
	Text string `json:"text"`
	// Digest is the digest of the file that the sender has seen. It is empty if Add is set.
	Digest string `json:"digest,omitempty"`
	Add    bool   `json:"add,omitempty"` // make the file NAME.yaml beside the project's, and an entry of tools
	DryRun bool   `json:"dry_run,omitempty"`
}

// DraftRequest is the body of POST /api/v1/workflows/draft.
type DraftRequest struct {
	Name    string        `json:"name,omitempty"` // of the workflow whose file is edited; empty for a new one
	Text    *string       `json:"text"`           // may be empty, as the file of a new workflow; nil is refused
	Changes []DraftChange `json:"changes,omitempty"`
}

// DraftChange changes one value of a text.
type DraftChange struct {
	Path  []any           `json:"path"`  // keys, and positions in lists from 0
	Value json.RawMessage `json:"value"` // null removes the value
}

// DraftResponse is a workflow text after the changes, with everything that a form needs. Nothing of it is stored.
type DraftResponse struct {
	Text     string          `json:"text"`
	Value    json.RawMessage `json:"value"` // the text as an object; null if it cannot be read
	Mistakes []DraftMistake  `json:"mistakes"`
	Graph    any             `json:"graph,omitempty"` // as in [host.WorkflowView]; absent if nothing can be read
}

// DraftMistake is a mistake in a workflow text. Line and column begin with 1.
type DraftMistake struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// workflowText returns the file of the workflow in the request's path.
func (c *call) workflowText(e Editor, name string) (*config.PlannedText, error) {
	plan, err := e.Plan(c.ctx(), config.Edits{Create: true})
	if err != nil {
		return nil, asRequested(err)
	}
	return plan.WorkflowText(name)
}

func (c *call) configWorkflow() error {
	e, err := c.editor()
	if err != nil {
		return err
	}
	t, err := c.workflowText(e, c.req.PathValue("name"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, WorkflowText{File: t.File, Digest: t.Digest(), Text: string(t.Before)})
}

// putConfigWorkflow proposes a new text of a workflow, or a new workflow. A changed workflow can start, send and ask
// something else, so the owner agrees to it at the command line.
func (c *call) putConfigWorkflow() error {
	var r WorkflowTextRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	e, err := c.editor()
	if err != nil {
		return err
	}
	name := c.req.PathValue("name")
	if r.Add {
		file := name + ".yaml"
		if !config.IsWorkflowName(name) {
			return tenon.Errorf(tenon.CodeInvalid, "'%s' cannot be the name of a workflow: a name has 1 to 64 of the "+
				"characters A-Z a-z 0-9 _ . -", tenon.Visible(name))
		}
		entry := config.Entry{{Key: "kind", Value: tenon.KindWorkflow}, {Key: "path", Value: file}}
		return c.propose(config.Edits{Changes: []config.Change{{Section: "tools", Name: name, Entry: entry, Add: true}},
			Texts: []config.TextEdit{{Path: file, Text: r.Text}}}, r.DryRun)
	}
	if r.Digest == "" {
		return tenon.Errorf(tenon.CodeInvalid, "the digest is missing: send the digest of the file that you have seen")
	}
	t, err := c.workflowText(e, name)
	if err != nil {
		return err
	}
	return c.propose(config.Edits{Texts: []config.TextEdit{{Path: t.Path(), Text: r.Text, Digest: r.Digest}}}, r.DryRun)
}

// deleteConfigWorkflow proposes to remove a workflow from the tools. Its file stays.
func (c *call) deleteConfigWorkflow() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	dry, err := c.flag("dry_run")
	if err != nil {
		return err
	}
	e, err := c.editor()
	if err != nil {
		return err
	}
	name := c.req.PathValue("name")
	plan, err := e.Plan(c.ctx(), config.Edits{Create: true})
	if err != nil {
		return asRequested(err)
	}
	if !plan.HasWorkflow(name) {
		return noWorkflow(name)
	}
	return c.propose(config.Edits{Changes: []config.Change{{Section: "tools", Name: name}}}, dry)
}

// draftWorkflow changes a text and checks it. The text and a form are two views of the same file: the page keeps only
// the text, and sends the changes of the form.
func (c *call) draftWorkflow() error {
	var r DraftRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	for name, value := range rawjson.Members(c.body) {
		if string(value) == "null" {
			return tenon.Errorf(tenon.CodeInvalid, "the body is not valid: %s must not be null; leave it out", name)
		}
	}
	if r.Text == nil {
		return tenon.Errorf(tenon.CodeInvalid, "text is missing: the text of the workflow, which may be empty")
	}
	e, err := c.editor()
	if err != nil {
		return err
	}
	plan, err := e.Plan(c.ctx(), config.Edits{Create: true})
	if err != nil {
		return asRequested(err)
	}
	file := plan.NewWorkflow()
	if r.Name != "" {
		if file, err = plan.WorkflowText(r.Name); err != nil {
			return err
		}
	}
	changes := make([]config.DraftChange, len(r.Changes))
	for i, ch := range r.Changes {
		if changes[i], err = ch.parsed(); err != nil {
			return err
		}
	}
	d, err := config.NewDraft(file.File, file.Dir(), *r.Text, changes)
	if err != nil {
		return err
	}
	c.checkDraft(d)
	out := DraftResponse{Text: d.Text, Value: d.Value, Mistakes: []DraftMistake{}}
	if d.Graph != nil {
		out.Graph = d.Graph
	}
	for _, m := range d.Mistakes() {
		out.Mistakes = append(out.Mistakes, DraftMistake{File: m.File, Line: m.Line, Column: m.Col, Path: m.Path,
			Message: m.Message, Hint: m.Hint})
	}
	return c.answer(http.StatusOK, out)
}

// parsed converts the numbers of a path.
func (d DraftChange) parsed() (config.DraftChange, error) {
	out := config.DraftChange{}
	if string(d.Value) != "null" {
		out.Value = d.Value
	}
	for _, step := range d.Path {
		switch step := step.(type) {
		case string:
			out.Path = append(out.Path, step)
			continue
		case float64:
			if step >= 0 && step <= math.MaxInt32 && step == math.Trunc(step) {
				out.Path = append(out.Path, int(step))
				continue
			}
		}
		return out, tenon.Errorf(tenon.CodeInvalid, "a path of a change has keys and positions from 0")
	}
	return out, nil
}

// draftTime bounds how long the check of a draft waits for servers that were never listed.
const draftTime = time.Second

// checkDraft reports steps whose tools or agents do not exist, and arguments that a tool does not take. A server that
// does not answer is not reported.
func (c *call) checkDraft(d *config.Draft) {
	var f struct {
		Steps []struct {
			Tool   string                     `json:"tool"`
			Server string                     `json:"server"`
			Agent  string                     `json:"agent"`
			Args   map[string]json.RawMessage `json:"args"`
			Inputs map[string]json.RawMessage `json:"inputs"`
		} `json:"steps"`
	}
	if json.Unmarshal(d.Value, &f) != nil {
		return // reported already
	}
	ctx, cancel := context.WithTimeout(c.ctx(), draftTime)
	defer cancel()
	snapshot, problems, err := c.h.Tools().Snapshot(ctx)
	if err != nil {
		return
	}
	agents := slices.Sorted(maps.Keys(c.h.Service().Info().Config.Agents))
	for i, s := range f.Steps {
		at := "steps[" + strconv.Itoa(i) + "]"
		if s.Agent != "" && s.Agent != "default" && !slices.Contains(agents, s.Agent) {
			d.Add(at+".agent", "there is no agent '"+tenon.Visible(s.Agent)+"'", nearest(s.Agent, agents))
		}
		if s.Tool == "" {
			continue
		}
		tool, names := stepTool(snapshot, s.Server, s.Tool)
		switch {
		case tool == nil && len(problems) == 0:
			d.Add(at+".tool", "there is no tool '"+tenon.Visible(s.Tool)+"'", nearest(s.Tool, names))
		case tool != nil:
			stepArguments(d, at, tool.Input, s.Args, s.Inputs)
		}
	}
}

// stepTool finds the tool of a step, and returns the names that are possible.
func stepTool(snapshot *catalog.Snapshot, server, name string) (*tenon.Tool, []string) {
	var names []string
	for _, t := range snapshot.Tools() {
		known := t.Name
		if server != "" {
			if t.Server != server {
				continue
			}
			known = t.Remote
		}
		if known == name {
			return t, nil
		}
		names = append(names, known)
	}
	return nil, names
}

// stepArguments reports arguments that a schema does not declare, and required ones that are missing. The schema of a
// workflow also declares its tables, which a step gives as inputs.
func stepArguments(d *config.Draft, at string, schema json.RawMessage, args, inputs map[string]json.RawMessage) {
	var s struct {
		Properties        map[string]json.RawMessage `json:"properties"`
		PatternProperties map[string]json.RawMessage `json:"patternProperties"`
		Additional        json.RawMessage            `json:"additionalProperties"`
		Required          []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	open := len(s.PatternProperties) > 0 || len(s.Additional) > 0 && string(s.Additional) != "false"
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !open && !slices.Contains(known, name) {
			d.Add(at+".args."+name, "the tool has no argument '"+tenon.Visible(name)+"'", nearest(name, known))
		}
	}
	for _, name := range s.Required {
		if args[name] == nil && inputs[name] == nil {
			d.Add(at+".args", "the tool needs the argument '"+tenon.Visible(name)+"'", "write "+name+" under args")
		}
	}
}

// nearest returns a hint with the most similar name, or with the names if there are few.
func nearest(name string, known []string) string {
	if n := tenon.Nearest(name, known); n != "" {
		return "did you mean '" + n + "'?"
	}
	if len(known) > 0 && len(known) <= maxNamed {
		return "there are: " + strings.Join(known, ", ")
	}
	return ""
}

// maxNamed is the number of names that a hint lists.
const maxNamed = 8
