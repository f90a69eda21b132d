package agent

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// OnLimitFail ends a run that reaches a limit as failed.
const OnLimitFail = "fail"

// The values of Config.ToolChoice that are not a tool's name.
const (
	ToolChoiceAuto = "auto"
	ToolChoiceAny  = "any"
	ToolChoiceNone = "none"
)

// DefaultState is the state of an agent that is configured to be in none.
const DefaultState = "undefined"

// The values of [Config.Mode].
const (
	ModeNative = "native" // tools in the form of the model's provider
	ModeReact  = "react"  // tools in a text loop
)

// The values of [Config.Prompt] that are not a file.
const (
	PromptDefault    = "default"
	PromptTrustGraph = "trustgraph"
)

// Config is one entry of `agents` in tenon.yaml. The comments on the fields
// are the user's documentation.
type Config struct {
	// Shown text.
	Description string `yaml:"description"`
	// Entry of `models` to use.
	Model string `yaml:"model" default:"first of models"`
	// How tools are called: native, in the form of the model's provider, or react, in a text loop of thoughts, actions and observations that any model can follow. It stands above the model's `tool_mode`.
	Mode string `yaml:"mode" enum:"native,react" default:"as the model's tool_mode says"`
	// The system prompt.
	Instructions Instructions `yaml:"instructions"`
	// Template of the prompt in mode react: default, trustgraph, or a file (docs/reference/react.md).
	Prompt string `yaml:"prompt" default:"default"`
	// Text that stands in the prompt in mode react.
	AdditionalContext string `yaml:"additional_context"`
	// Which tools the agent sees.
	Tools Tools `yaml:"tools"`
	// Groups of tools that the agent asks for; "*" is all, [] none.
	Groups []string `yaml:"groups" default:"[default]"`
	// State in which the agent is: tools whose `states` do not name it are not visible.
	State string `yaml:"state" default:"undefined"`
	// Agents that this one can hand the conversation over to; each is a tool transfer_to_NAME.
	Handoffs []string `yaml:"handoffs" default:"[]"`
	// auto: the model decides; any: it must call a tool; none: it must not, and a call is refused; else the exposed name of the tool that it must call. After the first call the model decides.
	ToolChoice string `yaml:"tool_choice" default:"auto"`
	// What the last answer of its runs has to be: JSON that fits a schema. What a question asks for (`run --output-schema`) stands above it.
	ResponseFormat ResponseFormat `yaml:"response_format"`
	// Limits of this agent; stands above the global `limits`.
	Limits Limits `yaml:"limits"`
	// How a long conversation is made to fit the model.
	Compaction Compaction `yaml:"compaction"`
	// Arrow files with which a conversation of this agent begins, before those of the question: the model is told their columns, and passes them to tools.
	DataInputs []string `yaml:"data_inputs" default:"[]"`
	// What the model is told before the list of the tables of data (docs/reference/data.md); it should end with a heading. Default: what ids are, and "## Data repository:".
	DataMessagePrefix string `yaml:"data_message_prefix"`
	// Where the error of a run that fails goes.
	Errors Errors `yaml:"errors"`
	// Rules for the tools that this agent uses; stands above those of servers and groups, below those of tools.
	Policy policy.Block `yaml:"policy"`

	// Template holds the text of the file that Prompt names, once it is read.
	Template string `yaml:"-"`
}

// Instructions is the system prompt: a text or a file, not both.
type Instructions struct {
	// The prompt itself.
	Text string `yaml:"text"`
	// File that holds the prompt.
	File string `yaml:"file"`
}

// ResponseFormat is the block `response_format` of an agent: one of the two, or none.
type ResponseFormat struct {
	// JSON Schema of the answer.
	Schema json.RawMessage `yaml:"schema"`
	// File that holds the schema, as JSON or YAML.
	File string `yaml:"file"`
}

// IsSet reports whether the answer has to be of a form.
func (f ResponseFormat) IsSet() bool { return len(f.Schema) > 0 || f.File != "" }

// Tools says which of the exposed tools an agent sees.
type Tools struct {
	// false: no tools at all.
	Enabled *bool `yaml:"enabled" default:"true"`
	// Globs on exposed names.
	Include []string `yaml:"include" default:"[\"*\"]"`
	// Globs on exposed names to leave out; wins over include.
	Exclude []string `yaml:"exclude" default:"[]"`
}

