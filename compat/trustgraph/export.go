package trustgraph

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// exporter writes TrustGraph's groups. It writes a value that has not changed since the import in its original form.
type exporter struct {
	*compat.Export
	kept              *tree.Node // x-trustgraph of the file
	mcp, tool         *tree.Node
	prompts           *tree.Node            // the group prompt, nil if there is none
	textMCP, textTool map[string]*tree.Node // ids whose values are JSON text → their keys in order
	used              map[string]bool       // servers that a tool uses
}

// Export writes the groups mcp, tool and prompt in the form of the file that was imported.
func (Format) Export(e *compat.Export) *tree.Node {
	e.Holds = []string{"tools"}
	g := &exporter{Export: e, mcp: &tree.Node{Kind: tree.Map}, tool: &tree.Node{Kind: tree.Map},
		used: map[string]bool{}, textMCP: map[string]*tree.Node{}, textTool: map[string]*tree.Node{}}
	g.kept, _ = e.Root.Get("x-" + compat.TrustGraph)
	groups, _ := g.kept.Get("groups")
	if p, _ := groups.Get("prompt"); p != nil {
		g.prompts = p.Clone()
	}
	e.Entries("tools", g.add)
	e.Entries("servers", g.unused)
	for section, into := range map[string]*tree.Node{"mcp": g.mcp, "tools": g.tool} {
		if list, _ := g.kept.Get(section); list != nil && list.Kind == tree.Map {
			for i, k := range list.Keys {
				if v, _ := into.Get(k.Val); v == nil {
					into.Put(k.Val, list.Vals[i])
				}
			}
		}
	}
	return g.file(groups)
}

// file returns the exported file, with all groups.
func (g *exporter) file(groups *tree.Node) *tree.Node {
	form := ""
	if f, _ := g.kept.Get("form"); f != nil {
		form = f.Val
	}
	alone := len(g.mcp.Keys) == 0 && g.prompts == nil
	if form == graphTool && alone && len(g.tool.Keys) == 1 {
		return g.tool.Vals[0]
	}
	out := &tree.Node{Kind: tree.Map}
	absent, _ := g.kept.Get("without")
	for _, group := range []struct {
		name  string
		list  *tree.Node
		texts map[string]*tree.Node
	}{{"mcp", g.mcp, g.textMCP}, {"tool", g.tool, g.textTool}} {
		for i, k := range group.list.Keys {
			if keys := group.texts[k.Val]; keys != nil {
				group.list.Vals[i] = tree.Text(pythonJSON(group.list.Vals[i], keys))
			}
		}
		if gone, _ := absent.Get(group.name); gone == nil || len(group.list.Keys) > 0 {
			out.Put(group.name, group.list)
		}
	}
	for k, group := range groups.All() {
		if v, _ := out.Get(k.Val); k.Val != "prompt" && (v == nil || len(v.Vals) == 0) {
			out.Put(k.Val, group)
		}
	}
	if g.prompts != nil {
		out.Put("prompt", g.prompts)
	}
	switch form {
	case graphConfig:
		root := &tree.Node{Kind: tree.Map}
		if beside, _ := g.kept.Get("beside"); beside != nil {
			root = beside.Clone()
		}
		root.Put("config", out)
		return root
	case graphList:
		return g.list(out)
	}
	return out
}

