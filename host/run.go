package host

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
)

// Question is a question to an agent. Only Text is required.
type Question struct {
	Text    string
	Agent   string // an entry of agents; if empty, the session's, else "default", or the only one
	Session string // a session to continue (see [Sessions.Get]); if empty, a new one
	Fork    bool   // asks in a fork of Session (see [Fork]), which may be at work
	Model   string // replaces the agent's model, see [Config.Model]
	NoTools bool
	// Files are files of the question: see [FilePart] and [AddressPart].
	Files []tenon.Part
	// Output is a JSON Schema for the answer; empty means any text. The answer is then only JSON. An answer that does
	// not fit is sent back to the model, at most twice.
	Output json.RawMessage
	// History precedes the question in a new session: see [ReadConversation].
	History    []*tenon.Message
	ToolChoice string   // auto, any, none or exposed names, see [tenon.ParseChoice]; if empty, the agent's
	MaxTurns   int      // 0: the agent's
	Groups     []string // groups of tools to use; if nil, the agent's
	State      string   // initial state of the agent; if empty, the conversation's, else the agent's
	Mode       string   // native or react; if empty, the agent's
	// System is text that follows the agent's instructions.
	System string
	// Sampling has the sampling parameters of the model; nil means as configured.
	Sampling *agent.Sampling
	// Principal is the owner of the run; if empty, the local user, which is the program itself. Programs with their own
	// users take it from [tenon.UserPrincipal].
	Principal tenon.Principal
	// Data are tables that the agent can query and pass to tools: Arrow files or streams. The agent's own tables
	// precede them.
	Data [][]byte
	// DataFiles are further tables, which follow Data. They may be of any size, and are read in place: nobody may
	// change or close them before the question has begun. An example is io.NewSectionReader(file, 0, size).
	DataFiles []*io.SectionReader
	// Grant, if set, allows calls that would ask for approval. It is the name of the person that the journal records
	// for these decisions.
	Grant string
	// Credentials are the caller's own credentials at servers; see [Callers.Accept].
	Credentials Credentials
	// Table is the tool table that defines the tools, if the configuration was made from one. It is stored with the
	// run.
	Table *agent.ToolTable
	// OnlyTable, if set, offers only those tools of the host that a tool table names. It adds no server and no tool.
	OnlyTable *OnlyTable
	// Toolsets and Functions are tools for this question only, in addition to the tools of the host; see
	// [Config.Toolsets] and [Config.Functions]. Rules, approvals and the agent's choice of tools apply to them, and
	// the run's snapshot contains them. The agents that it calls or hands over to do not see them. The name of a
	// toolset must not be in use in the host, and the name of a function not among its functions.
	//
	// The host keeps the Go values in memory until the run ends. Nothing of them is stored: if the run resumes in
	// another process, a call of such a tool fails with code unreachable, which the model sees as the result of the
	// call. Start with the same Key and the same tools adds them to a run that has not ended.
	Toolsets  map[string]tenon.Toolset
	Functions []Function
	// ClientTools are tools that the caller executes: Name, Description and Input of each. A call waits in the journal
	// until [Approvals.Decide] with verdict allow brings its result as the ruling's arguments. It survives a restart,
	// unlike the calls of Toolsets. Calls are listed by [Approvals.List] with the kind client. Rules can deny them,
	// and never ask about them, because only the client executes them.
	ClientTools []tenon.Tool
	// BindContext cancels the run when the context of Start, Stream or Ask ends, with the cause as the reason.
	// Otherwise the run continues. The binding ends with the run, and with the host: a run that Close interrupts can
	// be resumed.
	BindContext bool
	// Key, if set, makes Start safe to repeat: see [Host.Start].
	Key string
	// SettlePins makes Start fail with code waiting if a server differs from its pins, so that a person can accept the
	// change first. Otherwise the run begins without the server's tools, and the server is one of the problems.
	SettlePins bool

	delivering     bool   // StartOrSteer asks, which has looked for the message with the key
	schedule       string // the schedule that asks, and its time
	asked          string // digest of the request with the key
	id, newSession string // ids of the run and its new session; if empty, random ones
	called         bool   // another agent asks, which may use hidden servers
	// tables are the tables of the agent's configuration, own of them, and then Data and DataFiles.
	tables []tableSource
	own    int

	tools map[string]executor.Toolset // Toolsets and Functions, checked and wrapped
}

// titleLen is the length of a run's title, which is the beginning of its question.
const titleLen = 80

// Started is a run that [Host.Start] began, or found by its key.
type Started struct {
	tenon.Run
	// Problems are servers whose tools are missing; the model is informed.
	Problems []Problem
	// Again says that [Question.Key] led to a run that an earlier call began.
	Again bool
	// After is the number of the event after which the answer follows, if the text of the question is a message in a
	// run that was at work before: [StartOrSteer] was called with the same key. Otherwise it is 0.
	After uint64
}

