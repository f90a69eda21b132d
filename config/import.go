package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/compat/trustgraph"
	"github.com/tenonhq/tenon/config/tree"
)

// Source is a file of another program that is to be imported.
type Source struct {
	Label   string // its name in errors
	Path    string // absolute; "" for stdin
	Dir     string // folder that its variables call the workspace
	Data    []byte
	Kind    string   // one of [Kinds]; if empty, it is detected
	Extract bool     // replace literal tokens by references to variables
	Enabled []string // researchai: ids of the enabled servers; nil: as in the file
	Home    string   // if empty, the user's home folder
	Servers []string // names of servers that the receiving file has, for tools without a server in the imported file
}

// Imported is a tenon.yaml that was converted from another program's file.
type Imported struct {
	Kind string
	// Notes tell a person which values have no effect and which have changed.
	Notes []Error
	// Export are shell lines that set the variables of extracted tokens.
	Export []string
	// Extracted are the tokens themselves, by the names of their variables.
	Extracted map[string]string
	// Cwd is the working folder that [Imported.Changes] sets for the servers in CwdOf: the folder of the imported
	// file.
	Cwd   string
	CwdOf []string

	root *tree.Node
}

// Import converts another program's file to a tenon.yaml. Variables stay unresolved, and the files that they or the
// file name need not exist. The error is [Errors] with all mistakes, or a *tenon.Error of code invalid if the format
// is not known.
func Import(src Source) (*Imported, error) {
	o, err := Options{Home: src.Home, Dir: src.Dir, NoUser: true}.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &tree.Sink{}
	root := tree.Parse(&tree.Source{Label: src.Label, Path: src.Path, Dir: o.Dir}, src.Data, s)
	if len(s.Errs) > 0 {
		return nil, Errors(tree.Sorted(s.Errs))
	}
	if src.Kind == "" {
		src.Kind = recognise(root)
	}
	switch {
	case root == nil:
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s is empty", src.Label)
	case formatOf(src.Kind) == nil:
		return nil, noKind(src.Label)
	}
	refused := map[string]string{}
	for {
		s = &tree.Sink{}
		c := &compat.Conversion{Sink: s, Kind: src.Kind, Home: o.Home, Dir: workspace(o.Dir), Enabled: src.Enabled,
			Refused: refused}
		out := &Imported{Kind: src.Kind, root: convert(c, root)}
		if src.Extract {
			out.Export, out.Extracted = extract(c)
		}
		if len(s.Errs) == 0 {
			validate(c, src.Servers)
		}
		if len(s.Errs) == 0 {
			out.Notes = tree.Sorted(s.Warns)
			return out, nil
		}
		if c.Retry == nil || !c.Retry(s.Errs) {
			return nil, Errors(tree.Sorted(s.Errs))
		}
	}
}

// validate checks the converted file as a tenon.yaml. It drops warnings that will be repeated when the file is used.
// there are servers of the file that receives the entries.
func validate(c *compat.Conversion, there []string) {
	s := &tree.Sink{}
	root := c.Out.Clone()
	if len(there) > 0 {
		servers, _ := root.Get("servers")
		if servers == nil {
			servers = tree.MapAt(root)
			root.Put("servers", servers)
		}
		for _, name := range there {
			stub := tree.MapAt(root)
			stub.Put("url", tree.TextAt(root, "https://server.invalid/")) // only its name counts
			servers.Put(name, stub)
		}
	}
	applyProfile(root, true)
	d := &decoder{Sink: s, vars: &tree.Variables{Keep: true, Lookup: func(string) (string, bool) { return "", false },
		Home: c.Home}, nodes: map[string]*tree.Node{},
		keyed: map[string]*tree.Node{}, order: map[string][]string{}, secrets: map[string]SecretSource{},
		late: map[string]*tree.Node{}, apart: true}
	cfg := &Config{vars: d.vars, nodes: d.nodes, order: d.order, secrets: d.secrets,
		envs: map[string]map[string]string{}}
	d.decode(root, place{}, reflect.ValueOf(cfg).Elem(), field{})
	(&checker{decoder: d, c: cfg, root: root}).run(context.Background()) // apart: no file is read
	c.Errs = append(c.Errs, s.Errs...)
	c.Warns = append(c.Warns, literals(c, s.Warns)...)
	notSimple(c, cfg)
	for p, n := range d.late { // the file into which the result is written may define the secrets
		for _, secret := range secretsIn(n.Val) {
			if _, ok := cfg.Secrets[secret]; !ok {
				c.Warn(n, p, fmt.Sprintf("nothing in the file says where '%s' is read", secret),
					"name it under secrets")
			}
		}
	}
}

