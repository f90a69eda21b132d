package config

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/longtest"
)

// fileGen generates a tenon.yaml in random YAML styles and records the position of each value.
type fileGen struct {
	*rand.Rand
	b      strings.Builder
	places []generated
	eol    string
	block  bool // the last text was a block scalar: nothing may follow it on its line
}

// generated is a value of a generated file: its keys for [Change.Keys], its value and its bytes.
type generated struct {
	key      string
	value    any
	from, to int
	flow     bool
}

func (g *fileGen) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *fileGen) line(indent int, text string) {
	g.b.WriteString(strings.Repeat(" ", indent) + text + g.eol)
}

// noise sometimes writes a comment or a blank line.
func (g *fileGen) noise(indent int) {
	switch g.IntN(6) {
	case 0:
		g.line(indent, "# "+g.pick("mine: 'keep'", "größe", "- x", "{a: b}", "\"unbalanced"))
	case 1:
		g.line(0, "")
	}
}

// text writes a text in a random style, and records the value under a key.
func (g *fileGen) text(key, value string, indent int, flow bool) {
	from := g.b.Len()
	plain := value != "" && !strings.ContainsAny(value, ":#'\"[]{},&*!|>%@`\n\\$") && value == strings.TrimSpace(value) &&
		value != "yes" && value != "5" && value[0] != '-'
	style := g.IntN(7)
	if flow && style > 3 || strings.Contains(value, "\n") && (style == 0 || style == 2 || style > 4) {
		style = 1
	}
	g.block = false
	switch {
	case style == 0 && plain:
		g.b.WriteString(value)
	case style == 2:
		g.b.WriteString("'" + strings.ReplaceAll(value, "'", "''") + "'")
	case style == 3 && plain && !flow && strings.Contains(value, " "): // on two lines
		g.b.WriteString(strings.Replace(value, " ", g.eol+strings.Repeat(" ", indent+3), 1))
	case style == 4 && value != "" && value[0] != ' ':
		g.block = true
		g.b.WriteString("|" + g.pick("-", "-", "- # c"))
		for _, l := range strings.Split(value, "\n") {
			g.b.WriteString(g.eol)
			if l != "" {
				g.b.WriteString(strings.Repeat(" ", indent+4) + l)
			}
		}
	case style == 5 && plain: // folded at a space
		g.block = true
		g.b.WriteString(">-" + g.eol + strings.Repeat(" ", indent+2) + strings.ReplaceAll(value, " ", g.eol+strings.Repeat(" ", indent+2)))
	case style == 6 && plain: // an escape that nobody needs
		g.b.WriteString(fmt.Sprintf(`"\x%02x%s"`, value[0], value[1:]))
		if value[0] >= 0x80 {
			panic("not ASCII")
		}
	default:
		b, _ := json.Marshal(value)
		g.b.WriteString(string(b))
	}
	if key != "" {
		g.places = append(g.places, generated{key, value, from, g.b.Len(), flow})
	}
}

// rest ends a line.
func (g *fileGen) rest() {
	if !g.block && g.IntN(4) == 0 {
		g.b.WriteString(g.pick(" # c", "   # größe: 'x", "  "))
	}
	g.b.WriteString(g.eol)
}

func (g *fileGen) words() string {
	return g.pick("plain", "two words", "Date (optional, format: YYYY-MM-DD)", "größe", "a: b # c", "it's \"x\"", "yes", "5",
		"two\nlines", "several words to fold here", "- dash", "x\n\ny", "tab\tinside", "$$x", "", " lead")
}

