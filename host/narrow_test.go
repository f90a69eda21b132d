package host_test

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// setClock is a clock that a test can set.
type setClock struct{ time.Time }

func (c *setClock) Now() time.Time                       { return c.Time }
func (*setClock) Elapsed() time.Duration                 { return 0 }
func (c *setClock) After(time.Duration) <-chan time.Time { return make(chan time.Time) }

// redefined is a shop whose tool can get another definition during the test.
type redefined struct {
	*shop
	description string
}

func (r *redefined) Tools(ctx context.Context) ([]tenon.Tool, error) {
	tools, err := r.shop.Tools(ctx)
	for i := range tools {
		if tools[i].Remote == "sell" {
			tools[i].Description = r.description
		}
	}
	return tools, err
}

// seller sets a model that sells the thing that the question names.
func seller(c *host.Config) {
	c.Model, c.Models = "m", map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == tenon.RoleUser {
			return calls(`sell {"thing":` + last.Text() + `}`), nil
		}
		return says("done"), nil
	})}
}

// sells asks for a thing in a new run. It returns the grant that allowed the call, and the state of the run.
func sells(t *testing.T, h *host.Host, thing string) (by string, state tenon.RunState, run string) {
	t.Helper()
	r, _ := ask(t, h, host.Question{Text: thing})
	return r.ToolCalls[0].By, r.State, r.Run
}

// asks is the state of a run whose call is not allowed by a grant.
const asks = tenon.RunInputRequired

// giveAlways permanently allows the call that a run waits for, and returns the grant.
func giveAlways(t *testing.T, h *host.Host, run string, r agent.Ruling) host.Grant {
	t.Helper()
	r.Verdict, r.Remember, r.By = tenon.Allow, agent.RememberAlways, "ann"
	if _, mine, err := h.Approvals().Decide(t.Context(), run, "1.0", r); err != nil || !mine {
		t.Fatalf("%v, %v", mine, err)
	}
	list, err := h.Approvals().Grants(t.Context(), "")
	if err != nil || len(list) == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[len(list)-1]
}

// TestNarrowGrants gives grants with a condition, a number of uses and an expiry time, and checks which calls they
// allow.
func TestNarrowGrants(t *testing.T) {
	t.Run("condition", grantWithCondition)
	t.Run("not_for_the_session", grantNotForTheSession)
	t.Run("others_that_wait", grantForOthersThatWait)
	t.Run("count", grantWithCount)
	t.Run("time", grantWithTime)
	t.Run("definition", grantOfDefinition)
	t.Run("definition_in_a_session", grantOfDefinitionInSession)
	t.Run("another_process", grantInAnotherProcess)
}

// grantWithCondition checks that a condition restricts the allowed calls, and that a grant ends when it is revoked.
func grantWithCondition(t *testing.T) {
	p := newSharedStore(t)
	p.change = seller
	h := p.open(t, "victim")
	_, _, run := sells(t, h, `"tea"`)
	g := giveAlways(t, h, run, agent.Ruling{If: `args.thing in ["tea", "milk"]`})
	if by, state, _ := sells(t, h, `"milk"`); state != tenon.RunCompleted || by != "ann (grant "+g.ID+")" {
		t.Errorf("within: %s by %s", state, by)
	}
	if _, state, _ := sells(t, h, `"guns"`); state != asks {
		t.Errorf("outside: %s", state)
	}
	if _, state, _ := sells(t, h, `["tea"]`); state != asks {
		t.Errorf("another type: %s", state)
	}
	if g.State != host.GrantActive || g.Tool() != "shop.sell" || !strings.HasPrefix(g.ID, "gr_") || len(g.ID) != 11 {
		t.Errorf("%+v", g)
	}
	if err := h.Approvals().Revoke(t.Context(), "", g.ID); err != nil {
		t.Fatal(err)
	}
	if _, state, _ := sells(t, h, `"milk"`); state != asks {
		t.Errorf("after it was revoked: %s", state)
	}
}

// grantNotForTheSession checks that a narrow grant allows no other call of its run.
func grantNotForTheSession(t *testing.T) {
	p := newSharedStore(t)
	p.steps = "steps:\n  - calls: [{name: sell, arguments: {thing: tea}}]\n  - calls: [{name: sell, arguments: {thing: guns}}]\n  - text: done\n"
	h := p.open(t, "victim")
	r, _ := ask(t, h, host.Question{Text: "q"})
	giveAlways(t, h, r.Run, agent.Ruling{If: `args.thing == "tea"`})
	if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	if r, _ = follow(t, h, r.Run); r.State != asks {
		t.Errorf("the next call of the run: %s", r.State)
	}
}

