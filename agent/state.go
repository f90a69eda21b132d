package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
)

// Version names this core in a run's row. A journal is always read by the
// version that wrote it.
const Version = "agent@1"

// Spec is what an agent's run starts from: the data of its first event.
type Spec struct {
	Agent    string       `json:"agent"`
	Model    string       `json:"model"`
	Task     string       `json:"task,omitempty"` // "" answers the question; TaskCompact, TaskImport
	System   string       `json:"system,omitempty"`
	Question string       `json:"question"`
	Files    []tenon.Part `json:"files,omitempty"` // pictures, documents, sounds and texts of files that belong to the question
	// Output is the JSON Schema that the answer has to fit; empty: any text.
	Output     json.RawMessage `json:"output_schema,omitempty"`
	Tools      string          `json:"tools,omitempty"`  // digest of the tool snapshot, a blob; empty: no tools
	Policy     string          `json:"policy,omitempty"` // digest of the rules when the run began
	Grant      string          `json:"grant,omitempty"`  // who allowed beforehand whatever would ask, such as "--yes"
	ToolChoice string          `json:"tool_choice,omitempty"`
	State      string          `json:"state,omitempty"`       // in which the agent begins
	StateAsked bool            `json:"state_asked,omitempty"` // State stands above the one that the conversation was in
	MaxTurns   int             `json:"max_turns"`
	Parallel   int             `json:"parallel_tools"`
	Timeout    time.Duration   `json:"run_timeout,omitempty"` // nanoseconds; 0: none

	MaxToolCalls int               `json:"tool_calls,omitempty"` // 0: no limit
	MaxTokens    int               `json:"tokens,omitempty"`     // of all model calls; 0: no limit
	MaxCost      tenon.USD         `json:"cost,omitempty"`       // of all model calls; 0: no limit
	Budgets      Budgets           `json:"budgets,omitzero"`     // shared with other runs
	OnLimit      string            `json:"on_limit,omitempty"`   // fail, final_response, confirm
	LimitPrompt  string            `json:"limit_prompt,omitempty"`
	Compaction   Compaction        `json:"compaction,omitzero"`
	React        *React            `json:"react,omitempty"`  // nil: the model calls tools itself
	Grants       map[string]string `json:"grants,omitempty"` // of a run's caller: see DecideCommand
	Depth        int               `json:"depth,omitempty"`  // how many agents called one another to get here
	MaxDepth     int               `json:"max_depth,omitempty"`
	Expires      time.Duration     `json:"expires,omitempty"` // nanoseconds that a question at a limit waits; 0: for ever

	// History is a conversation from elsewhere that stands before the question. Its
	// tools have the names that they have at their servers; Exposed has those that
	// the model sees: from → to.
	History []*tenon.Message  `json:"history,omitempty"`
	Exposed map[string]string `json:"exposed_names,omitempty"`

	Sampling *Sampling `json:"sampling,omitempty"` // nil: as the model is configured

	// Data are tables that are added to those of the conversation; their bytes are blobs.
	Data []tenon.Table `json:"data,omitempty"`
	// DataPrompt is what the model is told of the tables before the question, once in a
	// conversation: the text before their list. Empty: nothing is said.
	DataPrompt string `json:"data_prompt,omitempty"`
	// Brought are the servers for which the caller brought credentials of its own, which
	// are no part of a journal.
	Brought []string `json:"own_credentials,omitempty"`
	// Asked tells what was asked under an idempotency key from other questions; empty:
	// there was no key.
	Asked string `json:"asked,omitempty"`
}

// Sampling is how the model writes its answers, where a question says so itself. A
// zero field is as the model is configured.
type Sampling struct {
	MaxTokens   int      `json:"max_tokens,omitempty"` // of one answer
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
}

// React says that tools are called in a text loop, and how its prompt is written.
type React struct {
	Prompt   string `json:"prompt"`             // a built-in template, or the file that Template came from
	Template string `json:"template,omitempty"` // the text of a template that is not built in
	Context  string `json:"context,omitempty"`
}

// maxAttempts bounds how often one tool call is tried where repeating is safe.
const maxAttempts = 3

// retryDelay is the pause before a second attempt; it doubles from then on.
const retryDelay = 500 * time.Millisecond

type status int

const (
	proposed  status = iota
	waiting          // for a decision
	asking           // for input that the server wants
	delegated        // to another agent, whose run waits for a person
	ready
	running
	settled
)

