package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
)

// Version names this core in a stored run. Each journal is read by the core version that wrote it.
const Version = "agent@1"

// Spec is the data of the first event of an agent's run.
type Spec struct {
	Agent    string `json:"agent"`
	Model    string `json:"model"`
	Task     string `json:"task,omitempty"` // "" answers the question; TaskCompact, TaskImport
	System   string `json:"system,omitempty"`
	Question string `json:"question"`
	// images, documents, audio and text files of the question
	Files []tenon.Part `json:"files,omitempty"`
	// Output is the JSON Schema of the last answer. If empty, any text is valid.
	Output     json.RawMessage `json:"output_schema,omitempty"`
	Tools      string          `json:"tools,omitempty"`  // digest of the tool snapshot, a blob; empty without tools
	Policy     string          `json:"policy,omitempty"` // digest of the rules when the run began
	Grant      string          `json:"grant,omitempty"`  // who approved all calls in advance, such as "--yes"
	ToolChoice string          `json:"tool_choice,omitempty"`
	// Groups are the groups of tools that the question names. If nil, the agent's groups apply.
	Groups *[]string `json:"tool_groups,omitempty"`
	// Schedule is the name of the schedule that asks, and its time (RFC 3339). It is empty if no schedule asks.
	Schedule string `json:"schedule,omitempty"`
	// Selected says that the question selected its tools one by one. Servers can change and remove them, but not add
	// others.
	Selected bool `json:"tools_selected,omitempty"`
	// Excluded says who excluded tools from a run that began without them: one of the Excluded constants. A run that
	// began with tools has "", and so have runs of older versions and runs that ask for a text only.
	Excluded   string        `json:"tools_excluded,omitempty"`
	State      string        `json:"state,omitempty"`       // the agent's first state
	StateAsked bool          `json:"state_asked,omitempty"` // State overrides the conversation's state
	MaxTurns   int           `json:"max_turns"`
	Parallel   int           `json:"parallel_tools"`
	Timeout    time.Duration `json:"run_timeout,omitempty"` // nanoseconds; 0 means no limit

	MaxToolCalls int               `json:"tool_calls,omitempty"` // 0: no limit
	MaxTokens    int               `json:"tokens,omitempty"`     // of all model calls; 0 means no limit
	MaxCost      tenon.USD         `json:"cost,omitempty"`       // of all model calls; 0 means no limit
	Budgets      Budgets           `json:"budgets,omitzero"`     // shared with other runs
	OnLimit      string            `json:"on_limit,omitempty"`   // fail, final_response, confirm
	LimitPrompt  string            `json:"limit_prompt,omitempty"`
	Compaction   Compaction        `json:"compaction,omitzero"`
	React        *React            `json:"react,omitempty"`  // nil: the model calls tools natively
	Grants       map[string]string `json:"grants,omitempty"` // of the caller of a child run: see DecideCommand
	Depth        int               `json:"depth,omitempty"`  // number of agents that called one another before this run
	MaxDepth     int               `json:"max_depth,omitempty"`
	// nanoseconds that a question at a limit waits; 0 means without end
	Expires time.Duration `json:"expires,omitempty"`

	// History is an imported conversation before the question. It has the tool names of the servers. Exposed maps
	// them to the names that the model sees.
	History []*tenon.Message  `json:"history,omitempty"`
	Exposed map[string]string `json:"exposed_names,omitempty"`

	Sampling *Sampling `json:"sampling,omitempty"` // settings of the question; nil means the agent's
	Settings *Sampling `json:"settings,omitempty"` // settings of the agent; nil means the model's configured settings

	// Data are tables that are added to the tables of the conversation. Their bytes are blobs.
	Data []tenon.Table `json:"data,omitempty"`
	// DataPrompt is the text before the list of tables. It is added before the question, once in a conversation.
	// Empty: the tables are not listed.
	DataPrompt string `json:"data_prompt,omitempty"`
	// Brought names the servers for which the caller supplied credentials. The credentials are not in the journal.
	Brought []string `json:"own_credentials,omitempty"`
	// Asked identifies a question under its idempotency key. It is empty if the question had no key.
	Asked string `json:"asked,omitempty"`
	// Table is the table that defines the tools, or nil if the configuration defines them.
	Table *ToolTable `json:"table,omitempty"`
}

// ToolTable names the table that defines the tools of a run. It is not read again; it is used to print the command
// that resumes the run.
type ToolTable struct {
	Path   string `json:"path"`             // absolute; "-" is standard input
	Column string `json:"column,omitempty"` // empty: the last column with tools
	Dir    string `json:"dir"`              // working directory of the table's commands
}

// Sampling are settings of the model from the question. A zero field keeps the model's configured value.
type Sampling = tenon.Sampling

