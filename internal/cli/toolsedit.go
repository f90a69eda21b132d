package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// toolEntry holds the flags of tools add.
type toolEntry struct {
	server, remote, title, description string
	arguments, required                []string
	mode, validate                     string
	groups, states                     []string
	nextState                          string
	removed                            []string // arguments to remove from an existing entry
}

func newToolsAdd(a *app) *cobra.Command {
	var e toolEntry
	cmd := &cobra.Command{
		Use:   "add NAME --server SERVER",
		Short: "Write an entry about one tool into tenon.yaml",
		Long: "Writes the entry tools.NAME of the configuration file. NAME is the name that the model sees. An\n" +
			"existing entry is updated: the given flags change their keys and the arguments that they name, and\n" +
			"everything else stays, comments included. A new entry needs --server. An argument is\n" +
			"NAME:TYPE:DESCRIPTION; only the first two colons separate. If --remove-argument removes the\n" +
			"last argument, the tool has the server's, or none in arguments mode replace.\n" +
			"TYPE is a type of JSON Schema: " + strings.Join(argumentTypes, ", ") + ".",
		Example: "  tenon tools add get_bank_balance --server bank --description 'Get bank account balance' \\\n" +
			"    --argument 'account_id:string:Bank account identifier' --required account_id",
		Args: args(1, 1, "the tool's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := a.setTool(cmd, args[0], &e)
			if err != nil {
				return err
			}
			if err := a.editTool(cmd.Context(), change, "Tool set."); err != nil {
				return err
			}
			a.noteUnlisted(cmd.Context(), args[0])
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.server, "server", "", "`SERVER` that has the tool")
	f.StringVar(&e.remote, "remote-name", "", "the tool's `NAME` on the server (default: the same)")
	f.StringVar(&e.title, "title", "", "shown `NAME`")
	f.StringVar(&e.description, "description", "", "`TEXT` for the model (default: the server's)")
	f.StringArrayVar(&e.arguments, "argument", nil, "argument as `NAME:TYPE:DESCRIPTION`; may be repeated")
	f.StringArrayVar(&e.removed, "remove-argument", nil, "`NAME` of an argument to remove; may be repeated")
	f.StringArrayVar(&e.required, "required", nil, "`NAME` of an argument that a call must have; may be repeated")
	f.Var(&enum{&e.mode, []string{"overlay", "replace", "check", "ignore"}}, "arguments-mode",
		"`MODE` that combines them with the server's schema: overlay, replace, check, ignore")
	f.Var(&enum{&e.validate, []string{"error", "warn", "off"}}, "validate",
		"`RESULT` of arguments that do not fit: error, warn, off")
	f.StringArrayVar(&e.groups, "group", nil, "`GROUP` that sees the tool; may be repeated")
	f.StringArrayVar(&e.states, "states", nil, "`STATE` in which it is visible; may be repeated")
	f.StringVar(&e.nextState, "next-state", "", "`STATE` of the agent after a successful call")
	return cmd
}

var argumentTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// setTool returns the change that adds the entry, or updates it if the file has it.
func (a *app) setTool(cmd *cobra.Command, name string, e *toolEntry) (config.Change, error) {
	change := config.Change{Section: "tools", Name: name}
	plan, err := a.planEdit(cmd.Context(), a.configOptions(), config.Edits{})
	var was []writtenArgument
	exists, hasSchema := false, false
	if err == nil { // else the edit itself says what is wrong
		was, hasSchema, exists, err = writtenArguments(plan, name)
		if err != nil {
			return change, err
		}
	}
	if !exists && e.server == "" {
		return change, usage(cmd, "--server is required, because there is no entry tools.%s", name)
	}
	fields, err := e.entry(cmd, was, hasSchema)
	if err != nil {
		return change, err
	}
	if !exists {
		if len(e.removed) > 0 {
			return change, usage(cmd, "--remove-argument %s: there is no entry tools.%s", e.removed[0], name)
		}
		change.Entry = fields
		return change, nil
	}
	for _, f := range fields {
		if list, ok := f.Value.([]config.Fields); ok && f.Key == "arguments" && len(list) > 0 {
			change.Keys = append(change.Keys, argumentUpdates(was, list)...)
			continue
		}
		change.Keys = append(change.Keys, f)
	}
	for i, w := range was { // --required names an argument that the entry has
		if slices.Contains(e.required, w.Name) {
			change.Keys = append(change.Keys, config.Field{Key: fmt.Sprintf("arguments[%d].required", i), Value: true})
		}
	}
	removals, err := e.removals(cmd, plan, name, was)
	if err != nil {
		return change, err
	}
	change.Keys = append(change.Keys, removals...)
	if e.server != "" && disabledWithoutServer(plan, name) { // an import could not connect it
		change.Keys = append(change.Keys, config.Field{Key: "enabled"})
	}
	if len(change.Keys) == 0 {
		return change, usage(cmd, "tools.%s exists already: say what to change, such as --description", name)
	}
	return change, nil
}

// writtenArgument is an argument of an entry in the file.
type writtenArgument struct {
	Name string `json:"name"`
}

// writtenArguments returns the arguments of an entry as the file has them, and whether it has a schema.
func writtenArguments(p *config.Plan, name string) (list []writtenArgument, hasSchema, exists bool, err error) {
	raw := p.EntryJSON("tools", name)
	if raw == nil {
		return nil, false, false, nil
	}
	var entry struct {
		Arguments []writtenArgument `json:"arguments"`
		Schema    json.RawMessage   `json:"schema"`
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return nil, false, true, tenon.Errorf(tenon.CodeInvalid, "%s: tools.%s cannot be read: %w; edit the file",
			p.File, name, err)
	}
	return entry.Arguments, entry.Schema != nil, true, nil
}

// removals returns the changes that remove arguments, the last one first. Without any argument left, the entry has no
// list of arguments, unless its mode is replace: the list is then empty.
func (e *toolEntry) removals(cmd *cobra.Command, p *config.Plan, name string,
	was []writtenArgument) (out []config.Field, err error) {
	for _, r := range e.removed {
		if !slices.ContainsFunc(was, func(w writtenArgument) bool { return w.Name == r }) {
			return nil, usage(cmd, "--remove-argument %s: tools.%s has no such argument", r, name)
		}
		if slices.Contains(e.required, r) || slices.ContainsFunc(e.arguments, func(a string) bool {
			return strings.HasPrefix(a, r+":")
		}) {
			return nil, usage(cmd, "--remove-argument %s: another flag changes this argument", r)
		}
	}
	for i, w := range slices.Backward(was) {
		if slices.Contains(e.removed, w.Name) {
			out = append(out, config.Field{Key: fmt.Sprintf("arguments[%d]", i)})
		}
	}
	if len(out) < len(was) || len(e.arguments) > 0 || len(was) == 0 {
		return out, nil
	}
	var entry struct {
		Mode *string `json:"arguments_mode"`
	}
	if err := json.Unmarshal(p.EntryJSON("tools", name), &entry); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s: tools.%s cannot be read: %w; edit the file", p.File, name, err)
	}
	switch {
	case e.mode == "replace" || e.mode == "" && entry.Mode != nil && *entry.Mode == "replace":
		return []config.Field{{Key: "arguments", Value: []config.Fields{}}}, nil
	case entry.Mode != nil && e.mode == "":
		return []config.Field{{Key: "arguments"}, {Key: "arguments_mode"}}, nil
	}
	return []config.Field{{Key: "arguments"}}, nil
}

