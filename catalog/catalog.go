// Package catalog makes the tools of all servers into the one list that a model
// sees: filtered, named, with the annotations that count. It is pure: a
// [Snapshot] is built from what the servers offer and never changes; a change
// of any server makes a new one.
//
// Names are the model's, identities are ours. A tool is exposed under its own
// name where that is unique, and all members of a clash become server_tool.
// Names fit what every provider takes: [A-Za-z_][A-Za-z0-9_-]{0,63}. A name
// depends on the tools, not on the order in which servers answered. The way
// back is a look-up in the snapshot, never a split of the name.
//
// The way through: servers deliver tools, Build shapes them, host stores the
// snapshot with each run (a run that is resumed sees the tools that it began
// with), and a call goes to the server that its look-up names, under the name
// that the tool has there.
package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"sort"
	"sync"

	"github.com/tenonhq/tenon"
)

// Source is what one server offers, and how it is taken.
type Source struct {
	Server  string
	Trusted bool     // its annotations count
	Include []string // globs on remote names; empty: all
	Exclude []string // globs; wins over Include
	Tools   []tenon.Tool
}

// Overlay is what the configuration says about one tool.
type Overlay struct {
	Name        string // the exposed name
	Server      string
	Remote      string
	Description string // empty: the server's
	Annotate    func(tenon.Annotations) tenon.Annotations
}

// Snapshot is an immutable list of tools, sorted by exposed name.
type Snapshot struct {
	tools  []tenon.Tool
	byName map[string]int
	digest string
	raw    []byte

	mu      sync.Mutex
	schemas map[string]*validator
}

// Build shapes what the servers offer. Every overlay must be about a tool that
// a source offers, unless its server is not among the sources; others are
// returned as problems, as are tools that had to be left out.
func Build(sources []Source, overlays []Overlay) (*Snapshot, []error) {
	var problems []error
	var tools []tenon.Tool
	for _, s := range sources {
		for _, t := range s.Tools {
			t.Server = s.Server
			if !s.takes(t.Remote) {
				continue
			}
			if !s.Trusted {
				t.Annotations = tenon.Annotations{}
			}
			tools = append(tools, t)
		}
	}
	fixed := map[int]string{} // index → name that an overlay gives
	for _, o := range overlays {
		i := slices.IndexFunc(tools, func(t tenon.Tool) bool { return t.Server == o.Server && t.Remote == o.Remote })
		if i < 0 {
			if slices.ContainsFunc(sources, func(s Source) bool { return s.Server == o.Server }) {
				problems = append(problems, tenon.Errorf(tenon.CodeConfig, "tools.%s: server '%s' has no tool '%s'", o.Name, o.Server, o.Remote))
			}
			continue
		}
		if o.Description != "" {
			tools[i].Description = o.Description
		}
		if o.Annotate != nil {
			tools[i].Annotations = o.Annotate(tools[i].Annotations)
		}
		fixed[i] = o.Name
	}
	name(tools, fixed)
	return newSnapshot(tools), problems
}

// takes reports whether the filters let a tool through.
func (s *Source) takes(remote string) bool {
	return (len(s.Include) == 0 || matches(s.Include, remote)) && !matches(s.Exclude, remote)
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := path.Match(g, name)
		return err == nil && ok || g == "*" // "*" also takes names with a slash
	})
}

func newSnapshot(tools []tenon.Tool) *Snapshot {
	sort.SliceStable(tools, func(i, j int) bool { return tools[i].Name < tools[j].Name })
	s := &Snapshot{tools: slices.Clip(tools), byName: make(map[string]int, len(tools))}
	for i := range tools {
		s.byName[tools[i].Name] = i
	}
	raw, err := json.Marshal(tools)
	if err != nil {
		// A schema that is not JSON cannot come out of the protocol core.
		raw = []byte("[]")
	}
	sum := sha256.Sum256(raw)
	s.raw, s.digest = raw, "sha256:"+hex.EncodeToString(sum[:])
	return s
}

// Filter returns the snapshot cut down to the exposed names that the globs let
// through. An empty include takes all.
func (s *Snapshot) Filter(include, exclude []string) *Snapshot {
	src := Source{Include: include, Exclude: exclude}
	var tools []tenon.Tool
	for _, t := range s.tools {
		if src.takes(t.Name) {
			tools = append(tools, t)
		}
	}
	if len(tools) == len(s.tools) {
		return s
	}
	return newSnapshot(tools)
}

// Decode reads a snapshot that was stored with [Snapshot.Encode].
func Decode(raw []byte) (*Snapshot, error) {
	var tools []tenon.Tool
	if err := json.Unmarshal(raw, &tools); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "the stored tool snapshot cannot be read: %w", err)
	}
	return newSnapshot(tools), nil
}

// Encode returns the snapshot as JSON. The caller must not change it.
func (s *Snapshot) Encode() []byte { return s.raw }

// Digest identifies the snapshot: "sha256:" and the hex digest of Encode.
func (s *Snapshot) Digest() string { return s.digest }

// Tools returns the tools, sorted by name. The caller must not change them.
func (s *Snapshot) Tools() []tenon.Tool { return s.tools }

// Names returns the exposed names, sorted.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.tools))
	for i := range s.tools {
		names[i] = s.tools[i].Name
	}
	return names
}

// Lookup finds a tool by its exposed name.
func (s *Snapshot) Lookup(name string) (*tenon.Tool, bool) {
	i, ok := s.byName[name]
	if !ok {
		return nil, false
	}
	return &s.tools[i], true
}
