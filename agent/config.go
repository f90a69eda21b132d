package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// OnLimitFail makes a run fail at a limit.
const OnLimitFail = "fail"

// Values of Config.ToolChoice that are not names of tools.
const (
	ToolChoiceAuto = "auto"
	ToolChoiceAny  = "any"
	ToolChoiceNone = "none"
)

// DefaultState is the state of an agent whose configuration names none.
const DefaultState = "undefined"

// Values of [Config.Mode].
const (
	ModeNative = "native" // tools in the form of the model's provider API
	ModeReact  = "react"  // tools in a text loop
)

// Values of [Config.Prompt] that are not files.
const (
	PromptDefault    = "default"
	PromptTrustGraph = "trustgraph"
)

// Config is one entry of `agents` in tenon.yaml. Its field comments are user documentation.
type Config struct {
	// Description that users and other agents see.
	Description string `yaml:"description"`
	// Name of the entry of `models` that the agent uses.
	Model string `yaml:"model" default:"first of models"`
	// How the model calls tools. native: in the form of the provider's API; react: in a text loop of thoughts,
	// actions and observations, which works with any model. Overrides the model's `tool_mode`.
	Mode string `yaml:"mode" enum:"native,react" default:"as the model's tool_mode says"`
	// System prompt of the agent.
	Instructions Instructions `yaml:"instructions"`
	// Prompt template in mode react: default, trustgraph, or a file (tenon docs react).
	Prompt string `yaml:"prompt" default:"default"`
	// Additional text for the prompt in mode react.
	AdditionalContext string `yaml:"additional_context"`
	// Tools that the agent sees.
	Tools Tools `yaml:"tools"`
	// Tools that the provider of the agent's model runs itself, as in `models.NAME.tools`. They are added to the tools
	// of the model; an entry replaces the model's entry of the same name. A model whose API does not have a tool is
	// asked without it, with a warning.
	ProviderTools json.RawMessage `yaml:"provider_tools" default:"{}"`
	// Groups of tools that the agent sees. "*" is every group, [] is none.
	Groups []string `yaml:"groups" default:"[default]"`
	// State in which the agent begins. It sees a tool with `states` only in one of these states.
	State string `yaml:"state" default:"undefined"`
	// Agents to which this agent can hand the conversation over. Each of them appears as a tool transfer_to_NAME.
	Handoffs []string `yaml:"handoffs" default:"[]"`
	// Whether the model calls tools. auto: the model decides; any: it must call a tool; none: it must not call tools,
	// and calls are refused; a tool's exposed name, or several separated by commas: it must call one of them. After the
	// first call the model decides. "auto:NAME,NAME": it may call these tools and no others, in the whole run.
	ToolChoice string `yaml:"tool_choice" default:"auto"`
	// Settings of this agent's model requests. They override the settings of its model. A question can override them.
	Settings Settings `yaml:"settings"`
	// JSON schema of the agent's last answer. The schema of a question (`run --output-schema`) overrides it.
	ResponseFormat ResponseFormat `yaml:"response_format"`
	// Limits of each run of this agent. They override the global `limits`.
	Limits Limits `yaml:"limits"`
	// How a long conversation is shortened to fit the model's context.
	Compaction Compaction `yaml:"compaction"`
	// Arrow files that each conversation of this agent starts with, before the question's files. The model sees their
	// columns and passes them to tools.
	DataInputs []string `yaml:"data_inputs" default:"[]"`
	// Text before the list of data tables (tenon docs data). It should end with a heading. The default
	// explains ids and ends with "## Data repository:".
	DataMessagePrefix string `yaml:"data_message_prefix"`
	// How the error of a failed run is reported.
	Errors Errors `yaml:"errors"`
	// Rules for the tools that this agent uses. They override rules of servers and groups; rules of tools override
	// them.
	Policy policy.Block `yaml:"policy"`

	// Template is the text of the file that Prompt names, after it was read.
	Template string `yaml:"-"`
}

// Instructions is the system prompt: either a text or a file.
type Instructions struct {
	// Text of the prompt.
	Text string `yaml:"text" short:"true"`
	// File with the prompt.
	File string `yaml:"file"`
}

// ResponseFormat is the block `response_format` of an agent: a schema, a file, or neither.
type ResponseFormat struct {
	// JSON Schema of the last answer.
	Schema json.RawMessage `yaml:"schema"`
	// File with the schema, in JSON or YAML.
	File string `yaml:"file"`
}

// Tools selects the exposed tools that an agent sees.
type Tools struct {
	// false: the agent sees no tools.
	Enabled *bool `yaml:"enabled" default:"true"`
	// Globs of tools to offer, by exposed name. A glob with a slash matches SERVER/REMOTE_NAME.
	Include []string `yaml:"include" default:"[\"*\"]"`
	// Globs of tools to leave out, by exposed or remote name, or by SERVER/REMOTE_NAME or SERVER.REMOTE_NAME. They
	// also match if a name clash has changed the exposed name. Overrides include.
	Exclude []string `yaml:"exclude" default:"[]"`

	// Floors are the selections of agents of the same name in more trusted layers. This agent sees only tools that
	// all of them select.
	Floors []Tools `yaml:"-" json:"-"`
}

