package config

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"reflect"

	"github.com/tenonhq/tenon"
)

// Load finds, reads and checks the configuration. The error is [Errors] with
// everything that is wrong in the files, or a *tenon.Error: code not_found where
// no file was named and none was found, code config where a file cannot be
// read. Load starts nothing and opens no socket.
//
// The file is the one that o.File names, else TENON_CONFIG; else tenon.yaml or
// tenon.yml in the working folder or its parents up to the home folder or a
// repository root; else agent.yaml (HoloDeck's), .mcp.json, mcp.json or
// .vscode/mcp.json in the working folder. The user's
// own config.yaml lies below it.
func Load(ctx context.Context, o Options) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	path, found := o.choose()
	user := ""
	if u := o.userFile(); !o.NoUser && u != "" && u != path && isFile(u) {
		user = u
	}
	if path == "" && user == "" {
		return nil, tenon.Errorf(tenon.CodeNotFound,
			"no tenon.yaml in %s or a folder above it; 'tenon init' writes one, -c FILE names one", o.Dir)
	}
	var files []file
	for _, p := range []string{path, user} {
		if p == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, &tenon.Error{Code: tenon.CodeCancelled, Message: "reading the configuration: " + err.Error(), Err: err}
		}
		data, err := o.read(ctx, p)
		if err != nil {
			return nil, err
		}
		f := file{src: &source{label: "stdin", dir: o.Dir, order: len(files), user: p == user}, data: data}
		if p != "-" {
			f.src.label, f.src.path, f.src.dir = o.label(p), p, filepath.Dir(p)
		}
		files = append(files, f)
	}
	c, err := build(ctx, o, files)
	if err != nil {
		return nil, err
	}
	if c.Found = found; path == "" {
		c.Path = ""
	}
	return c, nil
}

// Parse checks the bytes of one file, called name in errors, as [Load] does;
// relative paths in it are relative to o.Dir. The user's file is not read.
func Parse(name string, data []byte, o Options) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	o.NoUser = true
	return build(context.Background(), o, []file{{src: &source{label: name, dir: o.Dir}, data: data}})
}

type file struct {
	src  *source
	data []byte
}

// build makes the configuration of the files, the topmost first.
func build(ctx context.Context, o Options, files []file) (*Config, error) {
	s := &sink{}
	vars := &variables{lookup: o.LookupEnv, home: o.Home}
	var tree *node
	var read []string
	for _, f := range files {
		if f.src.path != "" {
			read = append(read, f.src.path, filepath.Join(f.src.dir, ".env"))
		}
		root := parse(f.src, f.data, s)
		switch {
		case root == nil:
			root = &node{kind: mapNode, line: 1, col: 1, src: f.src}
		case root.kind != mapNode && !root.isNull() && recognise(root) == "":
			s.add(root, "", "must be a map, is "+root.what(), "a file begins with keys such as version, servers, models")
			root = &node{kind: mapNode, line: 1, col: 1, src: f.src}
		}
		root = foreign(root, o, s)
		dotenv(f.src, vars, s)
		tree = overlay(tree, root, "")
	}
	if u := o.userFile(); !o.NoUser && u != "" {
		read = append(read, u, filepath.Join(filepath.Dir(u), ".env"))
	}
	if !o.NoUser {
		if u := o.userFile(); u != "" && (len(files) == 0 || files[len(files)-1].src.path != u) {
			dotenv(&source{label: o.label(u), dir: filepath.Dir(u), order: len(files)}, vars, s)
		}
	}
	applyProfile(tree)
	vars.lax = setting(tree, "policy", "env_unresolved") == "empty"
	d := &decoder{sink: s, vars: vars, nodes: map[string]*node{}, keyed: map[string]*node{}, order: map[string][]string{},
		secrets: map[string]SecretSource{}, late: map[string]*node{}}
	c := &Config{tree: tree, read: read, vars: vars, nodes: d.nodes, order: d.order, secrets: d.secrets, late: d.late, ring: o.Keyring, tabled: o.NoTables, given: &given{}, envs: map[string]map[string]string{}}
	d.decode(tree, place{}, reflect.ValueOf(c).Elem(), field{})
	top := files[0].src
	c.File, c.Path, c.Dir = top.label, top.path, top.dir
	(&checker{decoder: d, c: c, root: tree}).run(ctx)
	if len(s.errs) > 0 {
		return nil, Errors(sorted(s.errs))
	}
	c.fill()
	c.Warnings = sorted(s.warns)
	return c, nil
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

// dotenv reads the .env file beside a config file. A line in it that cannot be
// read is a warning, because other programs read the file too.
func dotenv(src *source, vars *variables, s *sink) {
	p := filepath.Join(src.dir, ".env")
	b, err := readFile(p, maxBytes)
	if err != nil {
		return
	}
	env, bad := parseEnv(b)
	if bad > 0 {
		at := *src
		at.label = filepath.ToSlash(filepath.Join(filepath.Dir(src.label), ".env"))
		s.warn(&node{src: &at, line: bad, col: 1}, "", "not a line KEY=VALUE; it is skipped", "")
	}
	vars.dotenv = append(vars.dotenv, env)
}

// fill puts the defaults in.
func (c *Config) fill() {
	c.Version = cmp.Or(c.Version, 1)
	c.Name = cmp.Or(c.Name, filepath.Base(c.Dir))
	c.Telemetry = c.Telemetry.WithDefaults()
	c.Serve = c.Serve.WithDefaults()
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
		c.Servers[name] = s
	}
	for name, t := range c.Tools {
		c.Tools[name] = t.WithDefaults(name)
	}
	for name, m := range c.Models {
		m.Name = name
		c.Models[name] = m.WithDefaults()
	}
	for name, a := range c.Agents {
		a.Limits = a.Limits.Over(c.Limits)
		a = a.WithDefaults()
		if first := c.order["models"]; a.Model == "" && len(first) > 0 {
			a.Model = first[0]
		}
		c.Agents[name] = a
	}
	c.Limits = c.Limits.WithDefaults()
	c.Policy.Defaults = c.Policy.Defaults.WithDefaults()
}

// folder reports whether the path is a folder.
func folder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
