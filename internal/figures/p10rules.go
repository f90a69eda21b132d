package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/policy"

	"github.com/tenonhq/tenon/internal/figures/bench"
)

// Scale of measureP10Rules in each round.
const (
	ruleCalls = 2000
	ruleTools = 200
)

// measureP10Rules compares the cost of rules for a call with an echo call over stdio. Both are timed
// sequentially in this process. It measures a decision with blocks of all levels and two CEL conditions, and
// a lookup in the result cache.
func measureP10Rules(s *session) error {
	peer, err := dialOursStdio(s.ctx, mcp.LatestLegacy, s.exe, "child", "server", ours)
	if err != nil {
		return err
	}
	rules, tools, err := someRules()
	if err == nil {
		err = s.rulesRounds(peer, rules, tools)
	}
	return errors.Join(err, peer.Close())
}

func (s *session) rulesRounds(peer bench.Peer, rules *policy.Rules, tools []tenon.Tool) error {
	args := json.RawMessage(`{"text":"hello"}`) // arguments of the echo call
	results := keptResults(tools, args)
	layers := policy.NewLayers(policy.Layer{Rules: rules})
	var decide, hit, decideTime, hitTime, echoTime []float64
	for range s.rounds {
		echo, err := perCall(func(int) error { _, err := peer.Call(s.ctx, bench.EchoTool, "hello"); return err })
		if err != nil {
			return err
		}
		d, err := perCall(func(i int) error {
			o := layers.Judge(&policy.Facts{Tool: &tools[i%len(tools)], Arguments: args, Agent: "clerk",
				Principal: "local"})
			if o.Verdict != tenon.Allow {
				return errors.New("a call is not allowed: " + o.Reason)
			}
			return nil
		})
		if err != nil {
			return err
		}
		h, err := perCall(func(i int) error {
			key, err := sameCall(&tools[i%len(tools)], args).Key()
			if err != nil {
				return err
			}
			if k, _ := results.Find(key, time.Now()); k == nil {
				return errors.New("a cached result is not found")
			}
			return nil
		})
		if err != nil {
			return err
		}
		decide, hit = append(decide, d/echo), append(hit, h/echo)
		decideTime, hitTime, echoTime = append(decideTime, d), append(hitTime, h), append(echoTime, echo)
	}
	s.add("P10.decide", "a decision of the rules against a stdio echo call", "ratio", decide)
	s.add("P10.cache", "a kept result that is found against a stdio echo call", "ratio", hit)
	s.add("P10.decide.time", "a decision: blocks of five levels, two conditions in CEL, 200 tools", "µs", decideTime)
	s.add("P10.cache.time", "a kept result that is found: canonical arguments, key, look-up", "µs", hitTime)
	s.add("P10.rules.echo", "the stdio echo call of the same run", "µs", echoTime)
	return nil
}

// perCall returns the duration of one call in microseconds: the median over all calls.
func perCall(call func(int) error) (float64, error) {
	took := make([]float64, ruleCalls)
	for i := range took {
		begun := time.Now()
		if err := call(i); err != nil {
			return 0, err
		}
		took[i] = float64(time.Since(begun)) / 1e3
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// someRules returns rules with blocks of all levels and many tools. The conditions match none of the calls.
func someRules() (*policy.Rules, []tenon.Tool, error) {
	tools := make([]tenon.Tool, ruleTools)
	r := &policy.Rules{
		Defaults: policy.Block{Rate: "10/s", ResultTokens: 4000},
		Servers:  map[string]policy.Block{"bank": {Timeout: time.Second, Cache: policy.Cache{TTL: new(time.Minute)}}},
		Groups:   map[string]policy.Block{tenon.DefaultGroup: {Concurrency: new(2)}},
		Agents: map[string]policy.Block{"clerk": {MaxCalls: policy.CallLimit{Run: new(5)},
			Approval: policy.Approval{If: `args.text.startsWith("delete")`}}},
		Tools: map[policy.ID]policy.Block{},
	}
	yes := true
	for i := range tools {
		tools[i] = tenon.Tool{Server: "bank", Remote: "tool_" + strconv.Itoa(i), Name: "tool_" + strconv.Itoa(i),
			Annotations: tenon.Annotations{ReadOnly: &yes}}
		r.Tools[policy.ID{Server: "bank", Remote: tools[i].Remote}] = policy.Block{Cost: new(0.01)}
	}
	if err := r.Compile(); err != nil {
		return nil, nil, err
	}
	return r, tools, r.Add(policy.Rule{When: `tool.server == "bank" && agent == "guest" && has(args.amount)`,
		Verdict: "deny"})
}

func sameCall(t *tenon.Tool, args json.RawMessage) *policy.SameCall {
	return &policy.SameCall{Scope: policy.ScopeProject, Principal: "local", Access: "bank", Server: t.Server,
		Remote: t.Remote, Arguments: args}
}

func keptResults(tools []tenon.Tool, args json.RawMessage) *policy.Results {
	results := new(policy.Results)
	for i := range tools {
		key, err := sameCall(&tools[i], args).Key()
		if err != nil {
			return results // the first lookup reports it
		}
		results.Put(&policy.Kept{Key: key, Expires: time.Now().Add(time.Hour), Result: &tenon.Result{}, Bytes: 100})
	}
	return results
}
