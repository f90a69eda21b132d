// Package catalog turns the tools of all servers into the one list that a model sees: filtered, described, named, and
// with the annotations that are in effect. It does no I/O: [Shape] shapes the tools of one server into a [Listing],
// and [Merge] merges listings into a [Snapshot]. Both are immutable. When one server changes, tenon shapes a new
// listing of it and merges from the last snapshot ([Snapshot.Merge]), which shares the tools of all other servers.
// [Source] documents the steps of shaping and their order; [Snapshot.Explain] shows them for one tool.
//
// A tool is exposed under the name that it wants if the name is unique. In a clash each tool gets the name
// server_tool. Exposed names are names that every provider accepts: [A-Za-z_][A-Za-z0-9_-]{0,63}. A name depends on
// the tools, not on the order in which servers answered. To find the tool of a name, tenon looks it up in the
// snapshot; it never splits the name.
//
// The schema that a model sees lacks the parameters that the configuration hides or sets. [Snapshot.Prepare] adds the
// values of the set ones to a call before the policy and a person see it, so that they judge what is sent.
//
// The flow of data: servers deliver tools, and Shape and Merge make the snapshot. Package host stores the snapshot
// with each run, so that a resumed run sees the tools with which it began. A call goes to the server of the tool that
// the snapshot has under the called name, and uses the tool's name on that server.
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
	items    []*item // the item of each tool; nil for a tool of no listing
	withheld []Withheld
	listings []*Listing // nil if the snapshot was read from the store
	base     []*item    // all tools, by wanted name; nil if Merge cannot reuse the snapshot
	plain    bool       // each name is the result of item.plainly

	encode sync.Once
	digest string
	raw    []byte

	indexed sync.Once
	found   *Index

	compiled *compiled

	mu      sync.Mutex
	schemas map[string]*validator
	views   map[string]view // by provider
	whole   []tenon.Tool    // copies of tools, shared by the views that change nothing
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

// ofTools returns a snapshot of tools that belong to no listing. The tools must be in order.
func ofTools(tools []tenon.Tool) *Snapshot {
	s := &Snapshot{tools: make([]*tenon.Tool, len(tools)), items: make([]*item, len(tools)),
		compiled: newCompiled()}
	for i := range tools {
		s.tools[i] = &tools[i]
	}
	return s
}

// write encodes the snapshot at the first call. A snapshot with which no run begins is never encoded.
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

// Match reports whether one of the globs matches a name.
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

// Knows reports whether a glob of an exclude list matches an offered or a withheld tool.
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

// matchesClash reports whether a glob matches the name that a tool would get in a clash.
func matchesClash(g string, t *tenon.Tool) bool {
	wanted := cmp.Or(t.Rules.Wanted, t.Name)
	if !strings.ContainsAny(g, "*?[\\") && !strings.HasSuffix(g, wanted) {
		return false // true of nearly all tools, so avoid the allocation
	}
	name := t.Server + "_" + wanted
	return glob(g, name) || glob(g, (&Naming{}).safe(name))
}

// Includes reports whether one of the globs matches a tool by its exposed name, which is unique. A glob with a slash
// matches SERVER/REMOTE_NAME instead.
func Includes(globs []string, t *tenon.Tool) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return byServer(g, t) || glob(g, t.Name) })
}

// byServer reports whether a glob with a slash matches a tool. No exposed name contains a slash.
func byServer(g string, t *tenon.Tool) bool {
	return strings.Contains(g, "/") && glob(g, t.Server+"/"+t.Remote)
}

// InState reports whether a tool is visible in a state of the agent. The state may change during a run; see
// next_state.
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

// Only returns the snapshot with only the tools for which want returns true.
func (s *Snapshot) Only(want func(*tenon.Tool) bool) *Snapshot {
	out := 0
	for out < len(s.tools) && want(s.tools[out]) {
		out++
	}
	if out == len(s.tools) {
		return s // common, and then there is no copy
	}
	tools, items := slices.Clone(s.tools[:out]), slices.Clone(s.items[:out])
	for i := out + 1; i < len(s.tools); i++ {
		if want(s.tools[i]) {
			tools, items = append(tools, s.tools[i]), append(items, s.items[i])
		}
	}
	return &Snapshot{tools: tools, items: items, listings: s.listings, compiled: s.compiled}
}

// Without returns the snapshot without the tools of some servers. The other tools keep their names.
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

// With returns a copy of the snapshot whose tools are copies that change has modified. change must not modify the
// name of a tool, or the data that a tool's fields point to.
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

// Digest returns the digest of the snapshot: "sha256:" and the SHA-256 sum of Encode in hexadecimal.
func (s *Snapshot) Digest() string { s.write(); return s.digest }

// Tools returns the tools, sorted by name. The caller must not change them.
func (s *Snapshot) Tools() []*tenon.Tool { return s.tools }

// Withheld returns the tools that are not offered, by server and remote name. It is empty for a snapshot that was
// read from the store.
func (s *Snapshot) Withheld() []Withheld { return s.withheld }

// Names returns the exposed names, sorted.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	return names
}

// Lookup returns the tool with an exposed name.
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
