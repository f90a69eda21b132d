package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// Layer is the ruleset of one author: the administrator, the user or the project. Names and annotations that come from
// less trusted layers permit nothing in it.
//
// A tool belongs to a less trusted layer if the identity of its server begins with the name of that layer. The identity
// of a server that no layer names begins with "target"; its tools also belong to a less trusted layer.
type Layer struct {
	Name  string
	Rules *Rules
	// Hints are the annotations that the layer declares for tools.
	Hints map[ID]tenon.Annotations
	// Aliases contains other servers of the layer with the same target, by the identities of servers of less trusted
	// layers.
	Aliases map[string][]Alias
	// Tools contains tools of the layer's own servers to which an entry of a less trusted layer gives an exposed name
	// and groups. Agents contains agents of less trusted layers.
	Tools  map[ID]string     // → layer
	Agents map[string]string // → layer
	// Names contains the exposed names that the layer itself gives to tools.
	Names map[ID]string

	trusted map[string]bool // the first parts of trusted identities
}

// Alias is a name of the layer whose rules also apply to a server of a less trusted layer. These rules can forbid or
// ask, but they permit nothing.
type Alias struct{ Identity, Name string }

// Layers contains the rulesets of all authors. Each is evaluated separately, and the strictest verdict wins: deny,
// then ask, then allow. Layers are immutable.
type Layers struct {
	list   []Layer // the most trusted first
	digest string
	reads  Keys
}

// NewLayers returns the layers, the most trusted first. Their rules must be compiled.
func NewLayers(list ...Layer) *Layers {
	l := &Layers{list: slices.Clone(list)}
	for i := range l.list {
		trusted := map[string]bool{"": true, "builtin": true, "program": true}
		for _, other := range l.list[:i+1] {
			trusted[other.Name] = true
		}
		l.list[i].trusted = trusted
	}
	l.list[len(l.list)-1].trusted = nil // the last layer trusts everything
	l.digest, l.reads = l.sum(), l.readKeys()
	return l
}

// foreign returns the layer to which a server belongs, and whether this layer does not trust it.
func (l *Layer) foreign(identity string) (string, bool) {
	from, _, ok := strings.Cut(identity, ":")
	return from, ok && l.trusted != nil && !l.trusted[from]
}

// aliases returns the other names under which the rules apply to a server. A trusted server has only its own names. A
// name of "" is the last part of the identity.
func (l *Layer) aliases(identity, name string) []Alias {
	own := Alias{identity, name}
	if _, foreign := l.foreign(identity); foreign {
		if name == "" {
			own.Name = identity[strings.LastIndexByte(identity, ':')+1:]
		}
		own.Identity = l.Name + ":" + own.Name
	}
	return append([]Alias{own}, l.Aliases[identity]...)
}

// LayerVerdict is the verdict of one layer.
type LayerVerdict struct {
	Layer   string        `json:"layer"`             // "" is the built-in default
	Verdict tenon.Verdict `json:"verdict,omitempty"` // "" is no opinion
	Reason  string        `json:"reason,omitempty"`
	Wins    bool          `json:"wins,omitempty"`
}

// Judge decides whether a call of a tool may run. A layer has an opinion only if one of its rules matches or its file
// sets an approval. If no layer has an opinion, the built-in default decides: calls ask unless the tool is marked as
// read-only.
func (l *Layers) Judge(f *Facts) Opinion {
	b := l.For(f.ID(), f.Agent)
	o := Opinion{Timeout: b.Timeout, Expires: b.Expires, MaxRun: Value(b.MaxCalls.Run),
		MaxSession: Value(b.MaxCalls.Session),
		Cost:       tenon.Dollars(Value(b.Cost)), Idempotent: b.Retry == RetryAlways}
	if b.Rate != RateNone {
		o.Rate = b.Rate
	}
	if b.Retry == RetryAuto {
		o.Idempotent = l.isIdempotent(f, func(b Block) bool { return b.Retry != "" })
	}
	if Value(b.Cache.TTL) > 0 &&
		(Value(b.Cache.Force) || l.isIdempotent(f, func(b Block) bool { return b.Cache.TTL != nil })) {
		o.Cache, o.Scope = Value(b.Cache.TTL), b.Cache.Scope
	}
	winner := l.strictest(f)
	o.Verdict, o.Reason, o.Layer = winner.Verdict, winner.Reason, winner.Layer
	return o
}

