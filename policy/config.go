package policy

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// The modes of approval.
const (
	ApprovalNever       = "never"
	ApprovalAlways      = "always"
	ApprovalDestructive = "destructive"
)

// The values of [Block.Retry].
const (
	RetryAuto   = "auto"
	RetryNever  = "never"
	RetryAlways = "always"
)

// The values of [Pins.Changed].
const (
	PinsAsk  = "ask"  // the server's tools are withheld until a person accepts the change
	PinsWarn = "warn" // the change is logged
	PinsOff  = "off"  // nothing is pinned
)

// PinsAllow is the value of [Pins.New] that pins a new tool at its first use. The other value is PinsAsk.
const PinsAllow = "allow"

// The scopes of a kept result.
const (
	ScopeRun     = "run"
	ScopeSession = "session"
	ScopeProject = "project" // all runs of the store
)

// The treatments of a result that is too large for the model. The full result is always kept and can be read.
const (
	LargeTruncate = "truncate"
	LargeArtifact = "artifact"
	LargeError    = "error"
)

// The treatments of a structured result that does not fit the output schema of its tool.
const (
	ResultsReport = "report"
	ResultsStrict = "strict"
	ResultsOff    = "off"
)

// Config is the block `policy` of tenon.yaml.
type Config struct {
	// Rules with conditions on calls. The first rule whose condition is true decides, and overrides all blocks. If a
	// condition cannot be evaluated, the call needs approval.
	Rules []Rule `yaml:"rules" default:"[]"`
	// Rules for all tools. The blocks of a server, a group, an agent and a tool override them, in this order.
	Defaults Block `yaml:"defaults"`
	// Rules for the tools of a group. They override the rules of servers; rules of agents override them.
	Groups map[string]Block `yaml:"groups" default:"{}"`
	// Handling of a server that has changed since it was pinned at its first use. A word instead of the block sets
	// `changed`.
	Pins Pins `yaml:"pins"`
	// Programs that may be started.
	Commands Commands `yaml:"commands"`
	// Addresses that may be called.
	URLs URLs `yaml:"urls"`
	// Handling of a variable that is not set. error: the file is refused; empty: the value is empty, with a warning.
	EnvUnresolved string `yaml:"env_unresolved" enum:"error,empty" default:"error"`
	// Handling of a literal token in the file.
	LiteralSecrets string `yaml:"literal_secrets" enum:"off,warn,error" default:"warn"`
}

// Pins says what happens if a server differs from its pin, which was made at its first use: its command or address,
// or the definitions of its tools.
type Pins struct {
	// The definition of a tool, or the command or address of the server, differs. ask: the tools of the server are
	// not offered and not called until `tenon tools pins accept`; warn: the change is logged; off: nothing is
	// pinned.
	Changed string `yaml:"changed" enum:"ask,warn,off" default:"ask" short:"true"`
	// The server has a tool that it did not have when it was pinned. ask: the first use of the tool asks, whatever
	// the rules say, and an allowed call pins it; allow: it is pinned at its first use. Default: ask, with
	// `changed: warn` allow.
	New string `yaml:"new" enum:"ask,allow" default:"ask"`
}

// AskNew reports whether the first use of a new tool asks.
func (p Pins) AskNew() bool {
	return p.Changed != PinsOff && (p.New == PinsAsk || p.New == "" && p.Changed != PinsWarn)
}

// Commands says which programs may be started. It is enforced when the file is read.
type Commands struct {
	// Allowed commands of servers and secrets, exactly as written; [] allows any.
	Allow []string `yaml:"allow" default:"[]"`
}

// URLs says which addresses may be called. It is enforced when the file is read; AllowPrivate is enforced at each
// connection, too.
type URLs struct {
	// Handling of unencrypted addresses of other machines.
	RequireHTTPS string `yaml:"require_https" enum:"off,warn,error" default:"warn"`
	// false: servers with a URL, their sign-in, and tools of kind http do not connect to private, link-local and
	// reserved addresses or to this machine, by any host name. Proxies of the environment are then not used.
	AllowPrivate *bool `yaml:"allow_private" default:"true"`
}

