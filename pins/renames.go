package pins

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// A server can rename a tool to escape rules about its name. A new tool is held back if it resembles a pinned tool that
// is gone. Other new tools are only new: a server that removes one tool and adds others is not suspicious for that.

// renames finds the gone tool that a new tool may be. The zero value finds none.
type renames struct {
	texts   map[string]string // description or title → remote name of the gone tool
	schemas map[string]string // arguments → remote name; only schemas that name arguments
	bare    map[string]string // arguments → remote name, of gone tools without description and title
}

// features are the parts of a definition by which a renamed tool is recognized.
type features struct {
	texts  []string // description and title in lower case, without differences in white space; empty ones are omitted
	schema string
	named  bool // the schema names arguments
}

// gone returns the pinned tools that a server no longer has. It reads their definitions only if the server also has
// tools without a pin. Errors: store.
func (p *Pins) gone(ctx context.Context, key string, now map[string]definition, kept map[string]store.Pin) (*renames,
	error) {
	r := &renames{}
	isNew := func(name string) bool {
		_, ok := kept[name]
		return !ok
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(now)), isNew) {
		return r, nil
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if _, has := now[name]; has || name == "" {
			continue
		}
		pin, err := p.cfg.Store.Pin(ctx, key, name)
		if tenon.ErrorCode(err) == tenon.CodeNotFound {
			continue // another process removed the pin
		}
		if err != nil {
			return nil, err
		}
		r.add(name, pin.Definition)
	}
	return r, nil
}

// add adds a gone tool.
func (r *renames) add(name string, raw json.RawMessage) {
	if r.texts == nil {
		r.texts, r.schemas, r.bare = map[string]string{}, map[string]string{}, map[string]string{}
	}
	f := featuresOf(raw)
	for _, text := range f.texts {
		r.texts[text] = name
	}
	switch {
	case f.named:
		r.schemas[f.schema] = name
	case len(f.texts) == 0:
		r.bare[f.schema] = name
	}
}

// of returns the gone tool that has the description, the title or the arguments of a new one. Tools without arguments
// are alike only if neither has a text.
func (r *renames) of(d definition) (name string, ok bool) {
	if len(r.texts)+len(r.schemas)+len(r.bare) == 0 {
		return "", false
	}
	f := featuresOf(d.json)
	for _, text := range f.texts {
		if name, ok = r.texts[text]; ok {
			return name, true
		}
	}
	if f.named {
		name, ok = r.schemas[f.schema]
	} else if len(f.texts) == 0 {
		name, ok = r.bare[f.schema]
	}
	return name, ok
}

// featuresOf reads a canonical definition. Several tools of one name are one definition, a list; it has the features of
// all of them.
func featuresOf(raw json.RawMessage) (f features) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, one := range list {
		var tool struct {
			Title       string          `json:"title"`
			Description string          `json:"description"`
			Input       json.RawMessage `json:"inputSchema"`
		}
		_ = json.Unmarshal(one, &tool) // the definition is valid JSON; a member of another type is a tool without it
		for _, text := range []string{tool.Description, tool.Title} {
			if text = strings.ToLower(strings.Join(strings.Fields(text), " ")); text != "" {
				f.texts = append(f.texts, text)
			}
		}
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		_ = json.Unmarshal(tool.Input, &schema)
		f.schema += string(tool.Input)
		f.named = f.named || len(schema.Properties) > 0
	}
	return f
}
