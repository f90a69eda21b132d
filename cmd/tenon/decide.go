package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// errUndecided says that there is nobody here who could decide.
var errUndecided = errors.New("undecided")

// decide answers what a run, or one that it called, waits for: with yes all of it,
// else what the person at the terminal says.
func (a *app) decide(ctx context.Context, h desk, run string, yes bool) error {
	if !yes && !a.canAsk() {
		return errUndecided
	}
	for seen := map[string]bool{}; ; {
		// Anew each time: what is allowed for the session settles others as well.
		list, err := h.Awaited(ctx, run)
		if err != nil {
			return err
		}
		if list = slices.DeleteFunc(list, func(p host.Approval) bool { return seen[p.ID] }); len(list) == 0 {
			return nil
		}
		p := list[0]
		seen[p.ID] = true
		if p.Kind != agent.AskApproval && !a.canAsk() {
			return errUndecided // --yes is for tool calls: it knows no answers, and must not make a run endless
		}
		if yes && p.Kind == agent.AskApproval {
			if _, _, err := h.Settle(ctx, p.Run, p.Step, agent.Ruling{Verdict: tenon.Allow, By: byYes}); err != nil {
				return err
			}
			continue
		}
		if err := a.decideOne(ctx, ctx, h, p.Run, p.Step, p.Asking, len(list)-1); err != nil {
			return err
		}
	}
}

// decideOne asks the person until there is a decision that holds. Asking ends with
// prompt.
func (a *app) decideOne(ctx, prompt context.Context, h desk, run, step string, asked agent.Asking, more int) error {
	get := a.askRuling
	switch asked.Kind {
	case agent.AskInput, agent.AskSampling:
		get = a.askInput
	default:
		a.showAsking(asked, more)
	}
	for {
		ruling, err := get(prompt, asked)
		if err != nil {
			return err
		}
		won, mine, err := h.Settle(ctx, run, step, ruling)
		switch {
		case err == nil && !mine:
			a.note("%s", a.winner(won))
			return nil
		case err == nil:
			return nil
		case tenon.ErrorCode(err) == tenon.CodeInvalid && len(ruling.Arguments) > 0:
			a.note("%s", safeLine(err.Error()))
		default:
			return err
		}
	}
}

// showAsking shows exactly what would be sent, and to whom.
func (a *app) showAsking(asked agent.Asking, more int) {
	a.note("")
	if asked.Kind == agent.AskLimit {
		_, _ = a.err.Write([]byte(a.errStyle(yellow, "a limit is reached") + "\n"))
		a.note("  %s", safeLine(asked.Reason))
		return
	}
	head := "approval required"
	if more > 0 {
		head += " (" + plural(more, "other") + " after this)"
	}
	_, _ = a.err.Write([]byte(a.errStyle(yellow, head) + "\n"))
	a.note("  server     %s", safeLine(asked.Server))
	a.note("  tool       %s", safeLine(asked.Remote))
	if asked.Reason != "" {
		a.note("  reason     %s", safeLine(asked.Reason))
	}
	a.note("  arguments  %s", niceArgs(asked.Arguments))
}

// niceArgs indents JSON without changing any value in it. The line breaks are
// ours; those within strings are escaped by JSON itself.
func niceArgs(args json.RawMessage) string {
	var b bytes.Buffer
	if len(args) == 0 || json.Indent(&b, args, "             ", "  ") != nil {
		return safeLine(string(args))
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = safeLine(lines[i])
	}
	return strings.Join(lines, "\n")
}

// approvalWords are what can be answered to a call that waits; a terminal of 80 columns has
// room for them and for an answer.
const approvalWords = "[y]es, for this [s]ession, [a]lways, [n]o or n REASON, [e]dit arguments: "

