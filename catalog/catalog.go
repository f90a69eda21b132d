// Package catalog makes the tools of all servers into the one list that a model
// sees: filtered, described, named, with the annotations that count. It is pure:
// [Shape] shapes the tools of one server into a [Listing], [Merge] makes a [Snapshot]
// of the listings; neither ever changes. A change of one server means one new
// listing and a merge that starts from the last snapshot ([Snapshot.Merge]); the
// tools of the others are shared, not copied. [Source] documents the steps of
// shaping and their order; [Snapshot.Explain] shows them for one tool.
//
// Names are the model's, identities are ours. A tool is exposed under its own
// name where that is unique, and all members of a clash become server_tool.
// Names fit what every provider takes: [A-Za-z_][A-Za-z0-9_-]{0,63}. A name
// depends on the tools, not on the order in which servers answered. The way
// back is a look-up in the snapshot, never a split of the name.
//
// Parameters that the configuration hides or sets are gone from the schema; a
// call gets them back in [Snapshot.Prepare], before the policy and a person see
// it, so that what they judge is what is sent.
//
// The way through: servers deliver tools, Shape and Merge make the snapshot,
// host stores it with each run (a run that is resumed sees the tools that it
// began with), and a call goes to the server that its look-up names, under the
// name that the tool has there.
package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
)

// Snapshot is an immutable list of tools, sorted by exposed name. Its methods
// are safe for concurrent use.
type Snapshot struct {
	tools    []*tenon.Tool
	items    []*item // whose tools they are; nil for one of no item
	withheld []Withheld
	listings []*Listing // nil where the snapshot was read from the store
	base     []*item    // the tools of all listings, by the names that they want; nil where no merge can go on from it
	plain    bool       // each name is the one of item.plainly

	encode sync.Once
	digest string
	raw    []byte

	indexed sync.Once
	found   *Index

	compiled *compiled

	mu      sync.Mutex
	schemas map[string]*validator
	views   map[string]view // by provider
	whole   []tenon.Tool    // what those are, where a provider takes everything as it is
}

// Build shapes the tools of each source and merges them into a snapshot. The errors report mistakes of the
// configuration: entries and rules that match no tool, and tools that it had to leave out.
func Build(sources []Source) (*Snapshot, []error) {
	listings := make([]*Listing, len(sources))
	for i := range sources {
		listings[i] = Shape(sources[i])
	}
	return Merge(listings)
}

// ofTools is the snapshot of tools of no listing, which are in order.
func ofTools(tools []tenon.Tool) *Snapshot {
	s := &Snapshot{tools: make([]*tenon.Tool, len(tools)), items: make([]*item, len(tools)),
		compiled: newCompiled()}
	for i := range tools {
		s.tools[i] = &tools[i]
	}
	return s
}

// write encodes the snapshot when it is first asked for: a snapshot that no run
// begins with needs no bytes.
func (s *Snapshot) write() {
	s.encode.Do(func() {
		size, parts := 2, make([][]byte, len(s.tools))
		for i := range s.tools {
			if it := s.items[i]; it != nil {
				parts[i] = it.encoded()
			} else {
				parts[i] = encodeTool(s.tools[i])
			}
			size += len(parts[i]) + 1
		}
		s.raw = append(make([]byte, 0, size), '[')
		for i, p := range parts {
			if i > 0 {
				s.raw = append(s.raw, ',')
			}
			s.raw = append(s.raw, p...)
		}
		s.raw = append(s.raw, ']')
		sum := sha256.Sum256(s.raw)
		s.digest = "sha256:" + hex.EncodeToString(sum[:])
	})
}

// Match reports whether one of the globs lets a name through.
func Match(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return glob(g, name) })
}

// Excludes reports whether one of the globs excludes a tool. A glob may match the exposed name, the name that the tool
// wanted before a clash, the name that it gets in a clash ({server}_{tool}), or the remote name. Therefore a server
// cannot include a tool again by taking or leaving a name. A glob may also match SERVER.REMOTE_NAME, the form that
// tenon prints, so that a pattern copied from the output works. See also [Includes].
func Excludes(globs []string, t *tenon.Tool) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		return byServer(g, t) || glob(g, t.Server+"."+t.Remote) || glob(g, t.Name) || glob(g, t.Remote) ||
			t.Rules.Wanted != "" && glob(g, t.Rules.Wanted) ||
			matchesClash(g, t)
	})
}

// Knows reports whether a glob of an exclude matches a tool that is offered or withheld.
func (s *Snapshot) Knows(g string) bool {
	for _, t := range s.tools {
		if Excludes([]string{g}, t) {
			return true
		}
	}
	return slices.ContainsFunc(s.withheld, func(w Withheld) bool {
		return Excludes([]string{g}, &tenon.Tool{Server: w.Server, Remote: w.Remote, Name: w.Remote})
	})
}

// matchesClash reports whether a glob matches the name that a tool gets if another server has
// a tool of its name.
func matchesClash(g string, t *tenon.Tool) bool {
	wanted := cmp.Or(t.Rules.Wanted, t.Name)
	if !strings.ContainsAny(g, "*?[\\") && !strings.HasSuffix(g, wanted) {
		return false // nearly all; nothing is allocated
	}
	name := t.Server + "_" + wanted
	return glob(g, name) || glob(g, (&Naming{}).safe(name))
}

