package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// Document is a YAML file other than tenon.yaml, decoded into a struct with the same tags. Every mistake is reported
// with file, line and column. Variables are not expanded.
type Document struct {
	// Dir is the folder that relative paths in the file are relative to.
	Dir string

	d     *decoder
	root  *tree.Node
	empty bool   // the file is empty
	data  []byte // of the file
}

// ReadDocument reads the file at a path into out, a pointer to a struct. Errors: not_found, or [Errors], which has
// code config. The caller reports further mistakes with [Document.Add] and then calls [Document.Err].
func ReadDocument(path string, out any) (*Document, error) {
	return readDocument(nil, path, out)
}

func readDocument(files *ledger, path string, out any) (*Document, error) {
	data, err := files.read(path, tree.MaxBytes)
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s cannot be read: %w", path, err)
	}
	return ParseDocument(path, data, filepath.Dir(path), out)
}

// ParseDocument parses the bytes of a file in the way of [ReadDocument]. name is the file's name in errors.
func ParseDocument(name string, data []byte, dir string, out any) (*Document, error) {
	return parseDocument(&tree.Source{Label: name, Dir: dir}, data, out)
}

// parseDocument is [ParseDocument] with a source instead of a name.
func parseDocument(src *tree.Source, data []byte, out any) (*Document, error) {
	s := &tree.Sink{}
	root := tree.Parse(src, data, s)
	empty := root == nil
	if empty {
		root = &tree.Node{Kind: tree.Map, Line: 1, Col: 1, Src: src}
	}
	doc, err := documentOf(src, root, data, s, out)
	doc.empty = empty
	return doc, err
}

// documentOf decodes the tree of a file.
func documentOf(src *tree.Source, root *tree.Node, data []byte, s *tree.Sink, out any) (*Document, error) {
	d := &decoder{Sink: s, vars: &tree.Variables{}, nodes: map[string]*tree.Node{}, keyed: map[string]*tree.Node{},
		order: map[string][]string{}, secrets: map[string]SecretSource{}}
	// This pattern matches no rule about keys of tenon.yaml.
	d.decode(root, place{pattern: "(document)"}, reflect.ValueOf(out).Elem(), field{})
	doc := &Document{Dir: src.Dir, d: d, root: root, data: data}
	return doc, doc.Err()
}

// ReadTestCases reads the key test_cases of a HoloDeck agent into out, a pointer to a struct that has only this key.
// It returns nil if the file is no HoloDeck agent. Errors are the errors of [ReadDocument].
func ReadTestCases(path string, out any) (*Document, error) {
	data, err := (*ledger)(nil).read(path, tree.MaxBytes)
	if err != nil {
		return nil, nil // the caller reads the file again and reports the error
	}
	src := &tree.Source{Label: path, Dir: filepath.Dir(path)}
	root := tree.Parse(src, data, &tree.Sink{})
	if recognise(root) != compat.HoloDeck {
		return nil, nil
	}
	part := &tree.Node{Kind: tree.Map, Line: 1, Col: 1, Src: src}
	for i, k := range root.Keys {
		if k.Val == "test_cases" {
			part.Append(k.Val, k, root.Vals[i])
		}
	}
	return documentOf(src, part, data, &tree.Sink{}, out)
}

// Add reports a mistake in the value at a path, such as cases[2].expect. If there is no such value, the error has the
// position of the nearest enclosing one.
func (d *Document) Add(path, message, hint string) {
	at := path
	for {
		if n := d.d.nodes[at]; n != nil {
			d.d.Add(n, path, message, hint)
			return
		}
		i := strings.LastIndexAny(at, ".[")
		if i < 0 {
			d.d.Add(d.root, path, message, hint)
			return
		}
		at = at[:i]
	}
}

// addInside is Add for a position inside a text; line and column count from 1. If the file writes the text
// differently, for example with escapes, the error is at the beginning of the text.
func (d *Document) addInside(path string, line, column int, message, hint string) {
	n := d.d.nodes[path]
	if n == nil {
		d.Add(path, message, hint)
		return
	}
	at := *n
	if lines := bytes.Split(d.data, []byte("\n")); n.Line <= len(lines) {
		at.Line, at.Col = inside(lines, n, line, column)
	}
	d.d.Add(&at, path, message, hint)
}

// inside converts a position inside a text to the line and column in the file.
func inside(lines [][]byte, n *tree.Node, line, column int) (int, int) {
	first := []rune(string(lines[n.Line-1]))
	if n.Col > len(first) {
		return n.Line, n.Col
	}
	switch style := first[n.Col-1]; {
	case style == '|':
		indent := -1
		for _, l := range lines[n.Line:] {
			if text := bytes.TrimLeft(l, " "); len(bytes.TrimSpace(text)) > 0 {
				indent = len(l) - len(text)
				break
			}
		}
		if indent >= 0 && n.Line+line <= len(lines) {
			return n.Line + line, indent + column
		}
	case line > 1 || style == '>' || strings.Contains(n.Val, "\n"):
	case style == '"' || style == '\'':
		if rest := string(first[n.Col:]); strings.HasPrefix(rest, n.Val) {
			return n.Line, n.Col + column
		}
	default:
		return n.Line, n.Col + column - 1
	}
	return n.Line, n.Col
}

// Err returns all mistakes, or nil if there are none.
func (d *Document) Err() error {
	if len(d.d.Errs) == 0 {
		return nil
	}
	return Errors(tree.Sorted(d.d.Errs))
}

// ReadSchema reads a file with one JSON document, such as a JSON Schema, written in JSON or YAML. Its errors are the
// errors of [ReadDocument]; an empty file has code config.
func ReadSchema(path string) (json.RawMessage, error) { return readSchema(nil, path) }

func readSchema(files *ledger, path string) (json.RawMessage, error) {
	var raw json.RawMessage
	doc, err := readDocument(files, path, &raw)
	if err == nil && (doc.empty || string(raw) == "null") {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s holds nothing; {} is the schema that everything fits", path)
	}
	return raw, err
}
