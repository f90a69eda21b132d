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
)

// Document is another YAML file than tenon.yaml, read into a struct with the same tags, so that every mistake in it
// has a file, line and column. Variables are not expanded.
type Document struct {
	// Dir is the folder that relative paths in the file are relative to.
	Dir string

	d     *decoder
	root  *node
	empty bool   // the file is empty
	data  []byte // of the file
}

// ReadDocument reads the file at a path into out, a pointer to a struct. Errors: not_found, or [Errors], which has
// code config. The caller reports further mistakes with [Document.Add] and then calls [Document.Err].
func ReadDocument(path string, out any) (*Document, error) {
	return readDocument(nil, path, out)
}

func readDocument(files *ledger, path string, out any) (*Document, error) {
	data, err := files.read(path, maxBytes)
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s cannot be read: %w", path, err)
	}
	return ParseDocument(path, data, filepath.Dir(path), out)
}

// ParseDocument reads the bytes of a file, called name in errors, as [ReadDocument]
// does.
func ParseDocument(name string, data []byte, dir string, out any) (*Document, error) {
	return parseDocument(&source{label: name, dir: dir}, data, out)
}

// parseDocument is [ParseDocument] for a source.
func parseDocument(src *source, data []byte, out any) (*Document, error) {
	s := &sink{}
	root := parse(src, data, s)
	empty := root == nil
	if empty {
		root = &node{kind: mapNode, line: 1, col: 1, src: src}
	}
	doc, err := documentOf(src, root, data, s, out)
	doc.empty = empty
	return doc, err
}

// documentOf decodes the tree of a file.
func documentOf(src *source, root *node, data []byte, s *sink, out any) (*Document, error) {
	d := &decoder{sink: s, vars: &variables{}, nodes: map[string]*node{}, keyed: map[string]*node{},
		order: map[string][]string{}, secrets: map[string]SecretSource{}}
	// The pattern keeps the rules about keys of tenon.yaml away.
	d.decode(root, place{pattern: "(document)"}, reflect.ValueOf(out).Elem(), field{})
	doc := &Document{Dir: src.dir, d: d, root: root, data: data}
	return doc, doc.Err()
}

// ReadTestCases reads the key test_cases of a HoloDeck agent into out, a pointer to a struct that has only this key. It
// returns nil if the file is none. Errors are the errors of [ReadDocument].
func ReadTestCases(path string, out any) (*Document, error) {
	data, err := (*ledger)(nil).read(path, maxBytes)
	if err != nil {
		return nil, nil // the caller reads the file again, and reports the error
	}
	src := &source{label: path, dir: filepath.Dir(path)}
	root := parse(src, data, &sink{})
	if recognise(root) != kindHoloDeck {
		return nil, nil
	}
	part := &node{kind: mapNode, line: 1, col: 1, src: src}
	for i, k := range root.keys {
		if k.val == "test_cases" {
			taken(part, k.val, k, root.vals[i])
		}
	}
	return documentOf(src, part, data, &sink{}, out)
}

// Add reports a mistake in the value at a path, such as cases[2].expect. If there is no such value, the error has the
// position of the nearest enclosing one.
func (d *Document) Add(path, message, hint string) {
	at := path
	for {
		if n := d.d.nodes[at]; n != nil {
			d.d.add(n, path, message, hint)
			return
		}
		i := strings.LastIndexAny(at, ".[")
		if i < 0 {
			d.d.add(d.root, path, message, hint)
			return
		}
		at = at[:i]
	}
}

// addInside is Add for a place within a text, whose lines and columns count from 1. Where
// the file writes the text in another way than it reads, the place is its beginning.
func (d *Document) addInside(path string, line, column int, message, hint string) {
	n := d.d.nodes[path]
	if n == nil {
		d.Add(path, message, hint)
		return
	}
	at := *n
	if lines := bytes.Split(d.data, []byte("\n")); n.line <= len(lines) {
		at.line, at.col = inside(lines, n, line, column)
	}
	d.d.add(&at, path, message, hint)
}

// inside finds a place of a text in the lines of the file.
func inside(lines [][]byte, n *node, line, column int) (int, int) {
	first := []rune(string(lines[n.line-1]))
	if n.col > len(first) {
		return n.line, n.col
	}
	switch style := first[n.col-1]; {
	case style == '|':
		indent := -1
		for _, l := range lines[n.line:] {
			if text := bytes.TrimLeft(l, " "); len(bytes.TrimSpace(text)) > 0 {
				indent = len(l) - len(text)
				break
			}
		}
		if indent >= 0 && n.line+line <= len(lines) {
			return n.line + line, indent + column
		}
	case line > 1 || style == '>' || strings.Contains(n.val, "\n"):
	case style == '"' || style == '\'':
		if rest := string(first[n.col:]); strings.HasPrefix(rest, n.val) {
			return n.line, n.col + column
		}
	default:
		return n.line, n.col + column - 1
	}
	return n.line, n.col
}

// Err returns all mistakes, or nil if there are none.
func (d *Document) Err() error {
	if len(d.d.errs) == 0 {
		return nil
	}
	return Errors(sorted(d.d.errs))
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
