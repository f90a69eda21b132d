package config

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
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
			"no tenon.yaml in %s or a folder above it; 'tenon init' writes one, -c FILE names one%s",
			o.Dir, o.strangeAgent())
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
	f := file{src: &tree.Source{Label: "stdin", Dir: o.Dir, Layer: LayerProject}, data: data}
	if path != "-" {
		f.src.Label, f.src.Path, f.src.Dir = o.label(path), path, filepath.Dir(path)
	}
	return f, err
}

// withLower returns the project's file, if there is one, and the files of the trusted layers. If the project's file
// is also the user's file, it belongs to the user's layer.
func (o Options) withLower(ctx context.Context, files []file) ([]file, error) {
	lower, err := o.trusted(ctx)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 && files[0].src.Path != "" {
		top := files[0].src
		at := slices.IndexFunc(lower, func(f file) bool { return sameFile(f.src.Path, top.Path) })
		switch {
		case at >= 0 && lower[at].src.Layer == LayerAdmin:
			files = nil
		case at >= 0:
			// A link to the user's file may be in an untrusted folder: do not resolve relative paths there.
			top.Layer, top.Dir = LayerUser, lower[at].src.Dir
			lower = slices.Delete(lower, at, at+1)
		case !o.NoUser && filepath.Clean(top.Path) == o.userFile(): // the file will be created
			top.Layer = LayerUser
		}
	}
	files = append(files, lower...)
	for i := range files {
		files[i].src.Order = i
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
	if u := o.userFile(); !o.NoUser && u != "" && isFile(u) && (admin == nil || !sameFile(u, admin.src.Path)) {
		data, err := o.read(ctx, u)
		if err != nil {
			return nil, err
		}
		files = append(files, file{data: data,
			src: &tree.Source{Label: o.label(u), Path: u, Dir: filepath.Dir(u), Layer: LayerUser}})
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

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Above returns a configuration with only the rules and limits of the user's and the administrator's files. It is for
// a Go program or a command line that adds its own servers. It returns the errors of [Load], except not_found.
func Above(ctx context.Context, o Options) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	files, err := o.withLower(ctx, []file{{src: &tree.Source{Label: "command line", Dir: o.Dir, Layer: LayerProgram}}})
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

// Parse checks the bytes of one file in the way of [Load]. name is the file's name in errors; relative paths in it
// begin in o.Dir. Parse does not read the user's file, but it does read the administrator's.
func Parse(name string, data []byte, o Options) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	o.NoUser = true
	ctx := context.Background()
	src := &tree.Source{Label: name, Dir: o.Dir, Layer: LayerProject}
	files, err := o.withLower(ctx, []file{{src: src, data: data}})
	if err != nil {
		return nil, err
	}
	return build(ctx, o, files)
}

type file struct {
	src  *tree.Source
	data []byte
	tree *tree.Node // instead of data: see [Config.partly]
}

// meetFile records the bytes of a file that was read.
func (l *ledger) meetFile(f file) error {
	if f.tree != nil {
		return nil
	}
	return l.meet(f.src.Path, f.data, true)
}

// build builds the configuration from the files, the least trusted first.
func build(ctx context.Context, o Options, files []file) (*Config, error) {
	s, l := &tree.Sink{}, newLedger()
	if o.held != nil {
		l = o.held.files.clone()
	}
	c := &Config{files: l, held: o.held, planned: o.planned, flowed: map[string]readWorkflowFile{},
		secrets: map[string]SecretSource{}, late: map[string]*tree.Node{}, ring: o.Keyring, tabled: o.NoTables,
		given: &given{}, envs: map[string]map[string]string{}}
	trees := make([]*tree.Node, len(files))
	for i, f := range files {
		f.src.Vars = &tree.Variables{Lookup: o.LookupEnv, Home: o.Home, KeepUnset: o.KeepUnset}
		if f.src.Path != "" {
			c.read = append(c.read, f.src.Path, filepath.Join(f.src.Dir, ".env"))
			if err := l.meetFile(f); err != nil {
				return nil, err
			}
		}
		if f.src.Layer == LayerUser {
			c.user = f.src.Path
		}
		trees[i] = f.tree
		if f.tree == nil {
			trees[i] = readTree(f, o, s)
		}
		if f.src.Layer != LayerProgram && f.src.Path != "" { // stdin has no .env file
			dotenv(l, f.src, s)
		}
		checkLeast(trees[i], f.src.Layer, s)
		trees[i] = withOwnNames(trees[i], place{})
		c.raw = append(c.raw, layerTree{f.src, trees[i].Clone()}) // copy, because profiles change the tree later
	}
	c.read = append(c.read, o.absent(files)...)
	c.keys = o.keyVariables(l, files)
	c.layered(files, trees, s)
	d := &decoder{Sink: s, vars: files[0].src.Vars, nodes: map[string]*tree.Node{}, keyed: map[string]*tree.Node{},
		order:   map[string][]string{},
		secrets: c.secrets, late: c.late, apart: o.KeepUnset}
	c.vars, c.nodes, c.order = d.vars, d.nodes, d.order
	d.decode(c.tree, place{}, reflect.ValueOf(c).Elem(), field{})
	top := files[0].src
	c.File, c.Path, c.Dir = top.Label, top.Path, top.Dir
	c.ownSecrets()
	c.placeServers()
	c.Found = o.found
	c.protected = o.protectedBy(top)
	if c.Store.Path != "" {
		c.protected.Families = append(c.protected.Families, c.Store.Path)
	}
	(&checker{decoder: d, c: c, root: c.tree, lenient: top.Layer != LayerProject,
		paths: protect.New(c.protected)}).run(ctx)
	if len(s.Errs) > 0 {
		return nil, Errors(tree.Sorted(s.Errs))
	}
	c.fill()
	c.Warnings, c.held, c.planned = tree.Sorted(s.Warns), nil, nil
	return c, nil
}

// IsEmpty reports whether the files set no key, except the version of their format.
func (c *Config) IsEmpty() bool {
	if c.tree == nil {
		return true
	}
	return c.tree.Kind == tree.Map && !slices.ContainsFunc(c.tree.Keys, func(k *tree.Node) bool {
		return k.Val != "version"
	})
}

// placeServers marks the servers that only replicas with another label use.
func (c *Config) placeServers() {
	for name, s := range c.Servers {
		if s.Elsewhere = s.Replica != "" && !slices.Contains(c.Serve.Replica, s.Replica); s.Elsewhere {
			c.Servers[name] = s
		}
	}
}

// readTree returns the tree of a file, converted to tenon's format if it is another program's.
func readTree(f file, o Options, s *tree.Sink) *tree.Node {
	root := tree.Parse(f.src, f.data, s)
	empty := root == nil || root.IsNull() || root.Kind == tree.Map && len(root.Keys) == 0
	if root == nil {
		root = &tree.Node{Kind: tree.Map, Line: 1, Col: 1, Src: f.src}
	}
	switch base := filepath.Base(f.src.Path); {
	case empty && (base == "agent.yaml" || base == "agent.yml") && len(s.Errs) == 0:
		s.Add(root, "", "the file defines no agent", "an agent has at least the keys model and instructions")
	case root.Kind != tree.Map && !root.IsNull() && recognise(root) == "":
		s.Add(root, "", "must be a map, is "+root.Form(), "a file begins with keys such as version, servers, models")
		root = &tree.Node{Kind: tree.Map, Line: 1, Col: 1, Src: f.src}
	}
	return foreign(root, o, s)
}

// absent returns the files of the trusted layers that do not exist. If one is created later, the configuration
// changes.
func (o Options) absent(files []file) []string {
	var list []string
	has := func(layer Layer) bool {
		return slices.ContainsFunc(files, func(f file) bool { return f.src.Layer == layer })
	}
	if u := o.userFile(); !o.NoUser && u != "" && !has(LayerUser) {
		list = append(list, u, filepath.Join(filepath.Dir(u), ".env"))
	}
	if o.Admin != "" && !has(LayerAdmin) {
		list = append(list, o.Admin)
	}
	return list
}

// layered merges the trees of the layers, and keeps each trusted layer separately as well.
func (c *Config) layered(files []file, trees []*tree.Node, s *tree.Sink) {
	strict := false
	for i := len(trees) - 1; i > 0; i-- {
		src := files[i].src
		applyProfile(trees[i], false)
		if src.Layer == LayerUser {
			trees[i] = withoutLoosened(trees[i], trees[0], loosened(trees[1:], files[0].src), "")
		}
		unresolved := setting(trees[i], "policy", "env_unresolved")
		src.Vars.Lax = unresolved == "empty" && !strict
		strict = strict || unresolved == "error"
		c.floors = append(c.floors, alone(src, trees[i], s))
	}
	if files[0].src.Layer != LayerProgram {
		trees = bound(files, trees)
	}
	m := merger{s}
	c.tree = trees[0]
	for _, below := range trees[1:] {
		c.tree = m.merge(c.tree, withoutForeignTools(below, c.tree), place{})
	}
	if files[0].src.Layer == LayerProgram {
		c.tree = onlyLimits(c.tree)
		return
	}
	applyProfile(c.tree, true)
	files[0].src.Vars.Lax = setting(c.tree, "policy", "env_unresolved") == "empty"
}

// keyVariables returns the user's variables. The usual variable of a model's provider is looked up in them, in
// addition to the variables of the model's own file.
func (o Options) keyVariables(l *ledger, files []file) *tree.Variables {
	for _, f := range files {
		if f.src.Layer == LayerUser {
			return f.src.Vars
		}
	}
	vars := &tree.Variables{Lookup: o.LookupEnv, Home: o.Home, KeepUnset: o.KeepUnset}
	if u := o.userFile(); !o.NoUser && u != "" {
		dotenv(l, &tree.Source{Label: o.label(u), Dir: filepath.Dir(u), Order: len(files), Vars: vars}, &tree.Sink{})
	}
	return vars
}

// setting returns the text at a path of the tree, or "" if there is none.
func setting(n *tree.Node, path ...string) string {
	for _, key := range path {
		n, _ = n.Get(key)
	}
	if n == nil {
		return ""
	}
	return n.Val
}

// dotenv reads the .env file next to a config file. A line that cannot be read is a warning, because other programs
// read the file too.
func dotenv(files *ledger, src *tree.Source, s *tree.Sink) {
	p := filepath.Join(src.Dir, ".env")
	b, err := files.read(p, tree.MaxBytes)
	if err != nil {
		return
	}
	env := parseEnv(b, true, src.Vars.Lookup)
	at := *src
	at.Label = filepath.ToSlash(filepath.Join(filepath.Dir(src.Label), ".env"))
	if env.bad > 0 {
		s.Warn(&tree.Node{Src: &at, Line: env.bad, Col: 1}, "", "not a line KEY=VALUE; it is skipped", "")
	}
	for _, u := range env.unset {
		s.Warn(&tree.Node{Src: &at, Line: u.line, Col: 1}, "", u.message()+"; the line is skipped", "")
	}
	src.Vars.Dotenv, src.Vars.Takes = env.values, env.takes
}

// fill sets the defaults.
func (c *Config) fill() {
	c.Version = cmp.Or(c.Version, 1)
	c.Name = cmp.Or(c.Name, filepath.Base(c.Dir))
	c.Telemetry = c.Telemetry.WithDefaults()
	c.Serve = c.Serve.WithDefaults()
	c.Gateway = c.Gateway.WithDefaults()
	c.Engine.Kind = cmp.Or(c.Engine.Kind, EngineLocal)
	if c.Engine.IsTemporal() {
		t := &c.Engine.Temporal
		t.Address, t.Namespace = cmp.Or(t.Address, "127.0.0.1:7233"), cmp.Or(t.Namespace, "default")
		t.TaskQueue = cmp.Or(t.TaskQueue, "tenon")
	}
	if c.Store.Audit == nil {
		yes := true
		c.Store.Audit = &yes
	}
	c.Tables = c.Tables.WithDefaults()
	for name, s := range c.Servers {
		s = s.WithDefaults()
		s.Title = cmp.Or(s.Title, name)
		if s.Cwd == "" {
			s.Cwd = c.node("servers." + name).Src.Dir
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

// folder reports whether a folder exists at the path.
func folder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
