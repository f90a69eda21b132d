package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/longtest"
)

// graphGen generates configurations of TrustGraph that include unusual values.
type graphGen struct {
	*rand.Rand
	ids []string // of mcp
}

func (g *graphGen) pick(list ...any) any { return list[g.IntN(len(list))] }

func (g *graphGen) often() bool { return g.IntN(4) > 0 }

var graphNames = []any{"get_bank_balance", "get bank balance", "konto-stand", "größe", "1st", "a.b", "x", "x", "",
	"emoji 😀", strings.Repeat("long", 20), "agents", "null", "true", "12", "a:b", "- a", "${HOME}", "$$", "#c"}

func (g *graphGen) text() any {
	return g.pick("", "plain", "Date (optional, format: YYYY-MM-DD)", "two\nlines", "ünï 😀", "quote \" ' \\", "${HOME} $$x $",
		"yes", "1e5", "  spaces  ", "tab\there", "a: b # c", "{{ question }}", "\u2028")
}

func (g *graphGen) arguments() any {
	if g.IntN(8) == 0 {
		return g.pick(nil, map[string]any{"a": 1}, map[string]any{"name": "account_id", "type": "string"}, "account_id:string:x", []any{}, []any{nil, "x", 5}, 7)
	}
	list := []any{}
	for range g.IntN(5) {
		a := map[string]any{"name": g.pick("account_id", "date", "n", "größe", "${x}", "")}
		if g.often() {
			a["type"] = g.pick("string", "string", "number", "int", "STRING", "date", "float", "list", "uuid", "", nil, 5,
				map[string]any{"type": "string"})
		}
		if g.often() {
			a["description"] = g.pick(g.text(), nil, 5, []any{"x"})
		}
		for key, v := range map[string]any{"required": g.pick(true, false, "yes"), "default": 1.50, "enum": []any{"a", 1}} {
			if g.IntN(6) == 0 {
				a[key] = v
			}
		}
		list = append(list, a)
	}
	return list
}

func (g *graphGen) list() any {
	return g.pick(nil, "", "default", "*", []any{}, []any{"read-only", "bank"}, []any{"*"}, []any{5, nil, "x"}, 3, true,
		map[string]any{"a": "b"})
}

func (g *graphGen) oneTool() any {
	switch g.IntN(16) {
	case 0:
		return g.pick(nil, 5, "not json", []any{"x"}, "", "{broken", map[string]any{})
	case 1:
		return map[string]any{"type": g.pick("knowledge-query", "structured-query", "tool-service", nil, 5), "name": "kq",
			"collection": "c", "limit": json.Number("10.0")}
	}
	t := map[string]any{"type": g.pick("mcp-tool", "mcp-tool", "mcp-tool", "prompt", "text-completion")}
	if g.IntN(8) > 0 {
		t["name"] = g.pick(graphNames...)
	}
	if g.IntN(20) == 0 {
		t["name"] = g.pick(nil, 5, true, []any{"x"})
	}
	if g.often() {
		t["description"] = g.pick(g.text(), g.text(), nil, 5)
	}
	switch t["type"] {
	case "mcp-tool":
		id := g.pick("nowhere", "nowhere", nil, 12)
		if len(g.ids) > 0 && g.IntN(8) > 0 {
			id = g.ids[g.IntN(len(g.ids))]
		}
		if g.IntN(12) > 0 {
			t[g.pick("mcp-tool", "mcp-tool", "mcp-tool", "mcp_tool_id").(string)] = id
		}
		if g.IntN(12) == 0 {
			t["mcp_tool_id"] = "other"
		}
	case "prompt":
		t[g.pick("template", "template", "template_id").(string)] = g.pick("question", "question", "plain", "hard", "missing", nil, 5)
	}
	if g.often() {
		t["arguments"] = g.arguments()
	}
	for _, key := range []string{"group", "state", "applicable-states", "available_in_states"} {
		if g.IntN(3) == 0 {
			t[key] = g.list()
		}
	}
	if g.IntN(6) == 0 {
		t[g.pick("weird", "id", "text", "x-y", "collection").(string)] = g.pick(1, "x", nil, []any{1.5}, map[string]any{"a": nil})
	}
	return t
}