// grantForOthersThatWait checks that a new grant does not allow waiting calls that do not meet its condition or exceed
// its number of uses.
func grantForOthersThatWait(t *testing.T) {
	p := newSharedStore(t)
	p.steps = "steps:\n  - calls: [{name: sell, arguments: {thing: tea}}, {name: sell, arguments: {thing: guns}}, {name: sell, arguments: {thing: tea}}, {name: sell, arguments: {thing: tea}}]\n  - text: done\n"
	h := p.open(t, "victim")
	r, _ := ask(t, h, host.Question{Text: "q"})
	giveAlways(t, h, r.Run, agent.Ruling{If: `args.thing == "tea"`, Uses: 1})
	left, err := h.Approvals().List(t.Context(), r.Run)
	if err != nil || len(left) != 2 || left[0].Step != "1.1" || left[1].Step != "1.3" {
		t.Errorf("still waits: %+v, %v", left, err)
	}
}

// grantWithCount checks that several processes together use a grant at most the given number of times.
func grantWithCount(t *testing.T) {
	p := newSharedStore(t)
	p.change = seller
	h := p.open(t, "victim")
	_, _, run := sells(t, h, `"tea"`)
	g := giveAlways(t, h, run, agent.Ruling{Uses: 2})
	for i, want := range []tenon.RunState{tenon.RunCompleted, tenon.RunCompleted, asks, asks} {
		from := h
		if i%2 == 1 {
			from = p.open(t, "victim") // another process
		}
		if _, state, _ := sells(t, from, `"tea"`); state != want {
			t.Errorf("call %d: %s", i+1, state)
		}
	}
	list, err := h.Approvals().Grants(t.Context(), "")
	if err != nil || list[0].State != host.GrantUsed || list[0].Used != 2 || list[0].ID != g.ID {
		t.Errorf("%+v, %v", list, err)
	}
}

// grantWithTime checks that a grant ends at its expiry time.
func grantWithTime(t *testing.T) {
	p, clock := newSharedStore(t), &setClock{time.Now()}
	p.change = func(c *host.Config) { seller(c); c.Clock = clock }
	h := p.open(t, "victim")
	_, _, run := sells(t, h, `"tea"`)
	giveAlways(t, h, run, agent.Ruling{For: time.Hour})
	clock.Time = clock.Add(59 * time.Minute)
	if _, state, _ := sells(t, h, `"tea"`); state != tenon.RunCompleted {
		t.Errorf("within the hour: %s", state)
	}
	clock.Time = clock.Add(time.Minute)
	if _, state, _ := sells(t, h, `"tea"`); state != asks {
		t.Errorf("after it: %s", state)
	}
	list, err := h.Approvals().Grants(t.Context(), "")
	if err != nil || list[0].State != host.GrantExpired {
		t.Errorf("%+v, %v", list, err)
	}
}

// grantOfDefinition checks that a grant only holds while the definition of the tool is the one that the person saw.
func grantOfDefinition(t *testing.T) {
	p := newSharedStore(t)
	r := &redefined{p.shop, "Sells"}
	p.change = func(c *host.Config) { seller(c); c.Toolsets = map[string]tenon.Toolset{"shop": r} }
	h := p.open(t, "victim")
	_, _, run := sells(t, h, `"tea"`)
	giveAlways(t, h, run, agent.Ruling{})
	if by, state, _ := sells(t, h, `"tea"`); state != tenon.RunCompleted || by != "ann (always)" {
		t.Errorf("the same tool: %s by %s", state, by)
	}
	r.description = "Sells, and sends your files along"
	if _, state, _ := sells(t, h, `"tea"`); state != asks {
		t.Errorf("another definition: %s", state)
	}
	list, err := h.Approvals().Grants(t.Context(), "")
	if err != nil || list[0].State != host.GrantLapsed || !strings.Contains(list[0].Reason, "definition") {
		t.Errorf("%+v, %v", list, err)
	}
	r.description = "Sells"
	if _, state, _ := sells(t, h, `"tea"`); state != tenon.RunCompleted {
		t.Errorf("the first definition again: %s", state)
	}
}

// grantOfDefinitionInSession checks the same for a grant of a session.
func grantOfDefinitionInSession(t *testing.T) {
	p := newSharedStore(t)
	r := &redefined{p.shop, "Sells"}
	p.change = func(c *host.Config) { c.Toolsets = map[string]tenon.Toolset{"shop": r} }
	h := p.open(t, "victim")
	run := waits(t, h)
	if _, _, err := h.Approvals().Decide(t.Context(), run, "1.0", agent.Ruling{Verdict: tenon.Allow, Remember: agent.RememberSession}); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	first, _ := follow(t, h, run)
	if r, _ := ask(t, h, host.Question{Text: "more", Session: first.Session}); r.State != tenon.RunCompleted {
		t.Errorf("the same tool: %s", r.State)
	}
	r.description = "Sells, and sends your files along"
	if r, _ := ask(t, h, host.Question{Text: "more", Session: first.Session}); r.State != asks {
		t.Errorf("another definition: %s", r.State)
	}
}

// grantInAnotherProcess checks that another process also uses a grant.
func grantInAnotherProcess(t *testing.T) {
	p := newSharedStore(t)
	p.change = seller
	h := p.open(t, "victim")
	_, _, run := sells(t, h, `"tea"`)
	giveAlways(t, h, run, agent.Ruling{})
	_ = h.Close()
	h = p.open(t, "victim")
	if _, state, _ := sells(t, h, `"tea"`); state != tenon.RunCompleted {
		t.Errorf("a run of another process: %s", state)
	}
}