// Limits limits one run. A zero field sets nothing, so that the next less specific block applies.
type Limits struct {
	// Maximum number of model requests per run.
	MaxTurns int `yaml:"max_turns" alias:"max_iterations" min:"1" default:"10"`
	// Maximum number of tool calls of one turn that run at the same time.
	ParallelTools int `yaml:"parallel_tools" min:"1" default:"4"`
	// Maximum duration of a run.
	RunTimeout time.Duration `yaml:"run_timeout" default:"15m"`
	// Maximum number of tool calls per run; 0: no limit. Further calls are refused.
	ToolCalls int `yaml:"tool_calls" min:"0" default:"0"`
	// Maximum number of tokens per run, for all model requests together; 0: no limit.
	Tokens int `yaml:"tokens" min:"0" default:"0"`
	// Maximum cost per run in US dollars, for all model requests with a known price; 0: no limit.
	Cost float64 `yaml:"cost" min:"0" default:"0"`
	// Maximum depth of agents that call agents.
	MaxDepth int `yaml:"max_depth" min:"1" default:"3"`
	// Effect of a limit. fail: the run fails (exit code 6); final_response: it makes one more model request
	// without tools; confirm: it waits until a person allows it to continue.
	OnLimit string `yaml:"on_limit" enum:"fail,final_response,confirm" default:"fail"`
	// User message of the last request with final_response.
	LimitPrompt string `yaml:"limit_prompt" default:"built-in text"`
}

// Over returns l, with the values of base for zero fields.
func (l Limits) Over(base Limits) Limits {
	l.MaxTurns = cmp.Or(l.MaxTurns, base.MaxTurns)
	l.ParallelTools = cmp.Or(l.ParallelTools, base.ParallelTools)
	l.RunTimeout = cmp.Or(l.RunTimeout, base.RunTimeout)
	l.ToolCalls = cmp.Or(l.ToolCalls, base.ToolCalls)
	l.Tokens = cmp.Or(l.Tokens, base.Tokens)
	l.Cost = cmp.Or(l.Cost, base.Cost)
	l.MaxDepth = cmp.Or(l.MaxDepth, base.MaxDepth)
	l.OnLimit = cmp.Or(l.OnLimit, base.OnLimit)
	l.LimitPrompt = cmp.Or(l.LimitPrompt, base.LimitPrompt)
	return l
}

// Within returns l, with the limits of bound that are stricter. A zero field of bound sets no limit.
func (l Limits) Within(bound Limits) Limits {
	l.MaxTurns = lower(l.MaxTurns, bound.MaxTurns)
	l.ParallelTools = lower(l.ParallelTools, bound.ParallelTools)
	l.RunTimeout = lower(l.RunTimeout, bound.RunTimeout)
	l.ToolCalls = lower(l.ToolCalls, bound.ToolCalls)
	l.Tokens = lower(l.Tokens, bound.Tokens)
	l.Cost = lower(l.Cost, bound.Cost)
	l.MaxDepth = lower(l.MaxDepth, bound.MaxDepth)
	strict := []string{OnLimitFail, OnLimitFinal, OnLimitConfirm}
	if bound.OnLimit != "" && slices.Index(strict, bound.OnLimit) < slices.Index(strict, l.OnLimit) {
		l.OnLimit = bound.OnLimit
	}
	return l
}

// lower returns the smaller of two limits; 0 is no limit.
func lower[T cmp.Ordered](limit, bound T) T {
	var none T
	if bound == none || limit != none && limit <= bound {
		return limit
	}
	return bound
}

// WithDefaults returns a copy with defaults for zero fields.
func (l Limits) WithDefaults() Limits {
	return l.Over(Limits{MaxTurns: 10, ParallelTools: 4, RunTimeout: 15 * time.Minute, MaxDepth: 3,
		OnLimit: OnLimitFail})
}

// WithDefaults returns a copy with defaults for absent values. Model stays empty, because the first model is not
// known here.
func (c Config) WithDefaults() Config {
	if c.Tools.Enabled == nil {
		yes := true
		c.Tools.Enabled = &yes
	}
	if c.Tools.Include == nil {
		c.Tools.Include = []string{"*"}
	}
	c.Prompt = cmp.Or(c.Prompt, PromptDefault)
	c.ToolChoice = cmp.Or(c.ToolChoice, ToolChoiceAuto)
	if c.Groups == nil {
		c.Groups = []string{tenon.DefaultGroup}
	}
	c.State = cmp.Or(c.State, DefaultState)
	c.Limits, c.Compaction, c.Errors = c.Limits.WithDefaults(), c.Compaction.WithDefaults(), c.Errors.WithDefaults()
	return c
}

// Values of [Errors.Mode].
const (
	ErrorsFail   = "fail"
	ErrorsColumn = "column"
)

// Errors says how the error of a failed run is reported.
type Errors struct {
	// fail: the command fails; column: the error becomes a row of the conversation's table, and the command succeeds.
	Mode string `yaml:"mode" enum:"fail,column" default:"fail"`
	// Name of the error column in that table.
	Column string `yaml:"column" default:"Errors"`
}

// WithDefaults returns a copy with defaults for absent values.
func (e Errors) WithDefaults() Errors {
	e.Mode = cmp.Or(e.Mode, ErrorsFail)
	e.Column = cmp.Or(e.Column, "Errors")
	return e
}

// IsEnabled reports whether the agent sees any tools.
func (t Tools) IsEnabled() bool { return t.Enabled == nil || *t.Enabled }