// AllowsPrivate reports whether private addresses may be connected to.
func (u URLs) AllowsPrivate() bool { return u.AllowPrivate == nil || *u.AllowPrivate }

// Block is one block of rules for tools. If a field is empty, the next less specific block decides.
type Block struct {
	// When a call needs approval: a mode, or {if: CEL}.
	Approval Approval `yaml:"approval"`
	// Timeout of a call. It replaces the server's `request_timeout`, also by a longer one.
	Timeout time.Duration `yaml:"timeout" default:"request_timeout"`
	// Time for one call of a server that reports progress: each report begins `timeout` again, but the call ends after
	// this time in all. A value that is not longer than `timeout` means that progress extends nothing.
	TimeoutProgress time.Duration `yaml:"timeout_progress" default:"10m"`
	// Whether a failed call may be sent again. auto: only tools that are read-only or idempotent.
	Retry string `yaml:"retry" enum:"auto,never,always" default:"auto"`
	// Maximum number of calls of a tool. A number is the limit per run. A call over the limit is refused with a message
	// to the model.
	MaxCalls CallLimit `yaml:"max_calls"`
	// Maximum number of calls of the tool per second, minute or hour, in all processes that use the store: N/s, N/m,
	// N/h, or none. A call waits for its turn for at most a minute. If it would have to wait longer, it is refused,
	// and the model learns when it may call again.
	Rate string `yaml:"rate" default:"none"`
	// Calls of one tool that run at the same time, over all runs of the process; further calls wait. 0: no limit.
	Concurrency *int `yaml:"concurrency" min:"0" default:"0"`
	// Maximum size of the text of a result that the model gets.
	ResultBytes tenon.Size `yaml:"result_bytes" default:"256KiB"`
	// Maximum number of estimated tokens of the text of a result. The smaller of the two limits applies.
	ResultTokens int `yaml:"result_tokens" min:"1" default:"8000"`
	// The model's view of a larger result: its head and its tail (truncate), its first lines (artifact), or an error.
	// The full result is kept; the model can page and search in it with a tool.
	OnLargeResult string `yaml:"on_large_result" enum:"truncate,artifact,error" default:"truncate"`
	// Structured results that do not fit the tool's output schema. report: the model and the user get the result and
	// the mismatch; strict: the model gets an error instead of the result; off: results are not checked. A result
	// without the structured content that its tool declares does not fit.
	Results string `yaml:"results" enum:"report,strict,off" default:"report"`
	// Cache of results: an equal call is answered without the server. A duration sets ttl.
	Cache Cache `yaml:"cache"`
	// Names of arguments and of members of results. In results they are masked before the model and the journal get
	// them; arguments are encrypted in the store, and masked in logs, records and exports.
	Redact []string `yaml:"redact" default:"[]"`
	// Cost of a call in US dollars. It counts toward limits.cost and budgets, except for calls and workflows that a
	// person starts.
	Cost *float64 `yaml:"cost" min:"0" default:"0"`
	// How long a question waits for a person. After that the call is refused, and the model receives the reason.
	Expires time.Duration `yaml:"expires" default:"for ever"`
}

// Approval says when a call must ask: Mode or If, not both.
type Approval struct {
	// never; always; destructive: calls of all tools that are not marked read-only. A tool without annotations counts
	// as destructive.
	Mode string `yaml:"mode" enum:"never,always,destructive" default:"destructive" short:"true"`
	// CEL over tool, server, args, agent, principal and state. A call needs approval if it is true or cannot be
	// evaluated.
	If string `yaml:"if"`
}

// CallLimit bounds the calls of one tool.
type CallLimit struct {
	// Maximum number of calls per run; 0: no limit.
	Run *int `yaml:"run" min:"0" default:"0" short:"true"`
	// Maximum number of calls per session; 0: no limit.
	Session *int `yaml:"session" min:"0" default:"0"`
}

