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

// Layer is the ruleset of one author: the administrator, the user or the project. A
// layer never learns from less trusted ones: the names that they choose and the
// annotations that they declare permit nothing in it.
//
// A tool belongs to a less trusted layer if the identity of its server does: it begins
// with the name of such a layer, or with "target" if no layer names the server.
type Layer struct {
	Name  string
	Rules *Rules
	// Hints are the annotations that the layer declares for tools.
	Hints map[ID]tenon.Annotations
	// Aliases are other servers of the layer, by the identities of the servers of less
	// trusted layers that have the same target.
	Aliases map[string][]Alias
	// Tools are tools of the layer's own servers that an entry of a less trusted layer
	// gave an exposed name and groups, Agents are agents of less trusted layers.
	Tools  map[ID]string     // → layer
	Agents map[string]string // → layer
	// Names are the exposed names that the layer itself gives tools.
	Names map[ID]string

	trusted map[string]bool // the first parts of identities
}

// Alias is a name by which rules of a layer hold for a server of a less trusted layer as
// well. They forbid and ask, but permit nothing.
type Alias struct{ Identity, Name string }

// Layers are the rulesets of all authors. Each is judged alone, and the strictest
// verdict wins: deny, then ask, then allow. Layers do not change once they are made.
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
	l.list[len(l.list)-1].trusted = nil // the last layer sees everything as it is
	l.digest, l.reads = l.sum(), l.readKeys()
	return l
}

// foreign returns the layer that a server belongs to if the layer does not trust it.
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

// Judge decides whether a call of a tool may run. A layer without a matching rule and
// without a written approval has no opinion. If no layer has one, the built-in default
// decides: calls ask unless the tool is marked as read-only.
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

// Verdicts returns the verdict of each layer, the most trusted first, then the built-in
// default if it decides. One of them wins.
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
	return slices.Index([]tenon.Verdict{tenon.Allow, tenon.Ask, tenon.Deny}, v) + 1
}

// agent returns the name of an agent as the layer knows it. The name is "LAYER:NAME" if a
// less trusted layer has another agent of this name; see config.Qualified. A foreign agent
// belongs to a layer that this one does not trust.
func (l *Layer) agent(name string) (bare, from string, foreign bool) {
	if layer, rest, ok := strings.Cut(name, ":"); ok && l.trusted != nil {
		return rest, layer, !l.trusted[layer]
	}
	from, foreign = l.Agents[name]
	return name, from, foreign
}

// plain returns the identity of a tool that is an agent under the agent's bare name, as the
// rules of a trusted layer write it. Other identities stay as they are.
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
	// By the names that others chose, rules still forbid and ask.
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

// foreignName replaces a name that a less trusted layer chose. No name of an entry holds
// a colon, so that no condition compares equal by accident.
func foreignName(layer, name string) string { return layer + ":" + name }

// self returns the facts as the layer sees them: without the names, groups and
// annotations that come from less trusted layers. It reports whether a name or a group
// differs.
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

// about returns the facts of the same call for another view of the tool. The arguments
// are decoded once.
func (f *Facts) about(t *tenon.Tool) *Facts {
	return &Facts{Tool: t, Identity: f.Identity, Server: f.Server, Arguments: f.Arguments, Agent: f.Agent,
		Principal: f.Principal, State: f.State, same: f}
}

// named returns the facts under a name whose rules hold as well, and the groups of the
// tool as they are in use and as the layer says them.
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

// over returns annotations, with missing ones taken from base.
func over(a, base tenon.Annotations) tenon.Annotations {
	for _, f := range []struct{ to, from **bool }{{&base.ReadOnly, &a.ReadOnly}, {&base.Destructive, &a.Destructive},
		{&base.Idempotent, &a.Idempotent}, {&base.OpenWorld, &a.OpenWorld}} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	return base
}

// isIdempotent reports whether every layer whose block says something about the matter
// takes the tool as safe to repeat. The last layer always counts.
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

// For returns the block that holds for a tool that an agent uses; "" is no agent. The
// values of the layers are combined to the strictest. Approval is not among them: see
// [Layers.Judge].
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

// Digest identifies the rules of all layers: the same rules have the same digest.
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

// Mentions returns the names of tools that the last layer's rules are about. The rules
// of the others hold for many projects, and need not be about tools of this one.
func (l *Layers) Mentions() []Named { return l.list[len(l.list)-1].Rules.Mentions() }

// WithServer returns the layers with a server that the program added: block is its block
// in the last layer, and aliases are its aliases in the others, by their names. A nil block
// removes the server. The layers themselves do not change. Errors: config.
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
