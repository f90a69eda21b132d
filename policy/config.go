package policy

import "time"

// When a call must ask a person first.
const (
	ApprovalNever       = "never"
	ApprovalAlways      = "always"
	ApprovalDestructive = "destructive"
)

// When a call may be sent again.
const (
	RetryAuto   = "auto"
	RetryNever  = "never"
	RetryAlways = "always"
)

// What becomes of a result that is too large for the model. The whole is kept in any
// case, and can be read.
const (
	LargeTruncate = "truncate"
	LargeArtifact = "artifact"
	LargeError    = "error"
)

// Size is a number of bytes. In a configuration it is written as 64KiB, 1MB or a
// bare number.
type Size int

// Config is the block `policy` of tenon.yaml.
type Config struct {
	// Conditions about calls; the first one that is true decides, above all blocks. One that cannot be decided asks.
	Rules []Rule `yaml:"rules" default:"[]"`
	// Rules for all tools; a server's and a tool's own block stand above it.
	Defaults Block `yaml:"defaults"`
}

// Block is one block of per-tool rules. An empty field says nothing: the next
// less specific block decides.
type Block struct {
	// When a call asks first. never; always; destructive: everything that is not marked read-only asks, and no annotation counts as destructive.
	Approval string `yaml:"approval" enum:"never,always,destructive" default:"destructive"`
	// Time for one call, in place of the server's `request_timeout`.
	Timeout time.Duration `yaml:"timeout" default:"request_timeout"`
	// Whether a failed call may be sent again. auto: only tools that are read-only or idempotent.
	Retry string `yaml:"retry" enum:"auto,never,always" default:"auto"`
	// How often a tool may be called. A number is the limit per run. What is over it is not run, and the model is told.
	MaxCalls CallLimit `yaml:"max_calls"`
	// Calls of one tool that run at a time, over all runs of the process; the others wait. 0: no limit.
	Concurrency int `yaml:"concurrency" min:"0" default:"0"`
	// Largest text of a result that the model gets.
	ResultBytes Size `yaml:"result_bytes" default:"256KiB"`
	// The same in estimated tokens; the smaller of the two holds.
	ResultTokens int `yaml:"result_tokens" min:"1" default:"8000"`
	// What the model gets of a larger one: its head and its tail (truncate), its first lines (artifact), or an error. The whole is kept; the model can page and search in it with a tool.
	OnLargeResult string `yaml:"on_large_result" enum:"truncate,artifact,error" default:"truncate"`
	// How long a question waits for a person; then the call is refused and the model is told.
	Expires time.Duration `yaml:"expires" default:"for ever"`
}

// CallLimit bounds the calls of one tool.
type CallLimit struct {
	// Calls per run; 0: no limit.
	Run int `yaml:"run" min:"0" default:"0" short:"true"`
	// Calls per session; 0: no limit.
	Session int `yaml:"session" min:"0" default:"0"`
}

// Over returns b with base in the place of what b does not say. The order is
// tools.NAME.policy over servers.NAME.policy over policy.defaults.
func (b Block) Over(base Block) Block {
	if b.Approval == "" {
		b.Approval = base.Approval
	}
	if b.Timeout == 0 {
		b.Timeout = base.Timeout
	}
	if b.Retry == "" {
		b.Retry = base.Retry
	}
	if b.MaxCalls.Run == 0 {
		b.MaxCalls.Run = base.MaxCalls.Run
	}
	if b.MaxCalls.Session == 0 {
		b.MaxCalls.Session = base.MaxCalls.Session
	}
	if b.Concurrency == 0 {
		b.Concurrency = base.Concurrency
	}
	if b.ResultBytes == 0 {
		b.ResultBytes = base.ResultBytes
	}
	if b.ResultTokens == 0 {
		b.ResultTokens = base.ResultTokens
	}
	if b.OnLargeResult == "" {
		b.OnLargeResult = base.OnLargeResult
	}
	if b.Expires == 0 {
		b.Expires = base.Expires
	}
	return b
}

// WithDefaults returns the block with the built-in rules in the place of what
// it does not say. Timeout stays 0, which means the server's request_timeout.
func (b Block) WithDefaults() Block {
	return b.Over(Block{Approval: ApprovalDestructive, Retry: RetryAuto, ResultBytes: 256 << 10, ResultTokens: 8000, OnLargeResult: LargeTruncate})
}