// askRuling asks for one decision.
func (a *app) askRuling(ctx context.Context, asked agent.Asking) (agent.Ruling, error) {
	r := agent.Ruling{By: string(tenon.PrincipalLocal)}
	question := approvalWords
	if asked.Kind == agent.AskLimit {
		question = "[y]es / [n]o: "
	}
	for {
		answer, err := a.ask(ctx, question)
		if err != nil {
			return r, errors.Join(errUndecided, err)
		}
		word, rest, _ := strings.Cut(answer, " ")
		if word = strings.ToLower(word); asked.Kind == agent.AskLimit && word != "" && !strings.Contains(" y yes n no ", " "+word+" ") {
			continue // there is nothing to edit, and nothing to allow for good
		}
		switch word {
		case "y", "yes":
			r.Verdict = tenon.Allow
			return r, nil
		case "s", "session":
			r.Verdict, r.Remember = tenon.Allow, agent.RememberSession
			return r, nil
		case "a", "always":
			r.Verdict, r.Remember = tenon.Allow, agent.RememberAlways
			return r, nil
		case "n", "no":
			r.Verdict, r.Reason = tenon.Deny, strings.TrimSpace(rest)
			return r, nil
		case "e", "edit":
			edited, err := a.edit(ctx, asked.Arguments)
			if err != nil {
				a.note("%s", err)
				continue
			}
			r.Verdict, r.Arguments = tenon.Allow, edited
			return r, nil
		}
	}
}

// edit lets the person change arguments, in $VISUAL or $EDITOR, else on a line.
func (a *app) edit(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	visual, _ := a.env("VISUAL")
	editor := strings.Fields(visual)
	if len(editor) == 0 {
		other, _ := a.env("EDITOR")
		editor = strings.Fields(other)
	}
	var text string
	var err error
	if len(editor) > 0 {
		text, err = a.inEditor(ctx, editor, args)
	} else {
		text, err = a.ask(ctx, "arguments, as JSON on one line: ")
	}
	if err != nil {
		return nil, err
	}
	return object(text)
}

func (a *app) inEditor(ctx context.Context, editor []string, args json.RawMessage) (string, error) {
	var nice bytes.Buffer
	if json.Indent(&nice, args, "", "  ") != nil {
		nice.Write(args)
	}
	f, err := os.CreateTemp("", "tenon-arguments-*.json")
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInternal, "there is no place for the arguments: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(nice.Bytes(), '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		cmd := exec.CommandContext(ctx, editor[0], append(editor[1:], f.Name())...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, a.out, a.err
		err = cmd.Run()
	}
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "the editor %s: %w", editor[0], err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "the edited arguments cannot be read: %w", err)
	}
	return string(b), nil
}

// object checks that a text is one JSON object and returns its bytes.
func object(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	var o map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &o)
	var other *json.UnmarshalTypeError
	switch {
	case text == "":
		err = errors.New("there is nothing")
	case errors.As(err, &other):
		err = errors.New("it is of type " + other.Value)
	case err == nil && o == nil:
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments must be a JSON object: %w", err)
	}
	return json.RawMessage(text), nil
}

// winner says who was faster.
func (a *app) winner(won tenon.Event) string {
	switch won.Kind {
	case agent.EventDecision:
		var r agent.Ruling
		_ = json.Unmarshal(won.Data, &r) // ours; an unreadable one has no name to show
		return fmt.Sprintf("it was decided before: %s by %s, %s", r.Verdict, r.By, a.when(won.Time))
	case agent.EventAnswer:
		var r agent.Answer
		_ = json.Unmarshal(won.Data, &r)
		return fmt.Sprintf("it was answered before: by %s, %s", r.By, a.when(won.Time))
	case tenon.EventExpired:
		var x tenon.ExpiredData
		_ = json.Unmarshal(won.Data, &x)
		if x.Reason == "" {
			x.Reason = "nobody answered in time"
		}
		return fmt.Sprintf("the question had ended before: %s, %s", safeLine(x.Reason), a.when(won.Time))
	}
	return fmt.Sprintf("the run went on without it (%s, %s)", won.Kind, a.when(won.Time))
}
