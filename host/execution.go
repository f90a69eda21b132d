package host

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/telemetry"
	"github.com/tenonhq/tenon/workflow"
)

// execution provides the dependencies of the executor.
type execution struct{ host *Host }

// openExecutor prepares the executor of the host's runs.
func (h *Host) openExecutor() {
	e := execution{h}
	cfg := executor.Config{Store: h.store, Redactor: h.redactor, Logger: h.log, Now: h.now, Models: e,
		Conversations: e, Tools: e,
		Rules: e, Grants: e, Pins: h.pins, Tables: h.tabular, Access: h.access, KindOf: h.kindOf, Server: h.answersOf,
		TimeoutKey:  h.timeoutKey,
		Caller:      func(run string) *mcp.Caller { return h.serverPool.clients.find(tenon.RootRun(run)) },
		Trace:       h.trace,
		Interactive: h.cfg.Interactive, IgnoreRunGrants: h.config.Forbids("yes"),
		Commands: map[string]executor.Command{workflow.CommandSQL: h.doSQL, workflow.CommandTable: h.doTable}}
	if s, ok := h.store.Store.(store.Attempts); ok {
		cfg.Attempts = s
	}
	if h.cassette.playsServers() {
		cfg.Replay = h.cassette.player.Answer
	}
	h.executor, h.audits.h = executor.New(cfg), h
}

// do executes a command of a core, unless the project is not trusted; see [engine.Do].
func (h *Host) do(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	if h.cfg.Untrusted {
		return nil, errUntrusted()
	}
	if err := h.arrivals.wait(ctx, a.Row.ID); err != nil {
		return nil, err
	}
	return h.executor.Do(ctx, run, a, emit)
}

// Candidates returns the model of an agent's run and its fallbacks.
func (h execution) Candidates(agent, model string) []string {
	model = h.host.config.ModelOfRun(agent, model)
	return append([]string{model}, h.host.config.Models[model].Fallback...)
}

// Open opens the model of a prompt.
func (h execution) Open(ctx context.Context, p *agent.Prompt) (executor.Model, error) {
	return h.host.modelOf(ctx, p)
}

// Default returns the model of runs that name none.
func (h execution) Default(ctx context.Context) (string, error) {
	return h.host.models.choose(ctx, "", "")
}

// MaxTokens returns the configured limit of a model's answer.
func (h execution) MaxTokens(model string) int {
	c, err := h.host.models.settings(model)
	if err != nil {
		return 0
	}
	return c.MaxTokens
}

// Cost returns the price of tokens.
func (h execution) Cost(ctx context.Context, model string, u tenon.Usage) tenon.USD {
	price, ok, err := h.host.Models().Price(ctx, model)
	if err != nil || !ok {
		return 0
	}
	return price.Cost(u)
}

// State folds the journal of a run.
func (h execution) State(ctx context.Context, run string) (*agent.State, error) {
	return h.host.state(ctx, run)
}

// Request returns a prompt as a request.
func (h execution) Request(ctx context.Context, p *agent.Prompt) (*tenon.Request, error) {
	return h.host.request(ctx, p)
}

// Ready prepares the folder of a workflow's run.
func (h execution) Ready(ctx context.Context, run tenon.Run) error {
	return h.host.flows.Unpack(ctx, run)
}

// Toolset returns the toolset of a server.
func (h execution) Toolset(run, server, tool string) (executor.Toolset, error) {
	if t := cmp.Or(h.host.given.find(run, server), h.host.sets()[server]); t != nil {
		return t, nil
	}
	if k := h.host.kinds[server]; k.call != nil { // the configuration offered these tools when the run began
		return k, nil
	}
	if h.host.wasRemoved(server) {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' was removed from the host, so its tool '%s' "+
			"cannot be called; add the server again", server, tool)
	}
	return nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' of tool '%s' is not configured any more, or it is a "+
		"toolset that a program gave to a question in another process", server, tool)
}

// ServerFor returns the name of the server that has a target here.
func (h execution) ServerFor(server, target string) string { return h.host.serverFor(server, target) }

// Identify returns the identity of a tool that a run calls.
func (h execution) Identify(ctx context.Context, run, server, remote string) (executor.Identity, error) {
	return h.host.identifyIn(ctx, run, server, remote)
}

// Overlay returns the credentials of a run's principal at a server.
func (h execution) Overlay(ctx context.Context, run tenon.Run, server string) (servers.Overlay, error) {
	return h.host.overlay(ctx, run, server)
}

// Ruleset returns the current rules.
func (h execution) Ruleset() *executor.Ruleset { return h.host.ruleset() }

// Prepare looks up the tool of a call and checks its arguments. A workflow step that is a request has its tool in the
// command. A step that calls a workflow has the workflow's parameters as arguments, without its tables.
func (h execution) Prepare(ctx context.Context, core string, c *agent.DecideCommand) (catalog.Prepared, error) {
	if c.Tool != nil {
		return catalog.Prepared{Tool: c.Tool, Arguments: c.Call.Arguments}, nil
	}
	if c.Call.Connector != nil {
		return prepareConnector(&c.Call)
	}
	snapshot, err := h.host.inView(ctx, c.View, c.Propose)
	if err != nil {
		return catalog.Prepared{}, tenon.Errorf(tenon.CodeStore, "%w", err)
	}
	call := c.Call
	t, ok := snapshot.Lookup(call.Name)
	if !ok {
		return snapshot.Prepare(&call, h.host.ruleset().Layers.Reads())
	}
	f := h.host.callee(t)
	switch {
	case f == nil && core == workflow.Version && h.removedSince(ctx, t):
		err = tenon.Errorf(tenon.CodeInvalid, "the server removed this tool during the run, so it was not called; "+
			"start the workflow again when server '%s' has the tool '%s'", t.Server, tenon.Visible(t.Remote))
	case f == nil:
	case core == workflow.Version:
		if _, err = f.Params(call.Arguments); err == nil {
			call.Arguments = f.Arguments(call.Arguments)
		}
	case !c.Propose:
		err = checkData(f, c)
	}
	if err != nil {
		return catalog.Prepared{Tool: t, Arguments: call.Arguments}, err
	}
	rules := h.host.ruleset()
	if ready, ok := preparedIn(ctx, snapshot, rules, &call); ok {
		return ready, nil
	}
	return snapshot.Prepare(&call, rules.Layers.Reads())
}