// strictest returns the verdict that wins.
func (l *Layers) strictest(f *Facts) LayerVerdict {
	var winner LayerVerdict
	for i := range l.list {
		if v := l.list[i].judge(f); rank(v.Verdict) > rank(winner.Verdict) {
			winner = v
		}
	}
	if winner.Verdict == "" {
		winner.Verdict, winner.Reason = Approval{}.verdict(f.Tool.Annotations)
	}
	return winner
}

// Verdicts returns the verdict of each layer, the most trusted first, and the built-in default if it decides. One of
// them wins.
func (l *Layers) Verdicts(f *Facts) []LayerVerdict {
	winner := l.strictest(f)
	var list []LayerVerdict
	for i := range l.list {
		v := l.list[i].judge(f)
		v.Wins = v.Layer == winner.Layer && v.Verdict == winner.Verdict
		list = append(list, v)
	}
	if !slices.ContainsFunc(list, func(v LayerVerdict) bool { return v.Wins }) {
		winner.Wins = true
		list = append(list, winner)
	}
	return list
}

func rank(v tenon.Verdict) int {
	switch v {
	case tenon.Allow:
		return 1
	case tenon.Ask:
		return 2
	case tenon.Deny:
		return 3
	}
	return 0
}

// agent returns the name that the layer uses for an agent. The argument is "LAYER:NAME" if a less trusted layer has
// another agent of this name; see config.Qualified. foreign says that the agent belongs to the layer from, which this
// layer does not trust.
func (l *Layer) agent(name string) (bare, from string, foreign bool) {
	if layer, rest, ok := strings.Cut(name, ":"); ok && l.trusted != nil {
		return rest, layer, !l.trusted[layer]
	}
	from, foreign = l.Agents[name]
	return name, from, foreign
}

// plain returns an identity as the rules of a trusted layer write it: for a tool that is an agent, the agent's name
// is not qualified. It returns other identities unchanged.
func (l *Layer) plain(id ID) ID {
	_, server, _ := strings.Cut(id.Server, ":")
	if l.trusted == nil || server != "agents" && server != "handoffs" {
		return id
	}
	const handoff = "transfer_to_"
	to, isHandoff := strings.CutPrefix(id.Remote, handoff)
	if _, bare, ok := strings.Cut(to, ":"); ok {
		id.Remote = bare
		if isHandoff {
			id.Remote = handoff + bare
		}
	}
	return id
}

// plainFacts returns the facts with the identity of [Layer.plain].
func (l *Layer) plainFacts(f *Facts) *Facts {
	id := f.ID()
	plain := l.plain(id)
	if plain == id {
		return f
	}
	t := *f.Tool
	t.Remote = plain.Remote
	return f.about(&t)
}

// judge returns the verdict of one layer.
func (l *Layer) judge(f *Facts) LayerVerdict {
	v := LayerVerdict{Layer: l.Name}
	f = l.plainFacts(f)
	self, isForeign := l.self(f)
	id := self.ID()
	block := l.Rules.written(id, self.Agent, l.Rules.groupsOf(id))
	verdict, reason, said := l.Rules.verdict(self, block.Approval)
	if said {
		v.Verdict, v.Reason = verdict, reason
	}
	if !isForeign && len(l.Aliases[id.Server]) == 0 {
		return v
	}
	// Rules for the names that less trusted layers chose apply, too, but they only forbid and ask.
	for _, as := range l.aliases(f.ID().Server, f.Tool.Server) {
		named, groups := l.named(f, as)
		named.Agent, _, _ = l.agent(f.Agent)
		block = l.Rules.written(named.ID(), named.Agent, groups)
		verdict, reason, said = l.Rules.verdict(named, block.Approval)
		if said && verdict != tenon.Allow && rank(verdict) > rank(v.Verdict) {
			v.Verdict, v.Reason = verdict, reason
		}
	}
	return v
}

