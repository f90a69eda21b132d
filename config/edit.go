package config

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
)

// Entry is one entry of a section of tenon.yaml as it is to be written: its keys
// in order, with values that are strings, booleans, numbers, lists of strings, or
// [Fields] and lists of those, which are written on one line each.
type Entry []Field

// Field is one key of an entry.
type Field struct {
	Key   string
	Value any
}

// Fields is a value with keys of its own.
type Fields []Field

// Edit changes the project's file: it finds the file that [Load] would take,
// puts the entry in the section (servers, tools), in place of one of that name
// or behind the last one, and writes the file again. A nil entry removes it. All
// else stays byte for byte: comments, order, blank lines. The file is checked
// before it is written, and left as it is where the check fails.
//
// It returns the file's name. Errors: not_found (no file, no such entry),
// config (what the file would be is not valid), invalid (a file that is not
// tenon.yaml, or written in a way that has no place for an entry).
func Edit(ctx context.Context, o Options, section, name string, entry Entry) (string, error) {
	c, err := Load(ctx, o)
	switch {
	case err != nil:
		return "", err
	case c.Path == "":
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no file to change: name one with -c FILE, or write one with 'tenon init'")
	case strings.EqualFold(filepath.Ext(c.Path), ".json"):
		return "", tenon.Errorf(tenon.CodeInvalid, "%s is not a tenon.yaml; only that can be changed", c.File)
	}
	info, err := os.Stat(c.Path)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeNotFound, "%s: %w", c.File, err)
	}
	data, err := readFile(c.Path, maxBytes)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeConfig, "%s: %s", c.File, reason(err))
	}
	changed, err := editBytes(c.File, data, section, name, entry)
	if err != nil {
		return "", err
	}
	o.File, o.NoUser = c.Path, true
	if o, err = o.withDefaults(); err != nil {
		return "", err
	}
	if _, err := build(o, []file{{src: &source{label: c.File, path: c.Path, dir: filepath.Dir(c.Path)}, data: changed}}); err != nil {
		return "", err
	}
	return c.File, replaceFile(c.Path, changed, info.Mode().Perm())
}

// replaceFile writes a file so that another program sees the old or the new one.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tenon-*")
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", path, err)
	}
	_, err = f.Write(data)
	for _, do := range []func() error{f.Sync, func() error { return f.Chmod(mode) }, f.Close} {
		if e := do(); err == nil {
			err = e
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", path, err)
	}
	return nil
}

// editBytes sets or removes an entry. It works on lines, which is what keeps the
// rest of the file as it is.
func editBytes(label string, data []byte, section, name string, entry Entry) ([]byte, error) {
	s := &sink{}
	root := parse(&source{label: label}, data, s)
	if len(s.errs) > 0 {
		return nil, Errors(sorted(s.errs))
	}
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	body, at := root.get(section)
	_, key := body.get(name)
	if entry == nil && key == nil {
		var names []string
		if body != nil {
			for _, k := range body.keys {
				names = append(names, k.val)
			}
		}
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s has no entry %s.%s%s", label, section, name, near(name, names))
	}
	if root != nil && !root.isNull() && root.col != 1 || at != nil && at.col != 1 {
		return nil, oneLine(label, section)
	}
	switch {
	case at == nil: // a section of its own at the end
		if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
			lines[n-1] += "\n"
		}
		if len(lines) > 0 {
			lines = append(lines, "\n")
		}
		return []byte(strings.Join(lines, "") + section + ":\n" + block(name, entry, 2)), nil
	case body.isNull():
		if entry == nil || strings.TrimSpace(strings.SplitN(lines[at.line-1], "#", 2)[0]) != section+":" {
			return nil, oneLine(label, section)
		}
		return splice(lines, at.line, at.line, block(name, entry, 2)), nil
	case body.kind != mapNode || len(body.keys) == 0 || body.keys[0].line == at.line:
		return nil, oneLine(label, section)
	}
	indent := body.keys[0].col - 1
	if key == nil {
		last := body.keys[len(body.keys)-1]
		end := blockEnd(lines, last.line, indent)
		return splice(lines, end, end, block(name, entry, indent)), nil
	}
	if strings.TrimSpace(lines[key.line-1][:key.col-1]) != "" {
		return nil, oneLine(label, section)
	}
	end, text := blockEnd(lines, key.line, indent), ""
	if entry != nil {
		text = block(name, entry, indent)
	} else if len(body.keys) == 1 {
		// The last entry takes the section's own line with it.
		return splice(lines, at.line-1, end, ""), nil
	}
	return splice(lines, key.line-1, end, text), nil
}

func near(name string, names []string) string {
	if n := tenon.Nearest(name, names); n != "" {
		return "; did you mean '" + n + "'?"
	}
	return ""
}

func oneLine(label, section string) error {
	return tenon.Errorf(tenon.CodeInvalid, "%s: '%s' is not written with an entry on lines of its own, so it cannot be changed here; edit the file", label, section)
}

// splice puts text in the place of the lines from (counted from 0) up to but
// without the line to.
func splice(lines []string, from, to int, text string) []byte {
	var b bytes.Buffer
	for _, l := range lines[:from] {
		b.WriteString(l)
	}
	if from > 0 && text != "" && !strings.HasSuffix(lines[from-1], "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(text)
	for _, l := range lines[to:] {
		b.WriteString(l)
	}
	return b.Bytes()
}

// blockEnd returns the number of lines up to the end of the entry that begins on
// a line. Comments and blank lines behind it belong to what follows.
func blockEnd(lines []string, start, indent int) int {
	end := start
	for i := start; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		own := len(lines[i]) - len(text)
		switch text = strings.TrimSpace(text); {
		case text == "", text[0] == '#' && own <= indent:
		case own <= indent:
			return end
		default:
			end = i + 1
		}
	}
	return end
}

// block writes an entry.
func block(name string, entry Entry, indent int) string {
	pad := strings.Repeat(" ", indent)
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s:\n", pad, scalar(name))
	for _, f := range entry {
		if list, ok := f.Value.([]Fields); ok {
			fmt.Fprintf(&b, "%s  %s:\n", pad, f.Key)
			for _, v := range list {
				fmt.Fprintf(&b, "%s    - %s\n", pad, value(v))
			}
			continue
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", pad, f.Key, value(f.Value))
	}
	return b.String()
}

func value(v any) string {
	switch v := v.(type) {
	case string:
		return scalar(v)
	case []string:
		return flow(v)
	case Fields:
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = f.Key + ": " + value(f.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return scalar(fmt.Sprint(v))
	}
	return string(b)
}
