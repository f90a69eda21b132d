package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/policy"
)

// ToolEntry is the answer of GET /api/v1/config/tools/{name}, where name is SERVER.TOOL with the tool's name on the
// server. It contains the values that the project's file has for the tool, before variables are expanded.
type ToolEntry struct {
	File   string `json:"file"`
	Digest string `json:"digest"` // digest of the file; a change that names it fails if the file has changed
	Name   string `json:"name"`   // the key in tools; if Exists is false, the key of a new entry
	Exists bool   `json:"exists"` // whether the file has an entry for the tool
	// Fixed is the reason why the entry cannot be changed here, and FixedArguments the reason why its arguments cannot.
	// They are empty if a change is possible.
	Fixed          string                     `json:"fixed,omitempty"`
	FixedArguments string                     `json:"fixed_arguments,omitempty"`
	Arguments      []ToolArgument             `json:"arguments"`
	Keys           map[string]json.RawMessage `json:"keys"` // values of toolKeys in the file
	// Policy maps the keys of rules to the text of their values. Keys of nested maps are joined by dots.
	Policy map[string]string `json:"policy"`
	// Server contains the arguments in the server's own schema. ServerOpen reports that the server also accepts others.
	Server     []ToolArgument `json:"server_arguments"`
	ServerOpen bool           `json:"server_open"`
}

