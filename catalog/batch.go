package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/spread"
)

// item is one tool. In a listing it has the name that it wants. In a snapshot it may have another name.
type item struct {
	tool  tenon.Tool
	of    *item // the same tool under the name that it wants; nil if this item has that name
	src   *Source
	fixed bool // the configuration gave the name

	encode sync.Once
	raw    []byte
}

// encoded returns the JSON of the tool in a snapshot. The first call encodes it; all snapshots that contain the item
// share the result.
func (it *item) encoded() []byte {
	it.encode.Do(func() { it.raw = encodeTool(&it.tool) })
	return it.raw
}

func encodeTool(t *tenon.Tool) []byte {
	raw, err := json.Marshal(t)
	if err != nil {
		return []byte("null") // unreachable: Shape leaves out tools that are not JSON
	}
	return raw
}

// batch is the result of shaping some of a server's tools.
type batch struct {
	items    []*item
	withheld []Withheld
	problems []error
	unusable []Withheld      // tools with a schema that cannot be used
	used     map[string]bool // rules that matched a tool
	seen     map[string]bool // entries that matched a tool
}

// batchTools is the least number of tools for which another core is worth its cost.
const batchTools = 512

// shapeAll shapes tools on all cores, since each tool is shaped independently. The batches are in the order of the
// tools. If there is a transform function of a Go program, one core shapes all tools, so that the function is called
// for one tool at a time.
func (s *Source) shapeAll(offered []tenon.Tool, byRemote map[string]string) []batch {
	least := batchTools
	if slices.ContainsFunc(s.Transform, func(t Transform) bool { return t.Func != nil }) {
		least = len(offered)
	}
	return spread.Map(offered, least, func(_ int, part []tenon.Tool) batch { return s.shapeSome(part, byRemote) })
}

func (s *Source) shapeSome(offered []tenon.Tool, byRemote map[string]string) batch {
	b := batch{used: map[string]bool{}, seen: map[string]bool{}, items: make([]*item, 0, len(offered))}
	room := make([]item, len(offered)) // in most cases all tools are offered
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
		if c.unusable {
			b.unusable = append(b.unusable, Withheld{s.Server, offered[i].Remote, reason})
		}
		if reason != "" {
			b.withheld = append(b.withheld, Withheld{s.Server, offered[i].Remote, reason})
			it.tool = tenon.Tool{} // the next tool may get this place
			continue
		}
		it.src, it.fixed = s, c.entry != "" && !s.Entries[c.entry].Loose
		b.items = append(b.items, it)
	}
	return b
}

// unusableError reports the tools of a server whose schemas cannot be used. It is one error, because one program that
// writes wrong schemas often writes only wrong ones.
func unusableError(server string, list []Withheld) error {
	var remotes []string
	for _, w := range list[1:min(len(list), 1+maxUnusable)] {
		remotes = append(remotes, "'"+tenon.Visible(w.Remote)+"'")
	}
	more := ""
	if len(remotes) > 0 {
		more = "; and so are " + strings.Join(remotes, ", ")
	}
	if n := len(list) - 1 - len(remotes); n > 0 {
		more += fmt.Sprintf(" and %d more", n)
	}
	return tenon.Errorf(tenon.CodeProtocol, "tool '%s' of server '%s' is left out: %s%s; only the server's author can "+
		"repair it", tenon.Visible(list[0].Remote), server, list[0].Reason, more)
}

// maxUnusable bounds the further tools that an error names.
const maxUnusable = 5

// Unusable returns why a tool with this input schema cannot be offered, or "" if it can.
func Unusable(input json.RawMessage) string {
	if _, _, err := objectSchema(withoutAnchors(input)); err != nil {
		return err.Error()
	}
	return ""
}

// notJSON returns why a tool cannot be written as JSON, or "" if it can. The tool's parameters have been checked
// before; its other raw values have not.
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
