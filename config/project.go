package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/trust"
)

// Project returns the files that belong to the project: the configuration file, the .env next to it, all files that
// it names, and the local scripts that its commands run. Files that only the user's own configuration names do not
// belong to it. The result has no path if there is no project: the configuration is from stdin, from the user's own
// file only, or from a Go program.
//
// The digests belong to the bytes with which the configuration was checked. Files that are read later, such as
// scripts, are digested at the first call and compared at each use. The error has code too_large beyond
// [trust.MaxFiles] and [trust.MaxBytes], else config.
func (c *Config) Project() (trust.Project, error) {
	if c.Path == "" || c.files == nil || c.topLayer() != LayerProject {
		return trust.Project{}, nil
	}
	path, err := filepath.EvalSymlinks(c.Path)
	if err != nil {
		return trust.Project{}, nil // a named pipe
	}
	dir, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		return trust.Project{}, tenon.Errorf(tenon.CodeConfig, "the folder of %s cannot be read: %s", c.File,
			reason(err))
	}
	p := &projectFiles{c: c, out: trust.Project{Path: path, Dir: dir, Files: map[string]trust.File{}}}
	p.add(c.Path, "")
	p.add(filepath.Join(c.Dir, ".env"), "")
	p.named()
	p.tables()
	p.agents()
	for key, command := range c.commands() {
		for _, file := range c.load(key, command) {
			p.add(file, key)
		}
	}
	return p.out, p.err
}

// UserFiles returns the paths of the user's own configuration file and of the .env next to it, if they were read.
func (c *Config) UserFiles() []string {
	if c.user == "" {
		return nil
	}
	list := []string{c.user}
	if env := filepath.Join(filepath.Dir(c.user), ".env"); c.Knows(env) {
		list = append(list, env)
	}
	return list
}

// projectFiles collects the files of a project.
type projectFiles struct {
	c     *Config
	out   trust.Project
	bytes int64
	err   error // the first one
}

// own reports whether the project, and not a more trusted layer, sets the value at a path.
func (c *Config) own(path string) bool {
	n := c.node(path)
	return n != nil && n.Src.Layer.Rank() == LayerProject.Rank() && !n.Src.Profile
}

// add adds a file, if it exists.
func (p *projectFiles) add(path, why string) {
	if p.err != nil || path == "" {
		return
	}
	sum, err := p.c.files.look(path, trust.MaxBytes)
	switch {
	// a pipe, or a program that cannot be read: accepted, because the person named the configuration
	case err != nil && !p.c.Found && tenon.ErrorCode(err) != tenon.CodeTooLarge:
		return
	case err != nil:
		p.fail(tenon.ErrorCode(err), "%s: %s", p.name(path), reason(err))
		return
	case sum.digest == "":
		return
	}
	name := p.name(path)
	if _, there := p.out.Files[name]; there {
		return
	}
	p.bytes += sum.size
	switch {
	case len(p.out.Files) >= trust.MaxFiles:
		p.fail(tenon.CodeTooLarge, "the project has more than %d files", trust.MaxFiles)
	case p.bytes > trust.MaxBytes:
		p.fail(tenon.CodeTooLarge, "the files of the project have more than %d MiB", trust.MaxBytes>>20)
	default:
		p.out.Files[name] = trust.File{Digest: sum.digest, Size: sum.size, Link: p.link(path), Why: why}
	}
}

func (p *projectFiles) fail(code tenon.Code, format string, args ...any) {
	if code != tenon.CodeTooLarge {
		code = tenon.CodeConfig
	}
	p.err = tenon.Errorf(code, p.c.File+": "+format, args...)
}

