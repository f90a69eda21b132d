package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
)

// ToolEntry is the answer of GET /api/v1/config/tools/{name}, where name is
// SERVER.TOOL with the tool's name on the server: what the project's file says of a
// tool's arguments and rules.
type ToolEntry struct {
	File      string            `json:"file"`
	Name      string            `json:"name"` // of the entry; the one that it would get where there is none
	Exists    bool              `json:"exists"`
	Arguments []ToolArgument    `json:"arguments"`
	Policy    map[string]string `json:"policy"` // as it is written; a dot leads into a map
}

// ToolArgument is an argument as tools.NAME.arguments has it.
type ToolArgument struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// ToolEntryRequest is the body of PUT /api/v1/config/tools/{name}. All arguments are
// set; of the rules those that are named, and null or "" removes one.
type ToolEntryRequest struct {
	Arguments []ToolArgument  `json:"arguments"`
	Policy    map[string]*any `json:"policy,omitempty"`
	DryRun    bool            `json:"dry_run,omitempty"` // only say what would be written
}

// ServerEntryRequest is the body of PUT /api/v1/config/servers/{name}: the entry as an
// object of mcpServers in .mcp.json.
type ServerEntryRequest struct {
	Entry  json.RawMessage `json:"entry"`
	DryRun bool            `json:"dry_run,omitempty"`
}

// Edited is the answer to a change of the project's file.
type Edited struct {
	File    string `json:"file"`
	Before  string `json:"before"`
	After   string `json:"after"`
	Written bool   `json:"written"`
}

// toolRules are the rules that can be set here. Others are edited in the file.
var toolRules = []string{"approval", "timeout", "max_calls", "concurrency", "result_bytes", "result_tokens", "on_large_result", "retry", "rate"}

// toolEntry finds the entry about the tool of the request's path, and the name that it
// has or would get.
func (c *call) toolEntry() (name string, e catalog.Tool, exists bool, err error) {
	full := c.req.PathValue("name")
	snapshot, _, err := c.h.Tools(c.ctx())
	if err != nil {
		return "", e, false, err
	}
	var server, remote, exposed string
	for _, t := range snapshot.Tools() {
		if t.Server+"."+t.Remote == full {
			server, remote, exposed = t.Server, t.Remote, t.Name
		}
	}
	for _, w := range snapshot.Withheld() {
		if w.Server+"."+w.Remote == full {
			server, remote, exposed = w.Server, w.Remote, w.Remote
		}
	}
	if server == "" {
		return "", e, false, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s'; a name is SERVER.TOOL", full)
	}
	entries := c.h.Config().Tools
	for key, t := range entries {
		if t = t.WithDefaults(key); t.Server == server && t.RemoteName == remote {
			return key, t, true, nil
		}
	}
	if _, taken := entries[exposed]; taken {
		exposed = server + "_" + remote
	}
	return exposed, catalog.Tool{Server: server, RemoteName: remote}, false, nil
}

func (c *call) configTool() error {
	name, t, exists, err := c.toolEntry()
	if err != nil {
		return err
	}
	e := ToolEntry{File: c.h.Config().File, Name: name, Exists: exists, Arguments: []ToolArgument{}, Policy: c.h.Config().WrittenUnder("tools." + name + ".policy")}
	for _, a := range t.Arguments {
		e.Arguments = append(e.Arguments, ToolArgument{a.Name, cmp.Or(a.Type, "string"), a.Description, a.Required != nil && *a.Required})
	}
	return c.answer(http.StatusOK, e)
}

