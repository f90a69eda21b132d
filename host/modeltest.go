package host

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/react"
)

// The values of [ModelInfo.From].
const (
	FromConfig      = "config"      // is an entry of models
	FromProgram     = "program"     // is a model of the Go program
	FromEnvironment = "environment" // the environment has a key
	FromKept        = "kept"        // tenon models login keeps a key
	FromLocal       = "local"       // a server on this machine serves it
	FromBuiltin     = "built-in"
)

// ModelInfo is what is known about a model without asking it.
type ModelInfo struct {
	Name     string       `json:"name"` // for --model and agents
	From     string       `json:"from"`
	Where    string       `json:"where,omitempty"` // the variable, or the local server's address
	Default  bool         `json:"default"`         // a run without --model uses it
	Provider string       `json:"provider,omitempty"`
	Model    string       `json:"model,omitempty"`
	API      string       `json:"api,omitempty"`      // the wire format
	BaseURL  string       `json:"base_url,omitempty"` // if it is not the provider's default
	Takes    []string     `json:"takes"`              // tools, images, audio, documents
	Price    *model.Price `json:"price"`              // US dollars per million tokens; nil if unknown
}

func (h modelsHandle) List(ctx context.Context, probe bool) ([]ModelInfo, error) {
	prices, err := h.host.models.prices()
	if err != nil {
		return nil, err
	}
	list := []ModelInfo{}
	seen := map[string]bool{}
	add := func(name, from, where string, c model.Config) {
		if seen[name] {
			return
		}
		seen[name] = true
		list = append(list, describe(name, from, where, c, prices))
	}
	for _, name := range h.host.config.ModelNames() {
		add(name, FromConfig, "", h.host.config.Models[name])
	}
	for _, name := range slices.Sorted(maps.Keys(h.host.cfg.Models)) {
		add(name, FromProgram, "", model.Config{})
	}
	found := func(name, from, where string) {
		if c, err := h.host.models.settings(name); err == nil {
			add(name, from, where, c)
		}
	}
	for name, env := range keyedModels(h.host.cfg.LookupEnv) {
		found(name, FromEnvironment, env)
	}
	if probe {
		for name, url := range localModels(ctx, h.host.cfg.LookupEnv, true) {
			found(name, FromLocal, url)
		}
	}
	add(DemoModel, FromBuiltin, "", model.Config{Provider: "script"})
	if list[0].From != FromBuiltin {
		list[0].Default = true
	}
	return list, nil
}

func describe(name, from, where string, c model.Config, prices *model.Prices) ModelInfo {
	info := ModelInfo{Name: name, From: from, Where: where, Provider: c.Provider, Model: c.Model, API: c.Wire(),
		Takes: []string{}}
	p, known := model.Lookup(c.Provider)
	if known && c.BaseURL != "" && c.BaseURL != p.BaseURL {
		info.BaseURL = c.BaseURL
		if u, err := url.Parse(c.BaseURL); err == nil {
			info.BaseURL = u.Redacted()
		}
	}
	if c.ToolMode != model.ToolsNone {
		info.Takes = append(info.Takes, "tools")
	}
	if known && p.Wire != model.WireScript {
		q := c.ResolvedQuirks()
		if q.Images {
			info.Takes = append(info.Takes, "images")
		}
		if q.Audio {
			info.Takes = append(info.Takes, "audio")
		}
		if q.Documents {
			info.Takes = append(info.Takes, "documents")
		}
	}
	if price, ok := prices.For(c); ok {
		info.Price = &price
	}
	return info
}

// ModelTest is the result of one small request to a model.
type ModelTest struct {
	Name   string           `json:"name"`
	Model  string           `json:"model,omitempty"` // the provider's name for it
	OK     bool             `json:"ok"`
	Tool   *bool            `json:"tool_called"` // nil if no tool was offered
	Answer string           `json:"answer,omitempty"`
	Stop   tenon.StopReason `json:"stop_reason,omitempty"`
	First  int64            `json:"first_ms"` // until the first piece arrived
	Millis int64            `json:"duration_ms"`
	Usage  *tenon.Usage     `json:"usage"`
	Cost   *tenon.USD       `json:"cost"`
	Kind   model.Kind       `json:"kind,omitempty"` // of the failure
	Error  *tenon.Error     `json:"error,omitempty"`
	Advice string           `json:"advice,omitempty"`
}

