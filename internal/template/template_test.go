package template

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	standard "text/template"
)

// data has all kinds of values that the callers of this package use.
func data() map[string]any {
	return map[string]any{
		"text": "a <b> & 'c' \"d\"", "empty": "", "yes": true, "no": false, "n": 3, "zero": 0, "half": 0.5, "none": nil,
		"list": []any{"x", 1, nil}, "words": []string{"a", "b", "c"}, "nothing": []string{},
		"map":   map[string]any{"k": "v", "b": 2},
		"tools": []map[string]any{{"name": "one", "arguments": []map[string]any{{"name": "a", "required": true}}}, {"name": "two", "arguments": []map[string]any{}}},
	}
}

var shout = map[string]Func{"shout": func(args ...any) (any, error) {
	if len(args) != 1 {
		return nil, errors.New("want one text")
	}
	s, ok := args[0].(string)
	if !ok {
		return nil, errors.New("no text")
	}
	return strings.ToUpper(s), nil
}}

// run executes a text here.
func run(text string) (string, error) {
	t, err := Parse("t", text, shout)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, data())
	return b.String(), err
}

// runStandard executes a text with text/template.
func runStandard(text string) (string, error) {
	t, err := standard.New("t").Option("missingkey=error").Funcs(standard.FuncMap{"shout": func(v any) (any, error) { return shout["shout"](v) }}).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, data())
	return b.String(), err
}

// texts are templates that both execute alike.
var texts = []string{
	"", "text", "{{.text}}", "{{ .text -}}  \n x", "{{/* nothing */}}", "{{.none}}", "{{.map}}", "{{.list}}", "{{.half}}", "{{.yes}}{{.n}}",
	"{{if .yes}}a{{else}}b{{end}}", "{{if .empty}}a{{else if .n}}b{{else}}c{{end}}", "{{if not .none}}a{{end}}", "{{if .nothing}}a{{else}}b{{end}}",
	"{{if .half}}a{{end}}{{if .zero}}b{{end}}{{if .map}}c{{end}}", "{{with .text}}{{.}}{{end}}", "{{with .empty}}a{{else}}b{{end}}",
	"{{with .empty}}a{{else with .n}}{{.}}{{end}}", "{{with $x := .n}}{{$x}}{{.}}{{end}}",
	"{{range .words}}[{{.}}]{{end}}", "{{range $i, $w := .words}}{{$i}}={{$w}} {{end}}", "{{range $w := .words}}{{$w}}{{end}}",
	"{{range .nothing}}a{{else}}none{{end}}", "{{range .none}}a{{else}}none{{end}}", "{{range $k, $v := .map}}{{$k}}:{{$v}},{{end}}", "{{range .n}}{{.}}{{end}}",
	"{{range $i, $e := 3}}{{$i}}{{$e}}{{end}}", "{{range .words}}{{if eq . \"b\"}}{{continue}}{{end}}{{.}}{{end}}", "{{range .words}}{{if eq . \"b\"}}{{break}}{{end}}{{.}}{{end}}",
	"{{range .tools}}{{.name}}: {{range .arguments}}{{.name}} {{.required}} {{$.text}}{{else}}-{{end}}\n{{end}}",
	"{{$x := 1}}{{$x}}{{$x = 2}}{{$x}}{{if .yes}}{{$x = 3}}{{$x := 4}}{{$x}}{{end}}{{$x}}", "{{$x := .map}}{{$x.k}}", "{{$}}", "{{$.n}}",
	"{{define \"a\"}}<{{.}}>{{end}}{{template \"a\" .text}}{{template \"a\"}}", "{{block \"b\" .n}}{{.}}{{end}}",
	"{{eq .n 3}}{{ne .n 3}}{{lt .n 4}}{{le .n 3}}{{gt .n 3}}{{ge .n 3}}", "{{eq .text \"a\" .text}}", "{{eq .half 0.5}}", "{{lt \"a\" \"b\"}}", "{{eq .yes true}}{{eq .no true}}", "{{eq .none nil}}",
	"{{and .yes .n}}{{and .no .text}}{{or .no .text}}{{or .empty .zero}}", "{{or .yes .missing}}{{and .no .missing}}", "{{.n | and .yes}}{{.n | or .no}}",
	"{{len .words}}{{len .text}}{{len .map}}", "{{index .words 1}}{{index .map \"k\"}}{{index .tools 0 \"name\"}}", "{{index .list 2}}", "{{index .map \"missing\"}}",
	"{{slice .text 1 3}}{{slice .words 1}}", "{{print 1 2 \"x\" .text}}", "{{printf \"%q %d %v\" .text .n .half}}", "{{println .n}}", "{{.text | html}}", "{{urlquery .text}}",
	"{{.text | printf \"%s-%s\" \"a\"}}", "{{.text | shout | len}}", "{{shout (print .n \"x\")}}", "{{(index .tools 0).name}}", "{{1.0}}{{1e3}}{{0x10}}{{'a'}}{{-3}}", "{{\"\\u00e9\"}}{{`raw`}}", "{{true}}",
	// Errors.
	"{{.missing}}", "{{.map.missing}}", "{{.text.k}}", "{{.none.k}}", "{{nil}}", "{{.n 1}}", "{{1 | .n}}", "{{range .text}}{{end}}", "{{range .half}}{{end}}", "{{template \"no\"}}", "{{eq 1}}",
	"{{eq 1 1.0}}", "{{lt 1 \"a\"}}", "{{lt true false}}", "{{eq .map .map}}", "{{len .n}}", "{{len}}", "{{index .words 3}}", "{{index .words -1}}", "{{index .n 1}}", "{{index .map 1}}", "{{slice .text 3 1}}", "{{slice .text 99}}",
	"{{slice .map 0}}", "{{printf}}", "{{printf 1}}", "{{shout 1}}", "{{if}}", "{{if .n}}", "{{end}}", "{{unknown}}", "{{$x}}", "{{break}}", "{{not}}", "{{not 1 2}}", "{{and}}", "{{.words.a}}", "{{define \"r\"}}{{template \"r\"}}{{end}}{{template \"r\"}}",
}

