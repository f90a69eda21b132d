package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/markdown"
)

// An Input is the field for one argument of a call in [Ask.Inputs], or one field of a form in [Request.Inputs].
type Input struct {
	Name     string
	Title    string          // shown instead of the name, if it is not empty
	Type     string          // string, number, integer, boolean, or "" for any JSON value
	Kind     string          // describes the values; if empty, derived from Type
	Choices  []string        // texts to choose from; if empty, every text is allowed
	Help     string          // explanation on one line
	Required bool            // the argument must have a value
	Value    json.RawMessage // current value, or the default; empty if there is none
	Text     string          // how the person edits Value; if empty, derived from it
	// Check returns the value of a text that is not empty. The text of an error continues a sentence that begins with
	// the field's name. If Check is nil, Type and Choices decide. An empty text then is a text, otherwise it is the
	// default.
	Check func(text string) (json.RawMessage, error)
}

// form is the state of the form for a call's arguments. at is the index of the current field, whose text is in the
// input of the program.
type form struct {
	fields []field
	at     int
	// offered says that the input has the default of the current field, and no key has edited it: the first character
	// that is typed replaces it.
	offered bool
}

type field struct {
	Input
	text    string
	changed bool
}

// newForm returns a form with the values of a call.
func newForm(inputs []Input) *form {
	f := &form{}
	for _, in := range inputs {
		f.fields = append(f.fields, field{Input: in, text: in.shown()})
	}
	return f
}

// label returns the name that is shown.
func (in Input) label() string {
	if in.Title != "" {
		return safeLine(in.Title)
	}
	return safeLine(in.Name)
}

// shown returns the value as a person edits it: a string without quotes, other values as JSON.
func (in Input) shown() string {
	var s string
	if in.Text != "" {
		return in.Text
	}
	if in.Type == "string" && json.Unmarshal(in.Value, &s) == nil {
		return s
	}
	return string(in.Value)
}

// set sets the text of the current field. If the text is not a valid value, it returns the reason, otherwise "".
func (f *form) set(text string) string {
	now := &f.fields[f.at]
	if text == "" && now.Check != nil {
		text = now.shown() // the default
	}
	if text == now.text {
		return ""
	}
	if _, why := now.encode(text); why != "" {
		return why
	}
	now.text, now.changed = text, now.Check == nil || text != now.shown()
	return ""
}

// encode returns the JSON of a text, or nil if the argument is omitted. If the text is not a valid value of the field,
// the string is the reason.
func (f field) encode(text string) (json.RawMessage, string) {
	trimmed := strings.TrimSpace(text)
	if f.Check != nil {
		switch {
		case text == "" && f.Required:
			return nil, f.label() + " is required"
		case text == "":
			return nil, ""
		}
		raw, err := f.Check(text)
		if err != nil {
			return nil, f.label() + " " + safeLine(err.Error())
		}
		return raw, ""
	}
	switch {
	case f.Type == "string" && text == "" && !f.Required && (len(f.Value) == 0 || len(f.Choices) > 0):
		return nil, ""
	case f.Type == "string" && len(f.Choices) > 0 && !slices.Contains(f.Choices, text):
		return nil, f.label() + " is one of " + safeLine(strings.Join(f.Choices, ", "))
	case f.Type == "string":
		return quoted(text), ""
	case trimmed == "" && f.Required:
		return nil, f.label() + " is required"
	case trimmed == "":
		return nil, ""
	}
	raw := json.RawMessage(trimmed)
	if !json.Valid(raw) {
		return nil, f.label() + " is " + f.kind() + ", not " + shorten(safeLine(trimmed), 40)
	}
	fits := true
	switch f.Type {
	case "number":
		fits = isNumber(raw)
	case "integer":
		fits = isNumber(raw) && !bytes.ContainsAny(raw, ".eE")
	case "boolean":
		fits = trimmed == "true" || trimmed == "false"
	}
	if !fits {
		return nil, f.label() + " is " + f.kind() + ", not " + shorten(safeLine(trimmed), 40)
	}
	return raw, ""
}

func isNumber(raw []byte) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

// kind describes the values of a field.
func (f field) kind() string {
	if f.Kind != "" {
		return f.Kind
	}
	switch f.Type {
	case "string":
		return "a text"
	case "number":
		return "a number"
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	}
	return "a JSON value; a text has quotes"
}