// Includes reports whether one of the globs lets a tool through: it matches the exposed
// name, which is unique. A glob with a slash matches SERVER/REMOTE_NAME instead.
func Includes(globs []string, t *tenon.Tool) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return byServer(g, t) || glob(g, t.Name) })
}

// byServer matches a glob with a slash, which no exposed name has.
func byServer(g string, t *tenon.Tool) bool {
	return strings.Contains(g, "/") && glob(g, t.Server+"/"+t.Remote)
}

// InState reports whether a tool is visible in a state of the agent, which changes while
// it works.
func InState(t *tenon.Tool, state string) bool {
	return len(t.Rules.States) == 0 || slices.Contains(t.Rules.States, state)
}

// InGroups reports whether an agent with these groups may see a tool. The tool must be in one of them. "*" stands
// for all groups; a tool without groups is in [tenon.DefaultGroup].
func InGroups(t *tenon.Tool, asked []string) bool { return inGroups(t.Rules.Groups, asked) }

func inGroups(own, asked []string) bool {
	switch {
	case slices.Contains(asked, "*"):
		return true
	case own == nil:
		return slices.Contains(asked, tenon.DefaultGroup)
	}
	return slices.ContainsFunc(own, func(g string) bool { return slices.Contains(asked, g) })
}

// Only returns the snapshot with the tools that are wanted.
func (s *Snapshot) Only(want func(*tenon.Tool) bool) *Snapshot {
	out := 0
	for out < len(s.tools) && want(s.tools[out]) {
		out++
	}
	if out == len(s.tools) {
		return s // the common case costs no copy
	}
	tools, items := slices.Clone(s.tools[:out]), slices.Clone(s.items[:out])
	for i := out + 1; i < len(s.tools); i++ {
		if want(s.tools[i]) {
			tools, items = append(tools, s.tools[i]), append(items, s.items[i])
		}
	}
	return &Snapshot{tools: tools, items: items, listings: s.listings, compiled: s.compiled}
}

// Without returns the snapshot without the tools of some servers. The other tools keep the names that they have next to
// them.
func (s *Snapshot) Without(servers ...string) *Snapshot {
	n := s.Only(func(t *tenon.Tool) bool { return !slices.Contains(servers, t.Server) })
	if n == s {
		n = &Snapshot{tools: s.tools, items: s.items, listings: s.listings, compiled: s.compiled}
	}
	for _, w := range s.withheld {
		if !slices.Contains(servers, w.Server) {
			n.withheld = append(n.withheld, w)
		}
	}
	return n
}

// With returns the snapshot with every tool as change leaves its copy. It must not
// change a tool's name or what it points to.
func (s *Snapshot) With(change func(*tenon.Tool)) *Snapshot {
	tools := make([]tenon.Tool, len(s.tools))
	for i := range tools {
		tools[i] = *s.tools[i]
		change(&tools[i])
	}
	n := ofTools(tools)
	n.listings, n.compiled = s.listings, s.compiled
	return n
}

// Decode reads a snapshot that was stored with [Snapshot.Encode].
func Decode(raw []byte) (*Snapshot, error) {
	var tools []tenon.Tool
	if err := json.Unmarshal(raw, &tools); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "the stored tool snapshot cannot be read: %w", err)
	}
	slices.SortStableFunc(tools, func(a, b tenon.Tool) int { return strings.Compare(a.Name, b.Name) })
	return ofTools(tools), nil
}

// Encode returns the snapshot as JSON. The caller must not change it.
func (s *Snapshot) Encode() []byte { s.write(); return s.raw }

// Digest identifies the snapshot: "sha256:" and the hex digest of Encode.
func (s *Snapshot) Digest() string { s.write(); return s.digest }

// Tools returns the tools, sorted by name. The caller must not change them.
func (s *Snapshot) Tools() []*tenon.Tool { return s.tools }

// Withheld returns the tools that are not offered, by server and remote name.
// A snapshot that was read from the store has none.
func (s *Snapshot) Withheld() []Withheld { return s.withheld }

// Names returns the exposed names, sorted.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	return names
}

// Lookup finds a tool by its exposed name.
func (s *Snapshot) Lookup(name string) (*tenon.Tool, bool) {
	i, ok := slices.BinarySearchFunc(s.tools, name,
		func(t *tenon.Tool, name string) int { return strings.Compare(t.Name, name) })
	if !ok {
		return nil, false
	}
	return s.tools[i], true
}

// Explain returns the changes that each step of shaping made to a tool, from the server's definition to the exposed
// one. It also works for withheld tools. For a snapshot from the store it returns nothing.
func (s *Snapshot) Explain(server, remote string) []Step {
	var steps []Step
	for _, listing := range s.listings {
		if listing.source.Server != server {
			continue
		}
		steps = listing.explain(remote)
		for _, it := range listing.items {
			if it.tool.Remote != remote {
				continue
			}
			for _, t := range s.tools {
				if t.Server == server && t.Remote == remote && t.Name != it.tool.Name {
					steps = append(steps, Step{"unique", "name", it.tool.Name, t.Name})
				}
			}
		}
	}
	return steps
}