// list writes a list of texts.
func (g *fileGen) list(key string, indent int, flow bool) {
	values := []string{g.pick("a", "b c"), g.pick("*", "d", "größe")}[:1+g.IntN(2)]
	from := 0
	if flow || g.IntN(2) == 0 {
		gap := g.pick("", " ")
		from = g.b.Len()
		g.b.WriteString("[" + gap)
		for i, v := range values {
			if i > 0 {
				g.b.WriteString("," + gap)
			}
			g.text(fmt.Sprintf("%s[%d]", key, i), v, indent, true)
		}
		g.b.WriteString(gap + "]")
		g.block = false
		g.places = append(g.places, generated{key, values, from, g.b.Len(), true})
		if !flow {
			g.rest()
		}
		return
	}
	g.b.WriteString(g.eol)
	for i, v := range values {
		g.noise(indent)
		g.b.WriteString(strings.Repeat(" ", indent) + g.pick("- ", "-   "))
		g.text(fmt.Sprintf("%s[%d]", key, i), v, indent+2, false)
		g.rest()
	}
}

// argument writes an argument, in flow style or block style.
func (g *fileGen) argument(at string, i, indent int) {
	name := fmt.Sprintf("arg%d", i)
	typ := g.pick("string", "number", "array")
	if g.IntN(2) == 0 {
		g.b.WriteString("{" + g.pick("", " ") + "name: " + name + ", type: ")
		g.text(at+".type", typ, indent, true)
		g.b.WriteString(", " + g.pick("\"description\"", "description", "'description'") + ": ")
		g.text(at+".description", g.words(), indent, true)
		if g.IntN(2) == 0 {
			g.b.WriteString(", required: ")
			g.places = append(g.places, generated{at + ".required", true, g.b.Len(), g.b.Len() + 4, true})
			g.b.WriteString("true")
		}
		g.b.WriteString(g.pick("", " ", ",") + "}")
		g.block = false
		g.rest()
		return
	}
	g.b.WriteString("name: " + name + g.eol)
	g.noise(indent)
	g.b.WriteString(strings.Repeat(" ", indent) + "type: ")
	g.text(at+".type", typ, indent, false)
	g.rest()
	g.b.WriteString(strings.Repeat(" ", indent) + "description: ")
	g.text(at+".description", g.words(), indent, false)
	g.b.WriteString(g.eol)
	if g.IntN(2) == 0 {
		g.b.WriteString(strings.Repeat(" ", indent) + "enum: ")
		g.list(at+".enum", indent+2, false)
	}
	if g.IntN(2) == 0 {
		g.b.WriteString(strings.Repeat(" ", indent) + "default: ")
		from := g.b.Len()
		g.block = false
		v := g.pick("5", "1.50", "{a: [1, 2]}", "{ \"a\" : null }", "[]", "true")
		g.b.WriteString(v)
		g.places = append(g.places, generated{at + ".default", json.RawMessage(v), from, g.b.Len(), v[0] == '{'})
		g.rest()
	}
	g.noise(indent)
}

// file writes the whole file. The test edits the entry tools.t.
func (g *fileGen) file() string {
	g.eol = g.pick("\n", "\n", "\n", "\r\n")
	if g.IntN(12) == 0 {
		g.b.WriteString("\ufeff")
	}
	g.noise(0)
	g.line(0, "version: 1 # größe")
	g.line(0, "servers:")
	g.line(2, "s: {command: echo, args: [a, 'b']} # s")
	g.noise(2)
	g.line(0, "tools:"+g.pick("", " # mine"))
	step := 1 + g.IntN(4)
	g.line(step, "a: {server: s, remote_name: other, x-mine: [1, 2]}")
	g.noise(step)
	g.line(step, g.pick("t:", "\"t\":", "'t':  # t"))
	in := step + 1 + g.IntN(4)
	g.line(in, "server: s")
	for _, key := range []string{"title", "description", "next_state"} {
		g.noise(in)
		if g.IntN(3) > 0 {
			value := g.words()
			g.b.WriteString(strings.Repeat(" ", in) + key + ":" + g.pick(" ", "  "))
			g.text(key, value, in, false)
			g.b.WriteString(g.eol)
		}
	}
	g.line(in, "x-unknown: {keep: [me, \"as\"], 'I': am}")
	for _, key := range []string{"groups", "states"} {
		if g.IntN(2) == 0 {
			g.b.WriteString(strings.Repeat(" ", in) + key + ": ")
			g.list(key, in+g.IntN(3), false)
		}
	}
	g.line(in, "arguments:")
	deep := in + g.IntN(3)
	for i := range 1 + g.IntN(3) {
		g.noise(deep)
		g.b.WriteString(strings.Repeat(" ", deep) + "- ")
		g.argument(fmt.Sprintf("arguments[%d]", i), i, deep+2)
	}
	if g.IntN(2) == 0 {
		g.line(in, "policy:")
		g.noise(in + 2)
		g.b.WriteString(strings.Repeat(" ", in+2) + "timeout: ")
		g.text("policy.timeout", g.pick("30s", "1m"), in+2, false)
		g.rest()
	}
	g.noise(in)
	if g.IntN(2) == 0 {
		g.line(step, "z: {server: s, remote_name: z}")
	}
	g.noise(0)
	text := g.b.String()
	if g.IntN(5) == 0 && strings.HasSuffix(text, "}"+g.eol) {
		text = strings.TrimSuffix(text, g.eol)
	}
	return text
}

