package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

const (
	maxShown = 50   // errors that are printed
	maxKept  = 2000 // largest number of errors that are kept
)

// Error is a mistake in a file, or a remark about a file. Line and Col count from 1. Col counts characters.
type Error struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Path    string `json:"path,omitempty"` // keys separated by dots, [i] for list elements; empty for the file itself
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Daily marks a warning that need not be shown more than once a day. Such warnings are about a file of another
	// program, for example about a deprecated key, or about a literal token in a file. They would otherwise be the same
	// for each command.
	Daily bool `json:"-"`

	order int // index of the file in the order in which the files were read
}

// Error returns `FILE:LINE:COL: PATH: MESSAGE`, and the hint on an indented second line.
func (e Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", e.File, e.Line, e.Col)
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	if e.Hint != "" {
		b.WriteString("\n    " + e.Hint)
	}
	return b.String()
}

// Errors contains all errors of the files, in file order. If it is returned as an error, it is not empty. It unwraps to
// a *tenon.Error with the code config.
type Errors []Error

// Error joins the first fifty errors with newlines and counts the rest.
func (e Errors) Error() string {
	var lines []string
	for i, one := range e {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("… and %d more", len(e)-maxShown))
			break
		}
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns a *tenon.Error, so that callers find the code config.
func (e Errors) Unwrap() error {
	return &tenon.Error{Code: tenon.CodeConfig, Message: e.Error()}
}

// Sink collects errors and warnings. It drops duplicates.
type Sink struct {
	Errs, Warns []Error
}

// Add adds an error about a value.
func (s *Sink) Add(n *Node, path, message, hint string) { put(&s.Errs, n, path, message, hint) }

// Warn adds a warning about a value.
func (s *Sink) Warn(n *Node, path, message, hint string) { put(&s.Warns, n, path, message, hint) }

func put(list *[]Error, n *Node, path, message, hint string) {
	if len(*list) >= maxKept {
		return
	}
	*list = append(*list, Error{File: n.Src.Label, Line: max(n.Line, 1), Col: max(n.Col, 1), Path: flat.Replace(path),
		Message: flat.Replace(message), Hint: hint, order: n.Src.Order})
}

// HasKeyError reports whether a key of a map has an error.
func (s *Sink) HasKeyError(n *Node) bool {
	return slices.ContainsFunc(n.Keys, func(k *Node) bool {
		return slices.ContainsFunc(s.Errs, func(e Error) bool {
			return e.Line == k.Line && e.Col == k.Col && e.order == k.Src.Order
		})
	})
}

// flat escapes line breaks in texts from a file. Otherwise a text could look like another error, or hide one.
var flat = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// Sorted returns errors in file order, each once.
func Sorted(list []Error) []Error {
	slices.SortStableFunc(list, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return slices.CompactFunc(list, func(a, b Error) bool { return a == b })
}