// name returns the name of a file in a trust record: relative to the project's folder if the file is inside.
func (p *projectFiles) name(path string) string {
	for _, dir := range []string{p.c.Dir, p.out.Dir} {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.ToSlash(path)
}

// link returns the real path of a file, or "" if its name contains no links.
func (p *projectFiles) link(path string) string {
	named := path
	if rel, err := filepath.Rel(p.c.Dir, path); err == nil && filepath.IsLocal(rel) {
		named = filepath.Join(p.out.Dir, rel)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == named {
		return ""
	}
	return real
}

// named adds the files that entries of the configuration name.
func (p *projectFiles) named() {
	c := p.c
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		if at := "servers." + name; c.own(at+".env_file") && c.Servers[name].IsEnabled() {
			p.add(c.Servers[name].EnvFile, at)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		t, at := c.Tools[name], "tools."+name
		if !c.own(at) {
			continue
		}
		for _, file := range slices.Sorted(maps.Keys(c.flowed[t.Path].sums)) {
			p.met(file, c.flowed[t.Path].sums[file], at)
		}
		if file, ok := strings.CutPrefix(t.Model, "script:"); ok {
			if abs, err := filepath.Abs(file); err == nil {
				p.add(abs, at)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if at := "models." + name; c.own(at + ".path") {
			p.add(c.Models[name].Path, at)
		}
	}
	if c.own("prices") {
		p.add(c.Prices, "prices")
	}
}

// met adds a file that was read together with other files, with the digest that it had then.
func (p *projectFiles) met(path string, sum fileSum, why string) {
	if err := p.c.files.note(path, sum); err != nil && p.err == nil {
		p.err = err
	}
	p.add(path, why)
}

// tables adds the tables of tools, with the files of their file stores that were read.
func (p *projectFiles) tables() {
	for _, file := range p.c.tableReads {
		at := "tool_tables"
		for i, t := range p.c.ToolTables {
			if file == t.Path || strings.HasPrefix(file, t.Path+".filestore"+string(filepath.Separator)) {
				at = "tool_tables[" + strconv.Itoa(i) + "]"
			}
		}
		if n := p.c.nodes["tool_tables"]; n == nil || n.Src.Layer.Rank() == LayerProject.Rank() {
			p.add(file, at)
		}
	}
}

// agents adds the files that agents name: instructions, schemas, templates and data tables.
func (p *projectFiles) agents() {
	c := p.c
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a, at := c.Agents[name], "agents."+name
		if !c.own(at) {
			continue
		}
		p.add(a.Instructions.File, at)
		p.add(a.ResponseFormat.File, at)
		if a.Prompt != agent.PromptDefault && a.Prompt != agent.PromptTrustGraph {
			p.add(a.Prompt, at)
		}
		for _, file := range a.DataInputs {
			p.add(file, at)
		}
	}
}

// commands returns the commands that the project starts, for enabled servers and for secrets, by their paths in the
// configuration.
func (c *Config) commands() map[string]command {
	found := map[string]command{}
	add := func(at string) {
		if cmd, ok := c.commandAt(at); ok {
			found[at] = cmd
		}
	}
	for name := range c.Servers {
		add("servers." + name)
	}
	for name := range c.Secrets {
		add("secrets." + name)
	}
	for at := range c.secrets {
		add(at)
	}
	return found
}

// commandAt returns the command at a path of the project, such as servers.NAME, secrets.NAME or models.NAME.api_key.
func (c *Config) commandAt(at string) (command, bool) {
	if !c.own(at) {
		return command{}, false
	}
	if s, ok := c.secrets[at]; ok {
		return command{argv: s.Command, dir: c.Dir}, len(s.Command) > 0 && s.name == ""
	}
	if name, ok := strings.CutPrefix(at, "secrets."); ok {
		s := c.Secrets[name]
		return command{argv: s.Command, dir: c.Dir}, len(s.Command) > 0
	}
	name, _ := strings.CutPrefix(at, "servers.")
	s, ok := c.Servers[name]
	if !ok || !s.IsEnabled() || s.InferTransport() != servers.TransportStdio {
		return command{}, false
	}
	return c.serverCommand(name, s), true
}