// call is one tool call of the current turn.
type call struct {
	run       string
	child     string    // the run that was called, while the call is delegated
	allowance Allowance // of that run
	step      string
	tool      *tenon.ToolCall
	status    status
	decision  Decision
	attempt   int
	delay     time.Duration
	admitted  bool // it has a turn under its tool's rate
	cached    bool // the result is that of another call
	asked     *tenon.InputRequired
	answered  json.RawMessage // of what was asked, without a person
	rounds    int             // how often the server asked for input
	input     *tenon.InputAnswer
	result    *tenon.ToolResult
	succeeded bool // the tool answered, and not with an error

	questions []*question // that are open while it runs
}

// State is the agent's core: the fold of a run's events. See [tenon.Core].
type State struct {
	spec      Spec
	messages  []*tenon.Message // what the model sees; the ancestors' first
	history   []*tenon.Message // the same as it was before any compaction
	started   time.Time        // of the run
	now       time.Time        // of the last event
	turn      int
	lastTurn  int     // the turn limit
	asked     bool    // the model call of this turn is under way
	answered  bool    // the model call of this turn ended the run
	calls     []*call // of this turn; empty while the model is to be asked
	steer     []string
	grants    map[string]string // tools that were allowed for the session: identity → by whom
	called    tally             // calls by tool
	answer    string
	misfits   int // answers that did not fit the schema, in a row
	usage     tenon.Usage
	cost      tenon.USD
	spent     spending // before the limits began anew
	begun     int      // model calls
	begunAt   int      // the turn of the last of them
	queued    int      // the turn whose model call waits for the budgets
	count     int      // tool calls proposed
	made      int      // of those, since the limits began anew
	hasCalled bool     // the agent has called a tool in this run, as its tool choice may want
	known     int      // tokens of the first knownAt messages, as the model counted
	knownAt   int
	perToken  int              // thousandths of a byte that a token stands for, learned; 0: not yet
	full      bool             // the model could not take the conversation
	fullAt    int              // the turn in which it could not
	fullWhy   string           // what the provider said then
	compacted int              // the turn in which the conversation was made shorter, or that was tried
	refused   bool             // a call was over the limit
	reserved  int              // the last turn whose model call the budgets have room for
	over      *Refusal         // what a budget had no room for
	state     string           // see View
	found     []string         // see View
	artifacts bool             // there is a result that the model can read piece by piece
	tables    []tenon.Table    // of the conversation, by their ids
	given     int              // of these, when the run began
	toldData  bool             // the model was told that there are such
	handedTo  string           // the agent that has taken over
	handoff   *Handoff         // who takes over after this turn
	beyond    bool             // a person let the run go on past its budgets
	final     tenon.StopReason // the limit at which the last answer was asked for
	insisted  bool             // it was asked for twice
	failed    *tenon.Error
	stop      tenon.StopReason
	cancel    *tenon.CancelData
	ended     *tenon.DoneData
}

// New returns the core of a run that has no events yet. It goes on with the
// conversation of parent, and with what was granted for the session there; nil
// begins a new one. The parent is not changed.
func New(spec Spec, parent *State) *State {
	limits := Limits{MaxTurns: spec.MaxTurns, ParallelTools: spec.Parallel}.WithDefaults()
	spec.MaxTurns, spec.Parallel, spec.Compaction = limits.MaxTurns, limits.ParallelTools, spec.Compaction.WithDefaults()
	s := &State{spec: spec, turn: 1, lastTurn: spec.MaxTurns, state: beginState(spec, parent)}
	if parent != nil {
		s.messages, s.history = parent.Messages(), parent.History()
		s.known, s.knownAt, s.perToken, s.artifacts, s.found = parent.known, parent.knownAt, parent.perToken, parent.artifacts, parent.found
		if parent.handedTo == spec.Agent {
			s.handedTo = parent.handedTo
		}
		s.grants, s.called.session = maps.Clone(parent.grants), maps.Clone(parent.called.session)
	}
	if len(spec.Grants) > 0 {
		s.grants = maps.Clone(spec.Grants)
	}
	s.addHistory()
	s.addData(parent)
	if spec.Task == "" {
		s.add(&tenon.Message{Role: tenon.RoleUser, Parts: append([]tenon.Part{{Type: tenon.PartText, Text: spec.Question}}, spec.Files...)})
	}
	return s
}

// Apply folds one event into the state. One that is refused changes nothing, not
// the run's time either: it will not be in the journal.
func (s *State) Apply(e tenon.Event) error {
	started, now := s.started, s.now
	s.tick(e)
	err := s.apply(e)
	if err != nil {
		s.started, s.now = started, now
	}
	return err
}

