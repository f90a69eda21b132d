package workflow

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// view returns the step's result for expressions. It always has all keys.
func (p *progress) view() map[string]any {
	if p.each != nil {
		return p.eachView()
	}
	v := p.out.view(p.step)
	if p.step.items != nil { // the list of the foreach could not be evaluated
		v["items"], v["count"] = []any{}, int64(0)
	}
	if p.out.err != nil && p.OnError != nil && len(p.OnError.Default) > 0 {
		v["value"] = decoded(p.OnError.Default)
		v["text"] = textOf(p.OnError.Default)
	}
	return v
}

// eachView returns the result of a repeated step.
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
			ok = false
			failed = cmp.Or(failed, u.out.err.Message)
		}
		texts[i], _ = v["text"].(string)
		items[i] = v
	}
	return map[string]any{"items": items, "count": int64(len(items)), "text": strings.Join(texts, "\n"), "ok": ok,
		"skipped": false, "error": failed}
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
	case len(o.value) > 0 && string(o.value) != "null": // some servers write null for an absent value
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

// tableView returns a table for expressions: its first rows, its columns with their types, and its number of
// rows.
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

// fraction converts an integer of a column or parameter of type number to a double. The result of an
// expression then does not depend on whether a value is integral: 5 / 2 is 2.5. An integer that no double
// represents exactly is returned unchanged.
func fraction(v any) any {
	if i, ok := v.(int64); ok && -maxExact <= i && i <= maxExact {
		return float64(i)
	}
	return v
}

// maxExact is the bound up to which doubles represent all integers.
const maxExact = 1 << 53

// firstCell returns the first cell of the first row, or "" if it is not a string.
func firstCell(t *tenon.Table, rows json.RawMessage) string {
	var list []map[string]json.RawMessage
	if t == nil || len(t.Columns) == 0 || json.Unmarshal(rows, &list) != nil || len(list) == 0 {
		return ""
	}
	var s string
	_ = json.Unmarshal(list[0][t.Columns[0].Name], &s) // other types leave s empty
	return s
}

// decoded returns JSON as a value for expressions, or nil.
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

// textOf returns a JSON value as text.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// valueOf parses a text as JSON. If it is not JSON, the value is the text.
func valueOf(text string) any {
	if t := strings.TrimSpace(text); t != "" && json.Valid([]byte(t)) {
		return decoded(json.RawMessage(t))
	}
	return text
}
