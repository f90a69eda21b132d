package workflow

import (
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// view is a step's result as expressions see it. All keys are there, whatever became
// of the step.
func (p *progress) view() map[string]any {
	if p.each != nil {
		return p.eachView()
	}
	v := p.out.view(p.step)
	if p.step.items != nil { // what it is to be repeated for could not be found out
		v["items"], v["count"] = []any{}, int64(0)
	}
	if p.out.err != nil && p.OnError != nil && len(p.OnError.Default) > 0 {
		v["value"] = decoded(p.OnError.Default)
		v["text"] = textOf(p.OnError.Default)
	}
	return v
}

// eachView is the result of a step that was repeated.
func (p *progress) eachView() map[string]any {
	items := make([]any, len(p.each))
	texts := make([]string, len(p.each))
	ok, failed := true, ""
	for i, u := range p.each {
		v := u.out.view(p.step)
		if u.out.err != nil {
			if p.OnError != nil && len(p.OnError.Default) > 0 {
				v["value"], v["text"] = decoded(p.OnError.Default), textOf(p.OnError.Default)
			}
			if ok = false; failed == "" {
				failed = u.out.err.Message
			}
		}
		texts[i], _ = v["text"].(string)
		items[i] = v
	}
	return map[string]any{"items": items, "count": int64(len(items)), "text": strings.Join(texts, "\n"), "ok": ok, "skipped": false, "error": failed}
}

func (o *outcome) view(s *step) map[string]any {
	v := map[string]any{"ok": o.err == nil && !o.skipped, "skipped": o.skipped, "error": "", "text": o.text}
	if o.err != nil {
		v["error"] = o.err.Message
	}
	switch {
	case s.kind == StepSQL || s.kind == StepTable:
		for k, e := range tableView(o.table, o.rows) {
			v[k] = e
		}
		v["text"] = firstCell(o.table, o.rows)
	case len(o.value) > 0 && string(o.value) != "null": // which some servers write for nothing
		v["value"] = decoded(o.value)
	case o.err == nil && !o.skipped:
		v["value"] = valueOf(o.text)
	default:
		v["value"] = nil
	}
	if s.kind == StepTool {
		tables := map[string]any{}
		for _, t := range o.tables {
			tables[t.Name] = tableView(&t, nil)
		}
		v["tables"] = tables
	}
	return v
}

// tableView is a table as expressions see it: its first rows, its columns with their
// types, and how many rows it has.
func tableView(t *tenon.Table, rows json.RawMessage) map[string]any {
	v := map[string]any{"rows": []any{}, "columns": map[string]any{}, "count": int64(0)}
	if t == nil {
		return v
	}
	columns := map[string]any{}
	for _, c := range t.Columns {
		columns[c.Name] = c.Type
	}
	v["columns"], v["count"] = columns, t.Rows
	if list, ok := decoded(rows).([]any); ok {
		v["rows"] = list
		for _, c := range t.Columns {
			if c.Type != "number" {
				continue
			}
			for _, row := range list {
				if row, ok := row.(map[string]any); ok && row[c.Name] != nil {
					row[c.Name] = fraction(row[c.Name])
				}
			}
		}
	}
	return v
}

// fraction is a value that is declared to be any number as expressions see it: a double
// also where it is whole, so that what an expression gives does not hang on that; 5.0 / 2
// is 2.5, as 5.5 / 2 is 2.75. A whole number that no double is keeps its digits.
func fraction(v any) any {
	if i, ok := v.(int64); ok && -maxExact <= i && i <= maxExact {
		return float64(i)
	}
	return v
}

// maxExact is the largest whole number up to which doubles have all.
const maxExact = 1 << 53

// firstCell is the first cell of the first row, if it is a text.
func firstCell(t *tenon.Table, rows json.RawMessage) string {
	var list []map[string]json.RawMessage
	if t == nil || len(t.Columns) == 0 || json.Unmarshal(rows, &list) != nil || len(list) == 0 {
		return ""
	}
	var s string
	_ = json.Unmarshal(list[0][t.Columns[0].Name], &s) // a cell that is no text gives none
	return s
}

// decoded is a value for expressions, nil where there is none.
func decoded(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	v, err := policy.DecodeValue(raw)
	if err != nil {
		return nil
	}
	return v
}

// textOf is a value as a text.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// valueOf is the value that a text stands for: what it is as JSON, else the text.
func valueOf(text string) any {
	if t := strings.TrimSpace(text); t != "" && json.Valid([]byte(t)) {
		return decoded(json.RawMessage(t))
	}
	return text
}
