package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// totals are the tokens and the cost of a conversation.
type totals struct {
	context int    // tokens of the last request
	by      string // fallback model that gave the last answer, or ""
	tokens  int
	cost    tenon.USD
	priced  bool
	model   string
	agent   string
}

// turn asks one question and follows its run to the end. When ctx ends, the run is stopped. If own is set, the person
// typed the question, and the files and resources that it names are attached.
func (t *talk) turn(ctx context.Context, q host.Question, own bool) error {
	asked := stoppable{text: q.Text, files: slices.Clone(q.Files), own: own}
	if own {
		if err := t.attach(ctx, &q); err != nil {
			return err
		}
	}
	run, err := t.start(ctx, q)
	asked.run = run.ID
	t.mu.Lock()
	t.asked = asked
	t.mu.Unlock()
	if run.Session != "" {
		if _, serr := t.h.Sessions().Get(context.WithoutCancel(ctx), run.Session); serr == nil {
			t.mu.Lock()
			t.q.session, t.q.fork = run.Session, false
			t.mu.Unlock()
		}
	}
	if err != nil {
		return t.a.busySession(ctx, t.h, q.Session, err)
	}
	return t.working(ctx, run, newFeed(t, run.ID))
}

// start starts a run. A person first decides about servers that differ from their pins.
func (t *talk) start(ctx context.Context, q host.Question) (tenon.Run, error) {
	here, local := t.h.(*host.Host)
	q.SettlePins = local
	run, err := t.h.Start(ctx, q)
	if local && tenon.ErrorCode(err) == tenon.CodeWaiting {
		problems := run.Problems
		err = t.lines(func() error {
			return interruptible(ctx, func(ctx context.Context) error { return t.a.settlePins(ctx, here, problems) })
		})
		if err != nil {
			return run.Run, err
		}
		q.SettlePins = false
		run, err = t.h.Start(ctx, q)
	}
	t.a.problems(t.a.news(run.Problems))
	if err == nil && !q.NoTools {
		t.a.tellRenamed(ctx, t.h)
	}
	return run.Run, err
}

// attach adds the files and resources that a question names, and prints their names.
func (t *talk) attach(ctx context.Context, q *host.Question) error {
	if err := t.a.attachFiles(ctx, q); err != nil {
		return err
	}
	return t.a.attach(ctx, t.h, q)
}

// drive follows a run until it ends.
func (t *talk) drive(ctx context.Context, run tenon.Run, f *feed) error {
	work, told, _, end := cancelling(ctx, t.cancel, run.ID, t.note)
	defer end()
	defer f.flush()
	for {
		err := f.follow(work)
		if s, ends := endedBy(ctx); ends && !f.done {
			return s.stopped("; go on with: " + t.a.resuming(run.ID))
		}
		if leftWaiting(ctx) && !f.done {
			return t.leaves(run.ID)
		}
		if err != nil {
			return err
		}
		if f.done || !f.waits {
			return t.ended(context.WithoutCancel(ctx), run)
		}
		err = t.decided(ctx, work, run.ID)
		if leftWaiting(ctx) {
			return t.leaves(run.ID)
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			<-told
			continue // the next iteration shows how the run ends
		}
		if err := t.h.Runs().Resume(work, run.ID); err != nil {
			return err
		}
	}
}

// decided waits until a run has no pending questions, or until ctx ends.
func (t *talk) decided(ctx, work context.Context, run string) error {
	for {
		n, err := t.listAsks(work, run)
		if err != nil || n == 0 || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-t.poke:
		case <-time.After(decisionPause):
		}
	}
}

// listAsks shows the questions of a run, and returns their number.
func (t *talk) listAsks(ctx context.Context, run string) (int, error) {
	list, err := t.h.Approvals().List(ctx, run)
	if err != nil {
		return 0, err
	}
	list = slices.DeleteFunc(list, func(p host.Approval) bool { return p.Foreign || p.Kind == agent.AskClient })
	asks := make([]tui.Ask, len(list))
	known, forms := map[string]host.Approval{}, map[string][]tui.Input{}
	t.mu.Lock()
	before := t.forms
	t.mu.Unlock()
	for i, p := range list {
		known[p.ID], asks[i] = p, t.a.askOf(p)
		inputs, ok := before[p.ID]
		if !ok && p.Kind == agent.AskApproval {
			inputs = inputsOf(t.schemaOf(ctx, p.Name), p.Arguments)
		}
		forms[p.ID], asks[i].Inputs = inputs, inputs
	}
	t.mu.Lock()
	t.asks, t.forms = known, forms
	t.mu.Unlock()
	t.p.Send(tui.Asks{List: asks})
	return len(list), nil
}

