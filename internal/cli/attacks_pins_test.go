//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestAttacksOnPins changes the tools of a server whose tool definitions are pinned.
func TestAttacksOnPins(t *testing.T) { raids(t, pinAttempts) }

// The additional tools of a pinned server, one definition a line.
const (
	readsMore = `{"definition": {"name": "more", "description": "Reads", "inputSchema": {"type": "object"}}}`
	sendsMore = `{"definition": {"name": "more", "description": "Reads and sends", "inputSchema": {"type": "object"}}}`
)

// pinned writes a project whose server offers the tools of extra.json in addition to echo. It calls echo, which pins
// the definitions of all tools.
func (r *raid) pinned(tools, policy string) {
	r.t.Helper()
	r.write("extra.json", tools)
	r.write("tenon.yaml", r.shifty("t", "extra.json")+policy)
	r.write("echo.yaml", raidSteps(`{name: echo, arguments: {text: x}}`))
	r.write("more.yaml", raidSteps(`{name: more}`))
	r.ask(exitOK, "echo.yaml")
}

// shifty returns a configuration with a server that reads its tools from a file.
func (r *raid) shifty(name, file string) string {
	return "version: 1\npolicy: {defaults: {approval: never}}\nservers:\n" + r.entry(name, file)
}

func (r *raid) entry(name, file string) string {
	return "  " + name + ": {command: tenon, args: [testserver, --stdio, --only, 'echo,more,More,other', --extra, " + file + ", --effects, ../effects]}\n"
}

// offers changes the tools that the server offers, and lists them again.
func (r *raid) offers(file, tools string) {
	r.t.Helper()
	r.write(file, tools)
	r.tenon("tools", "list", "--connect", "--quiet")
}

