package cli

import (
	"bytes"
	"cmp"
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
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/view"
)

// errUndecided means that nobody can be asked at this terminal.
var errUndecided = errors.New("undecided")

// decide answers the questions of a run and of the runs that it called. If yes is set, it allows every tool call;
// otherwise it asks the person at the terminal.
func (a *app) decide(ctx context.Context, h desk, run string, yes bool) error {
	if !yes && !a.canAsk() {
		return errUndecided
	}
	for seen := map[string]bool{}; ; {
		// List again after each decision, because an approval for the session also decides other calls.
		list, err := h.Approvals().List(ctx, run)
		if err != nil {
			return err
		}
		if list = slices.DeleteFunc(list, func(p host.Approval) bool { return seen[p.ID] }); len(list) == 0 {
			return nil
		}
		p := list[0]
		seen[p.ID] = true
		if p.Kind == agent.AskClient {
			return errUndecided // only the client has the result
		}
		if p.Kind != agent.AskApproval && !a.canAsk() {
			return errUndecided // --yes covers only tool calls: it has no answers and must not lift limits
		}
		if yes && p.Kind == agent.AskApproval {
			allow := agent.Ruling{Verdict: tenon.Allow, By: byYes}
			if _, _, err := h.Approvals().Decide(ctx, p.Run, p.Step, allow); err != nil {
				return err
			}
			continue
		}
		if err := a.decideOne(ctx, ctx, h, p, len(list)-1); err != nil {
			return err
		}
	}
}

// decideOne asks the person until there is a valid decision. It stops asking when prompt is done.
func (a *app) decideOne(ctx, prompt context.Context, h desk, p host.Approval, more int) error {
	get := func(ctx context.Context, asked agent.Asking) (agent.Ruling, error) {
		return a.askRuling(ctx, asked, p.Narrower)
	}
	defer a.logs.hold()() // keep log lines out of the question
	switch p.Kind {
	case agent.AskInput, agent.AskSampling:
		get = a.askInput
	default:
		a.showAsking(p, more)
		a.showNarrower(p.Narrower)
	}
	for {
		ruling, err := get(prompt, p.Asking)
		if err != nil {
			return err
		}
		won, mine, err := h.Approvals().Decide(ctx, p.Run, p.Step, ruling)
		switch {
		case err == nil && !mine:
			a.note("%s", a.winner(won))
			return nil
		case err == nil:
			return nil
		case tenon.ErrorCode(err) == tenon.CodeInvalid && (len(ruling.Arguments) > 0 || ruling.If != ""):
			a.note("%s", safeLine(err.Error()))
		default:
			return err
		}
	}
}

// showAsking shows a call with its server and its arguments, exactly as they would be sent.
func (a *app) showAsking(asked host.Approval, more int) {
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
	if asked.Connector != nil {
		a.note("  address    %s", safeLine(connectorAddress(asked.Connector)))
	}
	if asked.Reason != "" {
		a.note("  reason     %s", safeLine(asked.Reason))
	}
	for _, line := range a.argLines("arguments", asked.ID, asked.Arguments, false) {
		a.note("%s", line)
	}
}

// argLines formats the arguments of an approval after a label. If they are too long to be shown whole, their digest and
// the command that shows them follow.
func (a *app) argLines(label, id string, args json.RawMessage, full bool) []string {
	label = fmt.Sprintf("  %-10s ", label)
	width, indent := a.width(), strings.Repeat(" ", len(label))
	if width < 60 {
		indent = "    "
	}
	block, whole := argBlock(args, width, indent, full)
	if width < 60 {
		block = append([]string{strings.TrimRight(label, " ")}, block...)
	} else {
		block[0] = label + block[0][len(label):]
	}
	if whole {
		return block
	}
	raw := bytes.TrimSpace(args)
	more := folded(fmt.Sprintf("all of it  %d bytes, %s", len(raw), wholeDigest(raw)), width, "  ")
	// The command is one line, so that it can be copied.
	return append(append(block, more...), "  show it    "+a.again("approvals show", id, "--full"))
}