// askOf describes a question for the screen.
func (a *app) askOf(p host.Approval) tui.Ask {
	ask := tui.Ask{ID: p.ID, Head: "approval required"}
	field := func(name, value string) {
		if value != "" {
			ask.Fields = append(ask.Fields, [2]string{name, safeLine(value)})
		}
	}
	switch p.Kind {
	case agent.AskLimit:
		ask.Head, ask.Limit = "a limit is reached", true
		field("reason", p.Reason)
		return ask
	case agent.AskInput, agent.AskSampling:
		ask.Head = "the server asks for input"
		field("server", p.Server)
		field("tool", p.Remote)
		ask.Requests = requestsOf(p.Server, p.Requests)
		return ask
	}
	field("server", p.Server)
	field("tool", p.Remote)
	if p.Connector != nil {
		field("address", connectorAddress(p.Connector))
	}
	field("rule", p.Reason)
	if strings.Contains(p.Run, "/") {
		field("run", p.Run)
	}
	if p.Narrower != nil {
		ask.If = p.Narrower.If
		field("always if", p.Narrower.If)
		if len(p.Narrower.Any) > 0 {
			field("", "with any "+strings.Join(p.Narrower.Any, ", "))
		}
	}
	ask.JSON = p.Arguments
	ask.Args, _ = argBlock(p.Arguments, max(a.width()-4, 20), "", true)
	return ask
}

// Decide implements [tui.Backend].
func (t *talk) Decide(ctx context.Context, ask tui.Ask, r tui.Ruling) error {
	t.mu.Lock()
	p, ok := t.asks[ask.ID]
	t.mu.Unlock()
	if !ok {
		return nil // decided elsewhere
	}
	defer func() {
		select {
		case t.poke <- struct{}{}:
		default:
		}
	}()
	ruling := agent.Ruling{Verdict: tenon.Deny, By: string(tenon.PrincipalLocal), Reason: r.Reason, Cancel: r.Cancel}
	if r.Allow {
		ruling.Verdict, ruling.Arguments, ruling.If, ruling.Remember = tenon.Allow, r.Args, r.If, r.Remember
		if len(ask.Requests) > 0 {
			var err error
			if ruling.Arguments, err = contentOf(r.Contents); err != nil {
				return err
			}
		}
	}
	won, mine, err := t.h.Approvals().Decide(ctx, p.Run, p.Step, ruling)
	if err != nil {
		return err
	}
	if !mine {
		t.note("%s", t.a.winner(won))
	}
	decided := "allowed, waits for the other decisions"
	if !r.Allow {
		decided = "denied"
	}
	t.p.Send(tui.Decided{Key: p.Run + "/" + p.Step, Note: decided})
	if r.Allow && mine && r.Remember == "always" {
		t.note("%s is allowed for later calls, too; /allowed withdraws it", safeLine(p.Name))
	}
	run, _, _ := strings.Cut(p.Run, "/")
	_, err = t.listAsks(ctx, run)
	return err
}

