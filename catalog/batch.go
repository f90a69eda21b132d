package catalog

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/spread"
)

// item is one tool of a listing, under the name that it wants, or of a snapshot, under
// another one.
type item struct {
	tool  tenon.Tool
	of    *item // the same tool under the name that it wants; nil: this is it
	src   *Source
	fixed bool // the configuration gave the name

	encode sync.Once
	raw    []byte
}

// encoded returns the tool as a snapshot has it. It is written once, when it is first
// asked for, for all snapshots with the listing.
func (it *item) encoded() []byte {
	it.encode.Do(func() { it.raw = encodeTool(&it.tool) })
	return it.raw
}

func encodeTool(t *tenon.Tool) []byte {
	raw, err := json.Marshal(t)
	if err != nil {
		return []byte("null") // Shape has left out what is not JSON
	}
	return raw
}

// batch is what came of shaping some of a server's tools.
type batch struct {
	items    []*item
	withheld []Withheld
	problems []error
	used     map[string]bool // rules that were about a tool
	seen     map[string]bool // entries, too
}

// batchTools is how many tools are worth a core.
const batchTools = 512

// shapeAll shapes tools, each by itself and so on all cores; the batches are in the order
// of the tools. A function of a Go program is called for one tool at a time.
func (s *Source) shapeAll(offered []tenon.Tool, byRemote map[string]string) []batch {
	least := batchTools
	if slices.ContainsFunc(s.Transform, func(t Transform) bool { return t.Func != nil }) {
		least = len(offered)
	}
	return spread.Map(offered, least, func(_ int, part []tenon.Tool) batch { return s.shapeSome(part, byRemote) })
}

func (s *Source) shapeSome(offered []tenon.Tool, byRemote map[string]string) batch {
	b := batch{used: map[string]bool{}, seen: map[string]bool{}, items: make([]*item, 0, len(offered))}
	room := make([]item, len(offered)) // most are taken
	c := shaper{src: s, used: b.used}
	for i := range offered {
		it := &room[len(b.items)]
		it.tool = offered[i]
		if c.entry = byRemote[offered[i].Remote]; c.entry != "" {
			b.seen[c.entry] = true
		}
		reason := c.run(&it.tool)
		if c.broken {
			b.problems = append(b.problems, tenon.Errorf(tenon.CodeConfig, "tool '%s' of server '%s' is left out: %s",
				tenon.Visible(offered[i].Remote), s.Server, reason))
		}
		if reason == "" {
			reason = notJSON(&it.tool)
		}
		if reason != "" {
			b.withheld = append(b.withheld, Withheld{s.Server, offered[i].Remote, reason})
			it.tool = tenon.Tool{} // the room of the next one, or of none
			continue
		}
		it.src, it.fixed = s, c.entry != "" && !s.Entries[c.entry].Loose
		b.items = append(b.items, it)
	}
	return b
}

// notJSON says why a tool cannot be written as JSON, "" where it can: its parameters are
// by now, what else is raw may not be.
func notJSON(t *tenon.Tool) string {
	bad := func(raw json.RawMessage) bool { return len(raw) > 0 && !json.Valid(raw) }
	if bad(t.Output) || bad(t.Rules.Fixed) {
		return "its definition is not JSON"
	}
	if len(t.Rules.Options) == 0 {
		return ""
	}
	for _, p := range slices.Sorted(maps.Keys(t.Rules.Options)) {
		if bad(t.Rules.Options[p]) {
			return "its definition is not JSON: provider_options." + p
		}
	}
	return ""
}