// list writes the entries of the groups as a list of {type, key, value}, in the order of the file.
func (g *exporter) list(groups *tree.Node) *tree.Node {
	out, done := &tree.Node{Kind: tree.List}, map[[2]string]bool{}
	order, _ := g.kept.Get("order")
	for i := 0; order != nil && i < len(order.Vals); i++ {
		slot := order.Vals[i]
		if raw, _ := slot.Get("value"); raw != nil {
			out.Vals = append(out.Vals, raw)
			continue
		}
		kind, _ := slot.Get("type")
		key, _ := slot.Get("key")
		if kind == nil { // a tool without an id
			kind = tree.Text("tool")
			slot = nil
		}
		if key == nil {
			continue
		}
		list, _ := groups.Get(kind.Val)
		if v, _ := list.Get(key.Val); v != nil {
			done[[2]string{kind.Val, key.Val}] = true
			if slot == nil {
				out.Vals = append(out.Vals, v)
				continue
			}
			one := slot.Clone()
			one.Put("value", v)
			out.Vals = append(out.Vals, one)
		}
	}
	for i, kind := range groups.Keys {
		for j, key := range groups.Vals[i].Keys {
			if !done[[2]string{kind.Val, key.Val}] {
				one := &tree.Node{Kind: tree.Map}
				one.Put("type", kind)
				one.Put("key", key)
				one.Put("value", groups.Vals[i].Vals[j])
				out.Vals = append(out.Vals, one)
			}
		}
	}
	return out
}

// add writes one tool.
func (g *exporter) add(k, v *tree.Node, path string) {
	x, _ := v.Get("x-" + compat.TrustGraph)
	original, _ := x.Get("original")
	absent, _ := x.Get("without")
	lacks := func(key string) bool {
		return absent != nil && slices.ContainsFunc(absent.Vals, func(n *tree.Node) bool { return n.Val == key })
	}
	kind := "mcp"
	if own, _ := v.Get("kind"); own != nil {
		kind = own.Val
	}
	if kind != "mcp" && kind != tenon.KindPrompt {
		g.Missing(k, path)
		return
	}
	id := k.Val
	if own, _ := x.Get("id"); own != nil {
		id = own.Val
	}
	t := &tree.Node{Kind: tree.Map}
	done := []string{"kind", "x-" + compat.TrustGraph}
	if kind == tenon.KindPrompt {
		t.Put("type", tree.Text(graphPrompt))
		if was, _ := original.Get("type"); was != nil {
			t.Put("type", was)
		}
		if !g.prompt(k, v, t, original, path) {
			return
		}
		done = append(done, "template")
	} else {
		t.Put("type", tree.Text(graphMCP))
		done = append(done, "server", "remote_name")
	}
	if name, _ := original.Get("name"); name != nil && catalog.Made(k.Val, wantedName(name, id)) {
		t.Put("name", name)
	} else if !lacks("name") || !catalog.Made(k.Val, id) {
		t.Put("name", k)
	}
	v, flat := g.withArguments(v, path)
	if flat {
		done = append(done, "schema")
	}
	for _, f := range graphFields() {
		done = append(done, f.ours)
		g.field(f, v, t, original, lacks, path)
	}
	if kind == "mcp" {
		g.link(k, v, t, x, original, lacks)
	}
	for key, was := range original.All() {
		if !converts(key.Val, t.Vals[0].Val) {
			t.Put(key.Val, was)
		}
	}
	server, _ := v.Get("server")
	for i, key := range v.Keys {
		off := key.Val == "enabled" && (v.Vals[i].Val == "true" || kind == "mcp" && server == nil)
		if !slices.Contains(done, key.Val) && !off && (v.Vals[i].Src == nil || !v.Vals[i].Src.Profile) {
			g.Missing(key, path+"."+key.Val)
		}
	}
	if keys, _ := x.Get("text"); keys != nil {
		g.textTool[id] = keys
	}
	g.tool.Put(id, t)
}

