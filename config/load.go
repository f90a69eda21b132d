package config

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/protect"
)

// Load finds, reads and checks the configuration. The error is [Errors] with all mistakes in the files, or a
// *tenon.Error: code not_found if no file was named and none was found, code config if a file cannot be read. Load
// starts no program and opens no socket.
//
// The project's file is the first of: o.File; TENON_CONFIG; tenon.yaml or tenon.yml in the working folder or its
// parents up to the home folder or a repository root; agent.yaml (HoloDeck's), .mcp.json, mcp.json or
// .vscode/mcp.json in the working folder. The user's config.yaml and the administrator's file are separate layers:
// see [Layer] and [DirectionOf].
func Load(ctx context.Context, o Options) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	path, found := o.choose()
	o.found = found
	var files []file
	if path != "" {
		f, err := o.project(ctx, path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if files, err = o.withLower(ctx, files); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, tenon.Errorf(tenon.CodeNotFound,
			"no tenon.yaml in %s or a folder above it; 'tenon init' writes one, -c FILE names one", o.Dir)
	}
	c, err := build(ctx, o, files)
	if err != nil {
		return nil, err
	}
	if path == "" {
		c.Path = ""
	}
	return c, nil
}

// project reads the project's file.
func (o Options) project(ctx context.Context, path string) (file, error) {
	data, err := o.read(ctx, path)
	f := file{src: &source{label: "stdin", dir: o.Dir, layer: LayerProject}, data: data}
	if path != "-" {
		f.src.label, f.src.path, f.src.dir = o.label(path), path, filepath.Dir(path)
	}
	return f, err
}

// withLower returns the project's file, if there is one, and the files of the trusted
// layers. A project's file that is the user's file belongs to the user's layer.
func (o Options) withLower(ctx context.Context, files []file) ([]file, error) {
	lower, err := o.trusted(ctx)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 && files[0].src.path != "" {
		top := files[0].src
		at := slices.IndexFunc(lower, func(f file) bool { return sameFile(f.src.path, top.path) })
		switch {
		case at >= 0 && lower[at].src.layer == LayerAdmin:
			files = nil
		case at >= 0:
			// A link to the user's file in a stranger's folder resolves no path there.
			top.layer, top.dir = LayerUser, lower[at].src.dir
			lower = slices.Delete(lower, at, at+1)
		case !o.NoUser && filepath.Clean(top.path) == o.userFile(): // it is about to be written
			top.layer = LayerUser
		}
	}
	files = append(files, lower...)
	for i := range files {
		files[i].src.order = i
	}
	return files, nil
}

// trusted reads the user's file and the administrator's file, if they exist.
func (o Options) trusted(ctx context.Context) ([]file, error) {
	var files []file
	admin, err := o.adminFile()
	if err != nil {
		return nil, err
	}
	if u := o.userFile(); !o.NoUser && u != "" && isFile(u) && (admin == nil || !sameFile(u, admin.src.path)) {
		data, err := o.read(ctx, u)
		if err != nil {
			return nil, err
		}
		files = append(files, file{src: &source{label: o.label(u), path: u, dir: filepath.Dir(u), layer: LayerUser},
			data: data})
	}
	if admin != nil {
		files = append(files, *admin)
	}
	if err := ctx.Err(); err != nil {
		return nil, &tenon.Error{Code: tenon.CodeCancelled, Message: "reading the configuration: " + err.Error(),
			Err: err}
	}
	return files, nil
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Above returns a configuration that has only the rules and limits of the user's and the administrator's files, for a
// Go program or a command line that adds its own servers. Its errors are the errors of [Load], without not_found.
func Above(ctx context.Context, o Options) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	files, err := o.withLower(ctx, []file{{src: &source{label: "command line", dir: o.Dir, layer: LayerProgram}}})
	if err != nil {
		return nil, err
	}
	c, err := build(ctx, o, files)
	if err != nil {
		return nil, err
	}
	c.File, c.Dir, c.Name, c.protected = "", "", "", protect.Config{}
	return c, nil
}

// Parse checks the bytes of one file, called name in errors, as [Load] does;
// relative paths in it are relative to o.Dir. The user's file is not read. The
// administrator's file is.
func Parse(name string, data []byte, o Options) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	o.NoUser = true
	ctx := context.Background()
	files, err := o.withLower(ctx, []file{{src: &source{label: name, dir: o.Dir, layer: LayerProject}, data: data}})
	if err != nil {
		return nil, err
	}
	return build(ctx, o, files)
}

