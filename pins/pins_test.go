package pins

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/store"
)

// TestPinsNoticeEveryChange changes the definitions of a server's tools in every possible way and compares them with
// their pins. Each change must be found in its tool. A change of order that has no meaning must not count.
func TestPinsNoticeEveryChange(t *testing.T) {
	w := rand.New(rand.NewPCG(1, 2))
	const own = `{"command":"x","args":["a"]}`
	kept := map[string]store.Pin{}
	for name, d := range definitionsByName(t, w, fiveTools(), own) {
		kept[name] = store.Pin{Remote: name, Digest: d.digest, Definition: d.json}
	}
	for range longtest.Times(50, 500) { // nothing but another order
		list := fiveTools()
		w.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, v := range list {
			sets(w, v)
		}
		if got := changesOf(definitionsByName(t, w, list[:1+w.IntN(len(list))], own), kept); len(got) > 0 {
			t.Fatalf("a change that is none: %v", got)
		}
	}
	kinds := map[string]int{}
	for range longtest.Times(300, 3000) {
		list := fiveTools()
		i := w.IntN(len(list))
		before, _ := json.Marshal(list[i])
		kind := mutate(w, list[i])
		after, _ := json.Marshal(list[i])
		if string(before) == string(after) {
			continue
		}
		kinds[kind]++
		now := definitionsByName(t, w, list, own)
		got := changesOf(now, kept)
		name := list[i].(map[string]any)["name"].(string)
		if got[name] == "" {
			t.Fatalf("%s was not found:\n%s\n%s", kind, before, after)
		}
		if len(got) != 1 {
			t.Fatalf("%s of %s changed %v", kind, name, got)
		}
	}
	if len(kinds) < 6 {
		t.Errorf("kinds %v", kinds)
	}
	// A changed command counts as a change of all tools. A removed tool is not replaced by another one.
	for _, self := range []string{`{"command":"y","args":["a"]}`, `{"command":"x","args":["a","b"]}`, `{"command":"x","args":["a"],"env":["A"]}`} {
		if got := changesOf(definitionsByName(t, w, fiveTools(), self), kept); len(got) != 6 {
			t.Errorf("%s: %v", self, got)
		}
	}
	renamed := fiveTools()
	renamed[2].(map[string]any)["name"] = "tool-2"
	if got := changesOf(definitionsByName(t, w, renamed, own), kept); len(got) != 1 || !strings.Contains(got["tool-2"], "'tool2', a tool that was pinned, is gone: it may be that one under another name") {
		t.Errorf("renamed: %v", got)
	}
	for member, other := range map[string]any{"description": "Does something else", "inputSchema": map[string]any{"type": "object"}} {
		renamed[2].(map[string]any)[member] = other
		if got := changesOf(definitionsByName(t, w, renamed, own), kept); len(got) != 1 || got["tool-2"] == "" {
			t.Errorf("renamed, with another %s: %v", member, got)
		}
		renamed[2].(map[string]any)[member] = fiveTools()[2].(map[string]any)[member]
	}
	again := append(fiveTools(), numbered(json.RawMessage(`{"name":"more"}`)))
	if got := changesOf(definitionsByName(t, w, again, own), kept); len(got) != 0 {
		t.Errorf("one more: %v", got)
	}
	if got := changesOf(definitionsByName(t, w, append(again[:2:2], again[3:]...), own), kept); len(got) != 0 {
		t.Errorf("one less, and another one that does not resemble it: %v", got)
	}
	twice := append(fiveTools(), numbered(json.RawMessage(`{"name":"tool1","description":"another of this name"}`)))
	if got := changesOf(definitionsByName(t, w, twice, own), kept); len(got) != 1 || got["tool1"] == "" {
		t.Errorf("two of one name: %v", got)
	}
}

// changesOf returns the changes between definitions and pins that contain their definitions.
func changesOf(now map[string]definition, kept map[string]store.Pin) map[string]string {
	gone := &renames{}
	for name, pin := range kept {
		if _, has := now[name]; !has {
			gone.add(name, pin.Definition)
		}
	}
	return changes(now, kept, gone)
}