// approvalWords lists the possible answers to a pending call. The question fits on a terminal of 80 columns with room
// for the answer. narrowerWords also offers a condition.
const (
	approvalWords = "[y]es, for this [s]ession, [a]lways, [n]o or n REASON, [e]dit arguments: "
	narrowerWords = "[y]es, [s]ession, [a]lways, always [i]f, [n]o or n REASON, [e]dit: "
)

// showNarrower shows the whole condition that the person accepts with the answer i.
func (a *app) showNarrower(n *policy.Narrower) {
	if n == nil {
		return
	}
	a.note("  always if  %s", safeLine(n.If))
	if len(n.Any) > 0 {
		a.note("             with any %s", safeLine(strings.Join(n.Any, ", ")))
	}
}

// askRuling asks for one decision. If narrower is not nil, it is offered as a condition.
func (a *app) askRuling(ctx context.Context, asked agent.Asking, narrower *policy.Narrower) (agent.Ruling, error) {
	r := agent.Ruling{By: string(tenon.PrincipalLocal)}
	question := approvalWords
	if narrower != nil {
		question = narrowerWords
	}
	answers := "answer with one of the letters in brackets: y, s, a, n or e"
	if narrower != nil {
		answers = "answer with one of the letters in brackets: y, s, a, i, n or e"
	}
	once := asked.Kind == agent.AskLimit || asked.Again // holds for this question only, and has nothing to edit
	if once {
		question, answers = "[y]es / [n]o: ", answerYesOrNo
	}
	for {
		answer, err := a.ask(ctx, question)
		if err != nil {
			return r, errors.Join(errUndecided, err)
		}
		word, rest, _ := strings.Cut(answer, " ")
		if word = strings.ToLower(word); once && word != "" &&
			!strings.Contains(" y yes n no ", " "+word+" ") {
			a.note("%s", answerYesOrNo)
			continue
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
		case "i", "if":
			r.If = strings.TrimSpace(rest)
			if r.If == "" && narrower != nil {
				r.If = narrower.If
			}
			if r.If == "" {
				a.note("write the condition after it: i args.NAME == VALUE")
				continue
			}
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
		default:
			a.note("%s", answers)
		}
	}
}

// edit lets the person change arguments in $VISUAL or $EDITOR, or on a line if neither is set.
func (a *app) edit(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	editor := a.editor()
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

// editor returns the command of the person's editor, or nil if none is set.
func (a *app) editor() []string {
	visual, _ := a.env("VISUAL")
	editor := strings.Fields(visual)
	if len(editor) == 0 {
		other, _ := a.env("EDITOR")
		editor = strings.Fields(other)
	}
	return editor
}

func (a *app) inEditor(ctx context.Context, editor []string, args json.RawMessage) (string, error) {
	var nice bytes.Buffer
	if json.Indent(&nice, args, "", "  ") != nil {
		nice.Reset()
		nice.Write(args)
	}
	return a.editText(ctx, editor, "tenon-arguments-*.json", append(nice.Bytes(), '\n'))
}

// editText lets the person change a text in an editor. The pattern names a temporary file.
func (a *app) editText(ctx context.Context, editor []string, pattern string, text []byte) (string, error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInternal, "there is no place for the text: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		cmd := exec.CommandContext(ctx, editor[0], append(slices.Clip(editor[1:]), f.Name())...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, beneath(a.out), beneath(a.err)
		err = cmd.Run()
	}
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "the editor %s: %w", editor[0], err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "the edited text cannot be read: %w", err)
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

// winner describes the earlier event that decided a question.
func (a *app) winner(won tenon.Event) string {
	data, _ := view.Decode(won) // if the data cannot be read, the message shows no name
	switch r := data.(type) {
	case *agent.Ruling:
		return fmt.Sprintf("it was decided before: %s by %s, %s", r.Verdict, r.By, a.when(won.Time))
	case *agent.Answer:
		return fmt.Sprintf("it was answered before: by %s, %s", r.By, a.when(won.Time))
	case *tenon.ExpiredData:
		reason := cmp.Or(r.Reason, "nobody answered in time")
		return fmt.Sprintf("the question had ended before: %s, %s", safeLine(reason), a.when(won.Time))
	}
	return fmt.Sprintf("the run continued without it (%s, %s)", won.Kind, a.when(won.Time))
}
