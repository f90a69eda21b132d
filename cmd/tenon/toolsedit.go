package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// toolEntry is what tools add writes.
type toolEntry struct {
	server, remote, title, description string
	arguments, required                []string
	mode, validate                     string
	groups, states                     []string
	nextState                          string
}

func newToolsAdd(a *app) *cobra.Command {
	var e toolEntry
	cmd := &cobra.Command{
		Use:   "add NAME --server SERVER",
		Short: "Write an entry about one tool into tenon.yaml",
		Long: "Sets the entry tools.NAME of the configuration file, in place of one that is there; NAME is what the model sees.\n" +
			"Comments and order of the file stay. An argument is NAME:TYPE:DESCRIPTION; only the first two colons separate.\n" +
			"The types are those of JSON Schema: " + strings.Join(argumentTypes, ", ") + ".",
		Example: "  tenon tools add get_bank_balance --server bank --description 'Get bank account balance' \\\n" +
			"    --argument 'account_id:string:Bank account identifier' --required account_id",
		Args: args(1, 1, "the tool's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			entry, err := e.entry(cmd)
			if err != nil {
				return err
			}
			return a.editTool(cmd.Context(), args[0], entry, "Tool set.")
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.server, "server", "", "`SERVER` that has the tool")
	f.StringVar(&e.remote, "remote-name", "", "the tool's `NAME` on the server (default: the same)")
	f.StringVar(&e.title, "title", "", "shown `NAME`")
	f.StringVar(&e.description, "description", "", "`TEXT` for the model (default: the server's)")
	f.StringArrayVar(&e.arguments, "argument", nil, "argument as `NAME:TYPE:DESCRIPTION`; may be repeated")
	f.StringArrayVar(&e.required, "required", nil, "`NAME` of an argument that a call must have; may be repeated")
	f.Var(&enum{&e.mode, []string{"overlay", "replace", "check", "ignore"}}, "arguments-mode", "`MODE` of the arguments, beside the server's schema: overlay, replace, check, ignore")
	f.Var(&enum{&e.validate, []string{"error", "warn", "off"}}, "validate", "`RESULT` of arguments that do not fit: error, warn, off")
	f.StringArrayVar(&e.groups, "group", nil, "`GROUP` that sees the tool; may be repeated")
	f.StringArrayVar(&e.states, "states", nil, "`STATE` in which it is visible; may be repeated")
	f.StringVar(&e.nextState, "next-state", "", "`STATE` of the agent after a successful call")
	_ = cmd.MarkFlagRequired("server") // the flag is there
	return cmd
}

var argumentTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// entry makes the entry of the flags.
func (e *toolEntry) entry(cmd *cobra.Command) (config.Entry, error) {
	entry := config.Entry{{Key: "server", Value: e.server}}
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
	for _, arg := range e.arguments {
		name, rest, ok := strings.Cut(arg, ":")
		typ, description, more := strings.Cut(rest, ":")
		switch {
		case !ok || !more || name == "":
			return nil, tenon.Errorf(tenon.CodeInvalid, "Arguments should be form name:type:description, not '%s'", arg)
		case !slices.Contains(argumentTypes, typ):
			return nil, tenon.Errorf(tenon.CodeInvalid, "Type %s invalid, use: %s", typ, strings.Join(argumentTypes, ", "))
		}
		fields := config.Fields{{Key: "name", Value: name}, {Key: "type", Value: typ}}
		if description != "" {
			fields = append(fields, config.Field{Key: "description", Value: description})
		}
		if slices.Contains(e.required, name) {
			fields = append(fields, config.Field{Key: "required", Value: true})
		}
		list, names = append(list, fields), append(names, name)
	}
	for _, r := range e.required {
		if !slices.Contains(names, r) {
			return nil, usage(cmd, "--required %s: there is no --argument of that name", r)
		}
	}
	if len(list) > 0 {
		entry = append(entry, config.Field{Key: "arguments", Value: list})
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
		Long: "Removes the entry tools.NAME of the configuration file. Comments and order of the rest stay. The server's tool\n" +
			"itself is then offered as the server describes it.",
		Example: "  tenon tools remove get_bank_balance",
		Args:    args(1, 1, "the tool's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editTool(cmd.Context(), args[0], nil, "Tool removed.")
		},
	}
}

func (a *app) editTool(ctx context.Context, name string, entry config.Entry, done string) error {
	cfg, err := config.Edit(ctx, a.configOptions(), config.Edits{Changes: []config.Change{{Section: "tools", Name: name, Entry: entry}}})
	if err != nil {
		return err
	}
	return a.did(map[string]any{"file": cfg.File, "tool": name}, "%s", done)
}