type file struct {
	src  *source
	data []byte
	tree *node // in place of data: see [Config.partly]
}

// meetFile records the bytes of a file that was read.
func (l *ledger) meetFile(f file) error {
	if f.tree != nil {
		return nil
	}
	return l.meet(f.src.path, f.data, true)
}

// build makes the configuration of the files, the least trusted first.
func build(ctx context.Context, o Options, files []file) (*Config, error) {
	s, l := &sink{}, newLedger()
	if o.held != nil {
		l = o.held.files.clone()
	}
	c := &Config{files: l, held: o.held, flowed: map[string]readWorkflowFile{}, secrets: map[string]SecretSource{},
		late: map[string]*node{}, ring: o.Keyring, tabled: o.NoTables, given: &given{},
		envs: map[string]map[string]string{}}
	trees := make([]*node, len(files))
	for i, f := range files {
		f.src.vars = &variables{lookup: o.LookupEnv, home: o.Home}
		if f.src.path != "" {
			c.read = append(c.read, f.src.path, filepath.Join(f.src.dir, ".env"))
			if err := l.meetFile(f); err != nil {
				return nil, err
			}
		}
		if f.src.layer == LayerUser {
			c.user = f.src.path
		}
		trees[i] = f.tree
		if f.tree == nil {
			trees[i] = readTree(f, o, s)
		}
		if f.src.layer != LayerProgram && f.src.path != "" { // no file of the working folder belongs to stdin
			dotenv(l, f.src, s)
		}
		checkLeast(trees[i], f.src.layer, s)
		trees[i] = withOwnNames(trees[i], place{})
		c.raw = append(c.raw, layerTree{f.src, trees[i].clone()}) // defaults of a profile are put into the tree
	}
	c.read = append(c.read, o.absent(files)...)
	c.keys = o.keyVariables(l, files)
	c.layered(files, trees, s)
	d := &decoder{sink: s, vars: files[0].src.vars, nodes: map[string]*node{}, keyed: map[string]*node{},
		order:   map[string][]string{},
		secrets: c.secrets, late: c.late}
	c.vars, c.nodes, c.order = d.vars, d.nodes, d.order
	d.decode(c.tree, place{}, reflect.ValueOf(c).Elem(), field{})
	top := files[0].src
	c.File, c.Path, c.Dir = top.label, top.path, top.dir
	c.ownSecrets()
	c.Found = o.found
	c.protected = o.protectedBy(top)
	if c.Store.Path != "" {
		c.protected.Families = append(c.protected.Families, c.Store.Path)
	}
	(&checker{decoder: d, c: c, root: c.tree, lenient: top.layer != LayerProject,
		paths: protect.New(c.protected)}).run(ctx)
	if len(s.errs) > 0 {
		return nil, Errors(sorted(s.errs))
	}
	c.fill()
	c.Warnings, c.held = sorted(s.warns), nil
	return c, nil
}

// readTree returns the tree of a file, in tenon's own form.
func readTree(f file, o Options, s *sink) *node {
	root := parse(f.src, f.data, s)
	switch {
	case root == nil:
		root = &node{kind: mapNode, line: 1, col: 1, src: f.src}
	case root.kind != mapNode && !root.isNull() && recognise(root) == "":
		s.add(root, "", "must be a map, is "+root.what(), "a file begins with keys such as version, servers, models")
		root = &node{kind: mapNode, line: 1, col: 1, src: f.src}
	}
	return foreign(root, o, s)
}

// absent returns the files of the trusted layers that do not exist yet: to create one
// changes the configuration.
func (o Options) absent(files []file) []string {
	var list []string
	has := func(layer Layer) bool {
		return slices.ContainsFunc(files, func(f file) bool { return f.src.layer == layer })
	}
	if u := o.userFile(); !o.NoUser && u != "" && !has(LayerUser) {
		list = append(list, u, filepath.Join(filepath.Dir(u), ".env"))
	}
	if o.Admin != "" && !has(LayerAdmin) {
		list = append(list, o.Admin)
	}
	return list
}

