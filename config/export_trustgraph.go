package config

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// graphExport writes TrustGraph's groups. A value that is as it was imported gets its original form.
type graphExport struct {
	*export
	kept              *tree.Node // x-trustgraph of the file
	mcp, tool         *tree.Node
	prompts           *tree.Node            // the group prompt, nil if there is none
	textMCP, textTool map[string]*tree.Node // ids whose values are JSON text → their keys in order
	used              map[string]bool       // servers that a tool uses
}

// trustgraph writes the groups mcp, tool and prompt in the form of the file that was imported.
func (e *export) trustgraph() *tree.Node {
	g := &graphExport{export: e, mcp: &tree.Node{Kind: tree.Map}, tool: &tree.Node{Kind: tree.Map},
		used: map[string]bool{}, textMCP: map[string]*tree.Node{}, textTool: map[string]*tree.Node{}}
	g.kept, _ = e.root.Get("x-" + kindTrustGraph)
	groups, _ := g.kept.Get("groups")
	if p, _ := groups.Get("prompt"); p != nil {
		g.prompts = p.Clone()
	}
	e.entries("tools", g.add)
	e.entries("servers", g.server)
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

// file puts the groups together.
func (g *graphExport) file(groups *tree.Node) *tree.Node {
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
	for i := 0; groups != nil && i < len(groups.Keys); i++ {
		name := groups.Keys[i].Val
		if v, _ := out.Get(name); name != "prompt" && (v == nil || len(v.Vals) == 0) {
			out.Put(name, groups.Vals[i])
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
func (g *graphExport) list(groups *tree.Node) *tree.Node {
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
func (g *graphExport) add(k, v *tree.Node, path string) {
	x, _ := v.Get("x-" + kindTrustGraph)
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
		g.missing(k, path)
		return
	}
	id := k.Val
	if own, _ := x.Get("id"); own != nil {
		id = own.Val
	}
	t := &tree.Node{Kind: tree.Map}
	done := []string{"kind", "x-" + kindTrustGraph}
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
	if name, _ := original.Get("name"); name != nil && madeOf(k.Val, wantedName(name, id)) {
		t.Put("name", name)
	} else if !lacks("name") || !madeOf(k.Val, id) {
		t.Put("name", k)
	}
	for _, f := range graphFields() {
		done = append(done, f.ours)
		g.field(f, v, t, original, lacks, path)
	}
	if kind == "mcp" {
		g.link(k, v, t, x, original, lacks)
	}
	for i := 0; original != nil && i < len(original.Keys); i++ {
		if key := original.Keys[i]; !(&trustgraph{}).reads(key.Val, t.Vals[0].Val) {
			t.Put(key.Val, original.Vals[i])
		}
	}
	server, _ := v.Get("server")
	for i, key := range v.Keys {
		off := key.Val == "enabled" && (v.Vals[i].Val == "true" || kind == "mcp" && server == nil)
		if !slices.Contains(done, key.Val) && !off && (v.Vals[i].Src == nil || !v.Vals[i].Src.Profile) {
			g.missing(key, path+"."+key.Val)
		}
	}
	if keys, _ := x.Get("text"); keys != nil {
		g.textTool[id] = keys
	}
	g.tool.Put(id, t)
}

// madeOf reports whether an import gives a tool with the name original the name key.
func madeOf(key, original string) bool {
	base := (&ToolNames{}).Make(original)
	if key == base {
		return true
	}
	at := strings.LastIndexByte(key, '_')
	return at > 0 && strings.HasPrefix(base, key[:at]) && strings.Trim(key[at+1:], "0123456789") == "" &&
		(key[:at] == base || len(key) == maxToolName)
}

// field writes a key of a tool.
func (g *graphExport) field(f graphField, v, t, original *tree.Node, lacks func(string) bool, path string) {
	ours, _ := v.Get(f.ours)
	if ours != nil && ours.Src != nil && ours.Src.Profile {
		ours = nil
	}
	main, same := "", false // the key that was converted
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
		if main, same = key, ours != nil && sameJSON(now, ours); same {
			t.Put(key, was)
		}
	}
	if same || ours == nil {
		return
	}
	main = cmp.Or(main, f.theirs[0])
	if lacks(f.theirs[0]) && f.ours == "arguments" && sameJSON(ours, questionArguments(ours)) {
		return
	}
	if ours.Kind == tree.Map || f.ours != "arguments" && ours.Kind == tree.List && f.convert(ours, silent) == nil {
		g.missing(ours, path+"."+f.ours)
		return
	}
	was, _ := original.Get(main)
	if f.ours == "arguments" {
		g.argumentLoss(ours, was, path)
	}
	t.Put(main, f.back(ours, was))
}

// argumentLoss reports the parts of arguments that TrustGraph does not have.
func (g *graphExport) argumentLoss(list, original *tree.Node, path string) {
	for i, a := range list.Vals {
		for j, k := range a.Keys {
			switch {
			case slices.Contains([]string{"name", "type", "description"}, k.Val):
			case k.Val == "required" && (a.Vals[j].Val == "false" || original != nil):
			default:
				g.missing(k, tree.Index(path+".arguments", i)+"."+k.Val)
			}
		}
	}
}

// link writes the tool's entry of mcp, and its id.
func (g *graphExport) link(k, v, t, x, original *tree.Node, lacks func(string) bool) {
	id := k.Val
	if own, _ := x.Get("mcp"); own != nil {
		id = own.Val
	}
	main := "mcp-tool"
	was, _ := original.Get(main)
	if other, _ := original.Get("mcp_tool_id"); other != nil {
		t.Put("mcp_tool_id", other)
		if was == nil {
			main, was = "mcp_tool_id", other
		}
	}
	server, at := v.Get("server")
	if server == nil {
		if was == nil && !lacks(main) {
			was = tree.Text(id)
		}
		if was != nil {
			t.Put(main, was)
		}
		return
	}
	defer func() {
		if was == nil || was.Val != id {
			was = tree.Text(id)
		}
		t.Put(main, was)
	}()
	g.used[server.Val] = true
	list, _ := g.root.Get("servers")
	entry, name := list.Get(server.Val)
	if entry == nil {
		g.missing(at, "servers."+server.Val)
		return
	}
	m := g.address(name, entry, "servers."+server.Val)
	if m == nil {
		return
	}
	rest, owner := g.record(list, id)
	if owner != nil && !sameJSON(g.address(owner, listValue(list, owner.Val), ""), m) {
		id = k.Val // the tool was led to another server
		rest = nil
	}
	remote := k.Val
	if own, _ := v.Get("remote_name"); own != nil {
		remote = own.Val
	}
	g.entry(id, m, rest, owner, remote, v)
}

// entry writes an entry of mcp for a tool.
func (g *graphExport) entry(id string, m, rest, owner *tree.Node, remote string, tool *tree.Node) {
	if rest == nil {
		if own, _ := tool.Get("remote_name"); own != nil || remote != id {
			m.Put("remote-name", tree.Text(remote))
		}
		g.mcp.Put(id, m)
		return
	}
	for i, k := range rest.Keys {
		m.Put(k.Val, rest.Vals[i])
	}
	was := id
	if r, _ := rest.Get("remote-name"); r != nil && r.Tag == "!!str" && r.Val != "" {
		was = r.Val
	}
	if remote != was {
		m.Put("remote-name", tree.Text(remote))
	}
	g.mcp.Put(id, m)
	g.texts(owner)
}

// texts notes which entries of a server were JSON text.
func (g *graphExport) texts(owner *tree.Node) {
	list, _ := g.root.Get("servers")
	entry := listValue(list, owner.Val)
	x, _ := entry.Get("x-" + kindTrustGraph)
	texts, _ := x.Get("text")
	for i := 0; texts != nil && i < len(texts.Keys); i++ {
		g.textMCP[texts.Keys[i].Val] = texts.Vals[i]
	}
}

func listValue(list *tree.Node, key string) *tree.Node {
	v, _ := list.Get(key)
	return v
}

// record finds the record of an entry of mcp, and the key of the server that has it.
func (g *graphExport) record(list *tree.Node, id string) (rest, owner *tree.Node) {
	for i := 0; list != nil && i < len(list.Keys); i++ {
		x, _ := list.Vals[i].Get("x-" + kindTrustGraph)
		ids, _ := x.Get("mcp")
		if rest, _ := ids.Get(id); rest != nil {
			return rest, list.Keys[i]
		}
	}
	return nil, nil
}

// server writes the entries of mcp that no tool uses.
func (g *graphExport) server(k, v *tree.Node, path string) {
	x, _ := v.Get("x-" + kindTrustGraph)
	ids, _ := x.Get("mcp")
	for i := 0; ids != nil && i < len(ids.Keys); i++ {
		id := ids.Keys[i].Val
		if there, _ := g.mcp.Get(id); there != nil {
			continue
		}
		m := g.address(k, v, path)
		if m == nil {
			return
		}
		for j, key := range ids.Vals[i].Keys {
			m.Put(key.Val, ids.Vals[i].Vals[j])
		}
		g.mcp.Put(id, m)
		g.texts(k)
	}
	if ids == nil && !g.used[k.Val] {
		if m := g.address(k, v, path); m != nil {
			g.mcp.Put(k.Val, m)
		}
	}
}

// address writes the address and the token of a server. It returns nil if TrustGraph cannot reach the server.
func (g *graphExport) address(k, v *tree.Node, path string) *tree.Node {
	if g.transport(k.Val) != servers.TransportHTTP {
		g.missing(k, path)
		return nil
	}
	m := &tree.Node{Kind: tree.Map}
	for i, key := range v.Keys {
		val := v.Vals[i]
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
				if token := g.reference(secret); token != "" {
					m.Put("auth-token", tree.Text(token))
					continue
				}
			}
			g.missingOnce(key, path, "auth")
		case slices.Contains([]string{"transport", "type", "load_tools", "title", "x-" + kindTrustGraph}, key.Val):
		case val.Src != nil && val.Src.Profile:
		default:
			g.missingOnce(key, path, key.Val)
		}
	}
	return m
}

// missingOnce is missing for a value of a server; path is "" if it was reported already.
func (g *graphExport) missingOnce(at *tree.Node, path, key string) {
	if path != "" {
		g.missing(at, path+"."+key)
	}
}

// prompt writes the template of a tool. A template that was changed replaces the one of the group prompt.
func (g *graphExport) prompt(k, v, t, original *tree.Node, path string) bool {
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
		g.missing(at, path+".template")
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
func (g *graphExport) indexed(id string) {
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

// pythonJSON writes a value as Python's json.dumps does, which is how TrustGraph stores values as text. keys is the
// order of the keys of a map; other keys follow.
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