// disabledWithoutServer reports whether an entry is disabled and names no server.
func disabledWithoutServer(p *config.Plan, name string) bool {
	var entry struct {
		Enabled *bool   `json:"enabled"`
		Server  *string `json:"server"`
	}
	return json.Unmarshal(p.EntryJSON("tools", name), &entry) == nil && entry.Enabled != nil && !*entry.Enabled &&
		entry.Server == nil
}

// argumentUpdates returns the changes of the arguments that an entry has, and the new arguments.
func argumentUpdates(was []writtenArgument, list []config.Fields) (out []config.Field) {
	next := len(was)
	for _, fields := range list {
		i := slices.IndexFunc(was, func(w writtenArgument) bool { return w.Name == fields[0].Value })
		if i < 0 {
			out = append(out, config.Field{Key: fmt.Sprintf("arguments[%d]", next), Value: fields})
			next++
			continue
		}
		for _, f := range fields[1:] {
			out = append(out, config.Field{Key: fmt.Sprintf("arguments[%d].%s", i, f.Key), Value: f.Value})
		}
	}
	if len(was) == 0 && len(list) > 0 {
		return []config.Field{{Key: "arguments", Value: list}}
	}
	return out
}

// entry builds the entry from the flags. was are the arguments of an existing entry, and hasSchema says that it has a
// schema instead.
func (e *toolEntry) entry(cmd *cobra.Command, was []writtenArgument, hasSchema bool) (config.Entry, error) {
	var entry config.Entry
	if e.server != "" {
		entry = append(entry, config.Field{Key: "server", Value: e.server})
	}
	text := func(key, v string) {
		if v != "" {
			entry = append(entry, config.Field{Key: key, Value: v})
		}
	}
	text("remote_name", e.remote)
	text("title", e.title)
	text("description", e.description)
	var list []config.Fields
	var names []string
	for _, w := range was {
		names = append(names, w.Name)
	}
	var given []string
	for _, arg := range e.arguments {
		name, rest, ok := strings.Cut(arg, ":")
		typ, description, more := strings.Cut(rest, ":")
		switch {
		case !ok || !more || name == "":
			return nil, tenon.Errorf(tenon.CodeInvalid, "Arguments should be form name:type:description, not '%s'", arg)
		case !slices.Contains(argumentTypes, typ):
			return nil, tenon.Errorf(tenon.CodeInvalid, "Type %s invalid, use: %s", typ,
				strings.Join(argumentTypes, ", "))
		}
		fields := config.Fields{{Key: "name", Value: name}, {Key: "type", Value: typ}}
		if description != "" {
			fields = append(fields, config.Field{Key: "description", Value: description})
		}
		if slices.Contains(e.required, name) {
			fields = append(fields, config.Field{Key: "required", Value: true})
		}
		if slices.Contains(given, name) {
			return nil, usage(cmd, "--argument %s is given twice", name)
		}
		list, names, given = append(list, fields), append(names, name), append(given, name)
	}
	for _, r := range e.required {
		if !slices.Contains(names, r) {
			return nil, usage(cmd, "--required %s: there is no --argument of that name", r)
		}
	}
	if len(list) > 0 {
		entry = append(entry, config.Field{Key: "arguments", Value: list})
	} else if e.mode == "replace" && len(was) == 0 && !hasSchema { // the tool has no arguments
		entry = append(entry, config.Field{Key: "arguments", Value: []config.Fields{}})
	}
	text("arguments_mode", e.mode)
	text("validate", e.validate)
	if len(e.groups) > 0 {
		entry = append(entry, config.Field{Key: "groups", Value: e.groups})
	}
	if len(e.states) > 0 {
		entry = append(entry, config.Field{Key: "states", Value: e.states})
	}
	text("next_state", e.nextState)
	return entry, nil
}

func newToolsRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove the entry about one tool from tenon.yaml",
		Long: "Removes the entry tools.NAME of the configuration file. Comments and order of the other entries\n" +
			"are kept. The tool is then offered as its server describes it.",
		Example: "  tenon tools remove get_bank_balance",
		Args:    args(1, 1, "the tool's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editTool(cmd.Context(), config.Change{Section: "tools", Name: args[0]}, "Tool removed.")
		},
	}
}

func (a *app) editTool(ctx context.Context, change config.Change, done string) error {
	p, _, err := a.ownEdit(ctx, a.configOptions(), config.Edits{Changes: []config.Change{change}})
	if err != nil {
		return err
	}
	return a.did(map[string]any{"file": p.Written, "tool": change.Name}, "%s", done)
}
