package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/workflow"
)

// TextEdit is the new content of a workflow file of the project.
type TextEdit struct {
	// Path is the path of the file, absolute or relative to the folder of the project's file. After the change, an
	// entry of tools must name it.
	Path string
	Text string
	// Digest is the digest of the file that the sender has seen, or "" for a file that does not exist yet.
	Digest string
}

// PlannedText is a workflow file that a [Plan] writes.
type PlannedText struct {
	File          string // its name in errors
	Before, After []byte // Before is nil if the file does not exist

	path string
}

// Path returns the absolute path of the file.
func (t *PlannedText) Path() string { return t.path }

// Dir returns the folder of the file, where its tables are.
func (t *PlannedText) Dir() string { return filepath.Dir(t.path) }

// NewWorkflow returns the place of a workflow file beside the project's file that has no name yet.
func (p *Plan) NewWorkflow() *PlannedText {
	return &PlannedText{File: workflow.FileName, path: filepath.Join(filepath.Dir(p.path), workflow.FileName)}
}

// IsWorkflowName reports whether a text can be the name of a workflow, and of its file.
func IsWorkflowName(name string) bool { return workflow.IsName(name) && !strings.HasPrefix(name, ".") }

// maxFlowText is far more than people write into a workflow file; rows belong into its tables.
const maxFlowText = 1 << 20

// planTexts reads the files that the edits replace, and returns the options that use the new texts.
func (p *Plan) planTexts(o Options, edits []TextEdit) (Options, error) {
	for _, e := range edits {
		path := e.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(p.path), filepath.FromSlash(path))
		}
		t := PlannedText{File: o.label(path), After: []byte(e.Text), path: path}
		switch {
		case !isBelow(path, filepath.Dir(p.path)):
			return o, tenon.Errorf(tenon.CodeInvalid, "%s is not in the project's folder; edit it where it is", t.File)
		case !strings.EqualFold(filepath.Ext(path), ".yaml") && !strings.EqualFold(filepath.Ext(path), ".yml"):
			return o, tenon.Errorf(tenon.CodeInvalid, "%s is not a workflow file; its name must end with .yaml", t.File)
		case path == p.path || withoutLinks(path) == p.real:
			return o, tenon.Errorf(tenon.CodeInvalid, "%s is the project's file, not a workflow", t.File)
		case withoutLinks(path) != filepath.Join(withoutLinks(filepath.Dir(p.path)),
			strings.TrimPrefix(path, filepath.Dir(p.path))):
			return o, tenon.Errorf(tenon.CodeDenied, "%s is a link, or is behind one; edit the file itself", t.File)
		case len(t.After) > maxFlowText:
			return o, tenon.Errorf(tenon.CodeTooLarge, "%s may have at most %d KiB", t.File, maxFlowText>>10)
		}
		var err error
		if t.Before, err = readFile(path, maxFlowText); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return o, tenon.Errorf(tenon.CodeConfig, "%s: %s", t.File, reason(err))
		}
		if e.Digest != t.Digest() {
			if e.Digest == "" {
				return o, tenon.Errorf(tenon.CodeConflict, "%s exists already; choose another name", t.File)
			}
			return o, tenon.Errorf(tenon.CodeConflict, "%s was changed meanwhile; load it again, and repeat your "+
				"changes", t.File)
		}
		if o.planned == nil {
			o.planned = map[string][]byte{}
		}
		o.planned[path] = t.After
		p.Texts = append(p.Texts, t)
	}
	return o, nil
}

// checkTexts reports a text that no entry of tools uses: requests can only write workflow files.
func (p *Plan) checkTexts() error {
	for _, t := range p.Texts {
		used := false
		for _, flow := range p.Config.flowed {
			_, ok := flow.sums[t.path]
			used = used || ok
		}
		if !used {
			return tenon.Errorf(tenon.CodeInvalid, "%s is not the file of a workflow of this project: no entry of "+
				"tools names it", t.File)
		}
	}
	return nil
}

// Digest returns the digest of the file before the plan, or "" if it does not exist.
func (t *PlannedText) Digest() string {
	if t.Before == nil {
		return ""
	}
	sum := sha256.Sum256(t.Before)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// write writes the file, unless it has changed since it was read.
func (t *PlannedText) write(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", t.File, err)
	}
	unlock, err := lockFolder(ctx, t.File, filepath.Dir(t.path))
	if err != nil {
		return err
	}
	defer unlock()
	now, err := readFile(t.path, maxFlowText)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || !bytes.Equal(now, t.Before) ||
		withoutLinks(filepath.Dir(t.path)) != filepath.Dir(withoutLinks(t.path)) {
		return tenon.Errorf(tenon.CodeConflict, "%s was changed by somebody else meanwhile; look at it again", t.File)
	}
	mode := os.FileMode(0o644)
	if st, err := os.Stat(t.path); err == nil {
		mode = st.Mode().Perm()
	}
	return replaceFile(t.path, t.After, mode)
}

// WorkflowText returns the file of a workflow that an entry of tools names: its path, its text, and its digest, as
// the file is now. Errors: not_found (no such entry), invalid (a packed workflow, or one of another file of the
// configuration, or one outside of the project's folder).
func (p *Plan) WorkflowText(tool string) (*PlannedText, error) {
	if !p.HasWorkflow(tool) {
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s has no workflow '%s'%s", p.File, tenon.Visible(tool),
			near(tool, p.workflowNames()))
	}
	path := p.Config.Tools[tool].Path
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, workflow.FileName)
	}
	out := &PlannedText{File: p.Config.nameOf(path), path: path}
	data, err := readFile(path, maxFlowText)
	switch {
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s cannot be edited here: %s", out.File, reason(err))
	case strings.HasPrefix(string(data), zipMagic):
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s is a packed workflow, which cannot be edited here; unpack it "+
			"with: tenon workflows unpack", out.File)
	case !isBelow(path, filepath.Dir(p.path)):
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s is not in the project's folder; edit it where it is", out.File)
	}
	out.Before, out.After = data, data
	return out, nil
}

// HasWorkflow reports whether the file has an entry of tools with this name that is a workflow.
func (p *Plan) HasWorkflow(tool string) bool { return slices.Contains(p.workflowNames(), tool) }

func (p *Plan) workflowNames() (names []string) {
	for _, name := range p.EntryNames("tools") {
		if p.Config != nil && p.Config.Tools[name].Kind == tenon.KindWorkflow {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// FileChanges returns the texts of all files that the plan writes, the workflow files first.
func (p *Plan) FileChanges() []FileChange {
	var out []FileChange
	for _, t := range p.Texts {
		out = append(out, FileChange{File: t.File, Before: string(t.Before), After: string(t.After)})
	}
	if len(out) == 0 || !bytes.Equal(p.Before, p.After) {
		out = append(out, FileChange{File: p.File, Before: string(p.Before), After: string(p.After)})
	}
	return out
}
