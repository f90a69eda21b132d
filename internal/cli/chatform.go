package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/privatefile"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// maxFormFields bounds the form of a call's arguments. A call with more is edited as JSON.
const maxFormFields = 100

// inputsOf makes a form of a call's arguments from the schema of its tool. Properties of the schema are first, in its
// order; arguments that it does not name follow as JSON. Without properties there is no form.
func inputsOf(schema, args json.RawMessage) []tui.Input {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 || len(args) == 0 || args[0] != '{' {
		return nil
	}
	given := map[string]json.RawMessage{}
	for name, value := range rawjson.Members(args) {
		given[string(name)] = value
	}
	var inputs []tui.Input
	for name, property := range rawjson.Members(s.Properties) {
		in := inputOf(string(name), property, given[string(name)])
		in.Required = slices.Contains(s.Required, in.Name)
		inputs = append(inputs, in)
		delete(given, in.Name)
	}
	for name, value := range rawjson.Members(args) {
		if _, left := given[string(name)]; left {
			inputs = append(inputs, tui.Input{Name: string(name), Value: value})
		}
	}
	if len(inputs) > maxFormFields {
		return nil
	}
	return inputs
}

// inputOf makes a field of a property. A value that has another type is edited as JSON.
func inputOf(name string, property, value json.RawMessage) tui.Input {
	var p struct {
		Type        string            `json:"type"`
		Description string            `json:"description"`
		Enum        []json.RawMessage `json:"enum"`
	}
	in := tui.Input{Name: name, Value: value}
	if json.Unmarshal(property, &p) != nil { // true, or several types
		return in
	}
	in.Help, _, _ = strings.Cut(strings.TrimSpace(p.Description), "\n")
	in.Help = shorten(in.Help, 200)
	switch p.Type {
	case "string":
		var text string
		if len(value) > 0 && json.Unmarshal(value, &text) != nil {
			return in
		}
	case "number", "integer", "boolean":
	default:
		return in
	}
	in.Type = p.Type
	for _, e := range p.Enum {
		var choice string
		if json.Unmarshal(e, &choice) != nil || p.Type != "string" {
			in.Choices = nil
			break
		}
		in.Choices = append(in.Choices, choice)
	}
	return in
}

// schemaOf returns the input schema of a tool as it was listed last, or nil if it is not known. It asks no server.
func (t *talk) schemaOf(ctx context.Context, name string) json.RawMessage {
	here, ok := t.h.(*host.Host)
	if !ok {
		tool, err := t.h.Tools().Get(ctx, name)
		if err != nil {
			return nil
		}
		return tool.Input
	}
	known, err := here.Tools().Known(ctx)
	if err != nil {
		return nil
	}
	if tool, ok := known.Lookup(name); ok {
		return tool.Input
	}
	return nil
}

// themeFile returns the path of the file in the user's state folder that stores the theme of the chat. It returns "" if
// there is no such folder.
func (a *app) themeFile() string {
	dir := a.trustStore().Dir()
	if dir == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(dir), "chat-theme")
}

// chatTheme returns the theme that was chosen last.
func (a *app) chatTheme() string {
	file := a.themeFile()
	if file == "" {
		return ""
	}
	b, err := privatefile.Read(file, 100)
	if name := strings.TrimSpace(string(b)); err == nil && slices.Contains(tui.Themes(), name) {
		return name
	}
	return ""
}

// switchTheme carries out /theme.
func (t *talk) switchTheme(name string) error {
	if name == "" {
		t.note("%s: the terminal's colours\n%s: the same without dim text\n%s: no colours\n/theme NAME chooses one",
			tui.ThemeColor, tui.ThemeContrast, tui.ThemePlain)
		return nil
	}
	if name == "color" {
		name = tui.ThemeColor
	}
	if !slices.Contains(tui.Themes(), name) {
		return tenon.Errorf(tenon.CodeInvalid, "there is no theme '%s'%s", safeLine(name),
			didYouMean(name, tui.Themes()))
	}
	t.p.Send(tui.Theme{Name: name})
	t.note("the theme is %s", name)
	file := t.a.themeFile()
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the theme is not kept: %w", err)
	}
	if err := wholefile.Write(file, []byte(name+"\n"), 0o600); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the theme is not kept: %w", err)
	}
	return nil
}
