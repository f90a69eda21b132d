// Package policy holds the rules about single tools: whether a call must ask a
// person first, how long it may take, whether it may be repeated. A verdict is
// pure: the same tool and rules give the same verdict. It is evaluated once for
// each call, by the executor, and becomes an event of the run's journal, so that
// replay reads it and never evaluates it again.
//
// Rules come in blocks. The most specific one that says something decides, key
// by key: tools.NAME.policy, then agents.NAME.policy, policy.groups.NAME,
// servers.NAME.policy, policy.defaults, then what is built in. Rules are keyed by
// a tool's identity (server and remote name), never by the name that a model sees.
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

// Rules are the blocks of one configuration. The zero value has the built-in
// rules only. Rules must not be changed once they are in use.
type Rules struct {
	Defaults Block
	Servers  map[string]Block
	Groups   map[string]Block
	Agents   map[string]Block
	Tools    map[ID]Block
	// ToolGroups are the groups of the tools that the configuration puts into some;
	// any other is in [tenon.DefaultGroup].
	ToolGroups map[ID][]string

	rules      []compiled            // see Add
	conditions map[string]*Condition // see Compile
}

// Opinion is what the rules say about a tool.
type Opinion struct {
	Verdict    tenon.Verdict // allow, ask or deny
	Reason     string        // for the person who is asked, or the model
	Idempotent bool          // a repeat is safe
	Timeout    time.Duration // 0: the server's own
	Expires    time.Duration // how long a question waits; 0: for ever
	MaxRun     int           // calls of the tool in a run; 0: no limit
	MaxSession int           // and in a session
	Rate       string        // see [ParseRate]; "": none
	Cost       tenon.USD     // of the call
	Cache      time.Duration // how long the result may answer equal calls; 0: never
	Scope      string        // of such calls
	// Layer is the name of the layer whose verdict won; "" is the built-in default.
	Layer string
	// Verdicts has one verdict for each layer. Only the host's Judge sets it.
	Verdicts []LayerVerdict
}

// For returns the block that holds for a tool that an agent uses; "" is no agent.
func (r *Rules) For(id ID, agent string) Block {
	return r.written(id, agent, r.groupsOf(id)).WithDefaults()
}

// written returns what the blocks say about a tool in some groups, without defaults.
func (r *Rules) written(id ID, agent string, groups []string) Block {
	b := r.Tools[id].Over(r.Agents[agent])
	if len(r.Groups) > 0 {
		for _, g := range groups {
			b = b.Over(r.Groups[g])
		}
	}
	return b.Over(r.Servers[id.Server]).Over(r.Defaults)
}

func (r *Rules) groupsOf(id ID) []string {
	if g, ok := r.ToolGroups[id]; ok {
		return g
	}
	return []string{tenon.DefaultGroup}
}

// Judge decides whether a call of a tool may run: the first rule whose condition holds
// decides, else the tool's block. Annotations count as they are: the catalog has dropped
// the annotations of servers that are not trusted.
func (r *Rules) Judge(f *Facts) Opinion { return NewLayers(Layer{Rules: r}).Judge(f) }

// verdict is what the rules, or the block, decide about a call. Said is false if neither
// says anything.
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

// verdict is what the mode decides about a tool with these annotations. The mode "" is
// the built-in default.
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

// Digest identifies the rules: the same rules have the same digest.
func (r *Rules) Digest() string {
	type entry struct {
		Server, Remote string
		Block          Block
		Groups         []string `json:",omitempty"`
	}
	// Maps are marshalled in the order of their keys, so this is stable.
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
