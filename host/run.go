package host

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
)

// Question is what an agent is asked. Only Text is required.
type Question struct {
	Text    string
	Agent   string // an entry of agents; empty: the session's, else "default", or the only one
	Session string // a session to continue (see [Host.Session]); empty: a new one
	Fork    bool   // asks in a fork of Session (see [Fork]), also where that is at work
	Model   string // in place of the agent's, see [Config.Model]
	NoTools bool
	// Files belong to the question: see [FilePart].
	Files []tenon.Part
	// Output is a JSON Schema that the answer has to fit; empty: any text. The answer is
	// then JSON alone. One that does not fit is sent back to the model, twice at most.
	Output json.RawMessage
	// History stands before the question in a new session: see [ReadConversation].
	History    []*tenon.Message
	ToolChoice string   // auto, any, none or an exposed name; empty: the agent's
	MaxTurns   int      // 0: the agent's
	Groups     []string // groups of tools that are asked for; nil: the agent's
	State      string   // state in which the agent begins; empty: that of the conversation, else the agent's
	Mode       string   // native or react; empty: the agent's
	// System stands after the agent's instructions.
	System string
	// Sampling is how the model writes its answers; nil: as it is configured.
	Sampling  *agent.Sampling
	Principal tenon.Principal // whose run it is; empty: the local user's
	// Data are tables that the agent can pass to tools and look into: Arrow files or
	// streams. See [Host.Data].
	Data [][]byte
	// Grant, if set, allows beforehand what would ask; it is who the journal
	// names as having decided.
	Grant string
	// Credentials are what the caller has of its own at servers; see [Host.Accept].
	Credentials Credentials

	asked          string // digest of what was asked under a key
	id, newSession string // of the run and of a session that it begins; empty: new ones
	called         bool   // by another agent: servers that are hidden are there for it
	own            int    // of Data, those that the agent's configuration names, which come first
}

// titleLen is how much of a question stands in lists.
const titleLen = 80

// Start begins a run and returns its row. The run goes on in the background
// until it ends, waits, or the host is closed. Problems are servers whose tools
// are missing; the model is told. Errors: not_found (agent, session, model),
// conflict (the session is at work), unreachable (a required server), store.
func (h *Host) Start(ctx context.Context, q Question) (tenon.Run, []Problem, error) {
	if strings.TrimSpace(q.Text) == "" {
		return tenon.Run{}, nil, tenon.Errorf(tenon.CodeInvalid, "the question is empty")
	}
	if s := q.Sampling; s != nil && (s.MaxTokens < 0 || outside(s.Temperature, 2) || outside(s.TopP, 1)) {
		return tenon.Run{}, nil, tenon.Errorf(tenon.CodeInvalid, "max_tokens must not be negative, temperature must be from 0 to 2, top_p from 0 to 1")
	}
	if q.MaxTurns < 0 {
		return tenon.Run{}, nil, tenon.Errorf(tenon.CodeInvalid, "MaxTurns must not be negative")
	}
	if len(q.History) > 0 && q.Session != "" {
		return tenon.Run{}, nil, tenon.Errorf(tenon.CodeInvalid, "a history begins a new session; it cannot be put into session %s", q.Session)
	}
	if q.Fork && q.Session == "" {
		return tenon.Run{}, nil, tenon.Errorf(tenon.CodeInvalid, "a fork needs a session to leave")
	}
	run := tenon.Run{ID: cmp.Or(q.id, tenon.NewID("run", h.now())), Core: agent.Version, Principal: cmp.Or(q.Principal, tenon.PrincipalLocal),
		Title: shorten(q.Text, titleLen), State: tenon.RunWorking, Created: h.now(), Updated: h.now()}
	var fork tenon.Session
	if q.Session != "" {
		s, err := h.Session(ctx, q.Session)
		if err == nil && q.Fork {
			s, _, err = h.planFork(ctx, Fork{Session: s.ID})
			s.ID = cmp.Or(q.newSession, s.ID)
			fork = s
		}
		if err != nil {
			return tenon.Run{}, nil, err
		}
		if run.Session = s.ID; s.Head != "" {
			parent, err := h.store.Run(ctx, s.Head)
			if err != nil {
				return tenon.Run{}, nil, err
			}
			run.Parent, run.ParentSeq = parent.ID, cmp.Or(s.HeadSeq, parent.Seq)
			q.Agent = cmp.Or(q.Agent, h.talkingTo(ctx, parent, run.ParentSeq))
		}
	} else {
		run.Session = cmp.Or(q.newSession, tenon.NewID("ses", h.now()))
	}
	a, err := h.config.Agent(q.Agent)
	if err != nil {
		return tenon.Run{}, nil, err
	}
	name := h.agentName(q.Agent)
	run.Agent = name
	if run.Parent == "" {
		if q.Data, err = dataInputs(a, q.Data); err != nil {
			return tenon.Run{}, nil, tenon.Errorf(tenon.ErrorCode(err), "agents.%s.%w", name, err)
		}
		q.own = len(a.DataInputs)
	}
	spec, snapshot, problems, err := h.agentSpec(ctx, name, a, q)
	if err != nil {
		return tenon.Run{}, problems, err
	}
	run.Model, spec.Brought, spec.Asked = spec.Model, q.Credentials.servers(), q.asked
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
	return run, problems, h.startWith(ctx, begin, snapshot, q.Credentials)
}