// foreignName returns a name that replaces a name from a less trusted layer. Names of entries contain no colon, so
// that a condition cannot match it by accident.
func foreignName(layer, name string) string { return layer + ":" + name }

// self returns the facts without the names, groups and annotations that come from less trusted layers. It reports
// whether a name or a group differs.
func (l *Layer) self(f *Facts) (*Facts, bool) {
	if l.trusted == nil {
		return f, false
	}
	id := f.ID()
	from, byServer := l.foreign(f.Identity)
	maker, byTool := l.Tools[id]
	agent, agentOf, byAgent := l.agent(f.Agent)
	original := f.Tool.Original()
	hints := over(l.Hints[id], original.Annotations)
	groups := l.Rules.groupsOf(id)
	isForeign := byServer || byTool || byAgent || !sameGroups(f.Tool, groups)
	if !isForeign && hints == f.Tool.Annotations && agent == f.Agent {
		return f, false
	}
	t := *f.Tool
	if byServer || byTool {
		t = original
	}
	t.Annotations = hints
	if !sameGroups(f.Tool, groups) {
		t.Rules.Groups = groups
	}
	seen := f.about(&t)
	seen.Agent = agent
	switch {
	case byServer:
		t.Server = foreignName(from, t.Server)
		t.Name, t.Rules.Wanted = foreignName(from, t.Name), ""
	case byTool:
		name, ok := l.Names[id]
		if !ok {
			name = foreignName(maker, t.Name)
		}
		t.Name, t.Rules.Wanted = name, ""
	}
	if byAgent {
		seen.Agent, seen.State = foreignName(agentOf, agent), foreignName(agentOf, f.State)
	}
	return seen, isForeign
}

// about returns the facts of the same call with another view of the tool. Both share the decoded arguments.
func (f *Facts) about(t *tenon.Tool) *Facts {
	return &Facts{Tool: t, Identity: f.Identity, Server: f.Server, Arguments: f.Arguments, Agent: f.Agent,
		Principal: f.Principal, State: f.State, same: f}
}

// named returns the facts under an alias. It also returns the effective groups of the tool and the groups that
// the layer sets.
func (l *Layer) named(f *Facts, as Alias) (*Facts, []string) {
	t := *f.Tool
	id := ID{as.Identity, t.Remote}
	t.Server, t.Annotations = as.Name, over(l.Hints[id], f.Tool.Original().Annotations)
	groups := groupsOf(f.Tool)
	if name, ok := l.Names[id]; ok {
		t.Rules.Wanted = name
	}
	if own, ok := l.Rules.ToolGroups[id]; ok {
		groups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(groups, own))))
		t.Rules.Groups = groups
	}
	named := f.about(&t)
	named.Identity = as.Identity
	return named, groups
}

func compareID(a, b ID) int {
	return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Remote, b.Remote))
}

func sameGroups(t *tenon.Tool, groups []string) bool {
	own := groupsOf(t)
	return slices.Equal(own, groups) || len(own) == len(groups) &&
		slices.Equal(slices.Sorted(slices.Values(own)), slices.Sorted(slices.Values(groups)))
}

// over returns the annotations of a, with the annotations of base where a sets none.
func over(a, base tenon.Annotations) tenon.Annotations {
	for _, f := range []struct{ to, from **bool }{{&base.ReadOnly, &a.ReadOnly}, {&base.Destructive, &a.Destructive},
		{&base.Idempotent, &a.Idempotent}, {&base.OpenWorld, &a.OpenWorld}} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	return base
}

// isIdempotent reports whether every layer that has an opinion treats the tool as safe to repeat. says reports
// whether a block has an opinion; the last layer always counts.
func (l *Layers) isIdempotent(f *Facts, says func(Block) bool) bool {
	if !f.Tool.Annotations.IsIdempotent() {
		return false
	}
	for i := range l.list[:len(l.list)-1] {
		layer := &l.list[i]
		self, _ := layer.self(layer.plainFacts(f))
		id := self.ID()
		if !self.Tool.Annotations.IsIdempotent() &&
			says(layer.Rules.written(id, self.Agent, layer.Rules.groupsOf(id))) {
			return false
		}
	}
	return true
}