// React makes the model call tools in a text loop, and sets its prompt.
type React struct {
	Prompt   string `json:"prompt"`             // a built-in template, or the file of Template
	Template string `json:"template,omitempty"` // the text of a template that is not built in
	Context  string `json:"context,omitempty"`
}

// maxAttempts limits the attempts of a tool call that may be repeated.
const maxAttempts = 3

// retryDelay is the pause before the second attempt. It doubles for each further one.
const retryDelay = 500 * time.Millisecond

type status int

const (
	proposed  status = iota
	waiting          // for a decision
	asking           // waits for input that the server needs
	delegated        // waits for a child run that waits for a person
	ready
	running
	settled
)

// call is one tool call of the current turn.
type call struct {
	run       string
	child     string    // id of the child run, while the call is delegated
	allowance Allowance // of the child run
	step      string
	tool      *tenon.ToolCall
	status    status
	decision  Decision
	attempt   int
	delay     time.Duration
	allowed   bool // allowed by a person or a grant, not by the rules
	admitted  bool // its rate limit was checked
	cached    bool // the result came from the cache
	asked     *tenon.InputRequired
	answered  json.RawMessage // responses that needed no person
	rounds    int             // how often the server asked for input
	input     *tenon.InputAnswer
	result    *tenon.ToolResult
	succeeded bool // the tool returned a result without an error

	questions []*question // open while the call runs
}

// State is the agent's core: the result of applying a run's events. See [tenon.Core].
type State struct {
	spec      Spec
	messages  []*tenon.Message // messages that the model sees, including the ancestors' messages
	history   []*tenon.Message // messages without compaction
	started   time.Time        // of the run
	now       time.Time        // of the last event
	turn      int
	lastTurn  int     // the turn limit
	asked     bool    // the model call of this turn is under way
	answered  bool    // the model call of this turn ended the run
	calls     []*call // calls of this turn; empty while the model is to be asked
	steer     []string
	grants    map[string]string // tools that were allowed for the session: identity → by whom
	called    tally             // number of calls of each tool
	answer    string
	partial   string // text of a model call that was stopped or failed; see Partial
	paused    bool   // the process was closed after the last event; its time does not count
	misfits   int    // answers that did not fit the schema, in a row
	badCalls  int    // answers with a call that could not be read, in a row
	badCall   string // why the last of these calls could not be read
	usage     tenon.Usage
	cost      tenon.USD
	spent     spending // before the limits were reset
	begun     int      // model calls
	begunAt   int      // the turn of the last model call
	queued    int      // the turn whose model call waits for the budgets
	count     int      // tool calls proposed
	made      int      // tool calls since the limits were reset
	hasCalled bool     // the agent has called a tool in this run; see toolChoice
	known     int      // tokens of the first knownAt messages, as the model counted them
	knownAt   int
	perToken  int              // measured thousandths of a byte per token; 0 if not measured
	full      bool             // the conversation did not fit the model's context
	fullAt    int              // the turn in which it did not fit
	fullWhy   string           // the provider's message about it
	compacted int              // the turn of the last compaction, or of the attempt
	refused   bool             // a call exceeded the run's limit
	reserved  int              // the last turn whose model call is reserved in the budgets
	over      *Refusal         // a refusal by a budget
	state     string           // see View
	found     []string         // see View
	removed   []string         // tools that servers removed during the run, by exposed name
	artifacts bool             // a result is stored as an artifact that the model can read in parts
	tables    []tenon.Table    // tables of the conversation, ordered by their ids
	given     int              // number of tables when the run began
	toldData  bool             // the prompt about tables was added
	handedTo  string           // the agent of the last handoff
	handoff   *Handoff         // handoff at the end of this turn
	beyond    bool             // a person let the run continue past its budgets
	final     tenon.StopReason // the limit at which a last answer was requested
	insisted  bool             // the last answer was requested twice
	failed    *tenon.Error
	stop      tenon.StopReason
	cancel    *tenon.CancelData
	withdraw  bool // the end of the cancelled run drops steer
	ended     *tenon.DoneData
}

// New returns the core of a run without events. It continues the conversation and the session grants of parent, which
// it does not change. If parent is nil, the conversation begins here.
func New(spec Spec, parent *State) *State {
	limits := Limits{MaxTurns: spec.MaxTurns, ParallelTools: spec.Parallel}.WithDefaults()
	spec.MaxTurns, spec.Parallel, spec.Compaction = limits.MaxTurns, limits.ParallelTools,
		spec.Compaction.WithDefaults()
	s := &State{spec: spec, turn: 1, lastTurn: spec.MaxTurns, state: beginState(spec, parent)}
	if parent != nil {
		s.messages, s.history = parent.Messages(), parent.History()
		s.known, s.knownAt, s.perToken, s.artifacts, s.found = parent.known, parent.knownAt, parent.perToken,
			parent.artifacts, parent.found
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
		s.add(&tenon.Message{Role: tenon.RoleUser,
			Parts: append([]tenon.Part{{Type: tenon.PartText, Text: spec.Question}}, spec.Files...)})
	}
	return s
}