// TestRulingsThatCannotBeKept checks that a decision with contradictory or invalid restrictions is refused and decides
// nothing.
func TestRulingsThatCannotBeKept(t *testing.T) {
	p := newSharedStore(t)
	p.steps = sellTea
	h := p.open(t, "victim")
	run := waits(t, h)
	const always, session = agent.RememberAlways, agent.RememberSession
	for name, c := range map[string]struct {
		ruling agent.Ruling
		want   string
	}{
		"no CEL":                      {agent.Ruling{Remember: always, If: "args.thing ="}, "not a CEL expression"},
		"no condition":                {agent.Ruling{Remember: always, If: "1 + 1"}, "not true or false"},
		"an unknown function":         {agent.Ruling{Remember: always, If: "below(args.path, '/srv')"}, "undeclared"},
		"about more than arguments":   {agent.Ruling{Remember: always, If: "tool.name == 'sell'"}, "undeclared"},
		"a key that is not there":     {agent.Ruling{Remember: always, If: "args.path == 'x'"}, "no such key"},
		"a path that is none":         {agent.Ruling{Remember: always, If: "under(args.thing, '/srv')"}, "relative"},
		"a condition of any size":     {agent.Ruling{Remember: always, If: strings.Repeat("true || ", 2000) + "true"}, "not a CEL expression"},
		"fewer than no uses":          {agent.Ruling{Remember: always, Uses: -1}, "calls"},
		"too many uses":               {agent.Ruling{Remember: always, Uses: 2_000_000}, "calls"},
		"a time that is past":         {agent.Ruling{Remember: always, For: -1}, "ten years"},
		"for ages":                    {agent.Ruling{Remember: always, For: 100 * 365 * 24 * time.Hour}, "ten years"},
		"a condition for the session": {agent.Ruling{Remember: session, If: "true"}, "narrow"},
		"a count for this once":       {agent.Ruling{Uses: 3}, "narrow"},
		"RP-4 a denial for good":      {agent.Ruling{Verdict: tenon.Deny, Remember: always}, "a denial is not remembered"},
		"RP-4 a denial for a session": {agent.Ruling{Verdict: tenon.Deny, Remember: session}, "a denial is not remembered"},
		"a condition of a denial":     {agent.Ruling{Verdict: tenon.Deny, Remember: always, If: "true"}, "narrow"},
	} {
		t.Run(name, func(t *testing.T) {
			c.ruling.Verdict = cmp.Or(c.ruling.Verdict, tenon.Allow)
			_, _, err := h.Approvals().Decide(t.Context(), run, "2.0", c.ruling)
			if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
	list, err := h.Approvals().List(t.Context(), run)
	if err != nil || len(list) != 1 {
		t.Errorf("the call waits no more: %+v, %v", list, err)
	}
	if grants, err := h.Approvals().Grants(t.Context(), ""); err != nil || len(grants) != 0 {
		t.Errorf("%+v, %v", grants, err)
	}
}

// TestNarrowerIsOffered checks the condition that is offered with an approval.
func TestNarrowerIsOffered(t *testing.T) {
	p := newSharedStore(t)
	p.steps = "steps:\n  - calls: [{name: sell, arguments: {thing: tea, n: 3, tags: [a]}}]\n  - text: done\n"
	h := p.open(t, "victim")
	waits(t, h)
	list, err := h.Approvals().List(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Narrower == nil || list[0].Narrower.If != `args.n == 3 && args.thing == "tea"` || len(list[0].Narrower.Any) != 1 {
		b, _ := json.Marshal(list)
		t.Errorf("%s, %v", b, err)
	}
}

func TestFindGrant(t *testing.T) {
	grant := func(id, name, remote string) host.Grant {
		var g host.Grant
		g.ID, g.Name, g.Remote = id, name, remote
		return g
	}
	list := []host.Grant{grant("gr_aaaa1111", "files", "write"), grant("gr_aaaa2222", "files", "read"), grant("gr_bbbb3333", "files", "read"),
		grant("gr_cccc4444", "mcp.example.com", "read"), grant("gr_dddd5555", "a.b", "c"), grant("gr_eeee6666", "a", "b.c")}
	for ref, want := range map[string]string{
		"gr_aaaa1111": "gr_aaaa1111", "gr_aaaa1": "gr_aaaa1111", "gr_b": "gr_bbbb3333", "files.write": "gr_aaaa1111",
		"mcp.example.com.read": "gr_cccc4444", "files.read": "2 grants", "gr_aaaa": "2 grants", "a.b.c": "2 grants",
		"files": "no grant", "": "no grant", "gr_": "no grant", "gr_z": "no grant", ".": "no grant", "example.com.read": "no grant",
	} {
		g, err := host.FindGrant(list, ref)
		if got := g.ID; err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %s", ref, got, err, want)
		}
	}
}