func (g *graphGen) oneMCP(id string) any {
	if g.IntN(12) == 0 {
		return g.pick(nil, 5, "not json", map[string]any{}, map[string]any{"url": nil}, map[string]any{"url": "no url at all"},
			map[string]any{"url": "ftp://x/y", "auth-token": "t"})
	}
	m := map[string]any{"url": g.pick("https://bank.example.com/mcp", "https://bank.example.com/mcp", "http://127.0.0.1:9/x",
		"https://else.example.com/", "https://else.example.com/?a=$$b$c&d=${", "https://else.example.com/$${x-y}/")}
	if g.IntN(2) == 0 {
		m["remote-name"] = g.pick(id, id, "other", "größe", "", nil, 5, "${a}$$b")
	}
	if g.IntN(3) == 0 {
		m["auth-token"] = g.pick("tok", "tok", "other-token", "", nil, "t$$k$", "${a b}$$$x", "x${NOT_SET}", "${secret:x}")
	}
	if g.IntN(8) == 0 {
		m["extra"] = g.pick("x", nil, 1.25)
	}
	return m
}

// value returns the value itself or, if texts is set, its JSON text.
func (g *graphGen) value(v any, texts bool) any {
	if !texts {
		return v
	}
	b, _ := json.Marshal(v)
	if g.IntN(2) == 0 {
		var out bytes.Buffer
		_ = json.Indent(&out, b, "", " ")
		b = out.Bytes()
	}
	return string(b)
}

func (g *graphGen) config() any {
	mcp, tool := map[string]any{}, map[string]any{}
	texts := g.IntN(3) == 0
	for range g.IntN(5) {
		id := g.pick("get_bank_balance", "n o", "n-o", "agents", "größe", "x", "other", "5", "rem$$x").(string)
		mcp[id] = g.value(g.oneMCP(id), texts)
		g.ids = append(g.ids, id)
	}
	for range g.IntN(7) {
		tool[fmt.Sprint(g.pick("bal", "x", "get_bank_balance", "a b", "kq", "größe", "t1", "t2", "t3"))] = g.value(g.oneTool(), texts)
	}
	groups := map[string]any{"mcp": mcp, "tool": tool}
	switch g.IntN(8) {
	case 0:
		delete(groups, "mcp")
	case 1:
		groups["flow"] = map[string]any{"a": "{}"}
	case 2:
		groups["mcp"] = nil
	}
	if g.often() {
		groups["prompt"] = map[string]any{"system": `"Be kind"`, "template-index": `["question", "plain"]`,
			"template.question": `{"prompt": "Answer {{question}} for {{ who-ever }} ${x}", "response-type": "text"}`,
			"template.plain":    map[string]any{"prompt": "Say {{in}}"},
			"template.hard":     `{"prompt": "{% for x in y %}{{x|upper}}{% endfor %}"}`}
	}
	switch g.IntN(6) {
	case 0:
		return map[string]any{"config": groups, "version": 7}
	case 1:
		return g.asList(groups)
	case 2:
		one, ok := g.oneTool().(map[string]any)
		if !ok || one["type"] == nil {
			return groups
		}
		if g.IntN(2) == 0 {
			return one
		}
		return []any{one, map[string]any{"type": "mcp-tool", "name": "second", "mcp-tool": "x"}}
	}
	return groups
}

func (g *graphGen) asList(groups map[string]any) any {
	list := []any{}
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		m, _ := groups[kind].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(m)) {
			one := map[string]any{"type": kind, "key": key, "value": m[key]}
			if g.IntN(9) == 0 {
				one["workspace"] = "w"
			}
			list = append(list, one)
		}
	}
	if g.IntN(4) == 0 {
		list = append(list, g.pick(nil, 5, map[string]any{"type": "tool"}))
	}
	if len(list) == 0 {
		return groups
	}
	return list
}

// canonical parses JSON. It also parses strings that contain JSON objects, because white space in them does not matter.
func canonical(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	var open func(v any) any
	open = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				v[k] = open(v[k])
			}
		case []any:
			for i := range v {
				v[i] = open(v[i])
			}
		case string:
			var o map[string]any
			d := json.NewDecoder(strings.NewReader(v))
			d.UseNumber()
			if d.Decode(&o) == nil && o != nil {
				return map[string]any{"JSON text": open(o)}
			}
		}
		return v
	}
	return open(v)
}