// agentSpec is what an agent's run starts from, with the snapshot of its tools, nil
// for none.
func (h *Host) agentSpec(ctx context.Context, name string, a agent.Config, q Question) (agent.Spec, *catalog.Snapshot, []Problem, error) {
	spec := agent.Spec{Agent: name, Question: q.Text, Grant: q.Grant, Policy: h.law().digest, System: a.Instructions.Text,
		ToolChoice: a.ToolChoice, MaxTurns: a.Limits.MaxTurns, Parallel: a.Limits.ParallelTools, Timeout: a.Limits.RunTimeout,
		MaxToolCalls: a.Limits.ToolCalls, MaxTokens: a.Limits.Tokens, OnLimit: a.Limits.OnLimit, LimitPrompt: a.Limits.LimitPrompt,
		MaxCost: tenon.Dollars(a.Limits.Cost), MaxDepth: a.Limits.MaxDepth, Budgets: h.config.Budgets, Compaction: a.Compaction,
		Expires: h.config.Policy.Defaults.Expires}
	spec.Files = q.Files
	if len(q.Output) == 0 {
		q.Output = a.ResponseFormat.Schema
	}
	if err := h.output(q, &spec); err != nil {
		return spec, nil, nil, err
	}
	if q.System != "" {
		spec.System = strings.TrimSpace(spec.System + "\n\n" + q.System)
	}
	spec.Sampling = q.Sampling
	spec.ToolChoice = cmp.Or(q.ToolChoice, spec.ToolChoice)
	spec.State, spec.StateAsked = cmp.Or(q.State, a.State), q.State != ""
	if q.Groups != nil {
		a.Groups = q.Groups
	}
	spec.MaxTurns = cmp.Or(q.MaxTurns, spec.MaxTurns)
	var err error
	if spec.Model, err = h.models.choose(ctx, q.Model, a.Model); err != nil {
		return spec, nil, nil, err
	}
	if spec.React, err = h.reactSpec(q, a, spec.Model); err != nil {
		return spec, nil, nil, err
	}
	if err := h.checkPrice(ctx, &spec); err != nil {
		return spec, nil, nil, err
	}
	snapshot, problems, err := h.offer(ctx, q, a, &spec)
	if err == nil {
		err = checkChoice(spec.ToolChoice, snapshot)
	}
	spec.History, spec.Exposed = q.History, exposed(q.History, snapshot)
	return spec, snapshot, problems, err
}

// exposed are the names that the model sees for the tools of a history.
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

