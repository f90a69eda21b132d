package config

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// graphExport writes TrustGraph's groups. A value that is as it was imported gets its original form.
type graphExport struct {
	*export
	kept              *node // x-trustgraph of the file
	mcp, tool         *node
	prompts           *node            // the group prompt, nil if there is none
	textMCP, textTool map[string]*node // ids whose values are JSON text → their keys in order
	used              map[string]bool  // servers that a tool uses
}

// trustgraph writes the groups mcp, tool and prompt in the form of the file that was imported.
func (e *export) trustgraph() *node {
	g := &graphExport{export: e, mcp: &node{kind: mapNode}, tool: &node{kind: mapNode}, used: map[string]bool{},
		textMCP: map[string]*node{}, textTool: map[string]*node{}}
	g.kept, _ = e.root.get("x-" + kindTrustGraph)
	groups, _ := g.kept.get("groups")
	if p, _ := groups.get("prompt"); p != nil {
		g.prompts = p.clone()
	}
	e.entries("tools", g.add)
	e.entries("servers", g.server)
	for section, into := range map[string]*node{"mcp": g.mcp, "tools": g.tool} {
		if list, _ := g.kept.get(section); list != nil && list.kind == mapNode {
			for i, k := range list.keys {
				if v, _ := into.get(k.val); v == nil {
					into.put(k.val, list.vals[i])
				}
			}
		}
	}
	return g.file(groups)
}

// file puts the groups together.
func (g *graphExport) file(groups *node) *node {
	form := ""
	if f, _ := g.kept.get("form"); f != nil {
		form = f.val
	}
	alone := len(g.mcp.keys) == 0 && g.prompts == nil
	if form == graphTool && alone && len(g.tool.keys) == 1 {
		return g.tool.vals[0]
	}
	out := &node{kind: mapNode}
	absent, _ := g.kept.get("without")
	for _, group := range []struct {
		name  string
		list  *node
		texts map[string]*node
	}{{"mcp", g.mcp, g.textMCP}, {"tool", g.tool, g.textTool}} {
		for i, k := range group.list.keys {
			if keys := group.texts[k.val]; keys != nil {
				group.list.vals[i] = text(pythonJSON(group.list.vals[i], keys))
			}
		}
		if gone, _ := absent.get(group.name); gone == nil || len(group.list.keys) > 0 {
			out.put(group.name, group.list)
		}
	}
	for i := 0; groups != nil && i < len(groups.keys); i++ {
		name := groups.keys[i].val
		if v, _ := out.get(name); name != "prompt" && (v == nil || len(v.vals) == 0) {
			out.put(name, groups.vals[i])
		}
	}
	if g.prompts != nil {
		out.put("prompt", g.prompts)
	}
	switch form {
	case graphConfig:
		root := &node{kind: mapNode}
		if beside, _ := g.kept.get("beside"); beside != nil {
			root = beside.clone()
		}
		root.put("config", out)
		return root
	case graphList:
		return g.list(out)
	}
	return out
}

// list writes the entries of the groups as a list of {type, key, value}, in the order of the file.
func (g *graphExport) list(groups *node) *node {
	out, done := &node{kind: listNode}, map[[2]string]bool{}
	order, _ := g.kept.get("order")
	for i := 0; order != nil && i < len(order.vals); i++ {
		slot := order.vals[i]
		if raw, _ := slot.get("value"); raw != nil {
			out.vals = append(out.vals, raw)
			continue
		}
		kind, _ := slot.get("type")
		key, _ := slot.get("key")
		if kind == nil { // a tool without an id
			kind = text("tool")
			slot = nil
		}
		if key == nil {
			continue
		}
		list, _ := groups.get(kind.val)
		if v, _ := list.get(key.val); v != nil {
			done[[2]string{kind.val, key.val}] = true
			if slot == nil {
				out.vals = append(out.vals, v)
				continue
			}
			one := slot.clone()
			one.put("value", v)
			out.vals = append(out.vals, one)
		}
	}
	for i, kind := range groups.keys {
		for j, key := range groups.vals[i].keys {
			if !done[[2]string{kind.val, key.val}] {
				one := &node{kind: mapNode}
				one.put("type", kind)
				one.put("key", key)
				one.put("value", groups.vals[i].vals[j])
				out.vals = append(out.vals, one)
			}
		}
	}
	return out
}

