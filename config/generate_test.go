package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
)

var update = flag.Bool("update", false, "rewrite goldens and generated files")

const pageHead = `# Keys of tenon.yaml

<!-- Generated from the config structs by: go test ./config -update. Do not edit. -->

Every key of the file, as this version reads it. An unknown key is an error. Keys that begin with ` + "`x-`" + ` are accepted
everywhere and never read. NAME is the user's key. A duration is ` + "`90s`" + `, ` + "`5m`" + `, ` + "`1h30m`" + ` or ` + "`30d`" + `; a bare number is
seconds. A secret is the name of an entry of ` + "`secrets`" + `, or the same object inline. Variables (` + "`${VAR}`" + `,
` + "`${VAR:-default}`" + `, ` + "`$$`" + ` for a dollar sign) are expanded in values marked with *. A relative path is relative to the
folder of the file. "Inherited" means the value of the next less specific block. [layers.md](layers.md) explains how
the values of the administrator, the user and the project combine.

| key | type | default | meaning |
| --- | --- | --- | --- |
`

// generator generates the schema and the reference page from types, tags and comments.
type generator struct {
	t    *testing.T
	docs map[string]map[string]string // Go type → field → comment
	page strings.Builder
	defs map[string]any
}

// TestGenerated checks that tenon.schema.json and docs/reference/config.md are up to date.
func TestGenerated(t *testing.T) {
	g := &generator{t: t, docs: map[string]map[string]string{}, defs: map[string]any{}}
	for _, dir := range []string{".", "../servers", "../catalog", "../policy", "../agent", "../model", "../table",
		"../schedule"} {
		g.comments(dir)
	}
	g.page.WriteString(pageHead)
	root := g.object(reflect.TypeFor[Config](), place{})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://raw.githubusercontent.com/tenonhq/tenon/main/config/tenon.schema.json"
	root["title"] = "tenon.yaml"
	root["$defs"] = g.defs
	g.page.WriteString("| `x-*` | any | | kept, never read |\n")
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	golden(t, "tenon.schema.json", b.Bytes())
	golden(t, filepath.Join("..", "docs", "reference", "config.md"), []byte(g.page.String()))
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is stale; go test ./config -update rewrites it (-want +got):\n%s", path, diff)
	}
}

// comments reads the doc comments of the fields of a package's structs.
func (g *generator) comments(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			g.t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			docs := map[string]string{}
			for _, field := range s.Fields.List {
				for _, id := range field.Names {
					docs[id.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
				}
			}
			g.docs[f.Name.Name+"."+spec.Name.Name] = docs
			return true
		})
	}
}

// object returns the schema of a struct and writes the rows of its keys.
func (g *generator) object(t reflect.Type, p place) map[string]any {
	props := map[string]any{}
	for _, f := range fields(t) {
		doc := g.docs[t.String()][f.goName]
		if doc == "" {
			g.t.Errorf("%s.%s has no comment; it is the user's documentation", t, f.goName)
		}
		fp := p.key(f.name)
		if b, ok := bounds[fp.pattern]; ok {
			f.min, f.max = &b[0], &b[1]
		}
		switch {
		case t == reflect.TypeFor[policy.Block]() && p.pattern != "policy.defaults":
			f.def = "inherited"
		case t == reflect.TypeFor[agent.Limits]() && p.pattern != "limits":
			f.def = "inherited from limits"
		}
		s := g.value(f.typ, fp, f, doc)
		if f.alias != "" {
			alias := map[string]any{"description": "Alias of " + f.name + "."}
			for k, v := range s {
				if k != "description" && k != "default" {
					alias[k] = v
				}
			}
			if f.alias == "type" {
				alias["enum"] = append(slices.Clone(f.enum), "streamable-http")
			}
			props[f.alias] = alias
		}
		props[f.name] = s
	}
	return map[string]any{"type": "object", "properties": props, "additionalProperties": false,
		"patternProperties": map[string]any{"^x-": true}}
}