// checkPrice refuses a bound on money for a model whose price is not known: it
// would bound nothing.
func (h *Host) checkPrice(ctx context.Context, spec *agent.Spec) error {
	b := spec.Budgets
	if spec.MaxCost == 0 && b.Session.Cost == 0 && b.Day.Cost == 0 && b.Principal.Cost == 0 {
		return nil
	}
	_, ok, err := h.Price(ctx, spec.Model)
	if err == nil && !ok {
		err = tenon.Errorf(tenon.CodeConfig, "a limit of cost is set, and the price of model '%s' is not known: set models.NAME.price, or prices, in tenon.yaml", spec.Model)
	}
	return err
}

// checkChoice refuses a tool choice that names a tool that is not on offer.
func checkChoice(choice string, snapshot *catalog.Snapshot) error {
	switch choice {
	case "", agent.ToolChoiceAuto, agent.ToolChoiceAny, agent.ToolChoiceNone:
		return nil
	}
	var names []string
	if snapshot != nil {
		if _, ok := snapshot.Lookup(choice); ok {
			return nil
		}
		names = snapshot.Names()
	}
	return tenon.Errorf(tenon.CodeInvalid, "tool choice '%s' is neither auto, any, none nor one of the tools: [%s]", choice, strings.Join(names, ", "))
}

// waiting returns what a person has to accept first, nil for nothing: a run does not
// silently begin without the tools that it is about.
func waiting(problems []Problem) error {
	for _, p := range problems {
		if tenon.ErrorCode(p.Err) == tenon.CodeWaiting {
			return p.Err
		}
	}
	return nil
}

