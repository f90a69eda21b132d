package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// figure is one row of docs/figures.json.
type figure struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"` // "ratio", or a unit such as "B"
	Goal    string  `json:"goal"` // such as "<= 2.0"; "" for a figure without a goal
	Holds   bool    `json:"holds"`
	Rounds  int     `json:"rounds"`
	Command string  `json:"command"`
	Date    string  `json:"date"`
}

// saveDocuments merges the figures by id into figures.json and writes figures.md from it. Without figures it
// writes nothing.
func saveDocuments(dir string, measured []figure) error {
	if len(measured) == 0 {
		return nil
	}
	path := filepath.Join(dir, "figures.json")
	var old []figure
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &old)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s: %w; remove it to start again", path, err)
	}
	all := merge(old, measured)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // a goal reads "<= 2.0"
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "figures.md"), []byte(document(all)), 0o644)
}

// merge replaces the rows of old by the measured rows with the same id, and sorts all rows by id. It omits
// values that are not finite numbers.
func merge(old, measured []figure) []figure {
	byID := make(map[string]figure, len(old)+len(measured))
	for _, f := range slices.Concat(old, measured) {
		if !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) {
			byID[f.ID] = f
		}
	}
	all := make([]figure, 0, len(byID))
	for _, f := range byID {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b figure) int { return compareIDs(a.ID, b.ID) })
	return all
}

// compareIDs orders P2 before P10, and figures with a goal before those without one.
func compareIDs(a, b string) int {
	ga, _, _ := strings.Cut(a, ".")
	gb, _, _ := strings.Cut(b, ".")
	na, _ := strconv.Atoi(strings.TrimPrefix(ga, "P"))
	nb, _ := strconv.Atoi(strings.TrimPrefix(gb, "P"))
	_, la := goalOf(a)
	_, lb := goalOf(b)
	return cmp.Or(cmp.Compare(na, nb), cmp.Compare(ga, gb), compareBools(lb, la), cmp.Compare(a, b))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// document returns the content of docs/figures.md.
func document(all []figure) string {
	var b strings.Builder
	b.WriteString(`# Figures

Written by ` + "`make figures`" + ` from docs/figures.json; do not edit. A ratio compares tenon with a floor: the least
code that does the same work in the plain way. Both are measured in turns in the same round on the same machine. A
value is the median over all rounds. Rows without a goal are for comparison. See the package comment of
internal/figures.

| id | what | value | goal | holds | command |
| --- | --- | --- | --- | --- | --- |
`)
	for _, f := range all {
		value, holds := number(f.Value), "yes"
		switch {
		case f.Unit != "ratio":
			value += " " + f.Unit
		default:
			value += " ×"
		}
		switch {
		case f.Goal == "":
			holds = ""
		case !f.Holds:
			holds = "**no**"
		}
		goal := strings.NewReplacer("<=", "≤", ">=", "≥").Replace(f.Goal)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | `%s` |\n", f.ID, f.Name, value, goal, holds, f.Command)
	}
	return b.String()
}