// add writes one tool.
func (g *graphExport) add(k, v *node, path string) {
	x, _ := v.get("x-" + kindTrustGraph)
	original, _ := x.get("original")
	absent, _ := x.get("without")
	lacks := func(key string) bool {
		return absent != nil && slices.ContainsFunc(absent.vals, func(n *node) bool { return n.val == key })
	}
	kind := "mcp"
	if own, _ := v.get("kind"); own != nil {
		kind = own.val
	}
	if kind != "mcp" && kind != tenon.KindPrompt {
		g.missing(k, path)
		return
	}
	id := k.val
	if own, _ := x.get("id"); own != nil {
		id = own.val
	}
	t := &node{kind: mapNode}
	done := []string{"kind", "x-" + kindTrustGraph}
	if kind == tenon.KindPrompt {
		t.put("type", text(graphPrompt))
		if was, _ := original.get("type"); was != nil {
			t.put("type", was)
		}
		if !g.prompt(k, v, t, original, path) {
			return
		}
		done = append(done, "template")
	} else {
		t.put("type", text(graphMCP))
		done = append(done, "server", "remote_name")
	}
	if name, _ := original.get("name"); name != nil && madeOf(k.val, wantedName(name, id)) {
		t.put("name", name)
	} else if !lacks("name") || !madeOf(k.val, id) {
		t.put("name", k)
	}
	for _, f := range graphFields() {
		done = append(done, f.ours)
		g.field(f, v, t, original, lacks, path)
	}
	if kind == "mcp" {
		g.link(k, v, t, x, original, lacks)
	}
	for i := 0; original != nil && i < len(original.keys); i++ {
		if key := original.keys[i]; !(&trustgraph{}).reads(key.val, t.vals[0].val) {
			t.put(key.val, original.vals[i])
		}
	}
	server, _ := v.get("server")
	for i, key := range v.keys {
		off := key.val == "enabled" && (v.vals[i].val == "true" || kind == "mcp" && server == nil)
		if !slices.Contains(done, key.val) && !off && (v.vals[i].src == nil || !v.vals[i].src.profile) {
			g.missing(key, path+"."+key.val)
		}
	}
	if keys, _ := x.get("text"); keys != nil {
		g.textTool[id] = keys
	}
	g.tool.put(id, t)
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
func (g *graphExport) field(f graphField, v, t, original *node, lacks func(string) bool, path string) {
	ours, _ := v.get(f.ours)
	if ours != nil && ours.src != nil && ours.src.profile {
		ours = nil
	}
	main, same := "", false // the key that was converted
	for _, key := range f.theirs {
		was, _ := original.get(key)
		if was == nil {
			continue
		}
		now := f.convert(was, silent)
		if now == nil || main != "" {
			t.put(key, was)
			continue
		}
		if main, same = key, ours != nil && sameJSON(now, ours); same {
			t.put(key, was)
		}
	}
	if same || ours == nil {
		return
	}
	main = cmp.Or(main, f.theirs[0])
	if lacks(f.theirs[0]) && f.ours == "arguments" && sameJSON(ours, questionArguments(ours)) {
		return
	}
	if ours.kind == mapNode || f.ours != "arguments" && ours.kind == listNode && f.convert(ours, silent) == nil {
		g.missing(ours, path+"."+f.ours)
		return
	}
	was, _ := original.get(main)
	if f.ours == "arguments" {
		g.argumentLoss(ours, was, path)
	}
	t.put(main, f.back(ours, was))
}

// argumentLoss reports the parts of arguments that TrustGraph does not have.
func (g *graphExport) argumentLoss(list, original *node, path string) {
	for i, a := range list.vals {
		for j, k := range a.keys {
			switch {
			case slices.Contains([]string{"name", "type", "description"}, k.val):
			case k.val == "required" && (a.vals[j].val == "false" || original != nil):
			default:
				g.missing(k, index(path+".arguments", i)+"."+k.val)
			}
		}
	}
}

// link writes the tool's entry of mcp, and its id.
func (g *graphExport) link(k, v, t, x, original *node, lacks func(string) bool) {
	id := k.val
	if own, _ := x.get("mcp"); own != nil {
		id = own.val
	}
	main := "mcp-tool"
	was, _ := original.get(main)
	if other, _ := original.get("mcp_tool_id"); other != nil {
		t.put("mcp_tool_id", other)
		if was == nil {
			main, was = "mcp_tool_id", other
		}
	}
	server, at := v.get("server")
	if server == nil {
		if was == nil && !lacks(main) {
			was = text(id)
		}
		if was != nil {
			t.put(main, was)
		}
		return
	}
	defer func() {
		if was == nil || was.val != id {
			was = text(id)
		}
		t.put(main, was)
	}()
	g.used[server.val] = true
	list, _ := g.root.get("servers")
	entry, name := list.get(server.val)
	if entry == nil {
		g.missing(at, "servers."+server.val)
		return
	}
	m := g.address(name, entry, "servers."+server.val)
	if m == nil {
		return
	}
	rest, owner := g.record(list, id)
	if owner != nil && !sameJSON(g.address(owner, listValue(list, owner.val), ""), m) {
		id = k.val // the tool was led to another server
		rest = nil
	}
	remote := k.val
	if own, _ := v.get("remote_name"); own != nil {
		remote = own.val
	}
	g.entry(id, m, rest, owner, remote, v)
}

// entry writes an entry of mcp for a tool.
func (g *graphExport) entry(id string, m, rest, owner *node, remote string, tool *node) {
	if rest == nil {
		if own, _ := tool.get("remote_name"); own != nil || remote != id {
			m.put("remote-name", text(remote))
		}
		g.mcp.put(id, m)
		return
	}
	for i, k := range rest.keys {
		m.put(k.val, rest.vals[i])
	}
	was := id
	if r, _ := rest.get("remote-name"); r != nil && r.tag == "!!str" && r.val != "" {
		was = r.val
	}
	if remote != was {
		m.put("remote-name", text(remote))
	}
	g.mcp.put(id, m)
	g.texts(owner)
}

// texts notes which entries of a server were JSON text.
func (g *graphExport) texts(owner *node) {
	list, _ := g.root.get("servers")
	entry := listValue(list, owner.val)
	x, _ := entry.get("x-" + kindTrustGraph)
	texts, _ := x.get("text")
	for i := 0; texts != nil && i < len(texts.keys); i++ {
		g.textMCP[texts.keys[i].val] = texts.vals[i]
	}
}

func listValue(list *node, key string) *node {
	v, _ := list.get(key)
	return v
}

// record finds the record of an entry of mcp, and the key of the server that has it.
func (g *graphExport) record(list *node, id string) (rest, owner *node) {
	for i := 0; list != nil && i < len(list.keys); i++ {
		x, _ := list.vals[i].get("x-" + kindTrustGraph)
		ids, _ := x.get("mcp")
		if rest, _ := ids.get(id); rest != nil {
			return rest, list.keys[i]
		}
	}
	return nil, nil
}

// server writes the entries of mcp that no tool uses.
func (g *graphExport) server(k, v *node, path string) {
	x, _ := v.get("x-" + kindTrustGraph)
	ids, _ := x.get("mcp")
	for i := 0; ids != nil && i < len(ids.keys); i++ {
		id := ids.keys[i].val
		if there, _ := g.mcp.get(id); there != nil {
			continue
		}
		m := g.address(k, v, path)
		if m == nil {
			return
		}
		for j, key := range ids.vals[i].keys {
			m.put(key.val, ids.vals[i].vals[j])
		}
		g.mcp.put(id, m)
		g.texts(k)
	}
	if ids == nil && !g.used[k.val] {
		if m := g.address(k, v, path); m != nil {
			g.mcp.put(k.val, m)
		}
	}
}

// address writes the address and the token of a server. It returns nil if TrustGraph cannot reach the server.
func (g *graphExport) address(k, v *node, path string) *node {
	if g.transport(k.val) != servers.TransportHTTP {
		g.missing(k, path)
		return nil
	}
	m := &node{kind: mapNode}
	for i, key := range v.keys {
		val := v.vals[i]
		switch {
		case key.val == "url":
			m.put("url", val)
		case key.val == "headers" && len(val.keys) == 1 && strings.EqualFold(val.keys[0].val, "Authorization") &&
			strings.HasPrefix(val.vals[0].val, "Bearer "):
			m.put("auth-token", text(strings.TrimPrefix(val.vals[0].val, "Bearer ")))
		case key.val == "auth":
			kind, _ := val.get("type")
			secret, _ := val.get("secret")
			if kind != nil && kind.val == servers.AuthBearer && secret != nil {
				if token := g.reference(secret); token != "" {
					m.put("auth-token", text(token))
					continue
				}
			}
			g.missingOnce(key, path, "auth")
		case slices.Contains([]string{"transport", "type", "load_tools", "title", "x-" + kindTrustGraph}, key.val):
		case val.src != nil && val.src.profile:
		default:
			g.missingOnce(key, path, key.val)
		}
	}
	return m
}

// missingOnce is missing for a value of a server; path is "" if it was reported already.
func (g *graphExport) missingOnce(at *node, path, key string) {
	if path != "" {
		g.missing(at, path+"."+key)
	}
}

// prompt writes the template of a tool. A template that was changed replaces the one of the group prompt.
func (g *graphExport) prompt(k, v, t, original *node, path string) bool {
	ours, at := v.get("template")
	if ours == nil {
		return false
	}
	key, id := "template", k.val
	if was, _ := original.get("template"); was != nil {
		id = was.val
	} else if was, _ := original.get("template_id"); was != nil {
		key, id = "template_id", was.val
	}
	if kind, _ := original.get("type"); kind != nil {
		key, id = "", "question"
	}
	for _, k := range []string{"template", "template_id"} {
		if was, _ := original.get(k); was != nil {
			t.put(k, was)
		}
	}
	if had, _ := t.get(key); key != "" && had == nil {
		t.put(key, text(id))
	}
	if now, reason := graphTemplate(g.prompts, id); reason == "" && now == ours.val ||
		key == "" && graphPromptOf(g.prompts, id) == nil && ours.val == questionTemplate {
		return true
	}
	theirs, ok := toGraph(ours.val)
	if !ok {
		g.missing(at, path+".template")
		return false
	}
	if g.prompts == nil {
		g.prompts = &node{kind: mapNode}
	}
	entry := &node{kind: mapNode}
	if was, _ := g.prompts.get("template." + id); was != nil {
		if o := jsonText(was); o != nil && was.kind == scalarNode {
			entry = o
		} else if was.kind == mapNode {
			entry = was.clone()
		}
	}
	entry.put("prompt", text(theirs))
	if had, _ := entry.get("response-type"); had == nil {
		entry.put("response-type", text("text"))
	}
	g.prompts.put("template."+id, text(pythonJSON(entry, &node{kind: listNode, vals: entry.keys})))
	g.indexed(id)
	return true
}

// indexed adds a template to the list of templates of the group prompt.
func (g *graphExport) indexed(id string) {
	list := &node{kind: listNode}
	if was, _ := g.prompts.get("template-index"); was != nil {
		s := &sink{}
		if n := parse(&source{}, []byte(was.val), s); n != nil && n.kind == listNode {
			list = n
		}
	}
	if !slices.ContainsFunc(list.vals, func(n *node) bool { return n.val == id }) {
		list.vals = append(list.vals, text(id))
		g.prompts.put("template-index", text(pythonJSON(list, nil)))
	}
}

// pythonJSON writes a value as Python's json.dumps does, which is how TrustGraph stores values as text. keys is the
// order of the keys of a map; other keys follow.
func pythonJSON(n *node, keys *node) string {
	var b bytes.Buffer
	switch n.kind {
	case mapNode:
		ordered := &node{kind: mapNode}
		for i := 0; keys != nil && i < len(keys.vals); i++ {
			if v, k := n.get(keys.vals[i].val); k != nil {
				ordered.put(k.val, v)
			}
		}
		for i, k := range n.keys {
			ordered.put(k.val, n.vals[i])
		}
		b.WriteByte('{')
		for i, k := range ordered.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(pythonJSON(k, nil) + ": " + pythonJSON(ordered.vals[i], nil))
		}
		b.WriteByte('}')
	case listNode:
		b.WriteByte('[')
		for i, v := range n.vals {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(pythonJSON(v, nil))
		}
		b.WriteByte(']')
	default:
		raw := bytes.TrimSpace(n.json())
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
