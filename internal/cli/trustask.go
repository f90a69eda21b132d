package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/trust"
)

// askTrust shows what a project would do, or the changes, and asks. Errors: denied, waiting if nobody can be asked,
// cancelled.
func (a *app) askTrust(ctx context.Context, cfg *config.Config, v verdict) error {
	if !a.canAsk() {
		return a.waitingForTrust(cfg, v)
	}
	defer a.logs.hold()()
	width := a.pageWidth()
	var lines []string
	for _, line := range append(trustHead(v), trustList(v, 0)...) {
		lines = append(lines, wrapHard(line, width)...)
	}
	if err := a.page(ctx, lines); err != nil {
		return err
	}
	ok, err := a.yesOrNo(ctx, "Do you trust this project? [y]es / [n]o: ")
	switch {
	case err != nil:
		return tenon.Errorf(tenon.CodeCancelled, "interrupted")
	case !ok:
		return tenon.Errorf(tenon.CodeDenied, "%s is not used: you do not trust it", v.File)
	}
	return nil
}

// waitingForTrust returns the error for a process without a terminal. It contains the whole list and the commands that
// agree to it, without the ways that the administrator's file forbids.
func (a *app) waitingForTrust(cfg *config.Config, v verdict) error {
	lines := append(trustHead(v), trustList(v, 0)...)
	named := "-c " + shellLine([]string{safeLine(v.File)})
	ask, here := "tenon trust", a.configOptions()
	here.File = ""
	if real, err := filepath.EvalSymlinks(config.FileOf(here)); err != nil || real != v.Project.Path {
		ask += " " + named // another project than the working folder's, for example of an evaluation
	}
	lines = append(lines, "", "Nobody can be asked here. If you trust it:")
	for _, way := range []struct{ text, does, forbidden string }{{ask, "shows this on a terminal and asks", ""},
		{"--trust", "trusts it without a question, with any command", "trust_flag"},
		{named, "uses it for one command", ""},
		{"TENON_TRUST=all", "in the environment of a container trusts every project", "trust_env"}} {
		if way.forbidden == "" || !forbids(cfg, way.forbidden) {
			lines = append(lines, fmt.Sprintf("  %-22s %s", way.text+" ", way.does))
		}
	}
	if len(a.argv) > 0 {
		flag := "--trust"
		if forbids(cfg, "trust_flag") {
			flag = named
		}
		lines = append(lines, "This command again: "+a.withFlag(flag))
	}
	data, err := json.Marshal(trustView(v))
	if err != nil {
		data = nil // for text output
	}
	return &tenon.Error{Code: tenon.CodeWaiting, Message: strings.Join(lines, "\n"), Data: data}
}

// maxAgain bounds this command in a message, in bytes.
const maxAgain = 100

// withFlag returns this command with a flag at its beginning. A long command is cut behind its verbs.
func (a *app) withFlag(flag string) string {
	line := shellLine(a.argv)
	if len(line) > maxAgain || strings.ContainsFunc(line, tenon.IsHidden) {
		verbs := a.argv
		if i := slices.IndexFunc(verbs, func(w string) bool { return !isVerb(w) }); i >= 0 {
			verbs = verbs[:i]
		}
		line = shellLine(verbs) + " …"
	}
	return strings.TrimSpace("tenon " + flag + " " + line)
}

// isVerb reports whether an argument has the form of a verb.
func isVerb(arg string) bool {
	return arg != "" && strings.Trim(arg, "abcdefghijklmnopqrstuvwxyz-") == "" && arg[0] != '-'
}

// trustHead returns the first lines of a question, which name the project.
func trustHead(v verdict) []string {
	where := shownLine(projectName(v.Project, v.cfg))
	if v.written && v.Record == nil {
		return []string{where + " is written. You have not agreed to its entries yet.",
			"If you trust it, tenon may do this for it:"}
	}
	if v.Record == nil {
		return []string{where + " was found here, and you have not trusted this project yet.",
			"If you do, tenon may do this for it:"}
	}
	when := v.Record.When.Local().Format("2006-01-02 15:04")
	return []string{where + " has changed since you trusted this project on " + when + ".", "This is the difference:"}
}

// projectName names the file of a project. A link is named with its own path and the path of the file, because scripts
// and .env next to the link belong to the project.
func projectName(p trust.Project, cfg *config.Config) string {
	if p.Path == "" || filepath.Dir(p.Path) == p.Dir {
		return p.Path
	}
	base := filepath.Base(p.Path)
	if cfg != nil && cfg.Path != "" {
		base = filepath.Base(cfg.Path)
	}
	return filepath.Join(p.Dir, base) + ", a link to " + p.Path + ","
}

// trustList returns lines with the items and the files of a project, or the difference from the last agreement. Width 0
// wraps no line.
func trustList(v verdict, width int) []string {
	if v.Record != nil {
		d, texts := v.Diff, textLines(v, width)
		writes, loads := append(selfWritten(v, d.Changed), selfWritten(v, d.New)...), maybeWritten(v)
		d.Changed, d.New = fileTexts(v.Project, d.Changed), fileTexts(v.Project, d.New)
		v.Diff = d
		lines := trustDiff(v.Diff, width)
		if len(writes) > 0 {
			lines = append(lines, wrapHard("  If a command writes "+shownLine(strings.Join(writes, ", "))+" itself, "+
				"each start ends the trust: have it write to a folder outside of the project.", width)...)
		}
		for _, name := range loads {
			entry := v.Project.Files[name].Why
			lines = append(lines, wrapHard("  "+shownLine(name)+" belongs to the project because the command of "+
				shownLine(entry)+" names it and may load it as code. If the command writes it itself, each start ends "+
				"the trust: have it write to a folder outside of the project.", width)...)
		}
		return append(lines, texts...)
	}
	lines := itemLines(v.Items, "", width)
	names := make([]string, 0, len(v.Project.Files))
	for name := range v.Project.Files {
		names = append(names, linkText(v.Project.Dir, name))
	}
	slices.Sort(names)
	return append(lines, fileLines("These files belong to it; tenon asks again when one of them changes", names, "",
		width)...)
}