// testTool is the tool that a test offers to a model.
var testTool = tenon.Tool{Name: "ping", Description: "Answers pong. Call it when you are asked for a ping.",
	Input: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string","description":"any word"}},"required":["text"]}`)}

// testTokens bounds the answer in a test, including reasoning.
const testTokens = 1024

func (h modelsHandle) Test(ctx context.Context, name string) (ModelTest, error) {
	if name == "" {
		var err error
		if name, err = h.host.models.choose(ctx, "", ""); err != nil {
			return ModelTest{}, err
		}
	}
	t := ModelTest{Name: name}
	m, tools, err := h.host.testable(ctx, name)
	if code := tenon.ErrorCode(err); code == tenon.CodeNotFound || code == tenon.CodeConfig {
		return t, err
	}
	if err != nil {
		return t.failed(h.host.redactor.Error(err), err), nil
	}
	req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("Say the word pong, and nothing else.")},
		Sampling: tenon.Sampling{MaxTokens: testTokens}}
	if tools {
		req.Messages = []*tenon.Message{tenon.UserMessage(`Call the tool ping with the text "pong".`)}
		req.Tools = []tenon.Tool{testTool}
		t.Tool = new(bool)
	}
	start, begun := time.Now(), false
	for d, err := range m.Generate(ctx, req) {
		t.Millis = time.Since(start).Milliseconds()
		if !begun {
			t.First, begun = t.Millis, true
		}
		if err != nil {
			return t.failed(h.host.redactor.Error(err), err), nil
		}
		if d.Response != nil {
			r := *d.Response
			model.RequireCalls(&r)
			h.host.judge(&t, &r)
			return t, nil
		}
	}
	err = tenon.Errorf(tenon.CodeProtocol, "%s ended its stream without an answer", m.Name())
	return t.failed(h.host.redactor.Error(err), err), nil
}

// testable opens a model so that a failure is reported at once.
func (h *Host) testable(ctx context.Context, name string) (tenon.Model, bool, error) {
	if _, own := h.cfg.Models[name]; own || h.models.isDemo(name) {
		m, err := h.models.get(ctx, name)
		return m, true, err
	}
	c, err := h.models.config(ctx, name)
	if err == nil {
		c, err = h.models.priced(c)
	}
	if err != nil {
		return nil, false, err
	}
	none := 0
	c.Retries = &none
	h.redactor.Add(c.APIKey)
	m, err := h.models.adapter(c)
	if err == nil && c.ToolMode == model.ToolsReact {
		var prompt *react.Prompt
		prompt, err = h.prompts.get(agent.React{Prompt: agent.PromptDefault})
		m.Model = react.Wrap(m.Model, prompt)
	}
	return m, c.ToolMode != model.ToolsNone, err
}

// judge evaluates an answer. An answer that the test's limit cut off shows that the model works. A refusal to answer
// shows that it does not.
func (h *Host) judge(t *ModelTest, r *tenon.Response) {
	t.Model, t.Stop, t.Usage, t.Cost = r.Model, r.Stop, r.Usage, r.Cost
	t.Answer = h.redactor.Text(r.Message.Text())
	for _, c := range r.Message.Calls() {
		if t.Tool != nil && c.Name == testTool.Name && c.Malformed == "" {
			*t.Tool = true
		}
	}
	switch r.Stop {
	case tenon.StopEnd, tenon.StopToolUse, tenon.StopMaxTokens, tenon.StopPause:
		t.OK = true
	case tenon.StopBadCall:
		err := tenon.Errorf(tenon.CodeProtocol, "the model's call of a tool cannot be read (%s)", r.RawStop)
		*t = t.failed(err, err)
	default:
		err := tenon.Errorf(tenon.CodeModel, "the answer ended with %s", r.RawStop)
		*t = t.failed(err, err)
	}
}

func (t ModelTest) failed(shown *tenon.Error, err error) ModelTest {
	t.OK, t.Error, t.Kind = false, shown, model.KindOf(err)
	t.Advice = t.Kind.Advice()
	return t
}
