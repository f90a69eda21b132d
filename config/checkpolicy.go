package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/policy"
)

const conditionHint = "CEL over tool, server, args, agent, principal and state"

// policies checks the rules about calls. A rule or key without effect is a mistake, because somebody relies on it.
func (k *checker) policies() {
	blocks := k.blocks()
	cached := slices.ContainsFunc(slices.Collect(maps.Values(blocks)),
		func(b policy.Block) bool { return b.Cache.TTL != nil })
	for _, p := range slices.Sorted(maps.Keys(blocks)) {
		k.block(p, blocks[p], cached)
	}
	known := k.groups()
	for _, g := range k.order["policy.groups"] {
		if !slices.Contains(known, g) {
			k.pointless(k.keyed["policy.groups."+g], "policy.groups."+g, "no tool is in this group",
				"groups: "+strings.Join(known, ", "))
		}
	}
	for _, name := range k.order["tools"] {
		k.disagreement("tools."+name, k.c.Tools[name])
	}
	k.rules(known)
}

// blocks returns all blocks of the file by their path.
func (k *checker) blocks() map[string]policy.Block {
	out := map[string]policy.Block{"policy.defaults": k.c.Policy.Defaults}
	for name, b := range k.c.Policy.Groups {
		out["policy.groups."+name] = b
	}
	for name, s := range k.c.Servers {
		out["servers."+name+".policy"] = s.Policy
	}
	for name, a := range k.c.Agents {
		out["agents."+name+".policy"] = a.Policy
	}
	for name, t := range k.c.Tools {
		out["tools."+name+".policy"] = t.Policy
	}
	return out
}

// pointless reports a rule about something that the configuration does not contain. In a trusted layer that is at
// most a warning, because its rules apply to many projects, each of which contains only some of it.
func (k *checker) pointless(n *tree.Node, path, message, hint string) {
	switch {
	case k.silent:
	case k.lenient:
		k.Warn(n, path, message, hint)
	default:
		k.Add(n, path, message, hint)
	}
}

// block checks one block. cached says that a block of the file sets cache.ttl.
func (k *checker) block(p string, b policy.Block, cached bool) {
	if k.has(p+".approval.mode") && k.has(p+".approval.if") {
		k.bad(p+".approval.if", "keep one of them", "'mode' and 'if' together: a call cannot ask by both")
	} else if k.has(p+".approval.if") && k.nodes[p+".approval.if"].Tag == "!!str" {
		k.ambiguous(p+".approval.if", k.expression(p+".approval.if", b.Approval.If), k.differ())
	}
	if _, _, err := policy.ParseRate(b.Rate); err != nil {
		k.bad(p+".rate", "", "%s", err)
	}
	if run, session := policy.Value(b.MaxCalls.Run), policy.Value(b.MaxCalls.Session); session > 0 && run > session {
		k.bad(p+".max_calls.run", "a run is a part of its session", "%d calls are never reached: the session has "+
			"at most %d", run, session)
	}
	for _, key := range []string{"scope", "force"} {
		if at := p + ".cache." + key; k.has(at) && !cached {
			k.bad(at, "add cache: {ttl: 5m}", "has no effect without a ttl")
		}
	}
	k.redact(p+".redact", b.Redact)
}

// redact checks the names of redacted values.
func (k *checker) redact(p string, names []string) {
	for i, name := range names {
		switch at := tree.Index(p, i); {
		case name == "" && !k.failedUnder(at):
			k.bad(at, "", "a name is missing")
		case slices.Contains(names[:i], name) && name != "":
			k.bad(at, "", "'%s' is listed twice", name)
		}
	}
}

// store checks the settings of the store.
func (k *checker) store() {
	k.redact("store.redact", k.c.Store.Redact)
	if k.has("store.key") && k.c.Layer("store.key") == LayerProject {
		k.bad("store.key", "write it in your own file, or set TENON_STORE_KEY",
			"a project does not choose the key by which its store is trusted")
	}
	k.postgres()
	if p := k.c.Store.Path; k.has("store.path") && p != "" && k.c.Found && k.c.Layer("store.path") == LayerProject {
		const hint = "name a file below the project folder; a file that is named with -c may name any place"
		switch inside, err := policy.Within(p, k.c.Dir); {
		case err != nil:
			k.bad("store.path", hint, "cannot determine whether the store is inside the project folder: %s", err)
		case !inside:
			k.bad("store.path", hint, "%s is outside the project folder %s, which this file was found in", p, k.c.Dir)
		}
	}
	if a := k.c.Store.Audit; a != nil && !*a {
		k.bad("store.audit", "store.redact and policy.defaults.redact encrypt what they name; store.retention "+
			"deletes what is old",
			"must be true: runs are resumed from the stored arguments and results")
	}
}

