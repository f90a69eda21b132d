package policy

import (
	stdcmp "cmp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// layered compiles the rules of the layers. The first layer is the most trusted one.
func layered(t *testing.T, list ...Layer) *Layers {
	t.Helper()
	for i := range list {
		if list[i].Rules == nil {
			list[i].Rules = &Rules{}
		}
		if err := list[i].Rules.Compile(); err != nil {
			t.Fatal(err)
		}
	}
	return NewLayers(list...)
}

// rules adds rules with conditions to r and returns it.
func rules(t *testing.T, r Rules, list ...Rule) *Rules {
	t.Helper()
	if err := r.Add(list...); err != nil {
		t.Fatal(err)
	}
	return &r
}

type layersCase struct {
	tool  tenon.Tool
	user  Layer
	own   Rules
	agent string
	of    string // identity of the server; "" means user:s
	want  tenon.Verdict
	layer string
}

func TestLayersJudge(t *testing.T) {
	yes, no := true, false
	mode := func(m string) Block { return Block{Approval: Approval{Mode: m}} }
	id := ID{"user:s", "x"}
	plain := tenon.Tool{Server: "s", Remote: "x", Name: "x"}
	readOnly := plain
	readOnly.Annotations.ReadOnly = &yes
	declared := readOnly // an entry of the project declares this; the server does not
	declared.Rules.Original = &tenon.OriginalTool{}
	grouped := plain
	grouped.Rules.Groups = []string{"safe"}

	for name, tc := range map[string]layersCase{
		"nobody says anything":                    {tool: plain, want: tenon.Ask},
		"nobody, read-only":                       {tool: readOnly, want: tenon.Allow},
		"nobody, declared read-only":              {tool: declared, want: tenon.Allow},
		"never of the project alone":              {tool: plain, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Allow, layer: "project"},
		"never of the user alone":                 {tool: plain, user: Layer{Rules: &Rules{Defaults: mode(ApprovalNever)}}, want: tenon.Allow, layer: "user"},
		"the user asks, the project never":        {tool: plain, user: Layer{Rules: &Rules{Defaults: mode(ApprovalAlways)}}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Ask, layer: "user"},
		"the project asks, the user never":        {tool: plain, user: Layer{Rules: &Rules{Defaults: mode(ApprovalNever)}}, own: Rules{Defaults: mode(ApprovalAlways)}, want: tenon.Ask, layer: "project"},
		"destructive of the user, declared":       {tool: declared, user: Layer{Rules: &Rules{Defaults: mode(ApprovalDestructive)}}, want: tenon.Ask, layer: "user"},
		"destructive of the user, read-only":      {tool: readOnly, user: Layer{Rules: &Rules{Defaults: mode(ApprovalDestructive)}}, want: tenon.Allow, layer: "user"},
		"deny before ask":                         {tool: plain, user: Layer{Rules: rules(t, Rules{}, Rule{When: "true", Verdict: "deny"})}, own: Rules{Defaults: mode(ApprovalAlways)}, want: tenon.Deny, layer: "user"},
		"a rule by annotation, declared":          {tool: declared, user: Layer{Rules: rules(t, Rules{}, Rule{When: "tool.annotations.read_only", Verdict: "allow"}, Rule{When: "true", Verdict: "deny"})}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Deny, layer: "user"},
		"the user's tool block":                   {tool: plain, user: Layer{Rules: &Rules{Tools: map[ID]Block{id: mode(ApprovalAlways)}}}, own: Rules{Tools: map[ID]Block{id: mode(ApprovalNever)}}, want: tenon.Ask, layer: "user"},
		"a foreign server, allowed by name":       {tool: plain, of: "project:s", user: Layer{Rules: rules(t, Rules{}, Rule{When: `tool.server == "s"`, Verdict: "allow"})}, want: tenon.Ask},
		"a foreign server, denied by name":        {tool: plain, of: "project:s", user: Layer{Rules: rules(t, Rules{}, Rule{When: `tool.server == "s"`, Verdict: "deny"})}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Deny, layer: "user"},
		"a foreign server, denied by not":         {tool: plain, of: "project:s", user: Layer{Rules: rules(t, Rules{}, Rule{When: `tool.server != "s"`, Verdict: "deny"})}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Deny, layer: "user"},
		"a foreign server, never by its block":    {tool: plain, of: "project:s", user: Layer{Rules: &Rules{Servers: map[string]Block{"user:s": mode(ApprovalNever)}}}, want: tenon.Ask},
		"a foreign server, always by its block":   {tool: plain, of: "project:s", user: Layer{Rules: &Rules{Servers: map[string]Block{"user:s": mode(ApprovalAlways)}}}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Ask, layer: "user"},
		"a foreign server of another name":        {tool: plain, of: "project:s", user: Layer{Aliases: map[string][]Alias{"project:s": {{"user:mine", "mine"}}}, Rules: &Rules{Tools: map[ID]Block{{"user:mine", "x"}: mode(ApprovalAlways)}}}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Ask, layer: "user"},
		"the same, by a rule":                     {tool: plain, of: "project:s", user: Layer{Aliases: map[string][]Alias{"project:s": {{"user:mine", "mine"}}}, Rules: rules(t, Rules{}, Rule{When: `tool.server == "mine"`, Verdict: "deny"})}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Deny, layer: "user"},
		"a foreign server under never for all":    {tool: plain, of: "project:s", user: Layer{Rules: &Rules{Defaults: mode(ApprovalNever)}}, want: tenon.Allow, layer: "user"},
		"a name that the project gave":            {tool: plain, user: Layer{Tools: map[ID]string{id: "project"}, Rules: rules(t, Rules{}, Rule{When: `tool.name == "x"`, Verdict: "allow"})}, want: tenon.Ask},
		"an entry's own tool":                     {tool: plain, of: "project:s", user: Layer{Rules: &Rules{Tools: map[ID]Block{id: mode(ApprovalNever)}}}, want: tenon.Ask},
		"an entry's own tool, always":             {tool: plain, of: "project:s", user: Layer{Rules: &Rules{Tools: map[ID]Block{id: mode(ApprovalAlways)}}}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Ask, layer: "user"},
		"the project's agent, never":              {tool: plain, agent: "a", user: Layer{Agents: map[string]string{"a": "project"}, Rules: &Rules{Agents: map[string]Block{"a": mode(ApprovalNever)}}}, want: tenon.Ask},
		"the project's agent, allowed by name":    {tool: plain, agent: "a", user: Layer{Agents: map[string]string{"a": "project"}, Rules: rules(t, Rules{}, Rule{When: `agent == "a"`, Verdict: "allow"})}, want: tenon.Ask},
		"the project's agent, denied by name":     {tool: plain, agent: "a", user: Layer{Agents: map[string]string{"a": "project"}, Rules: rules(t, Rules{}, Rule{When: `agent == "a"`, Verdict: "deny"})}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Deny, layer: "user"},
		"a group that the project gave":           {tool: grouped, user: Layer{Rules: &Rules{Groups: map[string]Block{"safe": mode(ApprovalNever)}}}, own: Rules{ToolGroups: map[ID][]string{id: {"safe"}}}, want: tenon.Ask},
		"a group that the project gave, always":   {tool: grouped, user: Layer{Rules: &Rules{Groups: map[string]Block{"safe": mode(ApprovalAlways)}}}, own: Rules{Defaults: mode(ApprovalNever), ToolGroups: map[ID][]string{id: {"safe"}}}, want: tenon.Ask, layer: "user"},
		"a rule by a group that the project gave": {tool: grouped, user: Layer{Rules: rules(t, Rules{}, Rule{When: `"safe" in tool.groups`, Verdict: "allow"}, Rule{When: "true", Verdict: "deny"})}, want: tenon.Deny, layer: "user"},
		"the user's group, taken by the project":  {tool: grouped, user: Layer{Rules: &Rules{Groups: map[string]Block{"risky": mode(ApprovalAlways)}, ToolGroups: map[ID][]string{id: {"risky"}}}}, own: Rules{Defaults: mode(ApprovalNever), ToolGroups: map[ID][]string{id: {"safe"}}}, want: tenon.Ask, layer: "user"},
		"an undecidable rule asks":                {tool: plain, user: Layer{Rules: rules(t, Rules{}, Rule{When: "args.n > 1", Verdict: "allow"})}, own: Rules{Defaults: mode(ApprovalNever)}, want: tenon.Ask, layer: "user"},
		"the user's own annotation":               {tool: declared, user: Layer{Hints: map[ID]tenon.Annotations{id: {ReadOnly: &yes}}, Rules: &Rules{Defaults: mode(ApprovalDestructive)}}, want: tenon.Allow, layer: "user"},
		"the user's annotation against a hint":    {tool: readOnly, user: Layer{Hints: map[ID]tenon.Annotations{id: {ReadOnly: &no}}, Rules: &Rules{Defaults: mode(ApprovalDestructive)}}, want: tenon.Ask, layer: "user"},
		"the user's annotation, another server":   {tool: declared, of: "project:s", user: Layer{Hints: map[ID]tenon.Annotations{id: {ReadOnly: &yes}}, Rules: &Rules{Defaults: mode(ApprovalDestructive)}}, want: tenon.Ask, layer: "user"},
	} {
		t.Run(name, func(t *testing.T) { checkLayers(t, tc) })
	}
}

// checkLayers judges a call by the rules of the user and the project. Exactly one layer's verdict must win, and it must
// be the verdict of all layers together.
func checkLayers(t *testing.T, tc layersCase) {
	tc.user.Name = "user"
	if tc.user.Rules == nil {
		tc.user.Rules = &Rules{}
	}
	l := layered(t, tc.user, Layer{Name: "project", Rules: &tc.own})
	f := &Facts{Tool: &tc.tool, Agent: tc.agent, Identity: stdcmp.Or(tc.of, "user:s")}
	o := l.Judge(f)
	if o.Verdict != tc.want || o.Layer != tc.layer {
		t.Errorf("%s by %q (%s), want %s by %q", o.Verdict, o.Layer, o.Reason, tc.want, tc.layer)
	}
	wins := 0
	for _, v := range l.Verdicts(f) {
		if v.Wins {
			wins++
			if v.Verdict != o.Verdict || v.Layer != o.Layer {
				t.Errorf("%+v wins, and the verdict is %+v", v, o)
			}
		}
	}
	if wins != 1 {
		t.Errorf("%d layers win: %+v", wins, l.Verdicts(f))
	}
}

func TestLayersFor(t *testing.T) {
	n := func(i int) *int { return &i }
	d := func(d time.Duration) *time.Duration { return &d }
	f := func(f float64) *float64 { return &f }
	yes, no := true, false
	for name, tc := range map[string]struct {
		user, own Block
		want      func(Block) any
		is        any
	}{
		"timeout":                    {Block{Timeout: time.Second}, Block{Timeout: time.Hour}, func(b Block) any { return b.Timeout }, time.Second},
		"timeout of one":             {Block{}, Block{Timeout: time.Hour}, func(b Block) any { return b.Timeout }, time.Hour},
		"calls":                      {Block{MaxCalls: CallLimit{Run: n(2)}}, Block{MaxCalls: CallLimit{Run: n(9)}}, func(b Block) any { return *b.MaxCalls.Run }, 2},
		"calls without limit":        {Block{MaxCalls: CallLimit{Run: n(2)}}, Block{MaxCalls: CallLimit{Run: n(0)}}, func(b Block) any { return *b.MaxCalls.Run }, 2},
		"calls of a session":         {Block{MaxCalls: CallLimit{Session: n(0)}}, Block{MaxCalls: CallLimit{Session: n(3)}}, func(b Block) any { return *b.MaxCalls.Session }, 3},
		"rate":                       {Block{Rate: "1/m"}, Block{Rate: "1/s"}, func(b Block) any { return b.Rate }, "1/m"},
		"rate none":                  {Block{Rate: "5/h"}, Block{Rate: RateNone}, func(b Block) any { return b.Rate }, "5/h"},
		"rate of the project":        {Block{Rate: RateNone}, Block{Rate: "5/h"}, func(b Block) any { return b.Rate }, "5/h"},
		"concurrency":                {Block{Concurrency: n(1)}, Block{Concurrency: n(0)}, func(b Block) any { return *b.Concurrency }, 1},
		"bytes":                      {Block{ResultBytes: 10}, Block{ResultBytes: 20}, func(b Block) any { return b.ResultBytes }, tenon.Size(10)},
		"tokens":                     {Block{ResultTokens: 10}, Block{}, func(b Block) any { return b.ResultTokens }, 10},
		"retry":                      {Block{Retry: RetryNever}, Block{Retry: RetryAlways}, func(b Block) any { return b.Retry }, RetryNever},
		"large results":              {Block{OnLargeResult: LargeError}, Block{OnLargeResult: LargeArtifact}, func(b Block) any { return b.OnLargeResult }, LargeError},
		"cache off":                  {Block{Cache: Cache{TTL: d(0)}}, Block{Cache: Cache{TTL: d(time.Hour)}}, func(b Block) any { return *b.Cache.TTL }, time.Duration(0)},
		"cache of one":               {Block{}, Block{Cache: Cache{TTL: d(time.Hour)}}, func(b Block) any { return *b.Cache.TTL }, time.Hour},
		"cache scope":                {Block{Cache: Cache{Scope: ScopeRun}}, Block{Cache: Cache{Scope: ScopeProject}}, func(b Block) any { return b.Cache.Scope }, ScopeRun},
		"cache force":                {Block{Cache: Cache{Force: &no}}, Block{Cache: Cache{Force: &yes}}, func(b Block) any { return *b.Cache.Force }, false},
		"redact":                     {Block{Redact: []string{"b"}}, Block{Redact: []string{}}, func(b Block) any { return b.Redact }, []string{"b"}},
		"redact of both":             {Block{Redact: []string{"b"}}, Block{Redact: []string{"a", "b"}}, func(b Block) any { return b.Redact }, []string{"a", "b"}},
		"cost":                       {Block{Cost: f(2)}, Block{Cost: f(0)}, func(b Block) any { return *b.Cost }, 2.0},
		"expires":                    {Block{Expires: time.Minute}, Block{Expires: time.Hour}, func(b Block) any { return b.Expires }, time.Minute},
		"the built-in value is last": {Block{}, Block{}, func(b Block) any { return b.OnLargeResult }, LargeTruncate},
	} {
		t.Run(name, func(t *testing.T) {
			l := layered(t, Layer{Name: "user", Rules: &Rules{Defaults: tc.user}}, Layer{Name: "project", Rules: &Rules{Defaults: tc.own}})
			if diff := cmp.Diff(tc.is, tc.want(l.For(ID{"s", "x"}, ""))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("blocks of the user's server bound a foreign one", func(t *testing.T) {
		user := Block{Timeout: time.Second, Concurrency: n(1), Redact: []string{"iban"}, Cache: Cache{TTL: d(time.Hour)}, MaxCalls: CallLimit{Run: n(3)}}
		l := layered(t, Layer{Name: "user", Rules: &Rules{Servers: map[string]Block{"user:bank": user}}, Aliases: map[string][]Alias{"project:s": {{"user:bank", "bank"}}}},
			Layer{Name: "project", Rules: &Rules{Servers: map[string]Block{"project:s": {Timeout: time.Minute}}}})
		b := l.For(ID{"project:s", "x"}, "")
		if b.Timeout != time.Second || *b.Concurrency != 1 || *b.MaxCalls.Run != 3 || !cmp.Equal(b.Redact, []string{"iban"}) {
			t.Errorf("%+v", b)
		}
		if b.Cache.TTL != nil {
			t.Error("the user's entry turns a cache on for another layer's server")
		}
	})
}

func TestLayersRepeats(t *testing.T) {
	yes := true
	hour := time.Hour
	tool := tenon.Tool{Server: "s", Remote: "x", Annotations: tenon.Annotations{Idempotent: &yes}, Rules: tenon.ToolRules{Original: &tenon.OriginalTool{}}}
	cached := Block{Cache: Cache{TTL: &hour}}
	for name, tc := range map[string]struct {
		user       Rules
		idempotent bool
		cache      time.Duration
	}{
		"the user says nothing":   {Rules{}, true, time.Hour},
		"retry auto of the user":  {Rules{Defaults: Block{Retry: RetryAuto}}, false, time.Hour},
		"retry never of the user": {Rules{Defaults: Block{Retry: RetryNever}}, false, time.Hour},
		"a cache of the user's":   {Rules{Defaults: cached}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := layered(t, Layer{Name: "user", Rules: &tc.user}, Layer{Name: "project", Rules: &Rules{Defaults: cached}})
			if o := l.Judge(&Facts{Tool: &tool}); o.Idempotent != tc.idempotent || o.Cache != tc.cache {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestLayersDigest(t *testing.T) {
	project := Layer{Name: "project", Rules: &Rules{Servers: map[string]Block{}}}
	one := layered(t, project)
	if one.Digest() != project.Rules.Digest() {
		t.Error("one layer has the digest of its rules")
	}
	base := layered(t, Layer{Name: "user", Rules: &Rules{}}, project)
	for name, other := range map[string]*Layers{
		"another layer's rules": layered(t, Layer{Name: "user", Rules: &Rules{Defaults: Block{Retry: RetryNever}}}, project),
		"an alias":              layered(t, Layer{Name: "user", Rules: &Rules{}, Aliases: map[string][]Alias{"project:s": {{"user:t", "t"}}}}, project),
		"one layer":             one,
	} {
		if other.Digest() == base.Digest() {
			t.Errorf("%s: the digests are equal", name)
		}
	}
	added, err := base.WithServer("new", &Block{Approval: Approval{If: "args.n > 1"}}, map[string][]Alias{"user": {{"user:t", "t"}}})
	if err != nil || added.Digest() == base.Digest() {
		t.Errorf("%v, the digest does not change with a server", err)
	}
	removed, err := added.WithServer("new", nil, nil)
	if err != nil || removed.Digest() != base.Digest() {
		t.Errorf("%v, the digest differs after the server is removed", err)
	}
}

func BenchmarkLayersJudge(b *testing.B) {
	user, project := &Rules{Defaults: Block{Approval: Approval{If: "!tool.annotations.read_only"}}}, &Rules{Defaults: Block{Approval: Approval{Mode: ApprovalNever}}}
	if err := user.Add(Rule{When: `tool.server == "bank" && args.amount > 100`, Verdict: "deny"}); err != nil {
		b.Fatal(err)
	}
	if err := user.Compile(); err != nil {
		b.Fatal(err)
	}
	l := NewLayers(Layer{Name: "user", Rules: user}, Layer{Name: "project", Rules: project})
	tool := tenon.Tool{Server: "s", Remote: "x", Name: "x"}
	for b.Loop() {
		l.Judge(&Facts{Tool: &tool, Identity: "project:s", Arguments: []byte(`{"amount": 5}`)})
	}
}
