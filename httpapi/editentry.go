package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// ConfigEntries is the answer of GET /api/v1/config/entries: what forms can edit, as the project's file has it.
type ConfigEntries struct {
	File     string          `json:"file"`
	Digest   string          `json:"digest"` // of the file
	Sections []ConfigSection `json:"sections"`
}

// ConfigSection is a section of the configuration whose entries forms can edit.
type ConfigSection struct {
	Name    string          `json:"name"`
	Schema  json.RawMessage `json:"schema"`           // of one entry, a JSON Schema
	Names   []string        `json:"names,omitempty"`  // the names that entries can have; absent if any name is allowed
	Hidden  []string        `json:"hidden,omitempty"` // keys that can hold secrets: they are edited in the file only
	Entries []ConfigEntry   `json:"entries"`
}

// ConfigEntry is one entry, with variables unresolved and without hidden keys.
type ConfigEntry struct {
	Name string         `json:"name"`
	Keys map[string]any `json:"keys"`
}

// ConfigEntryRequest is the body of PUT /api/v1/config/entries/{section}/{name}.
type ConfigEntryRequest struct {
	// Keys are the keys to change. A dot leads into an object, as in "limits.max_turns". A null removes the key.
	Keys map[string]json.RawMessage `json:"keys"`
	// Add makes a new entry. Without it, the entry must exist.
	Add bool `json:"add,omitempty"`
	// Digest, if not empty, is the digest of the file that the change is meant for.
	Digest string `json:"digest,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// entrySections are the sections that forms can edit, in the order of the page.
var entrySections = []ConfigSection{
	{Name: "models", Hidden: []string{"api_key", "headers"}},
	{Name: "agents"},
	{Name: "budgets", Names: []string{"session", "day", "principal"}},
	{Name: "policy", Names: []string{"defaults"}},
	{Name: "schedules"},
}

// entrySection returns a section with the schema of its entries. Error: not_found.
func entrySection(name string) (s ConfigSection, keys []string, err error) {
	i := slices.IndexFunc(entrySections, func(s ConfigSection) bool { return s.Name == name })
	if i < 0 {
		return s, nil, tenon.Errorf(tenon.CodeNotFound, "there are no forms for '%s'; edit the file",
			tenon.Visible(name))
	}
	s = entrySections[i]
	type schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Entry      json.RawMessage            `json:"additionalProperties"`
		Defs       json.RawMessage            `json:"$defs"`
	}
	var root, section, entry schema
	err = json.Unmarshal(config.Schema(), &root)
	if err == nil {
		err = json.Unmarshal(root.Properties[name], &section)
	}
	s.Schema = section.Entry
	if err == nil && len(s.Names) > 0 { // the entries of one section have one schema, or one name
		s.Schema = section.Properties[s.Names[0]]
	}
	if err == nil {
		err = json.Unmarshal(s.Schema, &entry)
	}
	if err != nil {
		return s, nil, tenon.Errorf(tenon.CodeInternal, "the schema of %s cannot be read: %w", name, err)
	}
	for _, key := range s.Hidden {
		delete(entry.Properties, key)
	}
	s.Schema, err = json.Marshal(map[string]any{"type": "object", "properties": entry.Properties, "$defs": root.Defs})
	return s, slices.Sorted(maps.Keys(entry.Properties)), err
}

func (c *call) configEntries() error {
	e, err := c.editor()
	if err != nil {
		return err
	}
	plan, err := e.Plan(c.ctx(), config.Edits{Create: true})
	if err != nil {
		return asRequested(err)
	}
	out := ConfigEntries{File: plan.File, Digest: plan.Digest()}
	for _, place := range entrySections {
		s, _, err := entrySection(place.Name)
		if err != nil {
			return err
		}
		s.Entries = []ConfigEntry{}
		for _, name := range plan.EntryNames(s.Name) {
			if len(s.Names) > 0 && !slices.Contains(s.Names, name) {
				continue
			}
			entry := ConfigEntry{Name: name, Keys: map[string]any{}}
			_ = json.Unmarshal(plan.EntryJSON(s.Name, name), &entry.Keys) // an entry in a short form has no keys
			for _, key := range s.Hidden {
				delete(entry.Keys, key)
			}
			s.Entries = append(s.Entries, entry)
		}
		out.Sections = append(out.Sections, s)
	}
	return c.answer(http.StatusOK, out)
}

func (c *call) putConfigEntry() error {
	var r ConfigEntryRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	s, keys, err := entrySection(c.req.PathValue("section"))
	if err != nil {
		return err
	}
	change := config.Change{Section: s.Name, Name: c.req.PathValue("name"), Add: r.Add}
	if len(s.Names) > 0 && !slices.Contains(s.Names, change.Name) {
		return tenon.Errorf(tenon.CodeInvalid, "%s has no '%s'; names: %s", s.Name, tenon.Visible(change.Name),
			strings.Join(s.Names, ", "))
	}
	var fields []config.Field
	for _, key := range slices.Sorted(maps.Keys(r.Keys)) {
		top, _, _ := strings.Cut(key, ".")
		if !slices.Contains(keys, top) {
			return tenon.Errorf(tenon.CodeInvalid, "the key '%s' cannot be set over HTTP; edit the file. Over HTTP: %s",
				tenon.Visible(key), strings.Join(keys, ", "))
		}
		f := config.Field{Key: key}
		if v := r.Keys[key]; string(v) != "null" {
			f.Value = v
		}
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		return tenon.Errorf(tenon.CodeInvalid, "keys is empty: there is nothing to change")
	}
	if r.Add {
		change.Entry, err = nested(fields)
	} else {
		change.Keys = fields
	}
	if err != nil {
		return err
	}
	return c.propose(config.Edits{Changes: []config.Change{change}, Digest: r.Digest}, r.DryRun)
}

// nested converts keys with dots to an entry with maps. Fields without a value are left out.
func nested(fields []config.Field) (config.Entry, error) {
	var out config.Entry
	for _, f := range fields {
		if f.Value == nil {
			continue
		}
		key, rest, deeper := strings.Cut(f.Key, ".")
		i := slices.IndexFunc(out, func(o config.Field) bool { return o.Key == key })
		switch {
		case !deeper && i < 0:
			out = append(out, f)
			continue
		case i < 0:
			out, i = append(out, config.Field{Key: key, Value: config.Fields{}}), len(out)
		}
		inner, ok := out[i].Value.(config.Fields)
		if !ok || !deeper {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the key '%s' is given as a value and as an object",
				tenon.Visible(key))
		}
		below, err := nested([]config.Field{{Key: rest, Value: f.Value}})
		if err != nil {
			return nil, err
		}
		out[i].Value = append(inner, below...)
	}
	return out, nil
}

func (c *call) deleteConfigEntry() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	s, _, err := entrySection(c.req.PathValue("section"))
	if err != nil {
		return err
	}
	dry, err := c.flag("dry_run")
	if err != nil {
		return err
	}
	return c.propose(config.Edits{Changes: []config.Change{{Section: s.Name, Name: c.req.PathValue("name")}}}, dry)
}