func TestLikeTextTemplate(t *testing.T) {
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			want, wantErr := runStandard(text)
			got, err := run(text)
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("got %v\nwant %v", err, wantErr)
			}
			if err == nil && got != want {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"a\n{{.map.missing}}", `template: t:2:6: executing "t" at <.map.missing>: map has no entry for key "missing"`},
		{"{{shout 1}}", `template: t:1:2: executing "t" at <shout>: error calling shout: no text`},
		{"{{range 1000000000}}{{end}}", "executes more than 10000000 nodes"},
		{"{{js .text}}", `template: t:1: function "js" not defined`},
		{"{{define \"r\"}}{{template \"r\"}}{{end}}{{template \"r\"}}", "exceeded maximum template depth (1000)"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			_, err := run(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestWriteError(t *testing.T) {
	full := errors.New("full")
	for _, text := range []string{"text", "{{.text}}", "{{.n}}"} {
		tmpl, err := Parse("t", text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := tmpl.Execute(broken{full}, data()); !errors.Is(err, full) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// FuzzLikeTextTemplate executes any template without a panic. Where text/template also succeeds, the result is its
// result. There are templates that only one of them accepts: text/template compares and converts more types.
func FuzzLikeTextTemplate(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "range") && strings.ContainsAny(text, "123456789") || strings.Contains(text, "template") {
			return // text/template has no bound
		}
		got, err := run(text)
		want, wantErr := runStandard(text)
		if err == nil && wantErr == nil && got != want {
			t.Errorf("%s\ngot %q\nwant %q", fmt.Sprintf("%q", text), got, want)
		}
	})
}