// notSimple reports the imported tools that schema.types: simple leaves out, which a profile may set.
func notSimple(c *compat.Conversion, cfg *Config) {
	list, _ := c.Out.Get("tools")
	servers, _ := c.Out.Get("servers")
	for k := range list.All() {
		t := cfg.Tools[k.Val].WithDefaults(k.Val)
		own, _ := servers.Get(t.Server) // servers of the receiving file have their own types
		if own == nil || len(t.Schema) == 0 || cfg.Servers[t.Server].Schema.Types != catalog.TypesSimple {
			continue
		}
		if why := catalog.NotSimple(t.Schema); why != "" {
			at := k
			if c.Kind == compat.KNIME {
				at = unplaced(k)
			}
			c.Warn(at, "tools."+k.Val, "no run sees the tool: "+why, "offer it with servers."+t.Server+
				".schema: {types: full}")
		}
	}
}

// literals returns the warnings about literal tokens that the conversion has not reported yet. All other warnings are
// repeated when the file is used.
func literals(c *compat.Conversion, warns []Error) (out []Error) {
	for _, w := range warns {
		reported := slices.ContainsFunc(c.Warns, func(o Error) bool {
			return o.Message == literalToken && o.File == w.File && o.Line == w.Line && o.Col == w.Col
		})
		if reported || w.Message != literalToken && w.Message != literalCredential {
			continue
		}
		if w.Message == literalToken && !strings.HasPrefix(w.Path, "tools.") {
			w.Hint = "--extract-secrets puts a variable in its place"
		}
		w.Daily = false
		out = append(out, w)
	}
	return out
}

// YAML returns the file as YAML.
func (i *Imported) YAML() []byte {
	head := "# Imported by tenon from a file of " + i.Kind + ". Check it with: tenon config validate\n"
	return append([]byte(head), encode(i.file())...)
}

// file returns the whole tree, with the version of the format, in the order of the reference.
func (i *Imported) file() *tree.Node {
	root := &tree.Node{Kind: tree.Map}
	root.Put("version", &tree.Node{Tag: "!!int", Val: "1"})
	for _, f := range fields(reflect.TypeFor[Config]()) {
		if v, _ := i.root.Get(f.name); v != nil {
			root.Put(f.name, v)
		}
	}
	for j, k := range i.root.Keys {
		root.Put(k.Val, i.root.Vals[j])
	}
	return root
}

// JSON returns the file as one JSON object, which is valid YAML.
func (i *Imported) JSON() []byte { return i.file().JSON() }

// Profile returns the profile that the file needs, or "".
func (i *Imported) Profile() string {
	if p, _ := i.root.Get("profile"); p != nil && p.Kind == tree.Scalar {
		return p.Val
	}
	return ""
}

// Changes returns the changes that add the entries of the file to a tenon.yaml in the folder dir. left lists the
// values that cannot be added to a file that already has entries. With fresh there is no such file yet. If the name
// of an entry is taken there, [PlanEdit] returns an error.
func (i *Imported) Changes(dir string, fresh bool) (list []Change, left []string) {
	i.move(dir)
	for k, v := range i.root.All() {
		if v.Kind != tree.Map || !namedMaps[k.Val] && !strings.HasPrefix(k.Val, "x-") {
			left = append(left, k.Val+": "+inline(v))
			continue
		}
		for n, name := range v.Keys {
			if !fresh && k.Val == "x-"+compat.TrustGraph && trustgraph.IsFileKey(name.Val) {
				continue // these keys describe a whole file, and the folder already has one
			}
			list = append(list, Change{Section: k.Val, Name: name.Val, Add: true, node: v.Vals[n]})
		}
	}
	return list, left
}

