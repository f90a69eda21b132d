package policy

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

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

// What becomes of a tool whose definition is not the one that was pinned.
const (
	PinsAsk  = "ask"  // it is not offered, and not called, until a person accepts it
	PinsWarn = "warn" // it is told of
	PinsOff  = "off"  // nothing is pinned
)

// How far a kept result reaches.
const (
	ScopeRun     = "run"
	ScopeSession = "session"
	ScopeProject = "project" // all runs of the store
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
	// Rules for all tools; the blocks of a server, a group, an agent and a tool stand above it, in this order.
	Defaults Block `yaml:"defaults"`
	// Rules for the tools of a group; stands above those of servers, below those of agents.
	Groups map[string]Block `yaml:"groups" default:"{}"`
	// What becomes of a tool whose definition, or whose server's command or address, differs from what was pinned at its first use. ask: it is not offered and not called until `tenon tools pins accept`; warn: it is told of; off: nothing is pinned.
	Pins string `yaml:"pins" enum:"ask,warn,off" default:"ask"`
	// Which programs may be started.
	Commands Commands `yaml:"commands"`
	// Which addresses may be called.
	URLs URLs `yaml:"urls"`
	// What a variable that is not set does: error refuses the file; empty makes it an empty text, with a warning.
	EnvUnresolved string `yaml:"env_unresolved" enum:"error,empty" default:"error"`
	// What a token does that is written in the file.
	LiteralSecrets string `yaml:"literal_secrets" enum:"off,warn,error" default:"warn"`
}

// Commands says which programs may be started. It is held when the file is read.
type Commands struct {
	// Commands of servers and secrets, exactly as written; [] any.
	Allow []string `yaml:"allow" default:"[]"`
}

// URLs says which addresses may be called. It is held when the file is read, and
// AllowPrivate at each connection, too.
type URLs struct {
	// What an address without encryption does that is not of this machine.
	RequireHTTPS string `yaml:"require_https" enum:"off,warn,error" default:"warn"`
	// false: servers with a URL, their sign-in, and tools of kind http do not connect to private, link-local and reserved addresses nor to this machine, whatever name leads there. Proxies of the environment are not used then.
	AllowPrivate *bool `yaml:"allow_private" default:"true"`
}

// AllowsPrivate reports whether private addresses may be connected to.
func (u URLs) AllowsPrivate() bool { return u.AllowPrivate == nil || *u.AllowPrivate }

// Block is one block of per-tool rules. An empty field says nothing: the next
// less specific block decides.
type Block struct {
	// When a call asks first: one of the words, or {if: CEL}.
	Approval Approval `yaml:"approval"`
	// Time for one call, in place of the server's `request_timeout`.
	Timeout time.Duration `yaml:"timeout" default:"request_timeout"`
	// Whether a failed call may be sent again. auto: only tools that are read-only or idempotent.
	Retry string `yaml:"retry" enum:"auto,never,always" default:"auto"`
	// How often a tool may be called. A number is the limit per run. What is over it is not run, and the model is told.
	MaxCalls CallLimit `yaml:"max_calls"`
	// Calls of the tool within a second, a minute or an hour, over all processes that use the store: N/s, N/m, N/h, or none. A call waits for its turn up to a minute; one that would wait longer is not run, and the model is told when it may.
	Rate string `yaml:"rate" default:"none"`
	// Calls of one tool that run at a time, over all runs of the process; the others wait. 0: no limit.
	Concurrency *int `yaml:"concurrency" min:"0" default:"0"`
	// Largest text of a result that the model gets.
	ResultBytes Size `yaml:"result_bytes" default:"256KiB"`
	// The same in estimated tokens; the smaller of the two holds.
	ResultTokens int `yaml:"result_tokens" min:"1" default:"8000"`
	// What the model gets of a larger one: its head and its tail (truncate), its first lines (artifact), or an error. The whole is kept; the model can page and search in it with a tool.
	OnLargeResult string `yaml:"on_large_result" enum:"truncate,artifact,error" default:"truncate"`
	// Results that are kept, so that an equal call is answered without the server. A duration is the ttl.
	Cache Cache `yaml:"cache"`
	// Names of arguments and of members of results. In results they are masked before the model and the journal get them; arguments are encrypted in the store, and masked in logs, records and exports.
	Redact []string `yaml:"redact" default:"[]"`
	// US dollars for one call; they count in limits.cost and in budgets. A call that a person makes, or a workflow that a person begins, counts in neither.
	Cost *float64 `yaml:"cost" min:"0" default:"0"`
	// How long a question waits for a person; then the call is refused and the model is told.
	Expires time.Duration `yaml:"expires" default:"for ever"`
}