// layered combines the trees of the layers, and keeps what each trusted layer says by
// itself.
func (c *Config) layered(files []file, trees []*node, s *sink) {
	strict := false
	for i := len(trees) - 1; i > 0; i-- {
		src := files[i].src
		applyProfile(trees[i], false)
		if src.layer == LayerUser {
			trees[i] = withoutLoosened(trees[i], trees[0], loosened(trees[1:], files[0].src), "")
		}
		unresolved := setting(trees[i], "policy", "env_unresolved")
		src.vars.lax = unresolved == "empty" && !strict
		strict = strict || unresolved == "error"
		c.floors = append(c.floors, alone(src, trees[i], s))
	}
	if files[0].src.layer != LayerProgram {
		trees = bound(files, trees)
	}
	m := merger{s}
	c.tree = trees[0]
	for _, below := range trees[1:] {
		c.tree = m.merge(c.tree, withoutForeignTools(below, c.tree), place{})
	}
	if files[0].src.layer == LayerProgram {
		c.tree = onlyLimits(c.tree)
		return
	}
	applyProfile(c.tree, true)
	files[0].src.vars.lax = setting(c.tree, "policy", "env_unresolved") == "empty"
}

// keyVariables returns the user's variables. The usual variable of a model's provider is looked up there, in addition
// to the variables of the model's own file.
func (o Options) keyVariables(l *ledger, files []file) *variables {
	for _, f := range files {
		if f.src.layer == LayerUser {
			return f.src.vars
		}
	}
	vars := &variables{lookup: o.LookupEnv, home: o.Home}
	if u := o.userFile(); !o.NoUser && u != "" {
		dotenv(l, &source{label: o.label(u), dir: filepath.Dir(u), order: len(files), vars: vars}, &sink{})
	}
	return vars
}

// setting returns the text at a path of the tree, "" where there is none.
func setting(n *node, path ...string) string {
	for _, key := range path {
		n, _ = n.get(key)
	}
	if n == nil {
		return ""
	}
	return n.val
}

// dotenv reads the .env file next to a config file. A line that cannot be read is a warning, because other programs
// read the file too.
func dotenv(files *ledger, src *source, s *sink) {
	p := filepath.Join(src.dir, ".env")
	b, err := files.read(p, maxBytes)
	if err != nil {
		return
	}
	env := parseEnv(b, true, src.vars.lookup)
	at := *src
	at.label = filepath.ToSlash(filepath.Join(filepath.Dir(src.label), ".env"))
	if env.bad > 0 {
		s.warn(&node{src: &at, line: env.bad, col: 1}, "", "not a line KEY=VALUE; it is skipped", "")
	}
	for _, u := range env.unset {
		s.warn(&node{src: &at, line: u.line, col: 1}, "", u.message()+"; the line is skipped", "")
	}
	src.vars.dotenv, src.vars.takes = env.values, env.takes
}

// fill puts the defaults in.
func (c *Config) fill() {
	c.Version = cmp.Or(c.Version, 1)
	c.Name = cmp.Or(c.Name, filepath.Base(c.Dir))
	c.Telemetry = c.Telemetry.WithDefaults()
	c.Serve = c.Serve.WithDefaults()
	c.Gateway = c.Gateway.WithDefaults()
	c.Engine.Kind = cmp.Or(c.Engine.Kind, "local")
	if c.Store.Audit == nil {
		yes := true
		c.Store.Audit = &yes
	}
	c.Tables = c.Tables.WithDefaults()
	for name, s := range c.Servers {
		s = s.WithDefaults()
		s.Title = cmp.Or(s.Title, name)
		if s.Cwd == "" {
			s.Cwd = c.node("servers." + name).src.dir
		}
		c.Servers[name] = c.Narrowed(name, s)
	}
	c.narrowTools()
	for name, t := range c.Tools {
		c.Tools[name] = t.WithDefaults(name)
	}
	for name, m := range c.Models {
		m.Name = name
		c.Models[name] = m.WithDefaults()
	}
	for name, a := range c.Agents {
		c.holdLimits(name, a.Limits)
		a.Limits = c.agentLimits(name, a.Limits)
		a = c.narrowedAgent(name, a.WithDefaults())
		if first := c.order["models"]; a.Model == "" && len(first) > 0 {
			a.Model = first[0]
		}
		c.Agents[name] = a
	}
	for name, s := range c.Schedules {
		c.Schedules[name] = s.WithDefaults()
	}
	c.Limits = c.Limits.WithDefaults()
	c.written = c.Policy.Defaults
	c.Policy.Defaults = c.Policy.Defaults.WithDefaults()
}

// folder reports whether the path is a folder.
func folder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