// Start begins a run, which continues in the background until it ends, waits or the host is closed. With a
// [Question.Key] the call can be repeated: equal keys lead to one run, in every process of the store. If no process
// works on that run any more, because its process died or closed its host, this one resumes it.
//
// Errors: not_found (agent, session, model), conflict (the session is at work, or the key led to another question),
// unreachable (a required server), store.
func (h *Host) Start(ctx context.Context, q Question) (Started, error) {
	started, _, err := h.begin(ctx, q)
	return started, err
}

// begin is Start. It also returns the binding of the run to ctx, or nil if there is none.
func (h *Host) begin(ctx context.Context, q Question) (started Started, bound *binding, err error) {
	if q.tools, err = h.questionTools(q); err != nil {
		return Started{}, nil, err
	}
	if err := h.bound.room(q.BindContext); err != nil {
		return Started{}, nil, err
	}
	if q.Key != "" {
		started, err = h.startOnce(ctx, q)
	} else {
		started.Run, started.Problems, err = h.startQuestion(ctx, q)
	}
	if err == nil && q.BindContext {
		bound = h.bind(ctx, started.ID)
	}
	return started, bound, h.whyBusy(ctx, q.Session, err)
}

// startQuestion is Start without a key. If other runs of the session begin and end in the meantime, it begins again
// behind them.
func (h *Host) startQuestion(ctx context.Context, q Question) (run tenon.Run, problems []Problem, err error) {
	err = behindOthers(func() error {
		run, problems, err = h.startAtEnd(ctx, q)
		return err
	})
	return run, problems, err
}

// startAtEnd begins a run at the present end of the session. Errors: as Start, with [store.ErrContinued] in the chain
// if the session has another end by now.
func (h *Host) startAtEnd(ctx context.Context, q Question) (tenon.Run, []Problem, error) {
	ctx = store.OwnOnly(ctx)
	if err := q.check(); err != nil {
		return tenon.Run{}, nil, err
	}
	q.tables = sourcesOf(q.Data, q.DataFiles)
	run := tenon.Run{ID: cmp.Or(q.id, tenon.NewID("run", h.now())), Core: agent.Version,
		Principal: cmp.Or(q.Principal, tenon.PrincipalLocal),
		Title:     tenon.Shorten(h.redactor.Text(q.Text), titleLen), // lists show titles
		State:     tenon.RunWorking, Created: h.now(), Updated: h.now()}
	var fork tenon.Session
	if q.Session != "" {
		s, err := h.Sessions().Get(ctx, q.Session)
		if err == nil && q.Fork {
			s, _, err = h.planFork(ctx, Fork{Session: s.ID})
			s.ID = cmp.Or(q.newSession, s.ID)
			fork = s
		}
		if err != nil {
			return tenon.Run{}, nil, err
		}
		run.Session = s.ID
		if s.Head != "" {
			parent, err := h.store.Run(ctx, s.Head)
			if err != nil {
				return tenon.Run{}, nil, err
			}
			if err := atRest(s, parent); err != nil {
				return tenon.Run{}, nil, err
			}
			run.Parent, run.ParentSeq = parent.ID, cmp.Or(s.HeadSeq, parent.Seq)
			q.Agent = cmp.Or(q.Agent, h.talkingTo(ctx, parent, run.ParentSeq))
		}
	} else {
		run.Session = cmp.Or(q.newSession, tenon.NewID("ses", h.now()))
	}
	if !q.called {
		if err := h.mayGrant(q.Grant); err != nil {
			return tenon.Run{}, nil, err
		}
	}
	a, err := h.config.Agent(q.Agent)
	if err != nil {
		return tenon.Run{}, nil, err
	}
	name := h.agentName(q.Agent)
	run.Agent = name
	if run.Parent == "" {
		var done func()
		if q.tables, done, err = h.dataInputs(a, q.tables); err != nil {
			return tenon.Run{}, nil, tenon.Errorf(tenon.ErrorCode(err), "agents.%s.%w", name, err)
		}
		defer done()
		q.own = len(a.DataInputs)
	}
	spec, snapshot, problems, err := h.agentSpec(ctx, name, a, q)
	if err != nil {
		return tenon.Run{}, problems, err
	}
	run.Model, spec.Brought, spec.Asked, spec.Table = spec.Model, q.Credentials.servers(), q.asked, q.Table
	spec.Schedule = q.schedule
	begin := engine.Spec{Run: run, Fresh: true}
	if err := h.giveData(ctx, q, a, snapshot, &spec, &begin); err != nil {
		return tenon.Run{}, problems, err
	}
	begin.Data = encode(spec)
	if q.Fork {
		if err := h.store.PutSession(ctx, fork); err != nil {
			return tenon.Run{}, problems, err
		}
	}
	h.given.hold(run.ID, q.tools)
	err = h.startWith(ctx, begin, snapshot, q.Credentials)
	if err != nil {
		h.given.drop(run.ID)
	}
	return run, problems, err
}

