package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
)

// A Go program can add entries that are in no file. Each such entry is converted to the nodes that a file would have,
// and then checked like a file. Its texts are literal: variables and references to secrets are not expanded.

// CheckEntry checks an entry of servers that a Go program made, with the checks for files. models are names of models
// that the program has in addition to the configured ones. Errors have code config and name the key as
// servers.NAME.KEY.
func (c *Config) CheckEntry(name string, entry servers.Config, models ...string) error {
	k := c.programChecker()
	k.entry(name, entry, models)
	return k.err()
}

// CheckProgram checks all values that a Go program has set, with the checks for files. It does nothing for a
// configuration that was loaded and not changed. models are names as in [Config.CheckEntry]. Errors: config.
func (c *Config) CheckProgram(models ...string) error {
	k := c.programChecker()
	k.order["models"], k.order["agents"] = append(c.ModelNames(), models...), c.AgentNames()
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		if c.isProgram("servers." + name) {
			k.entry(name, c.Servers[name], models)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		if p := "tools." + name; c.isProgram(p) {
			decodeTyped(k, place{p, "tools.NAME"}, c.Tools[name])
			k.programTool(p, name, c.Tools[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if m, p := c.Models[name], "models."+name; c.isProgram(p) {
			decodeTyped(k, place{p, "models.NAME"}, m)
			for i, to := range m.Fallback {
				k.refersToModel(tree.Index(p+".fallback", i), to)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		if a, p := c.Agents[name], "agents."+name; c.isProgram(p) {
			decodeTyped(k, place{p, "agents.NAME"}, a)
			k.globs(p+".tools.include", a.Tools.Include)
			k.globs(p+".tools.exclude", a.Tools.Exclude)
			k.refersToModel(p+".model", a.Model)
			k.refersToModel(p+".compaction.model", a.Compaction.Model)
			for i, to := range a.Handoffs {
				k.refersTo(tree.Index(p+".handoffs", i), "agents", "agent", to)
			}
		}
	}
	if c.tree == nil {
		k.settings()
	}
	return k.err()
}

// programTool checks the references of a tool that a Go program added. Its server is not checked, because the program
// may add it later.
func (k *checker) programTool(p, name string, t catalog.Tool) {
	t = t.WithDefaults(name)
	switch {
	case t.Kind == tenon.KindAgent:
		k.refersTo(p+".agent", "agents", "agent", t.RemoteName)
	case t.Kind == tenon.KindPrompt:
		k.refersToModel(p+".model", t.Model)
	}
}

// refersTo checks that an entry of a section exists. The name "" means that there is no reference.
func (k *checker) refersTo(at, section, kind, name string) {
	if name != "" && !slices.Contains(k.order[section], name) {
		k.noReference(at, section, kind, name)
	}
}

// refersToModel is refersTo for a model. A program may also name a model as `tenon run --model` does: PROVIDER/NAME,
// script:FILE.
func (k *checker) refersToModel(at, name string) {
	provider, id, _ := strings.Cut(name, "/")
	if _, ok := model.Lookup(provider); ok && id != "" || strings.HasPrefix(name, "script:") || name == "demo" {
		return
	}
	k.refersTo(at, "models", "model", name)
}

// isProgram reports whether neither a file nor a table contains the entry at a path.
func (c *Config) isProgram(path string) bool { return c.node(path) == nil && !c.added[path] }

// settings checks the sections that are structs and not maps of entries.
func (k *checker) settings() {
	v := reflect.ValueOf(k.c).Elem()
	for _, f := range fields(v.Type()) {
		if v.Field(f.index).Kind() == reflect.Struct {
			n := k.written(v.Field(f.index), reflect.Value{})
			if n != nil {
				k.decode(n, place{f.name, f.name}, reflect.New(v.Field(f.index).Type()).Elem(), f)
			}
		}
	}
}

// programChecker returns a checker for values that are in no file.
func (c *Config) programChecker() *checker {
	src := &tree.Source{Label: "program", Dir: c.Dir, Layer: LayerProgram}
	return &checker{decoder: &decoder{Sink: &tree.Sink{}, nodes: map[string]*tree.Node{},
		keyed: map[string]*tree.Node{}, order: map[string][]string{}, secrets: map[string]SecretSource{},
		late: map[string]*tree.Node{}, typed: true},
		c: c, root: &tree.Node{Kind: tree.Map, Src: src}}
}

// err returns the mistakes that were found, without places in files.
func (k *checker) err() error {
	if len(k.Errs) == 0 {
		return nil
	}
	var lines []string
	for _, e := range k.Errs {
		line := e.Path + ": " + e.Message
		if e.Hint != "" {
			line += "; " + e.Hint
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return &tenon.Error{Code: tenon.CodeConfig, Message: strings.Join(lines, "\n")}
}

// entry checks one entry of servers.
func (k *checker) entry(name string, entry servers.Config, models []string) {
	p := place{"servers." + tenon.Visible(name), "servers.NAME"}
	base := servers.Config{Command: entry.Command, Args: entry.Args, URL: entry.URL}.WithDefaults()
	base.Command, base.Args, base.URL = "", nil, ""
	n := k.written(reflect.ValueOf(entry), reflect.ValueOf(base))
	if n == nil {
		n = &tree.Node{Kind: tree.Map, Src: k.root.Src}
	}
	n.Src.Dir = cmp.Or(entry.Cwd, k.c.Dir)
	var s servers.Config
	k.keyed[p.path] = n
	k.decode(n, p, reflect.ValueOf(&s).Elem(), field{})
	for i := range s.Transform {
		s.Transform[i].Func = entry.Transform[i].Func
	}
	if slices.Contains(models, s.SamplingModel) {
		s.SamplingModel = ""
	}
	if s.EnvFile != "" {
		k.bad(p.path+".env_file", "write the variables into Env", "only a configuration file can name an env_file")
	}
	if s.Cwd != "" && !filepath.IsAbs(s.Cwd) {
		s.Cwd, _ = filepath.Abs(s.Cwd) // on error it is "", and starting the command reports it
	}
	s.EnvFile = ""
	k.server(p.path, name, s)
	k.block(p.path+".policy", s.Policy, true)
}

// decodeTyped checks the enums and bounds of a value.
func decodeTyped(k *checker, p place, value any) {
	v := reflect.ValueOf(value)
	if n := k.written(v, reflect.Value{}); n != nil {
		k.decode(n, p, reflect.New(v.Type()).Elem(), field{})
	}
}

// written converts a value to the node that a file would have. It returns nil for an absent value: a zero value, or,
// if base is valid, a value that equals base.
func (k *checker) written(v, base reflect.Value) *tree.Node {
	if v.IsZero() || base.IsValid() && v.Kind() != reflect.Struct &&
		reflect.DeepEqual(v.Interface(), base.Interface()) {
		return nil
	}
	n := k.form(v, base)
	if n != nil && n.Kind == tree.Map && len(n.Keys) == 0 && v.Kind() == reflect.Struct {
		return nil // all members are absent
	}
	return n
}

// form is like written, but also converts zero values.
func (k *checker) form(v, base reflect.Value) *tree.Node {
	n := &tree.Node{Src: k.root.Src, Tag: "!!str"}
	switch t := v.Type(); {
	case t == secretType:
		n.Val = "secret"
	case t == durationType:
		n.Val = time.Duration(v.Int()).String()
	case t == sizeType:
		n.Tag, n.Val = "!!int", strconv.FormatInt(v.Int(), 10)
	case t == rawType:
		n.Tag, n.Val = rawTag, string(v.Bytes())
	case t.Kind() == reflect.Struct:
		n.Kind = tree.Map
		for _, f := range fields(t) {
			member := reflect.Value{}
			if base.IsValid() {
				member = base.Field(f.index)
			}
			if e := k.written(v.Field(f.index), member); e != nil {
				n.Append(f.name, e, e)
			}
		}
	case t.Kind() == reflect.Map:
		n.Kind = tree.Map
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()),
			func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }) {
			e := k.form(v.MapIndex(key), reflect.Value{})
			n.Append(key.String(), e, e)
		}
	case t.Kind() == reflect.Slice:
		n.Kind = tree.List
		for i := range v.Len() {
			n.Vals = append(n.Vals, k.form(v.Index(i), reflect.Value{}))
		}
	case t.Kind() == reflect.Pointer && v.IsNil():
		n.Tag = "!!null"
	case t.Kind() == reflect.Pointer:
		return k.form(v.Elem(), reflect.Value{})
	case t.Kind() == reflect.Bool:
		n.Tag, n.Val = "!!bool", strconv.FormatBool(v.Bool())
	case v.CanInt():
		n.Tag, n.Val = "!!int", strconv.FormatInt(v.Int(), 10)
	case v.CanFloat():
		n.Tag, n.Val = "!!float", strconv.FormatFloat(v.Float(), 'f', -1, 64)
	default:
		n.Val = v.String()
	}
	return n
}

// rawTag is the tag of JSON that a Go program has set.
const rawTag = "!raw"

// typedRaw checks JSON that a Go program has set.
func (d *decoder) typedRaw(n *tree.Node, p place, v reflect.Value) {
	if !json.Valid([]byte(n.Val)) {
		d.Add(n, p.path, "is not JSON", fmt.Sprintf("it is %q", tenon.Shorten(n.Val, 60)))
		return
	}
	v.SetBytes([]byte(n.Val))
}