// Cache says which results are kept.
type Cache struct {
	// Time for which a result may answer equal calls; 0s: no cache.
	TTL *time.Duration `yaml:"ttl" min:"0" default:"0s" short:"true"`
	// Calls that share the result: equal calls of the run, of the session, or of all runs of the project; never calls
	// of another principal.
	Scope string `yaml:"scope" enum:"run,session,project" default:"run"`
	// true: also for a tool that is marked neither read-only nor idempotent.
	Force *bool `yaml:"force" default:"false"`
}

// Over returns b with the values of base for the fields that b does not set. The order is tools.NAME.policy over
// agents.NAME.policy over policy.groups.NAME over servers.NAME.policy over policy.defaults.
func (b Block) Over(base Block) Block {
	b.fill(&base)
	return b
}

// fill copies fields of base that the block does not set.
func (b *Block) fill(base *Block) {
	if b.Approval == (Approval{}) {
		b.Approval = base.Approval
	}
	if b.Redact == nil {
		b.Redact = base.Redact
	}
	b.Timeout = cmp.Or(b.Timeout, base.Timeout)
	b.TimeoutProgress = cmp.Or(b.TimeoutProgress, base.TimeoutProgress)
	b.Retry = cmp.Or(b.Retry, base.Retry)
	b.MaxCalls.Run = cmp.Or(b.MaxCalls.Run, base.MaxCalls.Run)
	b.MaxCalls.Session = cmp.Or(b.MaxCalls.Session, base.MaxCalls.Session)
	b.Rate = cmp.Or(b.Rate, base.Rate)
	b.Concurrency = cmp.Or(b.Concurrency, base.Concurrency)
	b.ResultBytes = cmp.Or(b.ResultBytes, base.ResultBytes)
	b.ResultTokens = cmp.Or(b.ResultTokens, base.ResultTokens)
	b.OnLargeResult = cmp.Or(b.OnLargeResult, base.OnLargeResult)
	b.Results = cmp.Or(b.Results, base.Results)
	b.Cache.TTL = cmp.Or(b.Cache.TTL, base.Cache.TTL)
	b.Cache.Scope = cmp.Or(b.Cache.Scope, base.Cache.Scope)
	b.Cache.Force = cmp.Or(b.Cache.Force, base.Cache.Force)
	b.Cost = cmp.Or(b.Cost, base.Cost)
	b.Expires = cmp.Or(b.Expires, base.Expires)
}

// WithDefaults returns the block with the built-in rules for the fields that it does not set. Timeout stays 0, which
// means the server's request_timeout.
func (b Block) WithDefaults() Block {
	return b.Over(Block{Approval: Approval{Mode: ApprovalDestructive}, Retry: RetryAuto, Rate: RateNone,
		TimeoutProgress: 10 * time.Minute, ResultBytes: 256 << 10,
		ResultTokens: 8000, OnLargeResult: LargeTruncate, Results: ResultsReport,
		Cache: Cache{Scope: ScopeRun}})
}

// Value returns the value of a field of a block, or the zero value if the block does not set it.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// RateNone is the value of [Block.Rate] for no rate limit.
const RateNone = "none"

// maxRate is the maximum number of calls of a rate: the times of that many calls are kept for each tool.
const maxRate = 1000

// ParseRate parses N/s, N/m or N/h. For none and "" it returns 0 calls, which means no limit. Errors: invalid.
func ParseRate(s string) (calls int, per time.Duration, err error) {
	if s == "" || s == RateNone {
		return 0, 0, nil
	}
	number, unit, ok := strings.Cut(s, "/")
	calls, err = strconv.Atoi(strings.TrimSpace(number))
	per = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[strings.TrimSpace(unit)]
	if !ok || err != nil || per == 0 || calls < 1 || calls > maxRate {
		return 0, 0, tenon.Errorf(tenon.CodeInvalid,
			"'%s' is no rate; write N/s, N/m or N/h with N from 1 to %d, or none", s, maxRate)
	}
	return calls, per, nil
}