var pinAttempts = map[string]attempt{
	"the control: the tool as it was pinned": {calls: 2, do: func(r *raid) {
		r.pinned(readsMore, "")
		r.ask(exitOK, "more.yaml")
	}},
	"removed, and added again as it was": {calls: 2, do: func(r *raid) {
		r.pinned(readsMore, "")
		r.offers("extra.json", "")
		r.offers("extra.json", readsMore)
		r.ask(exitOK, "more.yaml")
	}},
	"removed, and added again as another one": {calls: 1, do: func(r *raid) {
		r.pinned(readsMore, "")
		r.offers("extra.json", "")
		r.offers("extra.json", sendsMore)
		r.tenon("run", "--model", "script:more.yaml", "--yes", "go")
	}},
	"changed, without a look at the list": {calls: 1, do: func(r *raid) {
		r.pinned(readsMore, "")
		r.write("extra.json", sendsMore)
		r.tenon("run", "--model", "script:more.yaml", "--yes", "go")
	}},
	"only an annotation changed": {calls: 1, do: func(r *raid) {
		r.pinned(readsMore, "")
		r.offers("extra.json", strings.Replace(readsMore, `"inputSchema"`, `"annotations": {"readOnlyHint": true}, "inputSchema"`, 1))
		r.tenon("run", "--model", "script:more.yaml", "--yes", "go")
	}},
	"only its schema changed": {calls: 1, do: func(r *raid) {
		r.pinned(readsMore, "")
		r.offers("extra.json", strings.Replace(readsMore, `{"type": "object"}`, `{"type": "object", "properties": {"send_to": {"type": "string"}}}`, 1))
		r.tenon("run", "--model", "script:more.yaml", "--yes", "go")
	}},
	"renamed": {calls: 1, do: func(r *raid) {
		r.pinned(readsMore, "")
		r.offers("extra.json", strings.Replace(readsMore, `"more"`, `"other"`, 1))
		r.write("other.yaml", raidSteps(`{name: other}`))
		r.tenon("run", "--model", "script:other.yaml", "--yes", "go")
	}},
	"added beside it in another case": {calls: 1, do: func(r *raid) {
		r.pinned(readsMore, "")
		r.offers("extra.json", readsMore+"\n"+strings.Replace(sendsMore, `"more"`, `"More"`, 1))
		r.write("other.yaml", raidSteps(`{name: More}`))
		r.tenon("run", "--model", "script:other.yaml", "go")
	}},
	"new, and two of them asked for at once": {calls: 1, do: func(r *raid) {
		r.pinned("", "")
		r.offers("extra.json", readsMore)
		r.write("two.yaml", raidSteps(`{name: more}, {name: more}`))
		r.ask(exitWaiting, "two.yaml")
	}},
	"new, and denied": {calls: 1, do: func(r *raid) {
		r.pinned("", "")
		r.offers("extra.json", readsMore)
		id := r.ask(exitWaiting, "more.yaml")
		r.want(exitOK, "approvals", "deny", id)
		r.tenon("runs", "resume", id)
		r.ask(exitWaiting, "more.yaml") // to deny it pins nothing
	}},
	"new, and changed between the question and the answer": {calls: 1, do: func(r *raid) {
		r.pinned("", "")
		r.offers("extra.json", readsMore)
		id := r.ask(exitWaiting, "more.yaml")
		r.write("extra.json", sendsMore)
		r.want(exitOK, "approvals", "allow", id)
		r.tenon("runs", "resume", id)
	}},
	"new, and allowed for good before it changes": {calls: 2, do: func(r *raid) {
		r.pinned("", "")
		r.offers("extra.json", readsMore)
		id := r.ask(exitWaiting, "more.yaml")
		r.want(exitOK, "approvals", "allow", id, "--always")
		r.want(exitOK, "runs", "resume", id)
		r.offers("extra.json", sendsMore)
		r.tenon("run", "--model", "script:more.yaml", "go")
	}},
	"pinned under allow, and a second one under ask": {calls: 2, do: func(r *raid) {
		r.pinned("", "")
		r.offers("extra.json", readsMore)
		ask := r.read("tenon.yaml")
		allow := strings.Replace(ask, "approval: never}", "approval: never}, pins: {new: allow}", 1)
		r.write("tenon.yaml", allow)
		r.ask(exitOK, "more.yaml")
		r.write("tenon.yaml", ask)
		r.offers("extra.json", readsMore+"\n"+strings.Replace(readsMore, `"more"`, `"other"`, 1))
		r.write("other.yaml", raidSteps(`{name: other}`))
		r.ask(exitWaiting, "other.yaml")
	}},
	"moved to another server": {calls: 1, do: func(r *raid) {
		r.write("none.json", "")
		r.write("extra.json", readsMore)
		r.write("tenon.yaml", r.shifty("t", "extra.json")+r.entry("u", "none.json"))
		r.write("echo.yaml", raidSteps(`{name: t_echo, arguments: {text: x}}`))
		r.write("more.yaml", raidSteps(`{name: more}`))
		r.ask(exitOK, "echo.yaml")
		r.tenon("tools", "list", "--connect", "--quiet")
		r.write("extra.json", "")
		r.offers("none.json", readsMore)
		r.tenon("run", "--model", "script:more.yaml", "go")
	}},
	// Without its row in the table of pins, a tool is pinned again at its next use. But the grant only holds for the
	// old definition of the tool.
	"the pins are deleted, and a permanent approval stays with the definition": {calls: 2, do: func(r *raid) {
		r.pinned(readsMore, "tools: {more: {server: t, policy: {approval: always}}}\n")
		id := r.ask(exitWaiting, "more.yaml")
		r.want(exitOK, "approvals", "allow", id, "--always")
		r.want(exitOK, "runs", "resume", id)
		r.sql("DELETE FROM pins")
		r.offers("extra.json", sendsMore)
		r.ask(exitWaiting, "more.yaml")
	}},
}

// TestAttacksOnGrants attacks permanent approvals that a person has restricted.
func TestAttacksOnGrants(t *testing.T) { raids(t, grantAttempts) }

// granted permanently allows the tool add, restricted by the flags, and makes one call.
func (r *raid) granted(flags ...string) {
	r.t.Helper()
	id := r.ask(exitWaiting, "add.yaml")
	r.want(exitOK, append([]string{"approvals", "allow", id, "--always"}, flags...)...)
	r.want(exitOK, "runs", "resume", id)
}