func (s *State) apply(e tenon.Event) error {
	if parent, ok := parentStep(e.Step); ok {
		return s.applyQuestion(parent, e)
	}
	switch e.Kind {
	case tenon.EventRun:
		return nil
	case EventModel:
		return s.applyModel(e)
	case EventProposed:
		return nil // part of the model's answer; journaled on its own for those who follow
	case EventCompacted:
		return s.applyCompact(e)
	case EventReserved:
		return s.applyReserved(e)
	case EventDecided, EventAdmitted, EventDecision, EventResult, EventInput, EventAnswer, EventChild, EventWake, EventHandoff, tenon.EventExpired:
		if e.Step == s.modelStep() {
			return s.applyContinue(e)
		}
		return s.applyCall(e)
	case tenon.EventStarted, tenon.EventUnknown, tenon.EventInterrupted, EventFailed:
		switch e.Step {
		case s.modelStep():
			return s.applyAttempt(e)
		case s.compactStep():
			return s.applyCompact(e)
		case s.finalStep():
			if e.Kind == tenon.EventStarted {
				return s.applyAttempt(e)
			}
		}
		return s.applyCall(e)
	case EventMessage:
		var m Steer
		if err := decode(e, &m); err != nil {
			return err
		}
		s.steer = append(s.steer, m.Text)
		return nil
	case tenon.EventCancel:
		var c tenon.CancelData
		if err := decode(e, &c); err != nil {
			return err
		}
		s.cancel = &c
		return nil
	case tenon.EventRetry:
		s.retry()
		return nil
	case tenon.EventDone:
		var d tenon.DoneData
		if err := decode(e, &d); err != nil {
			return err
		}
		s.ended = &d
		return nil
	default:
		return tenon.Errorf(tenon.CodeStore, "run %s: event %d has the unknown kind %q; it was written by another version of %s", e.Run, e.Seq, e.Kind, Version)
	}
}

// tick moves the run's time. Time in which nothing was under way, because a person
// was awaited or the process was gone, is not the run's.
func (s *State) tick(e tenon.Event) {
	switch {
	case s.started.IsZero():
		s.started = e.Time
	case e.Kind == EventDecision, e.Kind == EventAnswer, e.Kind == EventMessage, e.Kind == EventWake, e.Kind == tenon.EventExpired:
		if !s.busy() {
			s.started = s.started.Add(e.Time.Sub(s.now))
		}
	case e.Kind == tenon.EventInterrupted, e.Kind == tenon.EventUnknown:
		s.started = s.started.Add(e.Time.Sub(s.now))
	}
	s.now = e.Time
}

func (s *State) busy() bool {
	return s.asked || slices.ContainsFunc(s.calls, (*call).isAwaited)
}

// retry takes up a run that had failed: it gets its limits anew, and goes on with
// the calls of its turn or by asking the model again.
func (s *State) retry() {
	if n := len(s.messages); n > 0 && s.messages[n-1].Role == tenon.RoleAssistant && len(s.calls) == 0 && s.spec.Task == "" {
		s.add(tenon.UserMessage("Go on."))
	}
	if s.answered {
		s.turn++
	}
	s.ended, s.failed, s.stop, s.asked, s.answered, s.final = nil, nil, "", false, false, ""
	s.full, s.fullAt, s.compacted, s.misfits, s.insisted = false, 0, 0, 0, false
	s.extend()
}

func (s *State) modelStep() string { return strconv.Itoa(s.turn) }

// Messages returns the conversation so far as the model sees it. Every tool call in
// it has a result: calls that have none yet are answered as not run, so that the
// history can be continued whatever happened to the run.
func (s *State) Messages() []*tenon.Message { return s.whole(s.messages) }

func (s *State) whole(messages []*tenon.Message) []*tenon.Message {
	if len(s.calls) == 0 {
		return slices.Clip(messages)
	}
	return append(slices.Clip(messages), s.results())
}

// results is the message that answers the calls of this turn, in call order.
func (s *State) results() *tenon.Message {
	m := &tenon.Message{Role: tenon.RoleTool}
	for _, c := range s.calls {
		r := c.result
		if r == nil {
			r = c.answer(tenon.ErrorResult("not run: the run was stopped before"))
		}
		m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartResult, Result: r})
	}
	return m
}

// Step returns the tool call of a step of the current turn and what was decided
// about it.
func (s *State) Step(step string) (tenon.ToolCall, Decision, bool) {
	if c := s.find(step); c != nil {
		return *c.tool, c.decision, true
	}
	return tenon.ToolCall{}, Decision{}, false
}

// Spec returns what the run started from.
func (s *State) Spec() Spec { return s.spec }

func (s *State) find(step string) *call {
	for _, c := range s.calls {
		if c.step == step {
			return c
		}
	}
	return nil
}

var _ tenon.Core = (*State)(nil)