// graphThereAndBack imports a file, loads the result and exports it again.
func graphThereAndBack(t *testing.T, data []byte) (made, back []byte) {
	t.Helper()
	in, err := Import(Source{Label: "t.json", Data: data, Kind: compat.TrustGraph, Home: t.TempDir()})
	if err != nil {
		t.Fatalf("import: %v\n%s", err, data)
	}
	made = in.YAML()
	file := filepath.Join(t.TempDir(), "tenon.yaml")
	if err := os.WriteFile(file, made, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(t.Context(), Options{File: file, NoUser: true, Home: t.TempDir(), LookupEnv: env("NOT_SET", "set here")})
	if err != nil {
		t.Fatalf("load: %v\n%s\nof %s", err, made, data)
	}
	back, lost, err := cfg.Export(compat.TrustGraph)
	if err != nil || len(lost) > 0 {
		t.Fatalf("export: %v, not exported: %v\n%s", err, lost, made)
	}
	return made, back
}

// TestTrustGraphRoundTrip generates configurations. Each is imported without an error, is valid, and is exported with
// the original contents.
func TestTrustGraphRoundTrip(t *testing.T) {
	for i := range longtest.Times(40, 200) {
		t.Run(fmt.Sprintf("RP-17_round_trip_%d", i), func(t *testing.T) {
			g := &graphGen{Rand: rand.New(rand.NewPCG(17, uint64(i)))}
			data, err := json.Marshal(g.config())
			if err != nil {
				t.Fatal(err)
			}
			made, back := graphThereAndBack(t, data)
			if diff := cmp.Diff(canonical(t, data), canonical(t, back)); diff != "" {
				t.Errorf("-original +exported:\n%s\nimported:\n%s\noriginal: %s", diff, made, data)
			}
		})
	}
}

// oddGraph is a configuration with unusual values among normal ones.
const oddGraph = `{"mcp":{"bank":{"url":"https://bank.example.com/mcp"},"bad":{"url":"no url"}},
 "prompt":{"template.ask":"{\"prompt\":\"Answer {{question}}\",\"response-type\":\"text\"}"},
 "tool":{
  "good":{"type":"mcp-tool","name":"good","description":"G","mcp-tool":"bank","arguments":[
    {"name":"when","type":"date","description":"W"},{"name":"n","type":"int","description":"N"}],
    "group":["a"],"state":"s","applicable-states":["t"]},
  "none":{"type":"mcp-tool","name":"a b","description":"A","mcp-tool":"bank","arguments":null},
  "ask":{"type":"prompt","name":"ask","description":"Asks","template":"ask","arguments":[{"name":"question","type":"string","description":"Q"}]},
  "think":{"type":"text-completion","name":"think","description":"T"},
  "lost":{"type":"mcp-tool","name":"lost","description":"L","mcp-tool":"bad"},
  "broken":"{","other":{"type":"knowledge-query","name":"kq","description":"K"}}}`

type graphEdit struct{ name, old, new, from, to string }

// TestTrustGraphOddValues checks how unusual values are imported, and that an export after an edit changes only the
// edited value.
func TestTrustGraphOddValues(t *testing.T) {
	in, err := Import(Source{Label: "t.json", Data: []byte(oddGraph), Kind: compat.TrustGraph, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, n := range in.Notes {
		notes = append(notes, n.Error())
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{"the type 'date' is not known; the argument is a string", "'a_b' here",
		"several tools use this entry", "mcp.bad: url", "there is no usable entry mcp.bad; the tool is disabled",
		"tool.broken: is not a JSON object; kept", "type knowledge-query is not supported"} {
		if !strings.Contains(all, want) {
			t.Errorf("no note %q in\n%s", want, all)
		}
	}
	made := string(in.YAML())
	c := loadText(t, "tenon.yaml", made)
	t.Run("RP-17_import", func(t *testing.T) {
		got := map[string]string{}
		for name, tool := range c.Tools {
			text := tool.Kind + " " + tool.Template
			for _, a := range tool.Arguments {
				text += " " + a.Name + ":" + a.Type
			}
			got[name] = text
		}
		question := `{{ has(args.question) ? args.question : "" }}`
		want := map[string]string{"good": " " + " when:string n:integer", "a_b": " ", "lost": " ",
			"ask": "prompt Answer " + question + " question:string", "think": "prompt {{ args.question }} question:string"}
		for name, text := range got { // the kind may be added
			got[name] = strings.TrimPrefix(text, "mcp")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	for _, tt := range []graphEdit{
		{"RP-17_edited_description", "description: W}", "description: X}", `"description":"W"`, `"description":"X"`},
		{"RP-17_edited_type", "type: integer", "type: number", `"type":"int"`, `"type":"number"`},
		{"RP-17_edited_group", "groups: [a]", "groups: [a, b]", `"group":["a"]`, `"group":["a","b"]`},
		{"RP-17_edited_state", "next_state: s\n", "next_state: z\n", `"state":"s"`, `"state":"z"`},
		{"RP-17_edited_template", `template: "Answer`, `template: "Reply to`, `\"Answer {{question}}\",\"`,
			`\"Reply to {{question}}\",\"`},
		{"RP-17_edited_address", `url: "https://bank.`, `url: "https://banks.`, "https://bank.", "https://banks."},
	} {
		t.Run(tt.name, func(t *testing.T) { checkGraphEdit(t, made, tt) })
	}
}

// checkGraphEdit edits the imported file. The export must differ from the original only at the edited value.
func checkGraphEdit(t *testing.T, made string, tt graphEdit) {
	changed := strings.Replace(made, tt.old, tt.new, 1) // x-trustgraph follows
	if strings.HasPrefix(tt.old, "url") {               // two servers
		changed = strings.ReplaceAll(made, tt.old, tt.new)
	}
	if changed == made {
		t.Fatalf("%q is not in\n%s", tt.old, made)
	}
	back, _, err := loadText(t, "tenon.yaml", changed).Export(compat.TrustGraph)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(oddGraph, tt.from, tt.to, 1)
	if want == oddGraph {
		t.Fatalf("%q is not in the original", tt.from)
	}
	got := canonical(t, back)
	if tt.name == "RP-17_edited_template" { // the index of templates is generated again
		delete(got.(map[string]any)["prompt"].(map[string]any), "template-index")
	}
	if diff := cmp.Diff(canonical(t, []byte(want)), got); diff != "" {
		t.Error(diff)
	}
}

// TestSurrogates checks the escapes of characters beyond U+FFFF, as Python writes them.
func TestSurrogates(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"RP-17_pair", `{"a":"x\ud83d\ude00y"}`, "x😀y"},
		{"RP-17_capitals", `{"a":"\uD83D\uDE00"}`, "😀"},
		{"RP-17_lone_half", `{"a":"\ud83dx"}`, "\ufffdx"},
		{"RP-17_escaped_backslash", `{"a":"\\ud83d\\ude00"}`, `\ud83d\ude00`},
		{"RP-17_quote_before", `{"a":"\"\ud83d\ude00"}`, `"😀`},
		{"RP-17_other_escape", `{"a":"\u00fc\ud83d\ude00"}`, "ü😀"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &tree.Sink{}
			n := tree.Parse(&tree.Source{Label: "a.json"}, []byte(tt.in), s)
			if v, _ := n.Get("a"); len(s.Errs) > 0 || v == nil || v.Val != tt.want {
				t.Errorf("%+v, %v", v, s.Errs)
			}
		})
	}
}

// TestTrustGraphSharedEntry changes one of two tools that have one entry of mcp. The other tool keeps the entry.
func TestTrustGraphSharedEntry(t *testing.T) {
	const before = `{"mcp":{"bank":{"url":"https://bank.example/mcp"},"old_2":{"url":"https://other.example/mcp"}},"tool":{
		"new":{"type":"mcp-tool","name":"balance","description":"B","mcp-tool":"bank"},
		"old":{"type":"mcp-tool","name":"old_balance","description":"O","mcp-tool":"bank"}}}`
	in, err := Import(Source{Label: "tg.json", Data: []byte(before)})
	if err != nil {
		t.Fatal(err)
	}
	made := string(in.YAML())
	for _, tt := range []struct{ name, tool, from, to string }{
		{"RP-17_shared_entry_second_tool", "old_balance", `"description":"O","mcp-tool":"bank"`,
			`"description":"O","mcp-tool":"old_balance"`},
		{"RP-17_shared_entry_first_tool", "balance", `"description":"B","mcp-tool":"bank"`,
			`"description":"B","mcp-tool":"balance"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head, tail, ok := strings.Cut(made, "\n  "+tt.tool+":")
			changed := head + "\n  " + tt.tool + ":" + strings.Replace(tail, "remote_name: bank", "remote_name: complexy", 1)
			if !ok || changed == made {
				t.Fatalf("no remote_name of %s in\n%s", tt.tool, made)
			}
			back, _, err := loadText(t, "tenon.yaml", changed).Export(compat.TrustGraph)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(before, tt.from, tt.to, 1)
			want = strings.Replace(want, `"old_2":`, `"`+tt.tool+
				`":{"url":"https://bank.example/mcp","remote-name":"complexy"},"old_2":`, 1)
			if diff := cmp.Diff(canonical(t, []byte(want)), canonical(t, back)); diff != "" {
				t.Errorf("%s\nof\n%s", diff, changed)
			}
		})
	}
	t.Run("RP-17_shared_entry_unchanged", func(t *testing.T) {
		back, _, err := loadText(t, "tenon.yaml", made).Export(compat.TrustGraph)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(canonical(t, []byte(before)), canonical(t, back)); diff != "" {
			t.Error(diff)
		}
	})
}