func (g *generator) value(t reflect.Type, p place, f field, doc string) map[string]any {
	s, name := g.kind(t, f)
	s["description"] = doc
	if def, ok := literalDefault(t, f); ok {
		s["default"] = def
	}
	if len(f.enum) > 0 {
		s["enum"] = f.enum
		doc += " Values: " + strings.Join(f.enum, ", ") + "."
	}
	if f.min != nil {
		s["minimum"] = *f.min
	}
	if f.max != nil {
		s["maximum"] = *f.max
	}
	if f.alias != "" {
		doc += " Alias: `" + f.alias + "`."
	}
	star := ""
	if expands[p.pattern] || expands[p.pattern+"[]"] || expands[p.pattern+".NAME"] {
		star = "*"
	}
	if isPath[p.pattern] {
		name = "path"
	}
	def := f.def
	if def != "" {
		def = " " + strings.ReplaceAll(def, "|", "\\|") + " "
	} else {
		def = " "
	}
	fmt.Fprintf(&g.page, "| `%s` | %s%s |%s| %s |\n", p.pattern, name, star, def, strings.ReplaceAll(doc, "|", "\\|"))
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == secretType || t == durationType || t == rawType:
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		s["items"] = g.orShort(t.Elem(), g.object(t.Elem(), place{p.path + "[]", p.pattern + "[]"}))
	case t.Kind() == reflect.Struct:
		for k, v := range g.orShort(t, g.object(t, p)) {
			s[k] = v
		}
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		s["additionalProperties"] = g.object(t.Elem(), p.named("NAME"))
		s["propertyNames"] = map[string]any{"pattern": "^[A-Za-z0-9_.-]{1,64}$"}
	}
	return s
}

// orShort returns the schema of a struct that can also be written as a single scalar.
func (g *generator) orShort(t reflect.Type, object map[string]any) map[string]any {
	known := fields(t)
	at := slices.IndexFunc(known, func(f field) bool { return f.short })
	if at < 0 {
		return object
	}
	short, _ := g.kind(known[at].typ, known[at])
	return map[string]any{"anyOf": []any{short, object}}
}

// kind returns the schema of a type and its name for the page.
func (g *generator) kind(t reflect.Type, f field) (s map[string]any, name string) {
	switch {
	case t == secretType:
		if g.defs["secret"] == nil {
			page := g.page.String()
			source := g.object(reflect.TypeFor[SecretSource](), place{"secret", "secret"})
			g.page.Reset()
			g.page.WriteString(page)
			g.defs["secret"] = map[string]any{"anyOf": []any{map[string]any{"type": "string"}, source}}
		}
		return map[string]any{"$ref": "#/$defs/secret"}, "secret"
	case t == durationType:
		g.defs["duration"] = map[string]any{"anyOf": []any{
			map[string]any{"type": "string", "pattern": "^([0-9]+d)?([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$", "minLength": 2},
			map[string]any{"type": "number", "exclusiveMinimum": 0}}}
		return map[string]any{"$ref": "#/$defs/duration"}, "duration"
	}
	if t == sizeType {
		g.defs["size"] = map[string]any{"anyOf": []any{
			map[string]any{"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *([KMG]iB|[kKMG]?B)?$"},
			map[string]any{"type": "integer", "minimum": 1}}}
		return map[string]any{"$ref": "#/$defs/size"}, "size"
	}
	if t == rawType {
		return map[string]any{}, "any"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.kind(t.Elem(), f)
	case reflect.String:
		if len(f.enum) > 0 {
			return map[string]any{"type": "string"}, "enum"
		}
		return map[string]any{"type": "string"}, "string"
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, "bool"
	case reflect.Int:
		return map[string]any{"type": "integer"}, "int"
	case reflect.Float64:
		return map[string]any{"type": "number"}, "number"
	case reflect.Slice:
		items := map[string]any{"type": "string"}
		if t.Elem() == rawType {
			items = map[string]any{}
		}
		return map[string]any{"type": []string{"array", "null"}, "items": items}, "list"
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			return map[string]any{"type": []string{"object", "null"}}, "map"
		}
		values := map[string]any{"type": "string"}
		if t.Elem() == rawType {
			values = map[string]any{}
		}
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": values}, "map"
	case reflect.Struct:
		return map[string]any{"type": "object"}, "object"
	}
	g.t.Errorf("no schema for %s", t)
	return map[string]any{}, "?"
}

// literalDefault parses a default in a tag. It reports false if the tag only describes the default.
func literalDefault(t reflect.Type, f field) (any, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case f.def == "" || t == secretType:
		return nil, false
	case t == durationType:
		return f.def, f.def[0] >= '0' && f.def[0] <= '9'
	case len(f.enum) > 0:
		return f.def, slices.Contains(f.enum, f.def)
	case t.Kind() == reflect.Bool || t.Kind() == reflect.Int || t.Kind() == reflect.Float64:
		var v any
		return v, json.Unmarshal([]byte(f.def), &v) == nil && v != nil
	}
	return nil, false
}