// Approval says when a call must ask: Mode or If, not both.
type Approval struct {
	// never; always; destructive: everything that is not marked read-only asks, and no annotation counts as destructive.
	Mode string `yaml:"mode" enum:"never,always,destructive" default:"destructive" short:"true"`
	// CEL over tool, args, agent, principal and state: a call for which it is true asks, any other runs. One that cannot be decided asks.
	If string `yaml:"if"`
}

// CallLimit bounds the calls of one tool.
type CallLimit struct {
	// Calls per run; 0: no limit.
	Run *int `yaml:"run" min:"0" default:"0" short:"true"`
	// Calls per session; 0: no limit.
	Session *int `yaml:"session" min:"0" default:"0"`
}

// Cache says which results are kept.
type Cache struct {
	// How long a result may stand for a call; 0s: no cache.
	TTL *time.Duration `yaml:"ttl" min:"0" default:"0s" short:"true"`
	// Whose equal calls get it: those of the run, of the session, or of all runs of the project; never those of another principal.
	Scope string `yaml:"scope" enum:"run,session,project" default:"run"`
	// true: also for a tool that is marked neither read-only nor idempotent.
	Force *bool `yaml:"force" default:"false"`
}

// Over returns b with base in the place of what b does not say. The order is
// tools.NAME.policy over agents.NAME.policy over policy.groups.NAME over
// servers.NAME.policy over policy.defaults.
func (b Block) Over(base Block) Block {
	if b.Approval == (Approval{}) {
		b.Approval = base.Approval
	}
	if b.Redact == nil {
		b.Redact = base.Redact
	}
	b.Timeout = cmp.Or(b.Timeout, base.Timeout)
	b.Retry = cmp.Or(b.Retry, base.Retry)
	b.MaxCalls.Run = cmp.Or(b.MaxCalls.Run, base.MaxCalls.Run)
	b.MaxCalls.Session = cmp.Or(b.MaxCalls.Session, base.MaxCalls.Session)
	b.Rate = cmp.Or(b.Rate, base.Rate)
	b.Concurrency = cmp.Or(b.Concurrency, base.Concurrency)
	b.ResultBytes = cmp.Or(b.ResultBytes, base.ResultBytes)
	b.ResultTokens = cmp.Or(b.ResultTokens, base.ResultTokens)
	b.OnLargeResult = cmp.Or(b.OnLargeResult, base.OnLargeResult)
	b.Cache.TTL = cmp.Or(b.Cache.TTL, base.Cache.TTL)
	b.Cache.Scope = cmp.Or(b.Cache.Scope, base.Cache.Scope)
	b.Cache.Force = cmp.Or(b.Cache.Force, base.Cache.Force)
	b.Cost = cmp.Or(b.Cost, base.Cost)
	b.Expires = cmp.Or(b.Expires, base.Expires)
	return b
}

// WithDefaults returns the block with the built-in rules in the place of what
// it does not say. Timeout stays 0, which means the server's request_timeout.
func (b Block) WithDefaults() Block {
	return b.Over(Block{Approval: Approval{Mode: ApprovalDestructive}, Retry: RetryAuto, Rate: RateNone, ResultBytes: 256 << 10,
		ResultTokens: 8000, OnLargeResult: LargeTruncate, Cache: Cache{Scope: ScopeRun}})
}

// Value is what a field points to, or its zero value where the block does not say it.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// RateNone is the rate of a tool that has none.
const RateNone = "none"

// maxRate bounds the calls of a rate: so many times are kept for a tool.
const maxRate = 1000

// ParseRate reads N/s, N/m or N/h; none and "" are 0 calls, which is no limit.
// Errors: invalid.
func ParseRate(s string) (calls int, per time.Duration, err error) {
	if s == "" || s == RateNone {
		return 0, 0, nil
	}
	number, unit, ok := strings.Cut(s, "/")
	calls, err = strconv.Atoi(strings.TrimSpace(number))
	per = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[strings.TrimSpace(unit)]
	if !ok || err != nil || per == 0 || calls < 1 || calls > maxRate {
		return 0, 0, tenon.Errorf(tenon.CodeInvalid, "'%s' is no rate; write N/s, N/m or N/h with N from 1 to %d, or none", s, maxRate)
	}
	return calls, per, nil
}
