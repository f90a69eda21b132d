package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// ConfigEntries is the answer of GET /api/v1/config/entries. It contains the sections that forms can edit, with the
// values in the project's file.
type ConfigEntries struct {
	File     string          `json:"file"`
	Digest   string          `json:"digest"` // of the file
	Sections []ConfigSection `json:"sections"`
}

// ConfigSection is a section of the configuration whose entries forms can edit.
type ConfigSection struct {
	Name string `json:"name"`
	// Kind describes the entries of the section. It is empty if the entries have names, single if the section itself is
	// the only entry, and list if the entries are numbered from 0.
	Kind    string          `json:"kind,omitempty"`
	Schema  json.RawMessage `json:"schema"`           // JSON Schema of one entry
	Names   []string        `json:"names,omitempty"`  // the names that entries can have; absent if any name is allowed
	Hidden  []string        `json:"hidden,omitempty"` // keys that can contain secrets; edited in the file only
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
	// Add adds a new entry. If it is not set, the entry must exist.
	Add bool `json:"add,omitempty"`
	// Digest is the digest of the file that the sender has seen. It may be empty, except for entries of a list.
	Digest string `json:"digest,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// entrySections are the sections that forms can edit, in the order of the page.
var entrySections = []ConfigSection{
	{Name: "models", Hidden: []string{"api_key", "headers"}},
	{Name: "agents"},
	{Name: "budgets", Names: []string{"session", "day", "principal"}},
	{Name: "limits", Kind: kindSingle, Names: []string{"limits"}},
	{Name: "rules", Kind: kindList},
	{Name: "policy", Names: []string{"defaults"}},
	{Name: "schedules"},
}

// The kinds of sections.
const (
	kindSingle = "single"
	kindList   = "list"
)

// path returns the path of the section in the file.
func (s ConfigSection) path() []string {
	if s.Kind == kindList { // the only one
		return []string{"policy", s.Name}
	}
	return []string{s.Name}
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
		Items      json.RawMessage            `json:"items"`
		Entry      json.RawMessage            `json:"additionalProperties"`
		Defs       json.RawMessage            `json:"$defs"`
	}
	var root, section, entry schema
	err = json.Unmarshal(config.Schema(), &root)
	if err == nil {
		err = json.Unmarshal(root.Properties[s.path()[0]], &section)
	}
	s.Schema = section.Entry
	switch {
	case err != nil:
	case s.Kind == kindSingle:
		s.Schema = root.Properties[name]
	case s.Kind == kindList:
		if err = json.Unmarshal(section.Properties[name], &section); err == nil {
			s.Schema = section.Items
		}
	case len(s.Names) > 0: // the entries of one section have one schema, or one name
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
		s.Entries = s.entries(plan)
		out.Sections = append(out.Sections, s)
	}
	return c.answer(http.StatusOK, out)
}

// entries returns the entries of the section without hidden keys.
func (s ConfigSection) entries(plan *config.Plan) []ConfigEntry {
	list := []ConfigEntry{}
	add := func(name string, raw json.RawMessage) {
		entry := ConfigEntry{Name: name, Keys: map[string]any{}}
		_ = json.Unmarshal(raw, &entry.Keys) // an entry in a short form has no keys
		for _, key := range s.Hidden {
			delete(entry.Keys, key)
		}
		list = append(list, entry)
	}
	switch s.Kind {
	case kindSingle:
		if raw := plan.JSONAt(s.Name); raw != nil && string(raw) != "null" {
			add(s.Name, raw)
		}
	case kindList:
		var all []json.RawMessage
		_ = json.Unmarshal(plan.JSONAt(s.path()...), &all)
		for i, raw := range all {
			add(strconv.Itoa(i), raw)
		}
	default:
		for _, name := range plan.EntryNames(s.Name) {
			if len(s.Names) == 0 || slices.Contains(s.Names, name) {
				add(name, plan.EntryJSON(s.Name, name))
			}
		}
	}
	return list
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
	switch {
	case s.Kind == kindList:
		change, err = c.listChange(s, r, fields)
	case s.Kind == kindSingle:
		change = config.Change{Section: s.Name, Keys: fields}
	case r.Add:
		change.Entry, err = nested(fields)
	default:
		change.Keys = fields
	}
	if err != nil {
		return err
	}
	return c.propose(config.Edits{Changes: []config.Change{change}, Digest: r.Digest}, r.DryRun)
}

// listChange returns the change of a numbered entry, or of a new one at the end of the list.
func (c *call) listChange(s ConfigSection, r ConfigEntryRequest, fields []config.Field) (config.Change, error) {
	path := s.path()
	change := config.Change{Section: path[0]}
	n, place, err := c.listEntry(s, r.Digest, r.Add)
	if err != nil {
		return change, err
	}
	if !r.Add {
		for _, f := range fields {
			change.Keys = append(change.Keys, config.Field{Key: place + "." + f.Key, Value: f.Value})
		}
		return change, nil
	}
	entry, err := nested(fields)
	switch {
	case err != nil:
		return change, err
	case n == 0:
		change.Keys = []config.Field{{Key: path[1], Value: []config.Fields{config.Fields(entry)}}}
	default:
		change.Keys = []config.Field{{Key: place, Value: config.Fields(entry)}}
	}
	return change, nil
}

// listEntry returns the number of the request's entry, and its place in the section of the file. It compares the
// digest, so that the number denotes the entry that the caller has seen.
func (c *call) listEntry(s ConfigSection, digest string, add bool) (n int, place string, err error) {
	if digest == "" {
		return 0, "", tenon.Errorf(tenon.CodeInvalid, "the digest is missing: entries of %s have numbers, so send the "+
			"digest of the file that you have seen", s.Name)
	}
	e, err := c.editor()
	if err != nil {
		return 0, "", err
	}
	plan, err := e.Plan(c.ctx(), config.Edits{Create: true, Digest: digest})
	if err != nil {
		return 0, "", asRequested(err)
	}
	has := len(s.entries(plan))
	n, err = strconv.Atoi(c.req.PathValue("name"))
	switch {
	case err != nil || n < 0 || n > has || n == has && !add:
		return 0, "", tenon.Errorf(tenon.CodeNotFound, "%s has no entry '%s'; it has %d, numbered from 0", s.Name,
			tenon.Visible(c.req.PathValue("name")), has)
	case add && n != has:
		return 0, "", tenon.Errorf(tenon.CodeConflict, "a new entry of %s has the number %d", s.Name, has)
	}
	return n, s.Name + "[" + strconv.Itoa(n) + "]", nil
}

// nested converts keys with dots to an entry with nested maps. It omits fields without a value.
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
	change := config.Change{Section: s.Name, Name: c.req.PathValue("name")}
	edits := config.Edits{Digest: c.req.URL.Query().Get("digest")}
	switch s.Kind {
	case kindList:
		_, place, err := c.listEntry(s, edits.Digest, false)
		if err != nil {
			return err
		}
		change = config.Change{Section: s.path()[0], Keys: []config.Field{{Key: place}}}
	case kindSingle:
		e, err := c.editor()
		if err != nil {
			return err
		}
		plan, err := e.Plan(c.ctx(), config.Edits{Create: true})
		if err != nil {
			return asRequested(err)
		}
		change = config.Change{Section: s.Name}
		for _, key := range plan.EntryNames(s.Name) {
			change.Keys = append(change.Keys, config.Field{Key: key})
		}
		if change.Keys == nil {
			return tenon.Errorf(tenon.CodeNotFound, "the file has no %s", s.Name)
		}
	}
	edits.Changes = []config.Change{change}
	return c.propose(edits, dry)
}