// field writes a key of a tool.
func (g *exporter) field(f graphField, v, t, original *tree.Node, lacks func(string) bool, path string) {
	ours, _ := v.Get(f.ours)
	if ours != nil && ours.Src != nil && ours.Src.Profile {
		ours = nil
	}
	main, same := "", false // the key that the import converted
	for _, key := range f.theirs {
		was, _ := original.Get(key)
		if was == nil {
			continue
		}
		now := f.convert(was, silent)
		if now == nil || main != "" {
			t.Put(key, was)
			continue
		}
		if main, same = key, ours != nil && tree.SameJSON(now, ours); same {
			t.Put(key, was)
		}
	}
	if same || ours == nil {
		return
	}
	main = cmp.Or(main, f.theirs[0])
	if lacks(f.theirs[0]) && f.ours == "arguments" && tree.SameJSON(ours, questionArguments(ours)) {
		return
	}
	if ours.Kind == tree.Map || f.ours != "arguments" && ours.Kind == tree.List && f.convert(ours, silent) == nil {
		g.Missing(ours, path+"."+f.ours)
		return
	}
	was, _ := original.Get(main)
	if f.ours == "arguments" {
		g.argumentLoss(ours, was, path)
	}
	t.Put(main, f.back(ours, was))
}

// argumentLoss reports the parts of arguments that TrustGraph cannot express.
func (g *exporter) argumentLoss(list, original *tree.Node, path string) {
	for i, a := range list.Vals {
		for j, k := range a.Keys {
			switch {
			case slices.Contains([]string{"name", "type", "description"}, k.Val):
			case k.Val == "required" && (a.Vals[j].Val == "false" || original != nil):
			default:
				g.Missing(k, tree.Index(path+".arguments", i)+"."+k.Val)
			}
		}
	}
}

// unused writes the entries of mcp that no tool uses.
func (g *exporter) unused(k, v *tree.Node, path string) {
	x, _ := v.Get("x-" + compat.TrustGraph)
	ids, _ := x.Get("mcp")
	for id, rest := range ids.All() {
		if there, _ := g.mcp.Get(id.Val); there != nil {
			continue
		}
		m := g.address(k, v, path)
		if m == nil {
			return
		}
		for key, value := range rest.All() {
			m.Put(key.Val, value)
		}
		g.mcp.Put(id.Val, m)
		g.texts(k)
	}
	if ids == nil && !g.used[k.Val] {
		if m := g.address(k, v, path); m != nil {
			g.mcp.Put(k.Val, m)
		}
	}
}

// address writes the address and the token of a server. It returns nil if TrustGraph cannot reach the server.
func (g *exporter) address(k, v *tree.Node, path string) *tree.Node {
	if g.Transport(k.Val) != servers.TransportHTTP {
		g.Missing(k, path)
		return nil
	}
	m := &tree.Node{Kind: tree.Map}
	for key, val := range v.All() {
		switch {
		case key.Val == "url":
			m.Put("url", val)
		case key.Val == "headers" && len(val.Keys) == 1 && strings.EqualFold(val.Keys[0].Val, "Authorization") &&
			strings.HasPrefix(val.Vals[0].Val, "Bearer "):
			m.Put("auth-token", tree.Text(strings.TrimPrefix(val.Vals[0].Val, "Bearer ")))
		case key.Val == "auth":
			kind, _ := val.Get("type")
			secret, _ := val.Get("secret")
			if kind != nil && kind.Val == servers.AuthBearer && secret != nil {
				if token := g.Reference(secret); token != "" {
					m.Put("auth-token", tree.Text(token))
					continue
				}
			}
			g.missingOnce(key, path, "auth")
		case slices.Contains([]string{"transport", "type", "load_tools", "title", "x-" + compat.TrustGraph}, key.Val):
		case val.Src != nil && val.Src.Profile:
		default:
			g.missingOnce(key, path, key.Val)
		}
	}
	return m
}

// missingOnce reports a missing value of a server. An empty path means that it was reported already.
func (g *exporter) missingOnce(at *tree.Node, path, key string) {
	if path != "" {
		g.Missing(at, path+"."+key)
	}
}