// postgres checks the database of the store.
func (k *checker) postgres() {
	const at = "store.postgres"
	if !k.has(at) {
		return
	}
	p := k.c.Store.Postgres
	switch {
	case k.c.Found && k.c.Layer(at) == LayerProject:
		k.bad(at, "write it in your own file, or name this file with -c",
			"a project that was found does not choose the database that receives your conversations")
	case !k.c.HasPostgres() && !k.failedUnder(at):
		k.bad(at, "such as dsn: {env: TENON_POSTGRES_DSN}", "dsn is missing")
	case k.has("store.path"):
		k.bad("store.path", "remove one of the two; tenon store copy copies the runs from one to the other",
			"the store cannot be both a file and the database of store.postgres")
	}
	if p.Lease != 0 && p.Lease < time.Second {
		k.bad(at+".lease", "", "must be at least 1s: a process with a slow moment would lose its runs")
	}
	if len(p.Schema) > 60 || strings.ContainsAny(p.Schema, "\x00\"@") {
		k.bad(at+".schema", "at most 60 bytes without quotes and @", "%q cannot be the name of a schema", p.Schema)
	}
}

// expression compiles a condition about calls, and checks that everything that it names exists.
func (k *checker) expression(p, text string) *policy.Condition {
	l, err := policy.NewLanguage()
	var c *policy.Condition
	if err == nil {
		c, err = l.Condition(text)
	}
	if err != nil {
		k.bad(p, conditionHint, "%s", err)
		return nil
	}
	return c
}

// groups returns the names of all groups of tools.
func (k *checker) groups() []string {
	known := []string{tenon.DefaultGroup}
	for _, name := range k.order["tools"] {
		for _, g := range k.c.Tools[name].Groups {
			if !slices.Contains(known, g) {
				known = append(known, g)
			}
		}
	}
	return known
}

// disagreement reports a tool that is in two groups whose blocks contradict each other.
func (k *checker) disagreement(p string, t catalog.Tool) {
	for i, a := range t.Groups {
		for _, b := range t.Groups[i+1:] {
			one, other := leaves(k.c.Policy.Groups[a]), leaves(k.c.Policy.Groups[b])
			own := leaves(t.Policy)
			for _, l := range one {
				j := slices.IndexFunc(other, func(o leaf) bool { return o.key == l.key && o.text != l.text })
				if j < 0 || slices.ContainsFunc(own, func(o leaf) bool { return o.key == l.key }) {
					continue
				}
				k.bad(p+".groups", fmt.Sprintf("say it in %s.policy.%s", p, l.key),
					"the groups '%s' and '%s' contradict each other: %s is %s and %s", a, b, l.key, l.text,
					other[j].text)
			}
		}
	}
}

// rules checks policy.rules.
func (k *checker) rules(groups []string) {
	said, differ := map[string]int{}, k.differ()
	ended := 0 // number of the first rule whose condition is always true
	for i, r := range k.c.Policy.Rules {
		p := tree.Index("policy.rules", i)
		for _, key := range []string{"when", "verdict"} {
			if !k.has(p + "." + key) {
				k.bad(p, "write {when: CEL, verdict: allow, ask or deny}", "'%s' is required", key)
			}
		}
		if !k.has(p+".when") || k.nodes[p+".when"].Tag != "!!str" {
			continue
		}
		c := k.expression(p+".when", r.When)
		if c == nil {
			continue
		}
		k.ambiguous(p+".when", c, differ)
		first, again := said[r.When]
		switch holds, always := c.Always(); {
		case ended > 0:
			k.bad(p, "put it above, or remove one of them", "is never reached: rule %d holds for every call", ended)
		case again && k.c.Policy.Rules[first].Verdict != r.Verdict:
			k.bad(p, "keep one of them", "contradicts rule %d: the same condition, and the verdict %s", first+1,
				k.c.Policy.Rules[first].Verdict)
		case again:
			k.bad(p, "remove it", "is never reached: rule %d has the same condition", first+1)
		case always && !holds:
			k.bad(p+".when", "remove the rule", "is never true: the rule has no effect")
		case always:
			ended = i + 1
		}
		if !again {
			said[r.When] = i
		}
		for _, m := range c.Mentions() {
			k.mention(p+".when", m, groups)
		}
	}
}

// mention checks that the server, group or agent that a condition names exists. Names of tools are not checked: they
// are known only after the servers have been asked.
func (k *checker) mention(p string, m policy.Mention, groups []string) {
	unknown := func(kind string, known []string) {
		if !slices.Contains(known, m.Value) {
			k.pointless(k.where(p), p, fmt.Sprintf("is about nothing: there is no %s '%s'", kind, m.Value),
				fmt.Sprintf("%ss: %s", kind, strings.Join(known, ", ")))
		}
	}
	switch m.Of {
	case "tool.server":
		// Built-in servers count as known, since a condition may name them. Those of HTTP tools and of prompt tools
		// count only if the configuration has such a tool.
		own := slices.DeleteFunc(catalog.OwnServers(), func(n string) bool {
			return n == catalog.HTTPServer ||
				n == catalog.PromptServer
		})
		for name, t := range k.c.Tools {
			if t.Kind == tenon.KindHTTP || t.Kind == tenon.KindPrompt {
				own = append(own, t.WithDefaults(name).Server)
			}
		}
		slices.Sort(own)
		unknown("server", append(slices.Clone(k.order["servers"]), slices.Compact(own)...))
	case "tool.groups":
		unknown("group", groups)
	case "agent":
		known := k.order["agents"]
		if len(known) == 0 {
			known = []string{"default"}
		}
		unknown("agent", known)
	}
}