// arguments returns the arguments with the changes of the form. Members keep their order, and unchanged members keep
// their bytes. If a field has no valid value, it returns the index of the field and the reason.
func (f *form) arguments(before json.RawMessage) (args json.RawMessage, at int, why string) {
	values := map[string]json.RawMessage{}
	for i, x := range f.fields {
		if !x.changed {
			if x.Required && len(x.Value) == 0 {
				return nil, i, x.label() + " is required"
			}
			values[x.Name] = x.Value
			continue
		}
		raw, why := x.encode(x.text)
		if why != "" {
			return nil, i, why
		}
		values[x.Name] = raw
	}
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(name string, value json.RawMessage) {
		if len(value) == 0 {
			return
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(quoted(name))
		b.WriteByte(':')
		b.Write(value)
	}
	done := map[string]bool{}
	for name, value := range members(before) {
		if changed, ok := values[name]; ok {
			value = changed
		}
		put(name, value)
		done[name] = true
	}
	for _, x := range f.fields {
		if !done[x.Name] {
			put(x.Name, values[x.Name])
		}
	}
	b.WriteByte('}')
	return b.Bytes(), 0, ""
}

// members yields the members of an object in order.
func members(raw json.RawMessage) func(yield func(string, json.RawMessage) bool) {
	return func(yield func(string, json.RawMessage) bool) {
		d := json.NewDecoder(bytes.NewReader(raw))
		if open, err := d.Token(); err != nil || open != json.Delim('{') {
			return
		}
		for d.More() {
			name, err := d.Token()
			var value json.RawMessage
			if err != nil || d.Decode(&value) != nil || !yield(fmt.Sprint(name), value) {
				return
			}
		}
	}
}

// quoted returns a text as JSON, without escapes that JSON does not need.
func quoted(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return json.RawMessage(`""`) // not reached: every string can be encoded
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// show draws one line for each field. If they do not all fit in rows, it draws the fields around the current one.
func (f *form) show(width, rows int, bar string) (lines []string) {
	if len(f.fields) > rows && rows > 2 {
		rows-- // for the number of fields
	}
	names := 0
	for _, x := range f.fields {
		names = max(names, min(markdown.Width(x.label()), max(width/3, 1), 24))
	}
	from := min(max(f.at-rows/2, 0), max(len(f.fields)-rows, 0))
	to := min(from+max(rows, 1), len(f.fields))
	for i, x := range f.fields[from:to] {
		mark, style := "  ", ""
		if from+i == f.at {
			mark, style = "> ", bold
		}
		name := shorten(x.label(), names)
		if x.Required && len(x.Value) == 0 && x.text == "" {
			mark = mark[:1] + "!"
		}
		text := safeLine(strings.ReplaceAll(x.text, "\n", "⏎"))
		if x.changed {
			text += " (changed)"
		}
		room := max(width-names-4, 4)
		pad := strings.Repeat(" ", max(names-markdown.Width(name), 0))
		lines = append(lines, bar+style+mark+name+pad+"  "+reset+style+shorten(text, room)+reset)
	}
	if left := len(f.fields) - (to - from); left > 0 && rows > 1 {
		lines = append(lines, bar+dim+fmt.Sprintf("… %d of %d fields", to-from, len(f.fields))+reset)
	}
	return lines
}

// label describes the current field.
func (f *form) label() string {
	x := f.fields[f.at]
	kind := x.kind()
	if f.offered && len(x.Choices) == 0 && x.Type != "boolean" {
		kind += "; typing replaces the default"
	}
	if len(x.Choices) > 0 {
		kind = "one of " + strings.Join(x.Choices, ", ") + "; Left and Right choose"
	}
	text := x.Input.label() + " (" + safeLine(kind) + ")"
	if x.Help != "" {
		text += ": " + safeLine(x.Help)
	} else {
		text += ":"
	}
	return text
}

// openForm opens a form for the first question.
func (m *model) openForm(f *form) {
	m.enter(modeForm)
	m.form = f
	m.showField()
}

// showField puts the text of the current field into the input.
func (m *model) showField() {
	f := m.form
	x := f.fields[f.at]
	m.in.set(x.text)
	f.offered = x.Check != nil && !x.changed && x.text != ""
}

// keepForm keeps the form of a server's request when the person leaves it, so that it can be opened again.
func (m *model) keepForm() {
	if m.mode != modeForm || m.request() == nil {
		return
	}
	m.form.set(m.in.String())
	if m.kept == nil {
		m.kept = map[int]*form{}
	}
	m.kept[m.step] = m.form
}

// choose replaces the text of a field with choices by the next or the previous choice. It returns false if the field
// has no choices.
func (m *model) choose(by int) bool {
	x := m.form.fields[m.form.at]
	choices := x.Choices
	if x.Type == "boolean" {
		choices = []string{"true", "false"}
	}
	if len(choices) == 0 {
		return false
	}
	if !x.Required && (x.Check == nil || len(x.Value) == 0) {
		choices = append([]string{""}, choices...)
	}
	n, at := len(choices), slices.Index(choices, m.in.String())
	if at < 0 && by < 0 {
		at = 0
	}
	m.in.set(choices[(at+by+n)%n])
	return true
}

// formKey handles the keys of the form. It reports whether the key is one of them.
func (m *model) formKey(name string) bool {
	switch name {
	case "tab", "down":
		if name == "down" && m.in.move(1, m.room()) {
			return true
		}
		m.moveField(1)
	case "shift+tab", "up":
		if name == "up" && m.in.move(-1, m.room()) {
			return true
		}
		m.moveField(-1)
	case "left", "right":
		return m.choose(map[string]int{"left": -1, "right": 1}[name])
	case "ctrl+x": // continue in JSON, with the changes so far
		if m.request() != nil {
			return true // a form of a server has no JSON to edit
		}
		if m.note = m.form.set(m.in.String()); m.note != "" || len(m.asks) == 0 {
			return true
		}
		args, at, why := m.form.arguments(m.asks[0].JSON)
		if why != "" {
			m.note, m.form.at = why, at
			m.in.set(m.form.fields[at].text)
			return true
		}
		m.mode = modeEdit
		m.in.set(indented(args))
	default:
		return false
	}
	return true
}

// moveField moves to another field, if the text of the current field is valid.
func (m *model) moveField(by int) {
	if m.note = m.form.set(m.in.String()); m.note != "" {
		return
	}
	n := len(m.form.fields)
	m.form.at = (m.form.at + by + n) % n
	m.showField()
}

// sendForm returns the arguments of the form, or the content of a server's form. If a field has no valid value, it
// shows the field and the reason, and returns false. All fields come before it is sent.
func (m *model) sendForm() (json.RawMessage, bool) {
	if m.note = m.form.set(m.in.String()); m.note != "" {
		return nil, false
	}
	before := m.asks[0].JSON
	if m.request() != nil {
		before = nil
	}
	if m.form.at < len(m.form.fields)-1 {
		m.moveField(1)
		return nil, false
	}
	args, at, why := m.form.arguments(before)
	if why != "" {
		m.note, m.form.at = why, at
		m.showField()
		return nil, false
	}
	return args, true
}
