package httpapi

import (
	"regexp"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// Errors of other packages name their remedy as a command, such as "tenon runs list shows them". A client of the HTTP
// API cannot run commands. Every text of an error therefore passes through [call.advice], which replaces commands and
// flags by requests. No other code does this, so other packages need to know only one kind of remedy.

// headerClient, with the value command-line, means that the client is a tenon command, whose user can run commands.
const (
	headerClient = "Tenon-Client"
	commandLine  = "command-line"
)

// remedies maps commands and flags in errors to the equivalents for a client of the HTTP API. The rows are tried in
// this order. In each row, the first match is replaced.
//
// The list is made at its first use, because its expressions take half a millisecond and 100 kB of each command.
var remedies = sync.OnceValue(func() []remedyRow {
	return []remedyRow{
		row(`, or --max-turns`, ` of the agent, or max_turns of POST /api/v1/runs`),
		row(`answer with tenon approvals allow (\S+), then tenon runs resume \S+`,
			`answer what GET /api/v1/approvals?run=$1 lists with POST /api/v1/approvals/{id}/decide`),
		row(`ask in its session: tenon run -s (\S+)`, `ask in its session: POST /api/v1/runs with session $1`),
		row(`ask in a fork: tenon run -s \S+ --fork`, `ask in a fork: POST /api/v1/runs with fork`),
		row(`tenon runs resume (\w+)`, `POST /api/v1/runs/$1/resume`),
		row(`tenon runs cancel (\S+)`, `POST /api/v1/runs/$1/cancel`),
		row(`tenon sessions show (\S+) --numbers shows them`, `GET /api/v1/sessions/$1/messages numbers them`),
		row(`tenon sessions list shows`, `GET /api/v1/sessions lists`),
		row(`tenon runs list shows`, `GET /api/v1/runs lists`),
		row(`tenon approvals grants, tenon approvals revoke ID`, `GET /api/v1/grants, POST /api/v1/grants/revoke`),
		row(`tenon approvals grants lists`, `GET /api/v1/grants lists`),
		row(`'tenon servers logs ([^\s']+)'`, `GET /api/v1/servers/$1/logs`),
		row(`'tenon servers login ([^\s']+)'`, `POST /api/v1/servers/$1/login`),
		row(`tenon servers enable (\S+)`, `POST /api/v1/servers/$1/enable`),
		row(`'tenon tools list' prints`, `GET /api/v1/tools lists`),
		row(`leave --yes out`, `leave yes out`),
		row(`, or allow it with --yes`, ``),
		row(`config show without --path`, `GET /api/v1/config`),
		row(`, or name one with --model provider/name, or --model demo, a built-in script that knows three questions`,
			`, or write "model": "demo" in the request for a built-in script that knows three questions`),
		row(`, or name one with --model[^,;]*`, ``),
		row(`--model (\S+):`, `model $1:`),
		row(`(,? or| and)? pass --registry URL`, ``),
		row(`; make them with --record \S+`, ``),
		row(`, add --scope user, or name it: -c \S+`, `, work on the machine of this tenon`),
		row(`[;,] (or )?(name one|choose another place( for the store)?)( with)? --home$`, ``),
		row(` with --home( or -c)?`, ` in its configuration`),
		row(`--(from|copy|extract-secrets|proposal)\b`, `$1`),
	}
})

// remedyRow is a command in an error, and the text in its place.
type remedyRow struct {
	command *regexp.Regexp
	request string
}

func row(command, request string) remedyRow { return remedyRow{regexp.MustCompile(command), request} }

var (
	// anyCommand matches a command for which there is no request.
	anyCommand = lazyregexp.New(`\btenon (approvals|chat|config|doctor|eval|grants|init|models|proposals|run|` +
		`runs|secrets|serve|servers|sessions|store|tables|tools|trust|workflows)\b`)
)

// onMachine is appended to a text that contains a command for which there is no request.
const onMachine = " (a command on the machine of this tenon)"

// remedy replaces commands and flags in the text of an error by their equivalents for a client of the HTTP API.
func remedy(text string) string {
	if !strings.Contains(text, "tenon ") && !strings.Contains(text, "--") && !strings.Contains(text, "-c ") {
		return text
	}
	for _, r := range remedies() {
		text = r.command.ReplaceAllString(text, r.request)
	}
	if anyCommand().MatchString(text) && !strings.HasSuffix(text, onMachine) {
		text += onMachine
	}
	return text
}

// advice returns the text of an error with remedies that the client of the request can follow.
func (c *call) advice(text string) string {
	if c.cfg.CommandLine || c.req.Header.Get(headerClient) == commandLine {
		return text
	}
	return remedy(text)
}

// advised applies advice to an error. It returns nil for nil.
func (c *call) advised(e *tenon.Error) *tenon.Error {
	if e == nil {
		return nil
	}
	out := *e
	out.Message = c.advice(e.Message)
	return &out
}

// problem converts an error to a [Problem] for the client of the request; see the function problem.
func (c *call) problem(err error) (p Problem, known bool) {
	p, known = problem(err)
	p.Detail = c.advice(p.Detail)
	return p, known
}