// trustDiff returns the lines of a difference.
func trustDiff(d trust.Diff, width int) []string {
	var lines []string
	changed, added, removed := changedItems(d.Added, d.Removed)
	if len(changed) > 0 {
		lines = append(lines, "", "Changed:")
	}
	for _, c := range changed {
		lines = append(lines, wrapHard("  ~ "+shownLine(c[0].Path)+", before: "+shownLine(c[0].Text), width)...)
		lines = append(lines, wrapHard("  ~ "+shownLine(c[1].Path)+", now:    "+shownLine(c[1].Text), width)...)
	}
	if len(added) > 0 {
		lines = append(lines, "", "New:")
		lines = append(lines, itemLines(added, "+ ", width)...)
	}
	if len(removed) > 0 {
		lines = append(lines, "", "No longer:")
		lines = append(lines, itemLines(removed, "- ", width)...)
	}
	lines = append(lines, fileLines("Changed files", d.Changed, "~ ", width)...)
	lines = append(lines, fileLines("New files", d.New, "+ ", width)...)
	return append(lines, fileLines("Files that are gone", d.Gone, "- ", width)...)
}

// itemLines returns items under the headings of their kinds.
func itemLines(items []trust.Item, mark string, width int) []string {
	var lines []string
	for _, k := range itemKinds {
		first := true
		for _, i := range items {
			if i.Kind != k.kind {
				continue
			}
			if first {
				lines = append(lines, "", k.heading)
				first = false
			}
			text := shownLine(i.Text)
			if i.Path != "" {
				text = shownLine(i.Path) + ": " + text
			}
			lines = append(lines, wrapHard("  "+mark+text, width)...)
		}
	}
	return lines
}

func fileLines(heading string, names []string, mark string, width int) []string {
	if len(names) == 0 {
		return nil
	}
	lines := []string{"", fmt.Sprintf("%s (%d)", heading, len(names))}
	for _, name := range names {
		lines = append(lines, wrapHard("  "+mark+shownLine(name), width)...)
	}
	return lines
}

// projectView is a verdict in the output of -o json.
type projectView struct {
	File    string       `json:"file"`
	Folder  string       `json:"folder"`
	Trusted bool         `json:"trusted"`
	How     string       `json:"how,omitempty"`
	Since   string       `json:"since,omitempty"`
	Items   []trust.Item `json:"items"`
	Files   []fileView   `json:"files"`
	Diff    *trust.Diff  `json:"diff,omitempty"` // absent if there is no earlier agreement
}

// fileView is one file of a project.
type fileView struct {
	Name string `json:"name"`
	trust.File
}

func trustView(v verdict) projectView {
	out := projectView{File: v.Project.Path, Folder: v.Project.Dir, Trusted: v.Trusted(), How: v.How,
		Items: append([]trust.Item{}, v.Items...), Files: []fileView{}}
	if out.File == "" {
		out.File = filepath.ToSlash(v.File)
	}
	for name, f := range v.Project.Files {
		out.Files = append(out.Files, fileView{name, f})
	}
	slices.SortFunc(out.Files, func(a, b fileView) int { return strings.Compare(a.Name, b.Name) })
	if v.Record != nil {
		out.Since, out.Diff = v.Record.When.Format("2006-01-02T15:04:05Z07:00"), &v.Diff
	}
	return out
}

// linkText returns the name of a project's file. A link out of the project's folder is shown with its target.
func linkText(dir, name string) string {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == path {
		return name
	}
	if rel, err := filepath.Rel(dir, real); err == nil && filepath.IsLocal(rel) {
		return name
	}
	return name + ", a link to " + real
}

// fileTexts returns the names of files with the targets of their links, and with the entries to which they belong.
func fileTexts(p trust.Project, names []string) []string {
	list := make([]string, 0, len(names))
	for _, name := range names {
		text := linkText(p.Dir, name)
		if why := p.Files[name].Why; why != "" {
			text += "  (of " + why + ")"
		}
		list = append(list, text)
	}
	return list
}

// maxLoads is the maximum number of files that a question explains one by one.
const maxLoads = 5

// maybeWritten returns the changed and new files that count as code of a command, but that the command may write: it
// names them like outputs, or they are new. Their changes are shown all the same, because the command may load them.
func maybeWritten(v verdict) (list []string) {
	for i, names := range [][]string{v.Diff.Changed, v.Diff.New} {
		for _, name := range names {
			entry := v.Project.Files[name].Why
			isNew := i == 1 && strings.HasPrefix(entry, "servers.")
			if v.cfg == nil || len(list) == maxLoads || v.cfg.MayWrite(entry, name) {
				continue
			}
			if isNew || v.cfg.NamesOutput(entry, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// selfWritten returns the files that commands may write themselves.
func selfWritten(v verdict, names []string) (list []string) {
	for _, name := range names {
		if f := v.Project.Files[name]; v.cfg != nil && v.cfg.MayWrite(f.Why, name) {
			list = append(list, name)
		}
	}
	return list
}