func (c *call) putConfigTool() error {
	var r ToolEntryRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	name, t, exists, err := c.toolEntry()
	if err != nil {
		return err
	}
	arguments, err := argumentFields(r.Arguments)
	if err != nil {
		return err
	}
	keys, err := policyFields(r.Policy)
	if err != nil {
		return err
	}
	change := config.Change{Section: "tools", Name: name}
	if exists {
		change.Keys = append([]config.Field{{Key: "arguments", Value: arguments}}, keys...)
		if len(r.Arguments) == 0 {
			change.Keys[0].Value = nil
		}
	} else {
		change.Add, change.Entry = true, config.Entry{{Key: "server", Value: t.Server}}
		if t.RemoteName != name {
			change.Entry = append(change.Entry, config.Field{Key: "remote_name", Value: t.RemoteName})
		}
		if len(r.Arguments) > 0 {
			change.Entry = append(change.Entry, config.Field{Key: "arguments", Value: arguments})
		}
		if policy := setFields(keys); len(policy) > 0 {
			change.Entry = append(change.Entry, config.Field{Key: "policy", Value: policy})
		}
	}
	return c.edit(change, r.DryRun)
}

// argumentFields checks arguments and makes what is written of them.
func argumentFields(list []ToolArgument) ([]config.Fields, error) {
	var out []config.Fields
	seen := map[string]bool{}
	for _, a := range list {
		switch {
		case strings.TrimSpace(a.Name) == "":
			return nil, tenon.Errorf(tenon.CodeInvalid, "an argument has no name")
		case seen[a.Name]:
			return nil, tenon.Errorf(tenon.CodeInvalid, "there is an argument '%s' already", a.Name)
		}
		seen[a.Name] = true
		f := config.Fields{{Key: "name", Value: a.Name}, {Key: "type", Value: cmp.Or(a.Type, "string")}}
		if a.Description != "" {
			f = append(f, config.Field{Key: "description", Value: a.Description})
		}
		if a.Required {
			f = append(f, config.Field{Key: "required", Value: true})
		}
		out = append(out, f)
	}
	return out, nil
}

// policyFields makes the changed keys of rules, sorted.
func policyFields(rules map[string]*any) ([]config.Field, error) {
	var out []config.Field
	for key, v := range rules {
		if !slices.Contains(toolRules, key) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the rule '%s' cannot be set here; edit the file. Here: %s", key, strings.Join(toolRules, ", "))
		}
		f := config.Field{Key: "policy." + key}
		if v != nil {
			switch v := (*v).(type) {
			case string:
				if v != "" {
					f.Value = v
				}
			case float64:
				f.Value = strconv.FormatFloat(v, 'f', -1, 64)
				if v == float64(int64(v)) {
					f.Value = int64(v)
				}
			default:
				return nil, tenon.Errorf(tenon.CodeInvalid, "the rule '%s' must be a text or a number", key)
			}
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b config.Field) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// setFields are those that have a value, by their own names.
func setFields(keys []config.Field) config.Fields {
	var out config.Fields
	for _, f := range keys {
		if f.Value != nil {
			out = append(out, config.Field{Key: strings.TrimPrefix(f.Key, "policy."), Value: f.Value})
		}
	}
	return out
}

func (c *call) putConfigServer() error {
	var r ServerEntryRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	change, err := config.FromJSON(c.req.PathValue("name"), r.Entry)
	if err != nil {
		return err
	}
	change.Add = true
	return c.edit(change, r.DryRun)
}

func (c *call) deleteConfigServer() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	dry, err := c.flag("dry_run")
	if err != nil {
		return err
	}
	return c.edit(config.Change{Section: "servers", Name: c.req.PathValue("name")}, dry)
}

// edit plans a change of the project's file and makes it, unless it is only planned.
func (c *call) edit(change config.Change, dry bool) error {
	if c.cfg.Edit == nil {
		return tenon.Errorf(tenon.CodeInvalid, "the project's file cannot be changed from here: there is none, or this tenon was not started with it")
	}
	p, err := c.cfg.Edit(c.ctx(), config.Edits{Changes: []config.Change{change}, Create: true}, !dry)
	if tenon.ErrorCode(err) == tenon.CodeConfig { // what was asked for, not how we are set up
		return &tenon.Error{Code: tenon.CodeInvalid, Message: err.Error(), Err: err}
	}
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, Edited{p.File, string(p.Before), string(p.After), !dry})
}
