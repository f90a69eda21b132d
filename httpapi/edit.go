package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// ServerEntryRequest is the body of PUT /api/v1/config/servers/{name}. Entry has the form of an entry of mcpServers in
// .mcp.json.
type ServerEntryRequest struct {
	Entry json.RawMessage `json:"entry"`
	// RegistryName, if not empty, is written as registry_name: the server's name in the registry.
	RegistryName string `json:"registry_name,omitempty"`
	DryRun       bool   `json:"dry_run,omitempty"`
}

// Edited is the answer to a change of the project's file that was a dry run, or that was written at once because
// serve.allow_server_edit is set. If the change must wait for the owner's agreement, the answer is 202 with a
// [Proposal].
type Edited struct {
	File    string `json:"file"`
	Before  string `json:"before"`
	After   string `json:"after"`
	Written bool   `json:"written"`
	// Files has all files, if the change writes more than one.
	Files []config.FileChange `json:"files,omitempty"`
}

// editedOf returns the answer for the files of a change.
func editedOf(files []config.FileChange, written bool) Edited {
	files = config.MaskedFiles(files)
	out := Edited{File: files[0].File, Before: files[0].Before, After: files[0].After, Written: written}
	if len(files) > 1 {
		out.Files = files
	}
	return out
}

// toolRules are the rules that the API can set. The others can only be edited in the file.
var toolRules = []string{"approval", "timeout", "max_calls", "concurrency", "result_bytes", "result_tokens",
	"on_large_result", "retry", "rate"}

// policyFields checks rules and converts them to changes of keys in the file, sorted by key. A change without a value
// removes the key.
func policyFields(rules map[string]*any) ([]config.Field, error) {
	var out []config.Field
	for key, v := range rules {
		if !slices.Contains(toolRules, key) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the rule '%s' cannot be set over HTTP; edit the file. "+
				"Over HTTP: %s", key, strings.Join(toolRules, ", "))
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

// setFields returns the fields with a value, without the prefix "policy." of their keys.
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
		// The body is wrong, not our files.
		return refuse(http.StatusBadRequest, tenon.CodeInvalid, "entry: it is an object of mcpServers, as in "+
			".mcp.json, which has not all keys of servers in tenon.yaml; rules for the server's tools are set with "+
			"PUT /api/v1/config/tools/{name} or, under policy.defaults and rules, with PUT /api/v1/config/entries; "+
			"write other keys, such as auth, into the file: %w", err)
	}
	change.Add = true
	if r.RegistryName != "" {
		change = change.With("registry_name", r.RegistryName)
	}
	return c.propose(config.Edits{Changes: []config.Change{change}}, r.DryRun)
}

func (c *call) deleteConfigServer() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	dry, err := c.flag("dry_run")
	if err != nil {
		return err
	}
	return c.propose(config.Edits{Changes: []config.Change{{Section: "servers", Name: c.req.PathValue("name")}}}, dry)
}