// ToolArgument is an entry of tools.NAME.arguments.
type ToolArgument struct {
	Name        string            `json:"name"`
	Type        string            `json:"type,omitempty"`
	Description string            `json:"description,omitempty"`
	Required    *bool             `json:"required,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
	Enum        []json.RawMessage `json:"enum,omitempty"`
	// Index is the position in the file, from 0. A change keeps the comments and the unknown keys of such an argument.
	Index *int `json:"index,omitempty"`
}

// ToolEntryRequest is the body of PUT /api/v1/config/tools/{name}. Only values that differ from the file are written.
type ToolEntryRequest struct {
	// Name is the key of a new entry. If it is set, the tool may be missing in the server's list.
	Name string `json:"name,omitempty"`
	// Digest is the digest of the file that the sender has seen. If empty, the file is not compared. Errors: conflict.
	Digest string `json:"digest,omitempty"`
	// Arguments replaces all arguments of the entry. If null, they do not change.
	Arguments []ToolArgument `json:"arguments"`
	// Keys contains new values of toolKeys. A null removes a key.
	Keys map[string]json.RawMessage `json:"keys,omitempty"`
	// Policy changes only the rules that it contains. A null or "" removes a rule.
	Policy map[string]*any `json:"policy,omitempty"`
	DryRun bool            `json:"dry_run,omitempty"` // answer with the planned text of the file, and write nothing
}

// toolKeys are the keys of an entry that the API can set, besides arguments and rules.
var toolKeys = []string{"title", "description", "groups", "states", "next_state", "arguments_mode"}

// toolPlace is an entry in the configuration's files, or the place for a new one.
type toolPlace struct {
	plan           *config.Plan
	name           string
	server, remote string
	exists         bool
	fixed          string          // reason why the entry cannot be changed here; may be empty
	kind           string          // of the entry
	found          json.RawMessage // the server's own schema; nil if it is not known
}

// toolPlace finds the configuration entry of the tool in the request's path in the files as they are now. name is the
// key of a new entry for a tool that no server lists.
func (c *call) toolPlace(name string) (p toolPlace, err error) {
	e, err := c.editor()
	if err != nil {
		return p, err
	}
	if p.plan, err = e.Plan(c.ctx(), config.Edits{Create: true}); err != nil {
		return p, asRequested(err)
	}
	full := c.req.PathValue("name")
	snapshot, _, err := c.h.Tools().Snapshot(c.ctx())
	if err != nil {
		return p, err
	}
	for _, t := range snapshot.Tools() {
		if t.Server+"."+t.Remote == full {
			p.server, p.remote, p.name, p.found = t.Server, t.Remote, t.Name, t.Input
		}
	}
	for _, w := range snapshot.Withheld() {
		if w.Server+"."+w.Remote == full {
			p.server, p.remote, p.name = w.Server, w.Remote, w.Remote
		}
	}
	cfg := p.plan.Config
	if p.server == "" && name != "" {
		for server := range cfg.Servers {
			if rest, ok := strings.CutPrefix(full, server+"."); ok && rest != "" && len(server) > len(p.server) {
				p.server, p.remote, p.name = server, rest, name
			}
		}
	}
	if p.server == "" {
		return p, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s'; a name is SERVER.TOOL", full)
	}
	steps := snapshot.Explain(p.server, p.remote)
	if i := slices.IndexFunc(steps, func(s catalog.Step) bool { return s.Field == "input_schema" }); i >= 0 {
		p.found = json.RawMessage(steps[i].Before)
	}
	p.entry(cfg)
	if !p.exists && name != "" {
		p.name = name
	}
	return p, nil
}

// entry finds the entry of the tool, or sets the reason why it cannot be changed.
func (p *toolPlace) entry(cfg *config.Config) {
	for key, t := range cfg.Tools {
		if t = t.WithDefaults(key); t.Server != p.server || t.RemoteName != p.remote {
			continue
		}
		p.name, p.kind = key, t.Kind
		if p.exists = p.plan.EntryJSON("tools", key) != nil; p.exists {
			return
		}
		switch layer := cfg.Layer("tools." + key); {
		case cfg.FromTable("tools."+key) && t.IsServerTool():
			return // an entry in the file overrides the row
		case cfg.FromTable("tools." + key):
			p.fixed = "a row of a table makes this tool: change the row, with tenon tables"
		case cfg.LayerFile(layer) != "":
			p.fixed = fmt.Sprintf("tools.%s is in %s, not in the project's file: change it there", key,
				cfg.LayerFile(layer))
		}
		return
	}
	if catalog.IsReserved(p.server) {
		p.fixed = "tenon makes this tool itself: no entry of tools describes it"
		return
	}
	if _, taken := cfg.Tools[p.name]; taken {
		p.name = p.server + "_" + p.remote
	}
}

// fixedArguments returns the reason why the arguments of the tool cannot be changed here. It returns "" if they can.
func (p *toolPlace) fixedArguments() string {
	if why := (catalog.Tool{Kind: p.kind}).FixedArguments(); why != "" {
		return why
	}
	if p.written().Schema != nil {
		return "the entry has a schema instead of arguments: edit it in the file"
	}
	return ""
}

// writtenTool is an entry as the file has it.
type writtenTool struct {
	Arguments []json.RawMessage `json:"arguments"`
	Mode      json.RawMessage   `json:"arguments_mode"`
	Schema    json.RawMessage   `json:"schema"`
}

func (p *toolPlace) written() (w writtenTool) {
	_ = json.Unmarshal(p.plan.EntryJSON("tools", p.name), &w) // the plan is valid; an entry in another form is an alias
	return w
}

// argumentAt reads an argument as the file has it.
func argumentAt(raw json.RawMessage, i int) (a ToolArgument) {
	_ = json.Unmarshal(raw, &a) // omits a value of another type, such as a number instead of a text
	a.Index = &i
	return a
}

func (c *call) configTool() error {
	p, err := c.toolPlace("")
	if err != nil {
		return err
	}
	e := ToolEntry{File: p.plan.File, Digest: p.plan.Digest(), Name: p.name, Exists: p.exists, Fixed: p.fixed,
		FixedArguments: p.fixedArguments(), Arguments: []ToolArgument{}, Keys: map[string]json.RawMessage{},
		Policy: p.plan.Config.WrittenUnder("tools." + p.name + ".policy")}
	for i, raw := range p.written().Arguments {
		e.Arguments = append(e.Arguments, argumentAt(raw, i))
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(p.plan.EntryJSON("tools", p.name), &all)
	for _, key := range toolKeys {
		if v, ok := all[key]; ok {
			e.Keys[key] = v
		}
	}
	e.Server, e.ServerOpen = argumentsOf(p.found)
	return c.answer(http.StatusOK, e)
}

// argumentsOf returns the parameters of a schema in order. open reports that the schema also accepts others.
func argumentsOf(schema json.RawMessage) (list []ToolArgument, open bool) {
	var root struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
		More       json.RawMessage `json:"additionalProperties"`
		Patterns   json.RawMessage `json:"patternProperties"`
	}
	list = []ToolArgument{}
	if json.Unmarshal(schema, &root) != nil {
		return list, true
	}
	more := string(bytes.TrimSpace(root.More))
	open = root.Properties == nil || more != "" && more != "false" || root.Patterns != nil
	var properties map[string]json.RawMessage
	if json.Unmarshal(root.Properties, &properties) != nil {
		return list, open
	}
	for _, parameter := range catalog.Parameters(&tenon.Tool{Input: schema}) {
		a := ToolArgument{Name: parameter.Name, Description: parameter.Description}
		var said struct {
			Type    string            `json:"type"`
			Default json.RawMessage   `json:"default"`
			Enum    []json.RawMessage `json:"enum"`
		}
		if json.Unmarshal(properties[a.Name], &said) == nil {
			a.Type, a.Default, a.Enum = said.Type, said.Default, said.Enum
		}
		required := slices.Contains(root.Required, a.Name)
		a.Required = &required
		list = append(list, a)
	}
	return list, open
}

func (c *call) putConfigTool() error {
	var r ToolEntryRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	p, err := c.toolPlace(r.Name)
	if err != nil {
		return err
	}
	switch reason := p.fixedArguments(); {
	case p.fixed != "":
		return tenon.Errorf(tenon.CodeInvalid, "%s", p.fixed)
	case len(r.Arguments) > 0 && reason != "":
		return tenon.Errorf(tenon.CodeInvalid, "%s", reason)
	}
	if err := checkArguments(r.Arguments); err != nil {
		return err
	}
	keys, err := entryFields(r.Keys)
	if err != nil {
		return err
	}
	rules, err := policyFields(r.Policy)
	if err != nil {
		return err
	}
	edits := config.Edits{Digest: r.Digest}
	if p.exists {
		arguments, err := p.argumentChanges(r.Arguments, r.Keys["arguments_mode"])
		if err != nil {
			return err
		}
		edits.Changes = []config.Change{{Section: "tools", Name: p.name, Keys: slices.Concat(keys, arguments, rules)}}
		if len(edits.Changes[0].Keys) == 0 {
			edits.Changes = nil
		}
		return c.propose(edits, r.DryRun)
	}
	entry := config.Entry{{Key: "server", Value: p.server}}
	if p.remote != p.name {
		entry = append(entry, config.Field{Key: "remote_name", Value: p.remote})
	}
	for _, f := range keys {
		if f.Value != nil {
			entry = append(entry, f)
		}
	}
	if len(r.Arguments) > 0 || r.Arguments != nil && replaces(r.Keys["arguments_mode"]) {
		entry = append(entry, config.Field{Key: "arguments", Value: argumentFields(r.Arguments)})
	}
	if set := setFields(rules); len(set) > 0 {
		entry = append(entry, config.Field{Key: "policy", Value: set})
	}
	edits.Changes = []config.Change{{Section: "tools", Name: p.name, Add: true, Entry: entry}}
	return c.propose(edits, r.DryRun)
}

// replaces reports whether a value of arguments_mode is replace, with which an empty list says that the tool has no
// arguments.
func replaces(mode json.RawMessage) bool {
	var s string
	return json.Unmarshal(mode, &s) == nil && s == catalog.ArgumentsReplace
}

// checkArguments checks the names of arguments.
func checkArguments(list []ToolArgument) error {
	seen := map[string]bool{}
	for _, a := range list {
		switch {
		case strings.TrimSpace(a.Name) == "":
			return tenon.Errorf(tenon.CodeInvalid, "an argument has no name")
		case seen[a.Name]:
			return tenon.Errorf(tenon.CodeInvalid, "there are two arguments '%s'", a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

// entryFields checks values of toolKeys and converts them to changes of keys, in the order of toolKeys.
func entryFields(keys map[string]json.RawMessage) ([]config.Field, error) {
	for key := range keys {
		if !slices.Contains(toolKeys, key) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the key '%s' cannot be set over HTTP; edit the file. "+
				"Over HTTP: %s", key, strings.Join(toolKeys, ", "))
		}
	}
	var out []config.Field
	for _, key := range toolKeys {
		v, ok := keys[key]
		if !ok {
			continue
		}
		f := config.Field{Key: key}
		if string(v) != "null" {
			f.Value = v
		}
		out = append(out, f)
	}
	return out, nil
}

// fields returns the keys of an argument in the order in which a new one is written.
func (a ToolArgument) fields() []config.Field {
	out := []config.Field{{Key: "name", Value: a.Name}, {Key: "type"}, {Key: "description"}, {Key: "required"},
		{Key: "default"}, {Key: "enum"}}
	if a.Type != "" {
		out[1].Value = a.Type
	}
	if a.Description != "" {
		out[2].Value = a.Description
	}
	if a.Required != nil {
		out[3].Value = *a.Required
	}
	if len(a.Default) > 0 {
		out[4].Value = a.Default
	}
	if len(a.Enum) > 0 {
		out[5].Value = a.Enum
	}
	return out
}

// argumentFields converts new arguments to the form that is written to the file.
func argumentFields(list []ToolArgument) []config.Fields {
	out := []config.Fields{}
	for _, a := range list {
		var f config.Fields
		for _, field := range a.fields() {
			if field.Value != nil {
				f = append(f, field)
			}
		}
		out = append(out, f)
	}
	return out
}

// argumentChanges returns the changes of the entry's arguments. An argument without an index changes the argument of
// the same name. If there is none, it is new. mode is the new value of arguments_mode; empty if it does not change.
func (p *toolPlace) argumentChanges(list []ToolArgument, mode json.RawMessage) (out []config.Field, err error) {
	if list == nil {
		return nil, nil
	}
	if mode == nil {
		mode = p.written().Mode
	}
	if len(list) == 0 && replaces(mode) && p.written().Schema == nil {
		return []config.Field{{Key: "arguments", Value: argumentFields(list)}}, nil
	}
	var was []ToolArgument
	for i, raw := range p.written().Arguments {
		was = append(was, argumentAt(raw, i))
	}
	kept, last := map[int]bool{}, -1
	var added []ToolArgument
	for _, a := range list {
		i := slices.IndexFunc(was, func(w ToolArgument) bool { return w.Name == a.Name })
		if a.Index != nil {
			if i = *a.Index; i < 0 || i >= len(was) {
				return nil, tenon.Errorf(tenon.CodeConflict, "%s has no argument %d any more; load it again",
					p.plan.File, i)
			}
		}
		if i < 0 {
			added = append(added, a)
			continue
		}
		if i <= last {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the order of arguments can only be changed in the file")
		}
		last, kept[i] = i, true
		before := was[i].fields()
		for j, f := range a.fields() {
			if !sameField(f.Value, before[j].Value) {
				out = append(out, config.Field{Key: fmt.Sprintf("arguments[%d].%s", i, f.Key), Value: f.Value})
			}
		}
	}
	switch {
	case len(kept) == 0 && len(list) == 0 && len(was) > 0:
		return []config.Field{{Key: "arguments"}}, nil
	case len(kept) == 0 && len(list) > 0:
		return []config.Field{{Key: "arguments", Value: argumentFields(list)}}, nil
	}
	for i := len(was) - 1; i >= 0; i-- {
		if !kept[i] {
			out = append(out, config.Field{Key: fmt.Sprintf("arguments[%d]", i)})
		}
	}
	for i, f := range argumentFields(added) {
		out = append(out, config.Field{Key: fmt.Sprintf("arguments[%d]", len(kept)+i), Value: f})
	}
	return out, nil
}

// sameField compares two values of a field as JSON. A page may write a number differently, such as 1.5 instead of 1.50.
func sameField(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && (bytes.Equal(x, y) || sameNumbers(x, y))
}

func sameNumbers(a, b []byte) bool {
	x, err := policy.DecodeValue(a)
	y, err2 := policy.DecodeValue(b)
	return err == nil && err2 == nil && reflect.DeepEqual(x, y)
}