// prompt writes the template of a tool. A template that was changed replaces the one of the group prompt.
func (g *exporter) prompt(k, v, t, original *tree.Node, path string) bool {
	ours, at := v.Get("template")
	if ours == nil {
		return false
	}
	key, id := "template", k.Val
	if was, _ := original.Get("template"); was != nil {
		id = was.Val
	} else if was, _ := original.Get("template_id"); was != nil {
		key, id = "template_id", was.Val
	}
	if kind, _ := original.Get("type"); kind != nil {
		key, id = "", "question"
	}
	for _, k := range []string{"template", "template_id"} {
		if was, _ := original.Get(k); was != nil {
			t.Put(k, was)
		}
	}
	if had, _ := t.Get(key); key != "" && had == nil {
		t.Put(key, tree.Text(id))
	}
	if now, reason := graphTemplate(g.prompts, id); reason == "" && now == ours.Val ||
		key == "" && graphPromptOf(g.prompts, id) == nil && ours.Val == questionTemplate {
		return true
	}
	theirs, ok := toGraph(ours.Val)
	if !ok {
		g.Missing(at, path+".template")
		return false
	}
	if g.prompts == nil {
		g.prompts = &tree.Node{Kind: tree.Map}
	}
	entry := &tree.Node{Kind: tree.Map}
	if was, _ := g.prompts.Get("template." + id); was != nil {
		if o := jsonText(was); o != nil && was.Kind == tree.Scalar {
			entry = o
		} else if was.Kind == tree.Map {
			entry = was.Clone()
		}
	}
	entry.Put("prompt", tree.Text(theirs))
	if had, _ := entry.Get("response-type"); had == nil {
		entry.Put("response-type", tree.Text("text"))
	}
	g.prompts.Put("template."+id, tree.Text(pythonJSON(entry, &tree.Node{Kind: tree.List, Vals: entry.Keys})))
	g.indexed(id)
	return true
}

// indexed adds a template to the list of templates of the group prompt.
func (g *exporter) indexed(id string) {
	list := &tree.Node{Kind: tree.List}
	if was, _ := g.prompts.Get("template-index"); was != nil {
		s := &tree.Sink{}
		if n := tree.Parse(&tree.Source{}, []byte(was.Val), s); n != nil && n.Kind == tree.List {
			list = n
		}
	}
	if !slices.ContainsFunc(list.Vals, func(n *tree.Node) bool { return n.Val == id }) {
		list.Vals = append(list.Vals, tree.Text(id))
		g.prompts.Put("template-index", tree.Text(pythonJSON(list, nil)))
	}
}

// pythonJSON returns a value in the format of Python's json.dumps, in which TrustGraph stores values as text. keys is
// the order of a map's keys; other keys follow.
func pythonJSON(n *tree.Node, keys *tree.Node) string {
	var b bytes.Buffer
	switch n.Kind {
	case tree.Map:
		ordered := &tree.Node{Kind: tree.Map}
		for i := 0; keys != nil && i < len(keys.Vals); i++ {
			if v, k := n.Get(keys.Vals[i].Val); k != nil {
				ordered.Put(k.Val, v)
			}
		}
		for i, k := range n.Keys {
			ordered.Put(k.Val, n.Vals[i])
		}
		b.WriteByte('{')
		for i, k := range ordered.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(pythonJSON(k, nil) + ": " + pythonJSON(ordered.Vals[i], nil))
		}
		b.WriteByte('}')
	case tree.List:
		b.WriteByte('[')
		for i, v := range n.Vals {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(pythonJSON(v, nil))
		}
		b.WriteByte(']')
	default:
		raw := bytes.TrimSpace(n.JSON())
		for _, r := range string(raw) {
			switch {
			case r < 0x7f:
				b.WriteRune(r)
			case r > 0xffff:
				high, low := utf16.EncodeRune(r)
				b.WriteString(escapedRune(high) + escapedRune(low))
			default:
				b.WriteString(escapedRune(r))
			}
		}
	}
	return b.String()
}

func escapedRune(r rune) string {
	const hex = "0123456789abcdef"
	return `\u` + string([]byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]})
}

var _ compat.Exporter = Format{}