// For returns the effective block for a tool that an agent uses; the agent "" means no agent. It combines the values
// of the layers to the strictest ones, except for approval: see [Layers.Judge].
func (l *Layers) For(id ID, agent string) Block {
	last := l.list[len(l.list)-1].Rules
	if len(l.list) == 1 {
		return last.For(id, agent)
	}
	var b Block
	var floors []Block
	used := last.groupsOf(id)
	for i := range l.list {
		layer := &l.list[i]
		id := layer.plain(id)
		_, byServer := layer.foreign(id.Server)
		bare, agentOf, byAgent := layer.agent(agent)
		who := bare
		if byAgent {
			who = foreignName(agentOf, bare)
		}
		groups := layer.Rules.groupsOf(id)
		b = b.Stricter(layer.Rules.written(id, who, groups))
		if layer.trusted == nil || !byServer && !byAgent && len(layer.Aliases[id.Server]) == 0 &&
			slices.Equal(groups, used) {
			continue
		}
		for _, as := range layer.aliases(id.Server, "") {
			floors = append(floors, layer.Rules.written(ID{as.Identity, id.Remote}, bare, used))
		}
	}
	b = b.WithDefaults()
	for _, f := range floors {
		b = b.Within(f)
	}
	return b
}

// Defaults returns the defaults of all layers, combined to the strictest values.
func (l *Layers) Defaults() Block {
	var b Block
	for i := range l.list {
		b = b.Stricter(l.list[i].Rules.Defaults)
	}
	return b
}

// Digest returns the digest of the rules of all layers.
func (l *Layers) Digest() string { return l.digest }

func (l *Layers) sum() string {
	if len(l.list) == 1 {
		return l.list[0].Rules.Digest()
	}
	type entry struct {
		ID
		Value any
	}
	type flat struct {
		Name, Rules  string
		Hints, Tools []entry            `json:",omitempty"`
		Names        []entry            `json:",omitempty"`
		Aliases      map[string][]Alias `json:",omitempty"`
		Agents       map[string]string  `json:",omitempty"`
	}
	var all []flat
	for _, layer := range l.list {
		one := flat{Name: layer.Name, Rules: layer.Rules.Digest(), Aliases: layer.Aliases, Agents: layer.Agents}
		for _, id := range slices.SortedFunc(maps.Keys(layer.Hints), compareID) {
			one.Hints = append(one.Hints, entry{id, layer.Hints[id]})
		}
		for _, id := range slices.SortedFunc(maps.Keys(layer.Tools), compareID) {
			one.Tools = append(one.Tools, entry{id, layer.Tools[id]})
		}
		for _, id := range slices.SortedFunc(maps.Keys(layer.Names), compareID) {
			one.Names = append(one.Names, entry{id, layer.Names[id]})
		}
		all = append(all, one)
	}
	b, err := json.Marshal(all)
	if err != nil {
		return "" // strings and booleans always marshal
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// Redacted returns the names of all redact rules of all layers, sorted.
func (l *Layers) Redacted() []string {
	var names []string
	for i := range l.list {
		names = append(names, l.list[i].Rules.Redacted()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Mentions returns the names of tools in the last layer's rules. It leaves out the rules of other layers, which are
// for many projects, and need not match tools of this one.
func (l *Layers) Mentions() []Named { return l.list[len(l.list)-1].Rules.Mentions() }

// WithServer returns a copy of the layers with a server that a program has added. block is the server's block in the
// last layer; aliases are its aliases in the other layers, by the names of the layers. If block is nil, the server is
// removed. Errors: config.
func (l *Layers) WithServer(identity string, block *Block, aliases map[string][]Alias) (*Layers, error) {
	list := slices.Clone(l.list)
	last := &list[len(list)-1]
	rules, err := last.Rules.WithServer(identity, block)
	if err != nil {
		return nil, err
	}
	last.Rules = rules
	for i := range list[:len(list)-1] {
		known := maps.Clone(list[i].Aliases)
		delete(known, identity)
		if more := aliases[list[i].Name]; len(more) > 0 && block != nil {
			if known == nil {
				known = map[string][]Alias{}
			}
			known[identity] = more
		}
		list[i].Aliases = known
	}
	return NewLayers(list...), nil
}