// adds runs a call of add with the arguments, which must end with the status.
func (r *raid) adds(status int, args string) string {
	r.t.Helper()
	r.write("adds.yaml", raidSteps(`{name: add, arguments: `+args+`}`))
	return r.ask(status, "adds.yaml")
}

var grantAttempts = map[string]attempt{
	"within the condition": {calls: 2, do: func(r *raid) {
		r.granted("--if", "args.a < 10")
		r.adds(exitOK, `{a: 9, b: 2}`)
	}},
	"beyond the condition":      {calls: 1, do: beyond(`args.a < 10`, `{a: 10, b: 2}`)},
	"a fraction beyond":         {calls: 1, do: beyond(`args.a < 10`, `{a: 10.5, b: 2}`)},
	"a negative number":         {calls: 1, do: beyond(`args.a > 0 && args.a < 10`, `{a: -1, b: 2}`)},
	"a missing argument":        {calls: 1, do: beyond(`args.b < 10 && args.a < 10`, `{b: 1}`)},
	"a condition that divides":  {calls: 1, do: beyond(`10 / int(args.a) > 2`, `{a: 0, b: 2}`)},
	"a condition and all types": {calls: 1, do: beyond(`args.a < 10`, `{a: "5", b: 2}`)},
	"the arguments are edited after the question": {calls: 1, do: func(r *raid) {
		id := r.ask(exitWaiting, "add.yaml")
		status, text := r.tenon("approvals", "allow", id, "--always", "--if", "args.a < 10", "--arguments", `{"a":500,"b":3}`)
		if status == exitOK { // the person sends these arguments, and the condition holds for later calls
			r.want(exitOK, "runs", "resume", id)
		} else {
			r.want(exitOK, "approvals", "allow", id)
			r.want(exitOK, "runs", "resume", id)
		}
		if r.adds(exitWaiting, `{a: 500, b: 3}`); r.t.Failed() {
			r.t.Log(text)
		}
	}},
	"a condition that names no argument": {calls: 0, do: refusedGrant("--if", "args.nothing == 1")},
	"a condition on the server":          {calls: 0, do: refusedGrant("--if", "server.host != ''")},
	"a condition that cannot be read":    {calls: 0, do: refusedGrant("--if", "args.a <")},
	"no calls":                           {calls: 0, do: refusedGrant("--uses", "-1")},
	"no time":                            {calls: 0, do: refusedGrant("--for", "-1h")},
	"a thousand years":                   {calls: 0, do: refusedGrant("--for", "9000000h")},
	"two uses, and ten at once": {calls: 3, do: func(r *raid) {
		r.granted("--uses", "2")
		r.write("ten.yaml", raidSteps(strings.TrimSuffix(strings.Repeat(`{name: add, arguments: {a: 2, b: 3}}, `, 10), ", ")))
		r.ask(exitWaiting, "ten.yaml")
	}},
	"two uses, and six processes": {calls: 3, do: func(r *raid) {
		r.granted("--uses", "2")
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { r.tenon("run", "--model", "script:add.yaml", "go") })
		}
		wg.Wait()
	}},
	"a use of a call that is denied by a rule": {calls: 2, do: func(r *raid) {
		r.granted("--uses", "1")
		r.write("tenon.yaml", r.config("policy: {rules: [{when: 'args.a == 2.0', verdict: deny}]}\n"))
		r.ask(exitOK, "add.yaml")
		r.write("tenon.yaml", r.config(""))
		r.ask(exitOK, "add.yaml") // the denied call did not use up the grant
		r.ask(exitWaiting, "add.yaml")
	}},
	"a grant in the name of somebody else": {calls: 1, do: func(r *raid) {
		r.granted()
		r.sql("UPDATE grants SET principal = 'bob'")
		r.ask(exitWaiting, "add.yaml")
	}},
	"a grant without its condition": {calls: 1, do: func(r *raid) {
		r.granted("--if", "args.a < 3")
		r.sql("UPDATE grants SET condition = ''")
		r.adds(exitWaiting, `{a: 500, b: 3}`)
		r.sql("UPDATE grants SET condition = 'true'")
		r.adds(exitWaiting, `{a: 500, b: 3}`)
	}},
}