// Apply applies one event to the state. An event that is refused changes nothing, because it will not be in the
// journal.
func (s *State) Apply(e tenon.Event) error {
	started, now, paused := s.started, s.now, s.paused
	s.tick(e)
	err := s.apply(e)
	if err != nil {
		s.started, s.now, s.paused = started, now, paused
	}
	return err
}

func (s *State) apply(e tenon.Event) error {
	if step := tenon.ParseStep(e.Step); step.IsQuestion() {
		return s.applyQuestion(step.Asker().String(), e)
	}
	switch e.Kind {
	case tenon.EventRun:
		return nil
	case EventModel:
		return s.applyModel(e)
	case EventProposed:
		return nil // part of the model's answer; the event serves readers of the journal
	case EventTools:
		return s.applyTools(e)
	case EventCompacted:
		return s.applyCompact(e)
	case EventReserved:
		return s.applyReserved(e)
	case EventDecided, EventAdmitted, EventDecision, EventResult, EventInput, EventAnswer, EventChild, EventWake,
		EventHandoff, tenon.EventExpired:
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
		s.cancel, s.withdraw = &c, s.withdraw || c.Withdraw
		return nil
	case tenon.EventRetry:
		s.retry()
		return nil
	case tenon.EventDone:
		var d tenon.DoneData
		if err := decode(e, &d); err != nil {
			return err
		}
		s.stopPartial(d)
		if s.withdraw && d.State == tenon.RunCancelled {
			s.steer = nil // the person has the messages again
		}
		s.ended = &d
		return nil
	default:
		return tenon.Errorf(tenon.CodeStore, "run %s: event %d has the unknown kind %q; it was written by another "+
			"version of %s", e.Run, e.Seq, e.Kind, Version)
	}
}

// tick advances the run's time. It does not count time in which the run waited for a person or had no process.
func (s *State) tick(e tenon.Event) {
	switch {
	case s.started.IsZero():
		s.started = e.Time
	case e.Kind == EventDecision, e.Kind == EventAnswer, e.Kind == EventMessage, e.Kind == EventWake,
		e.Kind == tenon.EventExpired:
		if !s.busy() {
			s.started = s.started.Add(e.Time.Sub(s.now))
		}
	case s.paused, e.Kind == tenon.EventInterrupted && len(e.Data) == 0, e.Kind == tenon.EventUnknown:
		s.started = s.started.Add(e.Time.Sub(s.now))
	}
	s.now, s.paused = e.Time, false
}

func (s *State) busy() bool {
	return s.asked || slices.ContainsFunc(s.calls, (*call).isAwaited)
}

// retry resumes a failed run. It resets the limits, and continues with the calls of the turn or with a model call.
func (s *State) retry() {
	if n := len(s.messages); n > 0 && s.messages[n-1].Role == tenon.RoleAssistant && len(s.calls) == 0 &&
		s.spec.Task == "" {
		text := "Go on."
		if s.messages[n-1].Partial {
			text = againText
		}
		s.add(tenon.UserMessage(text))
	}
	if s.answered {
		s.turn++
	}
	s.ended, s.failed, s.stop, s.asked, s.answered, s.final = nil, nil, "", false, false, ""
	s.full, s.fullAt, s.compacted, s.misfits, s.insisted = false, 0, 0, 0, false
	s.extend()
}

func (s *State) modelStep() string { return strconv.Itoa(s.turn) }

// Messages returns the conversation so far as the model sees it. Every tool call in it has a result: a call without
// one is answered as not run. The history can therefore always be continued.
func (s *State) Messages() []*tenon.Message { return s.whole(s.messages) }

// whole adds the results of the current turn. After the end of the run it also adds the messages that arrived too late
// for a model call, so that the next run of the session sends them.
func (s *State) whole(messages []*tenon.Message) []*tenon.Message {
	messages = slices.Clip(messages)
	if len(s.calls) > 0 {
		messages = append(messages, s.results())
	}
	if s.ended != nil {
		for _, text := range s.steer {
			messages = append(messages, tenon.UserMessage(text))
		}
	}
	return messages
}

// results returns the message with the results of this turn's calls, in the order of the calls.
func (s *State) results() *tenon.Message {
	m := &tenon.Message{Role: tenon.RoleTool}
	for _, c := range s.calls {
		r := c.result
		if r == nil {
			r = c.answer(tenon.ErrorResult(s.ending(c)))
		}
		m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartResult, Result: r})
	}
	return m
}

// Step returns the tool call of a step of the current turn, and the decision about it.
func (s *State) Step(step string) (tenon.ToolCall, Decision, bool) {
	if c := s.find(step); c != nil {
		return *c.tool, c.decision, true
	}
	return tenon.ToolCall{}, Decision{}, false
}

// Spec returns the data of the run's first event.
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
