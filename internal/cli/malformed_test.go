package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
)

// malformed is a configuration with a mistake in the given line.
type malformed struct {
	name, text string
	line       int
	strict     bool // there is no other mistake in the file
}

// schemaNode has the parts of a JSON Schema that are needed to generate mistakes.
type schemaNode struct {
	Type       any                    `json:"type"`
	Enum       []any                  `json:"enum"`
	Ref        string                 `json:"$ref"`
	Properties map[string]*schemaNode `json:"properties"`
	Items      *schemaNode            `json:"items"`
	Minimum    *float64               `json:"minimum"`
	AnyOf      []*schemaNode          `json:"anyOf"`
	Named      json.RawMessage        `json:"additionalProperties"`
}

func (s *schemaNode) is(kind string) bool {
	switch t := s.Type.(type) {
	case string:
		return t == kind
	case []any:
		return slices.Contains(t, any(kind))
	}
	return false
}

// named returns the schema of the entries in a map whose keys the user chooses.
func (s *schemaNode) named() *schemaNode {
	if len(s.Named) == 0 || s.Named[0] != '{' {
		return nil
	}
	n := new(schemaNode)
	if json.Unmarshal(s.Named, n) != nil {
		return nil
	}
	return n
}

// around has the keys that a valid entry of each section needs in addition to the mistake.
var around = map[string]string{"servers": "command: x", "models": "provider: openai, model: m", "tools": "server: canary", "agents": "", "secrets": "env: HOME"}

// generate makes a mistake of each kind at each key that the schema names.
func generate(t *testing.T, head string) []malformed {
	t.Helper()
	var root schemaNode
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var list []malformed
	line := strings.Count(head, "\n") + 1
	add := func(kind, path, text string) {
		list = append(list, malformed{kind + " " + path, head + text + "\n", line, false})
	}
	var walk func(path string, s *schemaNode, wrap func(string) string, depth int)
	walk = func(path string, s *schemaNode, wrap func(string) string, depth int) {
		if depth > 6 {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
			p, at := s.Properties[key], path+"."+key
			put := func(v string) string { return wrap(key + ": " + v) }
			add("misspelt", at, wrap(key+"_x: 1"))
			switch {
			case len(p.Enum) > 0:
				add("no such value", at, put("no_such_value"))
				add("wrong type", at, put("[1]"))
			case p.is("boolean"):
				add("wrong type", at, put("maybe"))
			case p.is("integer"), p.is("number"):
				add("wrong type", at, put("many"))
				if p.Minimum != nil {
					add("too small", at, put(fmt.Sprint(*p.Minimum-1)))
				}
			case p.is("string"):
				add("wrong type", at, put("{a: b}"))
			case p.is("array"):
				add("wrong type", at, put("word"))
				if p.Items != nil && p.Items.Properties != nil {
					walk(at+"[]", p.Items, func(in string) string { return put("[{" + in + "}]") }, depth+1)
				}
			case p.Ref == "#/$defs/duration", p.Ref == "#/$defs/size":
				add("no unit", at, put("5 parsecs"))
				add("not positive", at, put("-1"))
			case p.Ref == "#/$defs/secret":
				add("a literal", at, put("sk-0123456789abcdef0123"))
			case p.is("object") && p.Properties != nil:
				add("wrong type", at, put("word"))
				walk(at, p, func(in string) string { return put("{" + in + "}") }, depth+1)
			}
		}
	}
	for _, section := range slices.Sorted(maps.Keys(root.Properties)) {
		s := root.Properties[section]
		if entry, ok := around[section]; ok {
			walk(section+".x", s.named(), func(in string) string {
				both := strings.Trim(entry+", "+in, ", ")
				for _, part := range strings.Split(entry, ", ") { // the same key would then be there twice
					if k, _, _ := strings.Cut(part, ":"); k != "" && strings.HasPrefix(in, k+":") {
						both = strings.Trim(strings.Replace(entry, part, "", 1)+", "+in, ", ")
						both = strings.ReplaceAll(both, ", , ", ", ")
					}
				}
				if section == "servers" {
					return "  x: {" + both + "}"
				}
				return section + ": {x: {" + both + "}}"
			}, 0)
			continue
		}
		if s.Properties != nil {
			walk(section, s, func(in string) string { return section + ": {" + in + "}" }, 0)
		}
	}
	return list
}

