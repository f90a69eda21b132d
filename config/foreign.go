package config

import "strings"

// claudeKeys maps the keys of a server in .mcp.json and mcp.json (Claude,
// Cursor) to ours; disabled is turned around.
var claudeKeys = map[string]string{"type": "transport", "command": "command", "args": "args", "env": "env", "url": "url",
	"headers": "headers", "cwd": "cwd", "envFile": "env_file", "disabled": "enabled", "description": "description"}

// recognise tells by what is in it whose form a file has: "" is tenon.yaml's own.
func recognise(root *node) (kind string, at *node) {
	if _, version := root.get("version"); version != nil {
		return "", nil
	}
	if _, at := root.get("mcpServers"); at != nil {
		return "claude", at
	}
	return "", nil
}

// foreign turns the tree of another program's file into ours, and returns our
// own files as they are. A map mcpServers without version is Claude's form.
// Keys that have no place are warnings there, because the file belongs to
// another program.
func foreign(root *node, s *sink) *node {
	if kind, _ := recognise(root); kind == "" {
		return root
	}
	list, at := root.get("mcpServers")
	root.src.foreign = true
	for _, k := range root.keys {
		if k.val != "mcpServers" && k.val != "$schema" {
			s.warn(k, k.val, "unknown key; it is not used", "")
		}
	}
	out := &node{kind: mapNode, line: root.line, col: root.col, src: root.src}
	if list.kind != mapNode {
		s.add(list, "mcpServers", "must be a map, is "+list.what(), "")
		return out
	}
	servers := &node{kind: mapNode, line: list.line, col: list.col, src: list.src}
	taken := map[string]*node{}
	for i, k := range list.keys {
		name := *k
		name.val = strings.Map(func(r rune) rune {
			if r < 0x80 && validName(string(r)) {
				return r
			}
			return '-'
		}, k.val)
		if name.val = name.val[:min(len(name.val), 64)]; name.val == "" {
			name.val = "-"
		}
		if taken[name.val] != nil {
			s.add(k, "mcpServers."+k.val, "the same name as '"+taken[name.val].val+"' once other characters are replaced by -", "")
			continue
		}
		taken[name.val] = k
		servers.keys = append(servers.keys, &name)
		servers.vals = append(servers.vals, claudeServer(list.vals[i], k, name.val, s))
	}
	key := *at
	key.val = "servers"
	out.keys, out.vals = []*node{&key}, []*node{servers}
	return out
}

func claudeServer(n, key *node, name string, s *sink) *node {
	if n.kind != mapNode {
		return n
	}
	out := &node{kind: mapNode, line: n.line, col: n.col, src: n.src}
	add := func(k, v *node, name string) {
		at := *k
		at.val = name
		out.keys, out.vals = append(out.keys, &at), append(out.vals, v)
	}
	if name != key.val {
		add(key, &node{tag: "!!str", val: key.val, line: key.line, col: key.col, src: key.src}, "title")
	}
	for i, k := range n.keys {
		v, ours := n.vals[i], claudeKeys[k.val]
		switch {
		case ours == "":
			s.warn(k, "servers."+name+"."+k.val, "unknown key; it is not used", "")
			continue
		case k.val == "disabled" && v.tag == "!!bool":
			turned := *v
			turned.val = map[bool]string{true: "false", false: "true"}[truth(v.val)]
			v = &turned
		case k.val == "type" && (v.val == "streamable-http" || v.val == "streamableHttp"):
			same := *v
			same.val = "http"
			v = &same
		}
		add(k, v, ours)
	}
	return out
}

// FromJSON makes the change that adds a server, given as an object of mcpServers
// in .mcp.json. Errors: config, with the place in the JSON; invalid, where
// something in it has no place in tenon.yaml.
func FromJSON(name string, data []byte) (Change, error) {
	s := &sink{}
	root := parse(&source{label: "JSON"}, data, s)
	if root != nil && root.kind != mapNode {
		s.add(root, "", "must be a map, is "+root.what(), "")
	}
	if root == nil && len(s.errs) == 0 {
		s.add(&node{src: &source{label: "JSON"}}, "", "is empty", "")
	}
	if len(s.errs) > 0 {
		return Change{}, Errors(sorted(s.errs))
	}
	entry := claudeServer(root, text(name), name, s)
	if list := append(s.errs, s.warns...); len(list) > 0 { // nothing is left out unasked
		return Change{}, Errors(sorted(list))
	}
	return Change{Section: "servers", Name: name, node: entry}, nil
}