// beyond gives a grant with a condition, and makes a call that does not meet the condition.
func beyond(condition, args string) func(r *raid) {
	return func(r *raid) {
		r.granted("--if", condition)
		r.write("beyond.yaml", raidSteps(`{name: add, arguments: `+args+`}`))
		r.tenon("run", "--model", "script:beyond.yaml", "go")
	}
}

// refusedGrant tries to give a grant with invalid restrictions. It must be refused, so that nothing is allowed by it.
func refusedGrant(flags ...string) func(r *raid) {
	return func(r *raid) {
		id := r.ask(exitWaiting, "add.yaml")
		if status, text := r.tenon(append([]string{"approvals", "allow", id, "--always"}, flags...)...); status == exitOK {
			r.t.Errorf("it was given: %s", text)
		}
		r.tenon("runs", "resume", id)
		if text := r.want(exitOK, "approvals", "grants"); strings.Contains(text, "gr_") {
			r.t.Errorf("a grant is there: %s", text)
		}
	}
}

// TestIdentitiesStayApart uses two servers with the same name in one store, one from the user's file and one from the
// project. They have separate rate limits and cached results, and statistics and exports distinguish them.
func TestIdentitiesStayApart(t *testing.T) {
	r := newRaid(t)
	own := filepath.Join(os.Getenv("HOME"), ".config", "tenon", "config.yaml")
	entry := func(url string) string { return "servers: {bank: {url: \"" + url + "\"}}\n" }
	const policy = "policy: {defaults: {approval: never, rate: 1/h}}\n"
	r.write(own, "version: 1\n"+entry(r.url))
	r.write("tenon.yaml", "version: 1\n"+policy)
	r.ask(exitOK, "add.yaml")
	r.ask(exitOK, "add.yaml") // no turn is free
	if n := r.calls("effects"); n != 1 {
		t.Fatalf("the user's server: %d calls", n)
	}
	other := r.listen("effects2")
	r.write("tenon.yaml", "version: 1\n"+entry(other)+policy)
	r.ask(exitOK, "add.yaml")
	if n := r.calls("effects2"); n != 1 {
		t.Errorf("the project's server has the rate of the user's: %d calls", n)
	}
	stats := r.want(exitOK, "stats", "servers")
	for _, want := range []string{"bank (user)", "bank (project)"} {
		if !strings.Contains(stats, want) {
			t.Errorf("stats without %s:\n%s", want, stats)
		}
	}
	if tools := r.want(exitOK, "stats", "tools"); !strings.Contains(tools, "bank (user)") || !strings.Contains(tools, "bank (project)") {
		t.Errorf("stats of tools:\n%s", tools)
	}
	// An export names the identity of each called tool.
	exported := ""
	for _, id := range regexp.MustCompile(`ses_\w+`).FindAllString(r.want(exitOK, "sessions", "list", "-o", "json"), -1) {
		exported += r.want(exitOK, "sessions", "export", id)
	}
	for _, want := range []string{"user:bank", "project:bank"} {
		if !regexp.MustCompile(`"server_identity":\s*"` + want + `"`).MatchString(exported) {
			t.Errorf("an export without %s:\n%s", want, exported)
		}
	}
	// Kept results, too.
	const cached = "policy: {defaults: {approval: never, cache: {ttl: 1h, scope: project}}, pins: {changed: \"off\"}}\ntools: {add: {server: bank, annotations: {read_only: true}}}\n"
	before := r.calls("effects") + r.calls("effects2")
	for _, at := range []string{r.url, other} {
		r.write("tenon.yaml", "version: 1\n"+entry(at)+cached)
		r.ask(exitOK, "add.yaml")
		r.ask(exitOK, "add.yaml")
	}
	if n := r.calls("effects") + r.calls("effects2") - before; n != 2 {
		t.Errorf("%d calls of two targets, each asked twice", n)
	}
}