// inert are settings that would have no effect, each in an entry under servers.
var inert = []string{
	`command: y, headers: {A: b}`, `command: y, auth: {type: none}`, `command: y, sse_read_timeout: 5s`, `command: y, terminate_on_close: true`,
	`url: "https://a.example", args: [a]`, `url: "https://a.example", cwd: /`, `url: "https://a.example", env: {A: b}`, `url: "https://a.example", inherit_env: [A]`,
	`url: "wss://a.example", sse_read_timeout: 5s`, `url: "wss://a.example", terminate_on_close: true`, `transport: jsonrpc, url: "https://a.example", sse_read_timeout: 5s`,
	`transport: jsonrpc, url: "https://a.example", terminate_on_close: false`, `transport: sse, url: "https://a.example", terminate_on_close: false`,
	`command: y, sampling_limits: {per_call: 1}`, `url: "https://a.example", auth: {type: bearer, secret: {env: HOME}, client_id: a}`,
	`url: "https://a.example", auth: {type: bearer, secret: {env: HOME}, scopes: [a]}`, `url: "https://a.example", auth: {type: bearer, secret: {env: HOME, password: true}}`,
	`url: "https://a.example", auth: {type: oauth, client_secret: {env: HOME}}`, `url: "https://a.example", auth: {secret: {env: HOME}}`,
}

// TestMalformed checks at least 300 malformed configurations, each with one mistake (B11). tenon prints one error with
// the file, line and column of the mistake, ends with status 2, and starts no process, not even for the valid entries
// of the file. If the key with the mistake also has no effect, there are two errors.
func TestMalformed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	canary := filepath.Join(dir, "started")
	head := fmt.Sprintf("version: 1\nservers:\n  canary: {command: sh, args: [-c, %q], lifecycle: eager, discover: live}\n", "touch "+canary)
	list := generate(t, head)
	for i, text := range inert {
		list = append(list, malformed{fmt.Sprintf("inert %d", i), head + "  x: {" + text + "}\n", 4, true})
	}
	if len(list) < 300 {
		t.Fatalf("%d malformed configurations, want at least 300", len(list))
	}
	single := 0
	file := filepath.Join(dir, "tenon.yaml")
	place := regexp.MustCompile(`(?m)^.*tenon\.yaml:(\d+):(\d+): (.*)$`)
	for _, m := range list {
		if err := os.WriteFile(file, []byte(m.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, errs := runHere(t, "tools", "list", "-c", file, "--home", filepath.Join(dir, "home"))
		var said []string
		for _, found := range place.FindAllStringSubmatch(errs, -1) {
			said = append(said, found[1])
		}
		elsewhere := slices.ContainsFunc(said, func(line string) bool { return line != fmt.Sprint(m.line) })
		switch {
		case status != exitUsage || out != "":
			t.Errorf("%s: status %d: %s\n%s", m.name, status, errs, m.text)
		case len(said) == 0 || elsewhere || len(said) > 1 && m.strict:
			t.Errorf("%s: want one error in line %d:\n%s%s", m.name, m.line, errs, m.text)
		case len(said) == 1:
			single++
		}
		if _, err := os.Stat(canary); err == nil {
			t.Fatalf("%s: the server was started", m.name)
		}
	}
	if single < 300 {
		t.Errorf("%d of them have one error, want at least 300", single)
	}
	t.Logf("%d malformed configurations, %d with one error", len(list), single)
}
