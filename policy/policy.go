// Package policy contains the rules about single tools: whether a call must ask a person first, how long it may take,
// whether it may be repeated. A verdict is a pure function of the tool, the call and the rules. The executor
// evaluates it once for each call, and the verdict becomes an event of the run's journal, so that a replay reads it
// and does not evaluate it again.
//
// Rules come in blocks. For each key, the most specific block that sets it decides: tools.NAME.policy, then
// agents.NAME.policy, policy.groups.NAME, servers.NAME.policy, policy.defaults, and then the built-in default. Rules
// are keyed by a tool's identity (server and remote name), never by the name that a model sees.
//
// The agent's core waits, counts and retries; see package agent. Packages catalog and host call this package with
// tools whose annotations are already the effective ones.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// ID identifies a tool by its server's identity, which is unique across configurations and tables, and its name on
// that server.
type ID struct {
	Server string
	Remote string
}

// Rules contains the blocks of one configuration. The zero value has only the built-in rules. Rules must not be
// changed after their first use.
type Rules struct {
	Defaults Block
	Servers  map[string]Block
	Groups   map[string]Block
	Agents   map[string]Block
	Tools    map[ID]Block
	// ToolGroups contains the groups of tools for which the configuration sets groups. Any other tool is in
	// [tenon.DefaultGroup].
	ToolGroups map[ID][]string

	rules      []compiled            // see Add
	conditions map[string]*Condition // see Compile
}

// Opinion is the decision of the rules about a call, with the limits that apply to it.
type Opinion struct {
	Verdict    tenon.Verdict // allow, ask or deny
	Reason     string        // reason for the person who is asked, or for the model
	Idempotent bool          // a repeat is safe
	Timeout    time.Duration // 0 means the server's request_timeout
	Expires    time.Duration // how long a question waits; 0 means for ever
	MaxRun     int           // maximum calls of the tool in a run; 0 means no limit
	MaxSession int           // maximum calls in a session; 0 means no limit
	Rate       string        // see [ParseRate]; "" means no limit
	Cost       tenon.USD     // of the call
	Cache      time.Duration // how long the result may answer equal calls; 0 means never
	Scope      string        // of the cached result
	// Layer is the name of the layer whose verdict won. It is "" for the built-in default.
	Layer string
	// Verdicts contains one verdict for each layer. Only the host's Judge sets it.
	Verdicts []LayerVerdict
}

// For returns the effective block for a tool that an agent uses; the agent "" means no agent.
func (r *Rules) For(id ID, agent string) Block {
	return r.written(id, agent, r.groupsOf(id)).WithDefaults()
}

// written returns the combined blocks for a tool in some groups, without defaults.
func (r *Rules) written(id ID, agent string, groups []string) Block {
	b := r.Tools[id]
	b.inherit(r.Agents, agent)
	if len(r.Groups) > 0 {
		for _, g := range groups {
			b.inherit(r.Groups, g)
		}
	}
	b.inherit(r.Servers, id.Server)
	b.fill(&r.Defaults)
	return b
}

// inherit fills the block with the block of a name, if there is one.
func (b *Block) inherit(blocks map[string]Block, name string) {
	if base, ok := blocks[name]; ok {
		b.fill(&base)
	}
}

func (r *Rules) groupsOf(id ID) []string {
	if g, ok := r.ToolGroups[id]; ok {
		return g
	}
	return []string{tenon.DefaultGroup}
}

// verdict returns the decision of the rules, or else of the block's approval. said is false if neither decides.
func (r *Rules) verdict(f *Facts, approval Approval) (v tenon.Verdict, reason string, said bool) {
	if v, reason, said = r.apply(f); said {
		return v, reason, true
	}
	if approval.If != "" {
		v, reason = r.askIf(approval.If, f)
		return v, reason, true
	}
	v, reason = approval.verdict(f.Tool.Annotations)
	return v, reason, approval.Mode != ""
}

// verdict returns the decision of a mode about a tool with these annotations. The mode "" means the built-in default.
func (a Approval) verdict(hints tenon.Annotations) (tenon.Verdict, string) {
	switch {
	case a.Mode == ApprovalAlways:
		return tenon.Ask, "every call of this tool asks first"
	case a.Mode == ApprovalNever || hints.IsReadOnly():
		return tenon.Allow, ""
	case hints.Destructive != nil && *hints.Destructive:
		return tenon.Ask, "the tool is marked as destructive"
	}
	return tenon.Ask, "the tool is not marked as read-only"
}

// Digest returns the digest of the rules.
func (r *Rules) Digest() string {
	type entry struct {
		Server, Remote string
		Block          Block
		Groups         []string `json:",omitempty"`
	}
	// Maps are encoded in the order of their keys, so the digest is stable.
	flat := struct {
		Defaults Block
		Servers  map[string]Block
		Groups   map[string]Block `json:",omitempty"`
		Agents   map[string]Block `json:",omitempty"`
		Tools    map[string]entry
		Rules    []Rule `json:",omitempty"`
	}{r.Defaults, r.Servers, r.Groups, r.Agents, make(map[string]entry, len(r.Tools)), nil}
	for _, rule := range r.rules {
		flat.Rules = append(flat.Rules, rule.Rule)
	}
	for id, b := range r.Tools {
		flat.Tools[id.Server+"\x00"+id.Remote] = entry{id.Server, id.Remote, b, r.ToolGroups[id]}
	}
	b, err := json.Marshal(flat)
	if err != nil {
		return "" // strings and numbers always marshal
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:8])
}