// ended shows the end of a run.
func (t *talk) ended(ctx context.Context, run tenon.Run) error {
	report, err := t.h.Runs().Open(run.ID).Report(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.totals.tokens += report.Tokens().Input + report.Tokens().Output
	if report.Cost != nil {
		t.totals.cost, t.totals.priced = t.totals.cost+*report.Cost, true
	}
	t.totals.model, t.totals.agent = report.Model, report.Agent
	t.last = cmp.Or(report.Answer, t.last)
	t.mu.Unlock()
	switch err := runError(report); {
	case err != nil && report.State == tenon.RunCancelled:
		t.note("stopped; it is shown by: %s", t.a.again("runs show", run.ID))
		t.note("/retry asks it again")
	case err != nil:
		t.note("tenon: %s", safeText(err.Error()))
		if report.State == tenon.RunFailed {
			t.note("/retry resumes it; in a shell: %s", t.a.resuming(run.ID))
		}
	case report.Stop != tenon.StopEnd:
		t.note("the answer ended early: %s", report.Stop)
	}
	return nil
}

// status updates the status line.
func (t *talk) status(ctx context.Context) {
	t.mu.Lock()
	s, name, agentName := t.totals, t.q.model, t.q.agent
	t.mu.Unlock()
	agentName, name = t.next(cmp.Or(s.agent, agentName), cmp.Or(s.model, name))
	var parts []string
	for _, p := range []string{agentName, name} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if s.context > 0 {
		parts = append(parts, contextText(s.context, t.window(cmp.Or(s.by, name))))
	}
	if s.tokens > 0 {
		parts = append(parts, thousands(s.tokens)+" tokens")
	}
	if s.priced {
		parts = append(parts, s.cost.String())
	}
	if id := t.session(); id != "" {
		parts = append(parts, id)
	}
	var down []string
	if list, err := t.h.Servers().List(ctx); err == nil {
		for _, s := range list {
			if s.State == servers.StateFailed {
				down = append(down, s.Name)
			}
		}
	}
	t.p.Send(tui.Status{Parts: parts, Down: down})
}

// next returns the agent and the model of the next question, as far as they are known before it.
func (t *talk) next(agentName, name string) (string, string) {
	here, ok := t.h.(*host.Host)
	if !ok {
		return agentName, name // only the other tenon knows them
	}
	cfg := here.Service().Info().Config
	if all := cfg.AgentNames(); agentName == "" && len(all) == 1 {
		agentName = all[0]
	}
	agentName = cmp.Or(agentName, "default")
	if a, err := cfg.Agent(agentName); err == nil {
		name = cmp.Or(name, t.a.found, a.Model)
	}
	return agentName, name
}

// window returns the size of a model's context in tokens, or 0 if it is not known.
func (t *talk) window(name string) int {
	here, ok := t.h.(*host.Host)
	if !ok {
		return 0 // only the other tenon knows its models
	}
	cfg := here.Service().Info().Config
	if _, ok := cfg.Models[name]; ok {
		return cfg.KeylessModel(name).Window()
	}
	provider, id, _ := strings.Cut(name, "/")
	return model.Config{Provider: provider, Model: id}.Window()
}

// contextText describes how much of the context the last request used. window is 0 if it is not known.
func contextText(used, window int) string {
	switch {
	case window <= 0:
		return "context " + thousands(used)
	case used*100 < window:
		return "context " + thousands(used) + " <1%"
	}
	return fmt.Sprintf("context %s %d%%", thousands(used), used*100/window)
}

// thousands formats a number of tokens.
func thousands(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// details formats the arguments and the result of a call, bounded.
func details(args json.RawMessage, r *tenon.Result) string {
	const most = 100 // lines
	lines, _ := argBlock(args, 100, "", false)
	if r != nil {
		lines = append(lines, "→")
		if text := r.Text(); text != "" || len(r.Content) == 0 {
			lines = append(lines, strings.Split(text, "\n")...)
		}
		for _, c := range r.Content {
			if l := otherContent(c); l != "" {
				lines = append(lines, l)
			}
		}
	}
	if n := len(lines); n > most {
		lines = append(lines[:most:most], "… "+plural(n-most, "more line"))
	}
	for i, l := range lines {
		lines[i] = shorten(l, 400)
	}
	return strings.Join(lines, "\n")
}

// otherContent describes a block of a result that is no text, or returns "".
func otherContent(c tenon.Content) string {
	if c.Type == tenon.ContentText {
		return ""
	}
	parts := []string{c.Type}
	for _, p := range []string{c.MimeType, c.Name, c.URI} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if c.Data != "" {
		parts = append(parts, plural(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(c.Data, "="))), "byte"))
	}
	if c.Artifact != "" {
		parts = append(parts, "tenon runs show --artifact "+c.Artifact)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// callState is the state of a call on the screen.
func callState(r view.Call) tui.CallState {
	switch {
	case r.Outcome == view.CallDone && r.Success && r.Misfit == "" && declinedQuestion(r) == "":
		return tui.CallDone
	case r.Outcome == view.CallDone && r.Success, r.Outcome == view.CallInterrupted:
		return tui.CallWarned
	case r.Outcome == view.CallDone, r.Outcome == view.CallFailed:
		return tui.CallFailed
	case r.Outcome == view.CallOpen:
		return tui.CallRunning
	}
	return tui.CallWarned
}