// move rewrites relative paths, so that they lead to the same files from the folder dir.
func (i *Imported) move(dir string) {
	from := importedFolder(i.Kind, i.root.Src.Dir)
	rel, err := filepath.Rel(dir, from)
	if err != nil || i.root.Src.Path == "" {
		return
	}
	if rel == "." { // only a folder that the conversion added is superfluous
		if servers, _ := i.root.Get("servers"); servers != nil {
			for _, e := range servers.Vals {
				if cwd, _ := e.Get("cwd"); cwd != nil && cwd.Val == from {
					e.Remove("cwd")
				}
			}
		}
		return
	}
	path := func(n *tree.Node, keys ...string) {
		for _, key := range keys[:len(keys)-1] {
			if n, _ = n.Get(key); n == nil {
				return
			}
		}
		key := keys[len(keys)-1]
		if v, _ := n.Get(key); v != nil && v.Kind == tree.Scalar && v.Val != "" && !filepath.IsAbs(v.Val) &&
			!strings.HasPrefix(v.Val, "~") && !strings.HasPrefix(v.Val, "$") {
			n.Put(key, tree.TextAt(v, filepath.ToSlash(filepath.Join(rel, v.Val))))
		}
	}
	if servers, _ := i.root.Get("servers"); servers != nil {
		for j, e := range servers.Vals {
			if i.moveCwd(e, dir, rel, path) {
				i.Cwd, i.CwdOf = filepath.ToSlash(rel), append(i.CwdOf, servers.Keys[j].Val)
			}
			path(e, "env_file")
		}
	}
	if agents, _ := i.root.Get("agents"); agents != nil {
		for _, e := range agents.Vals {
			path(e, "instructions", "file")
			path(e, "response_format", "file")
		}
	}
}

// importedFolder returns the folder in which another program starts the servers of a file in dir. ResearchAI has its
// file in config/mcp.json and starts in the folder above.
func importedFolder(kind, dir string) string {
	if kind == compat.ResearchAI && filepath.Base(dir) == "config" {
		return filepath.Dir(dir)
	}
	return workspace(dir)
}

// moveCwd sets the working folder of a server that has none, so that its relative paths still lead to the same files.
// It is the folder of the imported file if files exist there, or else the folder of the new file, which needs no key.
// If no file exists, it is the folder of the imported file, because programs such as npm start depend on it, unless
// that folder is outside of the new file's folder, such as another program's settings in the home folder. Package
// runners without relative paths need no folder. moveCwd reports whether it added the key.
func (i *Imported) moveCwd(e *tree.Node, dir, rel string, path func(n *tree.Node, keys ...string)) bool {
	command, at := e.Get("command")
	cwd, _ := e.Get("cwd")
	from := filepath.Join(dir, rel)
	if command == nil || cwd != nil && cwd.Val != from {
		path(e, "cwd")
		return false
	}
	e.Remove("cwd") // the conversion added the folder of the imported file
	words := []string{command.Val}
	if args, _ := e.Get("args"); args != nil {
		for _, a := range args.Vals {
			words = append(words, a.Val)
		}
	}
	outside := rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator))
	if anyFile(from, words) || !outside && (isRelative(words) || !startsAlike(words)) && !anyFile(dir, words) {
		e.Append("cwd", at, tree.TextAt(at, filepath.ToSlash(rel)))
		return true
	}
	return false
}

// anyFile reports whether one of the words of a command is a relative path of a file or folder that exists in dir.
func anyFile(dir string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		word = optionValue(word)
		if word == "" || filepath.IsAbs(word) || strings.ContainsAny(word, "$~\x00") {
			return false
		}
		_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(word)))
		return err == nil
	})
}

// isRelative reports whether the command is a relative path, or one of its arguments begins like a relative path. A
// slash is not enough, because names of packages and images contain slashes, too.
func isRelative(words []string) bool {
	if strings.ContainsAny(words[0], `/\`) && !filepath.IsAbs(words[0]) && !strings.ContainsAny(words[0], "$~") {
		return true
	}
	return slices.ContainsFunc(words[1:], func(word string) bool {
		word = filepath.ToSlash(optionValue(word))
		return word == "." || word == ".." || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../")
	})
}

// startsAlike reports whether a command does the same in every folder, because it fetches a package or an image and
// runs it, or is the absolute path of a program without arguments.
func startsAlike(words []string) bool {
	if len(words) == 1 && filepath.IsAbs(words[0]) {
		return true
	}
	switch programName(words[0]) {
	case "npx", "bunx", "pnpx", "uvx":
		return true
	case "docker", "podman":
		return len(words) > 1 && words[1] == "run"
	}
	return false
}

// optionValue returns VALUE of an argument --option=VALUE, or "" for an option without a value, and any other
// argument unchanged.
func optionValue(word string) string {
	if strings.HasPrefix(word, "-") {
		_, word, _ = strings.Cut(word, "=")
	}
	return word
}