// agentSpec returns the spec of an agent's run and the snapshot of its tools, or nil if it has none.
func (h *Host) agentSpec(ctx context.Context, name string, a agent.Config, q Question) (agent.Spec, *catalog.Snapshot,
	[]Problem, error) {
	spec := agent.Spec{Agent: name, Question: q.Text, Grant: q.Grant, Policy: h.ruleset().Digest,
		System:     a.Instructions.Text,
		ToolChoice: a.ToolChoice, MaxTurns: a.Limits.MaxTurns, Parallel: a.Limits.ParallelTools,
		Timeout:      a.Limits.RunTimeout,
		MaxToolCalls: a.Limits.ToolCalls, MaxTokens: a.Limits.Tokens, OnLimit: a.Limits.OnLimit,
		LimitPrompt: a.Limits.LimitPrompt,
		MaxCost:     tenon.Dollars(a.Limits.Cost), MaxDepth: a.Limits.MaxDepth, Budgets: h.config.Budgets,
		Compaction: a.Compaction,
		Expires:    h.ruleset().Layers.Defaults().Expires}
	if len(q.Output) == 0 {
		q.Output = a.ResponseFormat.Schema
	}
	if err := h.output(q, &spec); err != nil {
		return spec, nil, nil, err
	}
	if q.System != "" {
		spec.System = strings.TrimSpace(spec.System + "\n\n" + q.System)
	}
	spec.Sampling, spec.Settings = q.Sampling, a.Settings.Sampling()
	spec.ToolChoice = cmp.Or(q.ToolChoice, spec.ToolChoice)
	spec.State, spec.StateAsked = cmp.Or(q.State, a.State), q.State != ""
	if q.Groups != nil {
		a.Groups = q.Groups
		spec.Groups = &q.Groups
	}
	spec.MaxTurns = cmp.Or(q.MaxTurns, spec.MaxTurns)
	var err error
	if spec.Model, err = h.models.choose(ctx, q.Model, a.Model); err != nil {
		return spec, nil, nil, err
	}
	if spec.Compaction.At == 0 {
		spec.Compaction.At = h.config.Models[spec.Model].CompactAt()
	}
	if spec.React, err = h.reactSpec(q, a, spec.Model); err != nil {
		return spec, nil, nil, err
	}
	if err := h.reachAll(ctx, &q, &spec); err != nil {
		return spec, nil, nil, err
	}
	if err := h.models.checkSampling(&spec); err != nil {
		return spec, nil, nil, err
	}
	if err := h.checkPrice(ctx, &spec); err != nil {
		return spec, nil, nil, err
	}
	snapshot, problems, err := h.offer(ctx, q, a, &spec)
	if err == nil {
		spec.ToolChoice, err = h.checkClientTools(q, spec.ToolChoice, snapshot, spec.Model)
	}
	if err == nil {
		err = checkChoice(spec.ToolChoice, snapshot)
	}
	spec.Exposed = exposed(q.History, snapshot)
	return spec, snapshot, problems, err
}

// exposed returns the exposed names of the tools in a history.
func exposed(history []*tenon.Message, s *catalog.Snapshot) map[string]string {
	var names map[string]string
	for _, m := range history {
		for _, c := range m.Calls() {
			if name := s.Exposed(c.Name); name != c.Name {
				if names == nil {
					names = map[string]string{}
				}
				names[c.Name] = name
			}
		}
	}
	return names
}

// checkPrice refuses a cost limit for a model without a known price, because the limit would have no effect.
func (h *Host) checkPrice(ctx context.Context, spec *agent.Spec) error {
	b := spec.Budgets
	if spec.MaxCost == 0 && b.Session.Cost == 0 && b.Day.Cost == 0 && b.Principal.Cost == 0 {
		return nil
	}
	_, ok, err := h.Models().Price(ctx, spec.Model)
	if err == nil && !ok {
		err = tenon.Errorf(tenon.CodeConfig, "a cost limit is set, but the price of model '%s' is not known: set "+
			"models.NAME.price, or prices, in tenon.yaml", spec.Model)
	}
	return err
}

// checkChoice refuses a tool choice that names a tool that is not offered.
func checkChoice(choice string, snapshot *catalog.Snapshot) error {
	c := tenon.ParseChoice(choice)
	if c.Names == nil {
		return nil
	}
	missing := choice // a list without names
	for _, name := range c.Names {
		missing = name
		if snapshot == nil {
			break
		}
		if _, ok := snapshot.Lookup(name); !ok {
			break
		}
		missing = ""
	}
	if missing == "" {
		return nil
	}
	var names []string
	if snapshot != nil {
		names = snapshot.Names()
	}
	return tenon.Errorf(tenon.CodeInvalid, "tool choice '%s' is neither auto, any, none nor one of the tools: [%s]",
		missing, strings.Join(names, ", "))
}