// TestRenames compares a gone tool with a new one. Only a tool with the same texts or arguments is likely the same.
func TestRenames(t *testing.T) {
	args := `"inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}`
	none := `"inputSchema":{"type":"object"}`
	for name, tt := range map[string]struct {
		before, after string
		want          bool
	}{
		"same description":                   {`{"description":"Sends  money",` + args + `}`, `{"description":"sends money",` + none + `}`, true},
		"same arguments":                     {`{"description":"Sends",` + args + `}`, `{"description":"Reads",` + args + `}`, true},
		"same title":                         {`{"title":"Pay"}`, `{"title":"pay","description":"x"}`, true},
		"no arguments, other texts":          {`{"description":"Signs in",` + none + `}`, `{"description":"Queries",` + none + `}`, false},
		"no arguments, no text":              {`{` + none + `}`, `{` + none + `}`, true},
		"no arguments, one has a text":       {`{` + none + `}`, `{"description":"Queries",` + none + `}`, false},
		"nothing in common":                  {`{"description":"Sends",` + args + `}`, `{"description":"Reads",` + none + `}`, false},
		"two of one name, and one is again":  {`[{"description":"Sends"},{"description":"Reads"}]`, `{"description":"Reads"}`, true},
		"a description that is not a string": {`{"description":1,` + none + `}`, `{"description":1,` + none + `}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &renames{}
			r.add("old", json.RawMessage(tt.before))
			old, got := r.of(definition{remote: "new", json: json.RawMessage(tt.after)})
			if got != tt.want || got && old != "old" {
				t.Errorf("%v, %q", got, old)
			}
		})
	}
}

// fiveTools returns five definitions as a server lists them.
func fiveTools() []any {
	var list []any
	for i := range 5 {
		list = append(list, numbered(json.RawMessage(fmt.Sprintf(`{"name":"tool%d","title":"T","description":"Does %d things","inputSchema":{"type":"object",
				"properties":{"a":{"type":"string","description":"the a","enum":["x","y",3,null]},"b":{"type":["integer","null"],"minimum":1.0},"c":{"type":"array","items":{"$ref":"#/$defs/q"}}},
				"required":["a","b"],"$defs":{"q":{"oneOf":[{"const":1},{"const":"2"}]}}},"outputSchema":{"type":"object"},
				"annotations":{"readOnlyHint":true,"destructiveHint":false},"icons":[{"src":"https://a.example/i.png"}],"_meta":{"v":9007199254740993}}`, i, i))))
	}
	return list
}

// definitionsByName shuffles the members of the listed definitions and returns them by tool name. The definition of the
// server has the name "".
func definitionsByName(t *testing.T, w *rand.Rand, list []any, self string) map[string]definition {
	t.Helper()
	var tools []tenon.Tool
	for _, v := range list {
		tool, err := mcp.ParseTool(shuffled(w, v))
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool)
	}
	all, err := definitions(tools)
	if err != nil {
		t.Fatal(err)
	}
	d, err := define("", json.RawMessage(self))
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]definition{"": d}
	for _, d := range all {
		now[d.remote] = d
	}
	return now
}

// FuzzDefine compares the pinned form with the form that earlier releases made by decoding a definition, because their
// pins stay valid.
func FuzzDefine(f *testing.F) {
	for _, s := range []string{`{"name":"a","inputSchema":{"type":"object","required":["b","a"],"properties":{"type":{"enum":[2,"1",null]},"<":{"type":["null","string"]}}}}`,
		`{"enum":[{"required":["b","a"]},{"required":["a","b"]}]}`, `{"required":{"required":[[2],[1]]}}`, `{"a":1,"a":2}`, `{"description":"\u00e9 <b> \\"}`, strings.Repeat(`{"enum":[`, 40) + strings.Repeat(`]}`, 40)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := define("x", raw)
		want, wantErr := canonicalDecoded(raw)
		if string(d.json) != string(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %s %v, want %s %v", raw, d.json, err, want, wantErr)
		}
	})
}

// mutate makes one random change to a definition, but not to its name. It returns a description of the change.
func mutate(w *rand.Rand, v any) string {
	var edits []func() string
	collect(w, v, true, &edits)
	return edits[w.IntN(len(edits))]()
}

// collect adds the possible changes at all places of a value to edits.
func collect(w *rand.Rand, v any, top bool, edits *[]func() string) {
	x, ok := v.(map[string]any)
	if !ok {
		if list, ok := v.([]any); ok {
			for _, e := range list {
				collect(w, e, false, edits)
			}
		}
		return
	}
	add := func(f func() string) { *edits = append(*edits, f) }
	add(func() string { x["more"] = "added"; return "added" })
	for _, k := range slices.Sorted(maps.Keys(x)) {
		if top && k == "name" {
			continue
		}
		add(func() string { delete(x, k); return "removed" })
		add(func() string { x[k+"2"] = x[k]; delete(x, k); return "renamed" })
		add(func() string { x[k] = []any{x[k], x[k]}; return "nested" })
		switch child := x[k].(type) {
		case string:
			add(func() string {
				x[k] = []string{child + "\u200b", child + "\U000e0041", child + ".", "\u202e" + child, child + " "}[w.IntN(5)]
				return "text"
			})
		case json.Number:
			add(func() string { x[k] = json.Number(child.String() + "1"); return "number" })
		case bool:
			add(func() string { x[k] = !child; return "flipped" })
		case []any:
			add(func() string { x[k] = append(slices.Clone(child), "one more"); return "longer" })
			add(func() string { x[k] = slices.Clone(child[1:]); return "shorter" })
		}
		collect(w, x[k], false, edits)
	}
}

// sets shuffles the lists whose order has no meaning.
func sets(w *rand.Rand, v any) {
	x, ok := v.(map[string]any)
	if !ok {
		return
	}
	for k, e := range x {
		if list, ok := e.([]any); ok && (k == "required" || k == "enum" || k == "type") {
			w.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		sets(w, e)
	}
}

// shuffled writes a value as JSON with its keys in random order and with white space.
func shuffled(w *rand.Rand, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		w.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		out := []byte("{ ")
		for i, k := range keys {
			if i > 0 {
				out = append(out, ", "...)
			}
			out = append(append(append(out, tenon.EventData(k)...), " : "...), shuffled(w, v[k])...)
		}
		return append(out, '}')
	case []any:
		out := []byte("[")
		for i, e := range v {
			if i > 0 {
				out = append(out, " , "...)
			}
			out = append(out, shuffled(w, e)...)
		}
		return append(out, ']')
	}
	return tenon.EventData(v)
}