// CheckResult checks a structured result against the output schema that its tool had when the call was decided about.
func (h execution) CheckResult(ctx context.Context, run string, c *agent.ToolCommand,
	structured json.RawMessage) error {
	for _, s := range h.host.known() {
		if t, ok := s.Lookup(c.Name); ok && agent.OutputDigest(t.Output) == c.Output {
			return s.CheckResult(t, structured)
		}
	}
	s, err := h.host.runTools(ctx, run) // the process that decided has ended
	if err != nil {
		// Never invalid, because that says that the result does not fit.
		return tenon.Errorf(tenon.CodeStore, "the tools of run %s cannot be read: %w", run, err)
	}
	if t, ok := s.Lookup(c.Name); ok && agent.OutputDigest(t.Output) == c.Output {
		return s.CheckResult(t, structured)
	}
	return tenon.Errorf(tenon.CodeNotFound, "the output schema of tool '%s' is not known any more; "+
		"the result is not checked", c.Name)
}

// Facts returns what the rules evaluate.
func (h execution) Facts(ctx context.Context, run tenon.Run, state string, t *tenon.Tool,
	args json.RawMessage) (*policy.Facts, error) {
	return h.host.facts(ctx, run, state, t, args)
}

// Protected returns why arguments are refused that lead to tenon's own files.
func (h execution) Protected(t *tenon.Tool, args json.RawMessage) string {
	return h.host.protectedBy(t, args)
}

// Subject returns what a grant for a tool covers.
func (h execution) Subject(ctx context.Context, run tenon.Run, t *tenon.Tool) (*agent.Subject, error) {
	return h.host.subject(ctx, run, t)
}

// Find returns the author of a grant that covers a call.
func (h execution) Find(ctx context.Context, run tenon.Run, step, remote string, s *agent.Subject,
	f *policy.Facts) (string, error) {
	return h.host.grantFor(ctx, run, step, remote, s, f)
}

// Holds reports whether an approval for the session holds. One without a session is only for the run, and in its
// journal.
func (h execution) Holds(ctx context.Context, run tenon.Run, key string) (bool, error) {
	if run.Session == "" {
		return true, nil
	}
	return h.host.store.SessionGranted(ctx, run.Session, key)
}

// facts returns what the rules evaluate. Errors: store (the start of the run cannot be read).
func (h *Host) facts(ctx context.Context, run tenon.Run, state string, t *tenon.Tool,
	args json.RawMessage) (*policy.Facts, error) {
	id, err := h.identifyIn(ctx, run.ID, t.Server, t.Remote)
	if err != nil {
		return nil, err
	}
	f := &policy.Facts{Tool: t, Identity: id.Server, Arguments: args, Agent: run.Agent,
		Principal: string(run.Owner()), State: state}
	f.Server, err = h.serverFactsIn(ctx, run.ID, t.Server, t.Remote)
	return f, err
}

// access identifies what a call reaches in the current configuration.
func (h *Host) access(ctx context.Context, run tenon.Run, c *agent.ToolCommand, own servers.Overlay) (string, error) {
	if access := h.kinds[c.Server].access; access != nil {
		return access(ctx, run, c.Remote)
	}
	if h.given.find(run.ID, c.Server) != nil {
		return "question of " + run.ID, nil // another question may have another such tool
	}
	if s := h.connections()[c.Server]; s != nil {
		return s.Access() + own.Key(), nil
	}
	return "", nil
}

// answersOf returns the configuration of a server. Toolsets of a Go program have the defaults.
func (h *Host) answersOf(server string) servers.Config {
	return h.config.Servers[server].WithDefaults()
}

// anyTimeoutKey is the key that limits the calls of tools whose server has no entry in a file.
const anyTimeoutKey = "policy.defaults.timeout"

// timeoutKey returns the key that limits the time of a tool's calls, with its place if a file has it.
func (h *Host) timeoutKey(server, remote, agent string) string {
	for _, r := range h.config.Explain(server, remote, agent) {
		if r.Key == "timeout" && r.From != "" {
			return h.keyName(r.From, r.Origin)
		}
	}
	return anyTimeoutKey
}

// keyName names a key as its file does, with its place.
func (h *Host) keyName(path, origin string) string {
	if name := h.config.KeyName(path); name != path {
		return name
	}
	return path + " (" + origin + ")"
}

// trace returns the trace context of a step for servers, or "" if traces are not exported.
func (h *Host) trace(run, step string) string {
	if h.config.Telemetry.OTLP == "" {
		return ""
	}
	return telemetry.TraceParent(run, step)
}

// encode returns the data of an event.
func encode(v any) json.RawMessage { return tenon.EventData(v) }