// Limits bounds one run. A zero field says nothing: the next less specific
// block decides.
type Limits struct {
	// Model requests per run, at least 1.
	MaxTurns int `yaml:"max_turns" alias:"max_iterations" min:"1" default:"10"`
	// Tool calls of one turn that run at a time, at least 1.
	ParallelTools int `yaml:"parallel_tools" min:"1" default:"4"`
	// Time for the whole run.
	RunTimeout time.Duration `yaml:"run_timeout" default:"15m"`
	// Tool calls per run; 0: no limit. What is over it is not run, and the limit is reached.
	ToolCalls int `yaml:"tool_calls" min:"0" default:"0"`
	// Tokens per run, of all model requests together; 0: no limit.
	Tokens int `yaml:"tokens" min:"0" default:"0"`
	// US dollars per run, of all model requests whose price is known; 0: no limit.
	Cost float64 `yaml:"cost" min:"0" default:"0"`
	// How deep agents may call one another, at least 1.
	MaxDepth int `yaml:"max_depth" min:"1" default:"3"`
	// What happens at a limit. fail: the run ends as failed (exit code 6); final_response: one more model request without tools; confirm: the run waits for a person to say whether it may go on.
	OnLimit string `yaml:"on_limit" enum:"fail,final_response,confirm" default:"fail"`
	// User message of final_response.
	LimitPrompt string `yaml:"limit_prompt" default:"built-in text"`
}

// Over returns l with base in the place of what l does not say.
func (l Limits) Over(base Limits) Limits {
	if l.MaxTurns == 0 {
		l.MaxTurns = base.MaxTurns
	}
	if l.ParallelTools == 0 {
		l.ParallelTools = base.ParallelTools
	}
	if l.RunTimeout == 0 {
		l.RunTimeout = base.RunTimeout
	}
	if l.ToolCalls == 0 {
		l.ToolCalls = base.ToolCalls
	}
	if l.Tokens == 0 {
		l.Tokens = base.Tokens
	}
	if l.Cost == 0 {
		l.Cost = base.Cost
	}
	if l.MaxDepth == 0 {
		l.MaxDepth = base.MaxDepth
	}
	if l.OnLimit == "" {
		l.OnLimit = base.OnLimit
	}
	if l.LimitPrompt == "" {
		l.LimitPrompt = base.LimitPrompt
	}
	return l
}

// WithDefaults returns the limits with the built-in ones in the place of what
// they do not say.
func (l Limits) WithDefaults() Limits {
	return l.Over(Limits{MaxTurns: 10, ParallelTools: 4, RunTimeout: 15 * time.Minute, MaxDepth: 3, OnLimit: OnLimitFail})
}

// WithDefaults returns a copy in which every absent value has its default.
// Model stays empty: which model is the first is not known here.
func (c Config) WithDefaults() Config {
	if c.Tools.Enabled == nil {
		yes := true
		c.Tools.Enabled = &yes
	}
	if c.Tools.Include == nil {
		c.Tools.Include = []string{"*"}
	}
	if c.Prompt == "" {
		c.Prompt = PromptDefault
	}
	if c.ToolChoice == "" {
		c.ToolChoice = ToolChoiceAuto
	}
	if c.Groups == nil {
		c.Groups = []string{tenon.DefaultGroup}
	}
	if c.State == "" {
		c.State = DefaultState
	}
	c.Limits, c.Compaction, c.Errors = c.Limits.WithDefaults(), c.Compaction.WithDefaults(), c.Errors.WithDefaults()
	return c
}

// The values of [Errors.Mode].
const (
	ErrorsFail   = "fail"
	ErrorsColumn = "column"
)

// Errors says what becomes of the error of a run that fails.
type Errors struct {
	// fail: the command fails; column: where the conversation is written as a table, the error is a row of it, and the command ends as if the run had not failed.
	Mode string `yaml:"mode" enum:"fail,column" default:"fail"`
	// Column of that table.
	Column string `yaml:"column" default:"Errors"`
}

// WithDefaults returns a copy with the values that are absent filled in.
func (e Errors) WithDefaults() Errors {
	e.Mode = cmp.Or(e.Mode, ErrorsFail)
	e.Column = cmp.Or(e.Column, "Errors")
	return e
}

// IsEnabled reports whether the agent sees any tools.
func (t Tools) IsEnabled() bool { return t.Enabled == nil || *t.Enabled }