// offer puts the agent's tools into the spec, unless it is to have none; it
// returns their snapshot, nil for none.
func (h *Host) offer(ctx context.Context, q Question, a agent.Config, spec *agent.Spec) (*catalog.Snapshot, []Problem, error) {
	if q.NoTools || !a.Tools.IsEnabled() || h.hasNoTools() && len(q.Data) == 0 {
		return nil, nil, nil
	}
	if spec.React == nil && !h.models.takesTools(spec.Model) {
		h.log.Warn("MCP tools not enabled for provider", "model", spec.Model)
		return nil, nil, nil
	}
	snapshot, problems, err := h.Tools(ctx, slices.DeleteFunc(slices.Sorted(maps.Keys(h.sets())), func(name string) bool { return slices.Contains(h.cfg.Hidden, name) && !q.called })...)
	if err == nil {
		err = waiting(problems)
	}
	if err != nil {
		return nil, problems, err
	}
	seen := h.sight(snapshot, spec.Agent, a, spec.Model)
	snapshot = seen.tools
	// A tool that has to be found is put into the provider's form when it was.
	n := len(h.offered(seen.told, spec.Model)) - seen.own + len(seen.tools.Tools()) - len(seen.told.Tools())
	h.log.Info("MCP orchestration enabled: " + strconv.Itoa(n) + " tools available")
	if n == 0 && len(q.Data) == 0 {
		snapshot = nil
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

// talkingTo is the agent that has a session's conversation: the one that it was
// handed over to, else the one that was asked last; "" where that is not configured
// any more.
func (h *Host) talkingTo(ctx context.Context, last tenon.Run, seq uint64) string {
	name := last.Agent
	if _, ok := h.sets()[handoffServer]; ok {
		if s, err := h.fold(ctx, last.ID, seq); err == nil { // else the run will say so itself
			name = cmp.Or(s.HandedOver(), name)
		}
	}
	if _, ok := h.config.Agents[name]; !ok {
		return ""
	}
	return name
}

// agentName is the name of the agent that a question goes to.
func (h *Host) agentName(name string) string {
	if names := h.config.AgentNames(); name == "" && len(names) == 1 {
		return names[0]
	}
	if name == "" {
		return "default"
	}
	return name
}

// Events yields a run's events after the given number and follows it. See
// [engine.Engine].
func (h *Host) Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error] {
	if len(h.redacts) == 0 {
		return h.engine.Events(ctx, run, after)
	}
	return func(yield func(tenon.Event, error) bool) {
		for e, err := range h.engine.Events(ctx, run, after) {
			e.Data = policy.MaskArguments(e.Data, h.redacts)
			if !yield(e, err) {
				return
			}
		}
	}
}

// Run asks and follows: Start and Events in one. What the run waits for is put to
// [Config.Approve], if there is one, and the run goes on; without one the last event is
// a live one of kind [engine.EventWaiting], and Decide and Resume go on.
//
// A run that has ended has [tenon.EventDone] as its last event, whose [tenon.DoneData] has
// the answer, or the error that it failed with: that is not an error of Run, which are
// those of Start and Events, and cancelled where ctx ends first. Whoever stops to follow,
// by break or by ctx, does not stop the run: Cancel and Close do.
//
// Text comes word by word in live events (Seq 0) of kind [engine.LiveDelta], whose data is
// an [engine.Delta].
func (h *Host) Run(ctx context.Context, q Question) iter.Seq2[tenon.Event, error] {
	return func(yield func(tenon.Event, error) bool) {
		run, _, err := h.Start(ctx, q)
		held := false // a call waits for a person
		last := ""    // the kind of the last event
		for seq, rests := uint64(0), true; err == nil && rests; {
			rests = false
			for e, ferr := range h.Events(ctx, run.ID, seq) {
				if !yield(e, ferr) {
					return
				}
				seq, last, rests = max(seq, e.Seq), e.Kind, e.Kind == engine.EventWaiting
				if h.cfg.Approve == nil {
					continue
				}
				held = held || asks(e)
				if e.Kind == tenon.EventQuestion {
					err = h.approve(ctx, run.ID, true)
				} else if held && e.Kind == tenon.EventStarted && strings.Contains(e.Step, ".") {
					held = false // others are under way: nobody waits for their end first
					if err = h.approve(ctx, run.ID, false); err == nil {
						err = h.goOn(ctx, run.ID)
					}
				}
				if err != nil {
					break
				}
			}
			if rests = rests && err == nil && h.cfg.Approve != nil; rests {
				if err = h.approve(ctx, run.ID, false); err == nil {
					err = h.Resume(ctx, run.ID)
				}
			}
		}
		if err == nil && ctx.Err() != nil && last != tenon.EventDone && last != engine.EventWaiting {
			err = tenon.Errorf(tenon.CodeCancelled, "run %s is followed no longer: %w; it goes on", run.ID, context.Cause(ctx))
		}
		if err != nil {
			yield(tenon.Event{}, err)
		}
	}
}

// goOn goes on with a run that came to rest while somebody decided about it: the
// decision was recorded then, and nobody works on it.
func (h *Host) goOn(ctx context.Context, run string) error {
	row, err := h.store.Run(ctx, run)
	if err != nil || row.State.Ended() {
		return err
	}
	if owned, err := h.Owned(run); err != nil || owned {
		return err
	}
	return h.Resume(ctx, run)
}

// asks reports whether an event says that a person has to decide about a call.
func asks(e tenon.Event) bool {
	var d agent.Decision
	return e.Kind == agent.EventDecided && json.Unmarshal(e.Data, &d) == nil && d.Verdict == tenon.Ask
}

// approve has what a run waits for decided: what servers ask in the middle of a call,
// or all else.
func (h *Host) approve(ctx context.Context, run string, live bool) error {
	for seen := map[string]bool{}; ; {
		// Anew each time: what is allowed for the session settles others as well.
		list, err := h.Awaited(ctx, run)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(p Approval) bool { return p.Live == live && !seen[p.ID] })
		if i < 0 {
			return nil
		}
		seen[list[i].ID] = true
		r, err := h.cfg.Approve(ctx, list[i])
		if err != nil {
			return err
		}
		if _, err := h.Decide(ctx, list[i].Run, list[i].Step, r); err != nil {
			return err
		}
	}
}

// shorten cuts a text to one line of at most n runes.
func shorten(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > n {
		r = append(r[:n-1], '…')
	}
	return string(r)
}

// outside reports whether a number that is there is not from 0 to a bound.
func outside(f *float64, most float64) bool { return f != nil && !(*f >= 0 && *f <= most) }