// another returns a value of the same type that differs.
func (g *fileGen) another(p generated) any {
	switch v := p.value.(type) {
	case bool:
		return !v
	case []string:
		return append([]string{"new one"}, v[1:]...)
	case json.RawMessage:
		return json.RawMessage(`{"b": [7, "x"]}`)
	}
	if strings.HasSuffix(p.key, ".type") {
		return map[string]string{"string": "number"}[p.value.(string)] + map[bool]string{true: "", false: "boolean"}[p.value == "string"]
	}
	if strings.HasSuffix(p.key, "timeout") {
		return "45s"
	}
	for {
		if w := g.words() + g.pick("", " 2"); w != p.value && (w != "" || !strings.Contains(p.key, "[")) {
			return w
		}
	}
}

// TestSpliceKeepsBytes generates files, changes one value of each, and changes it back. The bytes must be the same
// again.
func TestSpliceKeepsBytes(t *testing.T) {
	home := t.TempDir()
	for i := range longtest.Times(50, 500) {
		t.Run(fmt.Sprintf("RP-18_one_value_%d", i), func(t *testing.T) {
			g := &fileGen{Rand: rand.New(rand.NewPCG(18, uint64(i)))}
			original := g.file()
			file := filepath.Join(t.TempDir(), "tenon.yaml")
			if err := os.WriteFile(file, []byte(original), 0o600); err != nil {
				t.Fatal(err)
			}
			known := &Spellings{}
			write := func(key string, value any) string {
				t.Helper()
				_, err := Edit(t.Context(), Options{File: file, NoUser: true, Home: home}, Edits{Known: known,
					Changes: []Change{{Section: "tools", Name: "t", Keys: []Field{{key, value}}}}})
				b, e := os.ReadFile(file)
				if err != nil || e != nil {
					t.Fatalf("%s = %q: %v %v\n%s", key, value, err, e, original)
				}
				return string(b)
			}
			if len(g.places) == 0 || g.IntN(6) == 0 { // a key that does not exist yet
				key, value := "policy.max_calls", any(3)
				if strings.Contains(original, "policy:") {
					key, value = "validate", "warn"
				}
				if added := write(key, value); added == original {
					t.Error("nothing was added")
				}
				if back := write(key, nil); back != original {
					t.Errorf("%s was added and removed:\n%q\n%q", key, original, back)
				}
				return
			}
			p := g.places[g.IntN(len(g.places))]
			value := g.another(p)
			changed := write(p.key, value)
			before, after := original[:p.from], original[p.to:]
			if changed == original || !strings.HasPrefix(changed, before) || !strings.HasSuffix(changed, after) {
				t.Errorf("%s = %q changes more than the value:\n%q\n%q", p.key, value, original, changed)
			}
			if back := write(p.key, p.value); back != original {
				t.Errorf("%s = %q and back:\n%q\n%q\n%q", p.key, value, original, changed, back)
			}
		})
	}
}
