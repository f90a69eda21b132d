package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
)

func tools(names ...string) []tenon.Tool {
	var list []tenon.Tool
	for _, n := range names {
		list = append(list, tenon.Tool{Remote: n, Input: json.RawMessage(`{"type":"object"}`)})
	}
	return list
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	tests := []struct {
		name    string
		sources []Source
		want    map[string]string // exposed → server/remote
	}{
		{"unique names stay", []Source{{Server: "a", Tools: tools("add", "echo")}, {Server: "b", Tools: tools("greet")}},
			map[string]string{"add": "a/add", "echo": "a/echo", "greet": "b/greet"}},
		{"HD-EDGE-7 all members of a clash are told apart", []Source{{Server: "a", Tools: tools("add", "x")}, {Server: "b", Tools: tools("add")}},
			map[string]string{"a_add": "a/add", "b_add": "b/add", "x": "a/x"}},
		{"characters that providers refuse", []Source{{Server: "a", Tools: tools("read.file", "9lives", "grüß", "-x")}},
			map[string]string{"read-file": "a/read.file", "_9lives": "a/9lives", "gr--": "a/grüß", "_-x": "a/-x"}},
		{"two names that become one", []Source{{Server: "a", Tools: tools("a.b", "a-b")}},
			map[string]string{"a_a-b_" + hash("a", "a.b"): "a/a.b", "a_a-b_" + hash("a", "a-b"): "a/a-b"}},
		{"too long", []Source{{Server: "a", Tools: tools(long)}},
			map[string]string{strings.Repeat("x", 55) + "_" + hash("a", long): "a/" + long}},
		{"the configuration's name wins", []Source{{Server: "a", Tools: tools("add")}, {Server: "b", Tools: tools("plus", "add2"), Entries: map[string]Tool{"add": {RemoteName: "plus"}}}},
			map[string]string{"a_add": "a/add", "add": "b/plus", "add2": "b/add2"}},
		{"include and exclude", []Source{{Server: "a", Include: []string{"read_*", "list"}, Exclude: []string{"*secret"}, Tools: tools("read_x", "read_secret", "list", "write")}},
			map[string]string{"read_x": "a/read_x", "list": "a/list"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, problems := Build(tt.sources)
			if len(problems) > 0 {
				t.Errorf("problems %v", problems)
			}
			got := map[string]string{}
			for _, tool := range s.Tools() {
				got[tool.Name] = tool.Server + "/" + tool.Remote
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func hash(server, remote string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + remote))
	return hex.EncodeToString(sum[:4])
}

// TestNamesHold checks names on random tool lists: every provider accepts them, each name leads back to its tool, and
// the order of the servers does not matter.
func TestNamesHold(t *testing.T) {
	fits := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	parts := []string{"a", "b", ".", "-", "_", "9", "ü", "/", "add", "server", strings.Repeat("long", 15)}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		var sources []Source
		for i := range 1 + r.IntN(4) {
			seen := map[string]bool{}
			var names []string
			for range r.IntN(12) {
				n := parts[r.IntN(len(parts))] + parts[r.IntN(len(parts))] + parts[r.IntN(len(parts))]
				if !seen[n] {
					seen[n] = true
					names = append(names, n)
				}
			}
			sources = append(sources, Source{Server: strings.Repeat("s", i+1), Tools: tools(names...)})
		}
		s, _ := Build(sources)
		n := 0
		for _, src := range sources {
			n += len(src.Tools)
		}
		if len(s.Tools()) != n {
			t.Fatalf("seed %d: %d tools, want %d", seed, len(s.Tools()), n)
		}
		for _, tool := range s.Tools() {
			back, ok := s.Lookup(tool.Name)
			if !ok || back.Server != tool.Server || back.Remote != tool.Remote || !fits.MatchString(tool.Name) {
				t.Fatalf("seed %d: %q does not lead back to %s/%s", seed, tool.Name, tool.Server, tool.Remote)
			}
		}
		r.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		if again, _ := Build(sources); again.Digest() != s.Digest() {
			t.Fatalf("seed %d: the order of servers changes names", seed)
		}
	}
}

func TestAnnotationsOfUntrustedServersDoNotCount(t *testing.T) {
	yes := true
	list := []tenon.Tool{{Remote: "x", Annotations: tenon.Annotations{ReadOnly: &yes}}}
	for _, trusted := range []bool{true, false} {
		s, _ := Build([]Source{{Server: "a", Trusted: trusted, Tools: list}})
		if got := s.Tools()[0].Annotations.IsReadOnly(); got != trusted {
			t.Errorf("trusted %v: read-only %v", trusted, got)
		}
	}
	if !list[0].Annotations.IsReadOnly() {
		t.Error("the server's list was changed")
	}
}

func TestInertEntryIsAProblem(t *testing.T) {
	_, problems := Build([]Source{{Server: "a", Tools: tools("x"), Entries: map[string]Tool{"y": {RemoteName: "nope"}}}})
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "server 'a' has no tool 'nope'") {
		t.Errorf("problems %v", problems)
	}
}

func TestSnapshotSurvivesTheStore(t *testing.T) {
	s, _ := Build([]Source{{Server: "a", Tools: []tenon.Tool{{Remote: "x.y", Input: json.RawMessage(`{"type":"object","const":9007199254740993}`)}}}})
	again, err := Decode(s.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest() != s.Digest() || string(again.Tools()[0].Input) != `{"type":"object","const":9007199254740993}` {
		t.Errorf("came back as %s", again.Encode())
	}
	if _, err := Decode([]byte("{")); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("error %v", err)
	}
}

func TestCheck(t *testing.T) {
	schema := `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],"additionalProperties":false}`
	s, _ := Build([]Source{{Server: "w", Tools: []tenon.Tool{
		{Remote: "weather", Input: json.RawMessage(schema)},
		{Remote: "remote", Input: json.RawMessage(`{"$ref":"http://127.0.0.1:1/schema.json"}`)},
		{Remote: "true", Input: json.RawMessage(`true`)},
		{Remote: "null", Input: json.RawMessage(`null`)},
		{Remote: "empty", Input: json.RawMessage(`{}`)},
		{Remote: "circle", Input: json.RawMessage(`{"type":"object","properties":{"next":{"$ref":"#"}}}`)},
		{Remote: "pattern", Input: json.RawMessage(`{"properties":{"a":{"pattern":"(?<x>"}}}`)},
	}}})
	tests := []struct {
		name, tool, args string
		want             string // "" = fits
	}{
		{"fits", "weather", `{"city":"Rome","days":3}`, ""},
		{"large numbers fit", "weather", `{"city":"Rome","days":9007199254740993}`, ""},
		{"KN-31 no such tool", "nope", `{}`, "Tool 'nope' not found among available tools: [circle, empty, null, pattern, remote, true, weather]"},
		{"missing", "weather", `{}`, "city"},
		{"wrong type", "weather", `{"city":7}`, "/city"},
		{"unknown argument", "weather", `{"city":"Rome","dayz":"x"}`, "unknown argument 'dayz' (did you mean 'days'?); expected city, days"},
		{"not an object", "weather", `["Rome"]`, "an array, expected a JSON object"},
		{"not JSON", "weather", `{"city":`, "not valid JSON"},
		{"SEC-F8_not UTF-8", "empty", "{\"a\":\"\xff\"}", "not valid UTF-8"},
		{"a key twice", "weather", `{"city":"Rome","city":"Paris"}`, `the key "city" stands twice`},
		{"a key twice, inside", "empty", `{"a":[{"b":{"c":1,"c":2}}]}`, `the key "c" stands twice`},
		{"the same key in two objects", "empty", `{"a":{"c":1},"b":{"c":{"c":2}},"c":["a","a"]}`, ""},
		{"no arguments", "empty", ``, ""},
		{"as deep as may be", "empty", strings.Repeat(`{"a":[`, 250) + strings.Repeat(`]}`, 250), ""},
		{"too deep", "empty", `{"a":` + strings.Repeat(`{"a":[`, 250) + strings.Repeat(`]}`, 250) + `}`, "nested deeper than 500 levels"},
		{"a schema that leads out is not fetched", "remote", `{"x":1}`, ""},
		{"schema true", "true", `{"x":1}`, ""},
		{"schema null", "null", `{"x":1}`, ""},
		{"a circular schema", "circle", `{"x":1}`, ""},
		{"a broken pattern", "pattern", `{"a":"x"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Prepare(&tenon.ToolCall{Name: tt.tool, Arguments: json.RawMessage(tt.args)}, nil)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"type":"object","required":["a"]}`, `{"a":1}`)
	f.Add(`{"$ref":"#/$defs/x","$defs":{"x":{"anyOf":[true,false]}}}`, `{"a":{"a":[1,2,"x"]}}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		if !json.Valid([]byte(schema)) {
			return
		}
		s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{{Remote: "x", Input: json.RawMessage(schema)}}}})
		_, _ = s.Prepare(&tenon.ToolCall{Name: "x", Arguments: json.RawMessage(args)}, nil)
	})
}

func BenchmarkCheck(b *testing.B) {
	s, _ := Build([]Source{{Server: "w", Tools: []tenon.Tool{{Remote: "weather",
		Input: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}}}})
	c := &tenon.ToolCall{Name: "weather", Arguments: json.RawMessage(`{"city":"London"}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Prepare(c, nil); err != nil {
			b.Fatal(err)
		}
	}
}