// waiting returns the first problem that a person can solve by accepting pins, or nil if there is none.
func waiting(problems []Problem) error {
	for _, p := range problems {
		if tenon.ErrorCode(p.Err) == tenon.CodeWaiting {
			return p.Err
		}
	}
	return nil
}

// excluded returns who excludes tools from a run, or "" if it has tools; see [agent.Spec].
func (h *Host) excluded(q Question, a agent.Config, spec *agent.Spec) string {
	switch {
	case q.NoTools:
		return agent.ExcludedByQuestion
	case !a.Tools.IsEnabled():
		return agent.ExcludedByAgent
	case spec.React == nil && !h.models.takesTools(spec.Model):
		if !h.hasNoTools() || len(q.tables)+len(q.tools) > 0 {
			h.log.Warn("MCP tools not enabled for provider", "model", spec.Model)
		}
		return agent.ExcludedByModel
	case h.hasNoTools() && len(q.tables)+len(q.tools) == 0:
		return agent.ExcludedByNobody
	}
	return ""
}

// offer puts the agent's tools into the spec, unless the question or the model excludes tools. It returns their
// snapshot, or nil if there is none.
func (h *Host) offer(ctx context.Context, q Question, a agent.Config, spec *agent.Spec) (*catalog.Snapshot, []Problem,
	error) {
	if spec.Excluded = h.excluded(q, a, spec); spec.Excluded != "" {
		return nil, nil, nil
	}
	snapshot, problems, err := h.snapshotWith(ctx, q.tools, slices.DeleteFunc(slices.Sorted(maps.Keys(h.sets())),
		func(name string) bool { return slices.Contains(h.cfg.Hidden, name) && !q.called })...)
	if err == nil && q.OnlyTable != nil {
		snapshot, problems, err = h.onlyTable(ctx, *q.OnlyTable, snapshot, problems)
		spec.Selected = true
	}
	if err == nil && q.SettlePins {
		err = waiting(problems)
	}
	if err != nil {
		return nil, problems, err
	}
	seen := h.sight(snapshot, spec.Agent, a, spec.Model)
	snapshot = seen.tools
	n := h.usable(seen, spec.Model)
	h.log.Info("MCP orchestration enabled: " + strconv.Itoa(n) + " tools available")
	if n == 0 && len(q.tables) == 0 {
		snapshot, spec.Excluded = nil, agent.ExcludedByNobody
	} else {
		spec.Tools = snapshot.Digest()
		h.remember(spec.Tools, snapshot)
	}
	var missing []string
	for _, p := range problems {
		if p.Server != "" {
			missing = append(missing, p.Server)
		}
	}
	if len(missing) > 0 {
		note := "The tools of these servers cannot be reached at the moment: " + strings.Join(missing, ", ") + "."
		spec.System = strings.TrimSpace(spec.System + "\n\n" + note)
	}
	return snapshot, problems, nil
}

// usable returns the number of tools in a sight that its model can be offered. It also counts the tools that the
// model has to find, although they are converted to the provider's format only when the model has found them.
func (h *Host) usable(seen sight, model string) int {
	return len(h.offered(seen.listed, model)) - seen.own + len(seen.tools.Tools()) - len(seen.listed.Tools())
}

// talkingTo returns the agent that continues a session: the one to which the conversation was handed over, otherwise
// the one that was asked last. It returns "" if the configuration no longer has this agent.
func (h *Host) talkingTo(ctx context.Context, last tenon.Run, seq uint64) string {
	name := last.Agent
	if _, ok := h.sets()[catalog.HandoffServer]; ok {
		if s, err := h.fold(ctx, last.ID, seq); err == nil { // the run reports the error
			name = cmp.Or(s.HandedOver(), name)
		}
	}
	if _, ok := h.config.Agents[name]; !ok {
		return ""
	}
	return name
}

// agentName returns the agent that answers a question.
func (h *Host) agentName(name string) string {
	if names := h.config.AgentNames(); name == "" && len(names) == 1 {
		return names[0]
	}
	return cmp.Or(name, "default")
}

func (h runsHandle) Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error] {
	if len(h.host.redacts) == 0 {
		return h.host.engine.Events(ctx, run, after)
	}
	return func(yield func(tenon.Event, error) bool) {
		for e, err := range h.host.engine.Events(ctx, run, after) {
			e.Data = policy.MaskArguments(e.Data, h.host.redacts)
			if !yield(e, err) {
				return
			}
		}
	}
}
