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

// Document is a YAML file of another kind than tenon.yaml that was read into a struct
// with the same tags: every mistake in it has its file, line and column. Variables are
// not expanded.
type Document struct {
	// Dir is the folder that relative paths in the file are relative to.
	Dir string

	d     *decoder
	root  *node
	empty bool   // there is nothing in the file
	data  []byte // of the file
}

// ReadDocument reads the file at a path into out, a pointer to a struct. Errors:
// not_found, or [Errors], which has code config. What only the caller can judge is
// told by [Document.Add] and asked for by [Document.Err].
func ReadDocument(path string, out any) (*Document, error) {
	data, err := readFile(path, maxBytes)
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
	s := &sink{}
	src := &source{label: name, dir: dir}
	root := parse(src, data, s)
	empty := root == nil
	if empty {
		root = &node{kind: mapNode, line: 1, col: 1, src: src}
	}
	d := &decoder{sink: s, vars: &variables{}, nodes: map[string]*node{}, keyed: map[string]*node{},
		order: map[string][]string{}, secrets: map[string]SecretSource{}}
	// The pattern keeps the rules about keys of tenon.yaml away.
	d.decode(root, place{pattern: "(document)"}, reflect.ValueOf(out).Elem(), field{})
	doc := &Document{Dir: dir, d: d, root: root, empty: empty, data: data}
	return doc, doc.Err()
}

// Add tells that the value at a path, such as cases[2].expect, is wrong. Where there
// is no such value, it is told at the nearest one around it.
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

// Err returns all that was found wrong, nil for nothing.
func (d *Document) Err() error {
	if len(d.d.errs) == 0 {
		return nil
	}
	return Errors(sorted(d.d.errs))
}

// ReadSchema reads a file that holds one JSON document, written as JSON or as YAML, such
// as a JSON Schema. Errors are those of [ReadDocument], and code config for a file that
// holds nothing.
func ReadSchema(path string) (json.RawMessage, error) {
	var raw json.RawMessage
	doc, err := ReadDocument(path, &raw)
	if err == nil && (doc.empty || string(raw) == "null") {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s holds nothing; {} is the schema that everything fits", path)
	}
	return raw, err
}
