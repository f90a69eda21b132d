package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newChat(a *app) *cobra.Command {
	q, plain := &asking{}, false
	cmd := &cobra.Command{
		Use:   "chat [flags]",
		Short: "Talk with an agent",
		Long: "Holds a conversation in one session. If stdin and stdout are a terminal, it takes the whole screen:\n" +
			"answers are drawn while they arrive, tool calls are lines that Ctrl-O unfolds, approvals are answered\n" +
			"with a key, and /help lists the keys and commands. Stderr may be a file, which gets the logs.\n" +
			"Messages sent during an answer go to the model with its next request. If the answer is stopped\n" +
			"before that, they return to the input.\n\n" +
			"With --plain, TERM=dumb, a pipe or another output format it reads questions, one a line, and prints " +
			"lines:\n\n" +
			"  /tools      what the agent can call\n  /prompts    what can be asked as /SERVER:PROMPT KEY=TEXT…; " +
			"the beginning of a name is enough\n" +
			"  /resources  what a question can name as @SERVER:URI, to attach it\n  /session    the session's id, to " +
			"continue it later with -s\n" +
			"  /compact    summarize the conversation so far for the model\n  /help       these commands\n  " +
			"/exit       end the conversation, as Ctrl-D does\n\n" +
			"At a terminal there are also /model, /agent, /login, /new, /resume and /undo, which /help explains.\n" +
			"At a terminal @FILE attaches a file; in a pipe it is text, because others may have written it.\n" +
			"Tab completes these commands, the names of servers, prompts and arguments, and the URIs of resources.\n" +
			"The cursor keys recall earlier lines. Ctrl-C stops the current answer; at the prompt it ends the\n" +
			"conversation. -o json prints one object for each question, -o jsonl one line for each stored event.",
		Example: "  tenon chat\n  tenon chat -s -1\n  printf 'Hello\\nAnd in Paris?\\n' | tenon chat --model demo",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := q.check(cmd); err != nil {
				return err
			}
			return a.chat(cmd.Context(), q, plain)
		},
	}
	q.flags(a, cmd)
	cmd.Flags().BoolVar(&plain, "plain", false, "read and print lines, also at a terminal: for screen readers")
	return cmd
}

const chatHelp = "/tools      what the agent can call\n/prompts    what can be asked as /SERVER:PROMPT " +
	"KEY=TEXT…\n/resources  what a question can name as @SERVER:URI\n/session    the session's id\n/compact    " +
	"summarize the conversation so far for the model\n/help       these commands\n/exit       end the conversation"

func (a *app) chat(ctx context.Context, q *asking, plain bool) (err error) {
	o := q.opening("chat")
	o.talks, o.begins = a.inTTY, a.inTTY
	first, err := a.firstLine(ctx, &o)
	if err != nil {
		return err
	}
	h, err := a.desk(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	if err := checkChat(ctx, h, q); err != nil {
		return err
	}
	a.talking = true
	if a.fullScreen(plain) {
		return a.chatOnScreen(ctx, h, q)
	}
	if a.inTTY {
		a.hint("%s", "Ask something. /help shows the commands, Ctrl-D ends.")
	}
	// From here on Ctrl-C stops the current answer, not the process.
	signal.Reset(os.Interrupt)
	var more []string
	if a.inTTY {
		more = plainWords()
	}
	edit := a.newEditor(a.completer(h, q.cassette.replay != "", more...))
	var last error
	for {
		text, err := first, error(nil)
		first = ""
		if text == "" {
			text, err = a.prompt(ctx, edit)
		}
		switch {
		case errors.Is(err, io.EOF):
			return last
		case ctx.Err() != nil:
			return err // a signal that ends the process
		case err != nil:
			return reported{tenon.Errorf(tenon.CodeCancelled, "interrupted")}
		}
		switch text = strings.TrimSpace(text); {
		case text == "":
		case !utf8.ValidString(text):
			err := tenon.Errorf(tenon.CodeInvalid, "the question is not UTF-8")
			if !a.inTTY {
				return err
			}
			a.note("tenon: %s", err)
		case text == "/exit" || text == "/quit":
			return last
		case strings.HasPrefix(text, "/") && strings.Contains(text, ":") && !q.noTools:
			last = a.chatAsPrompt(ctx, h, q, text)
			if ctx.Err() != nil {
				return ended(ctx, last)
			}
			if a.inTTY {
				last = nil
			}
		case strings.HasPrefix(text, "/"):
			if err := a.chatWord(ctx, h, q, text); err != nil {
				a.note("tenon: %s", err)
			}
		default:
			last = a.chatTurn(ctx, h, q, q.question(text), true)
			if ctx.Err() != nil {
				return ended(ctx, last)
			}
			if a.inTTY {
				last = nil // the person has seen it
			} else if errorCode(last) == tenon.CodeWaiting {
				return last // the session is busy until the decision is made
			}
		}
	}
}

// firstLine reads the first question of a pipe, because the built-in script answers only the questions that it knows.
func (a *app) firstLine(ctx context.Context, o *opening) (string, error) {
	if a.inTTY || o.model != "" || a.config == "-" || a.remote != "" {
		return "", nil
	}
	text, err := a.lines.next(ctx)
	switch {
	case errors.Is(err, io.EOF):
		return "", nil
	case err == nil && strings.TrimSpace(text) != "":
		o.asks = text
	}
	return text, err
}

// checkChat checks the names of the flags before the conversation begins.
func checkChat(ctx context.Context, h desk, q *asking) error {
	if q.session != "" {
		if _, err := h.Sessions().Get(ctx, q.session); err != nil {
			return err
		}
	}
	here, ok := h.(*host.Host)
	if !ok {
		return nil
	}
	if _, err := here.Service().Info().Config.Agent(q.agent); err != nil {
		return err
	}
	return checkModel(ctx, here, q.model)
}

// checkModel returns an error if there is no model of this name.
func checkModel(ctx context.Context, h *host.Host, name string) error {
	if name == "" {
		return nil
	}
	for _, m := range h.Service().Info().Config.Models {
		if m.Model == name {
			return nil
		}
	}
	if _, _, err := h.Models().Price(ctx, name); tenon.ErrorCode(err) == tenon.CodeNotFound {
		return err
	}
	return nil
}

// ended returns the error of a chat that was ended by a signal. last is nil if the answer was complete when the signal
// arrived.
func ended(ctx context.Context, last error) error {
	if last == nil {
		return interrupted(ctx, nil)
	}
	return last
}

// prompt reads the next line. Ctrl-C ends it. edit is nil if the terminal does not support line editing.
func (a *app) prompt(ctx context.Context, edit *lineEditor) (string, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if !a.inTTY {
		return a.lines.next(ctx)
	}
	if edit != nil && !a.lines.hasLine() {
		text, err := edit.read(ctx)
		if err != nil {
			a.note("")
		}
		return text, err
	}
	_, _ = io.WriteString(a.err, a.errStyle(bold, "> "))
	text, err := a.lines.next(ctx)
	if err != nil {
		a.note("")
	}
	return text, err
}

// chatTurn asks one question. Ctrl-C cancels only its run. If own is set, the person typed the question, and the
// resources that it names are attached.
func (a *app) chatTurn(ctx context.Context, h desk, q *asking, question host.Question, own bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // the second Ctrl-C kills the process
	var run tenon.Run
	var err error
	if own && a.inTTY { // a pipe may hold the text of others, which must not name files
		err = a.attachFiles(ctx, &question)
	}
	if own && err == nil {
		err = a.attach(ctx, h, &question)
	}
	if q.switched {
		question.Model = q.model
	}
	if err == nil {
		run, err = a.question(ctx, h, question, q.yes)
	}
	if run.Session != "" {
		if _, serr := h.Sessions().Get(context.WithoutCancel(ctx), run.Session); serr == nil {
			q.session, q.fork = run.Session, false
		}
	}
	if r := (reported{}); err != nil && !errors.As(err, &r) {
		a.fail(err, nil)
		err = reported{err}
	}
	return err
}

// chatAsPrompt renders the prompt of a server that text names and asks the result as a question. If text names no
// prompt, it is handled as a command.
func (a *app) chatAsPrompt(ctx context.Context, h desk, q *asking, text string) error {
	here, ok := h.(*host.Host)
	if !ok {
		a.note("prompts do not go with --remote")
		return nil
	}
	p, ok, err := a.chatPrompt(ctx, here, text)
	switch {
	case err != nil:
		a.note("tenon: %s", safeLine(err.Error()))
		return reported{err}
	case !ok:
		return a.chatWord(ctx, h, q, text)
	}
	fmt.Fprintln(a.err, a.errStyle(dim, shorten(safeLine(p.Text), 4*a.width())))
	question := q.question(p.Text)
	question.Files = append(slices.Clip(question.Files), p.Files...)
	return a.chatTurn(ctx, h, q, question, false)
}

func (a *app) chatWord(ctx context.Context, h desk, q *asking, text string) error {
	if name, rest, _ := strings.Cut(text, " "); a.inTTY && slices.Contains(plainWords(), name) {
		return a.plainWord(ctx, h, q, name, strings.TrimSpace(rest))
	}
	switch text {
	case "/help":
		a.note(chatHelp)
		if a.inTTY {
			a.note(plainHelp)
		}
	case "/session":
		if q.session == "" {
			a.note("no session yet: it begins with the first question")
			return nil
		}
		s, err := h.Sessions().Get(ctx, q.session)
		if err != nil {
			return err
		}
		a.note("%s", s.ID)
	case "/compact":
		if q.session == "" {
			a.note("nothing was said yet")
			return nil
		}
		return a.compact(ctx, h, q.session, q.model)
	case "/prompts", "/resources", "/tools":
		return a.chatOffers(ctx, h, text)
	default:
		words := chatWords
		if a.inTTY {
			words = slices.Concat(words, plainWords())
		}
		a.note("%s", noWord(text, words))
	}
	return nil
}

// chatOffers lists the available prompts, resources or tools.
func (a *app) chatOffers(ctx context.Context, d desk, what string) error {
	h, ok := d.(*host.Host)
	if !ok && what != "/tools" {
		return tenon.Errorf(tenon.CodeInvalid, "%s does not go with --remote", what)
	}
	switch what {
	case "/prompts":
		k, err := h.Servers().Context().Known().Prompts(ctx)
		if err := a.listedInChat(k.Listed, k.Problems, len(k.Items), what, err); err != nil {
			return err
		}
		for _, p := range k.Items {
			a.showPrompt(p)
		}
	case "/resources":
		k, err := h.Servers().Context().Known().Resources(ctx)
		if err := a.listedInChat(k.Listed, k.Problems, len(k.Items), what, err); err != nil {
			return err
		}
		for _, r := range k.Items {
			a.note("%s", shorten(safeLine("@"+r.Server+":"+r.URI+r.Template+"  "+r.Name), a.width()))
		}
	case "/tools":
		list, problems, err := d.Tools().List(ctx)
		a.problems(problems)
		if err != nil {
			return err
		}
		a.showOffered(list)
	}
	return nil
}

// listedInChat tells the age and the problems of a list, and that it is empty.
func (a *app) listedInChat(listed time.Time, problems []host.Problem, n int, what string, err error) error {
	a.noteListed(listed, "")
	a.problems(problems)
	if err == nil && n == 0 {
		a.note("no %s", strings.TrimPrefix(what, "/"))
	}
	return err
}

func (a *app) showOffered(list []host.ToolInfo) {
	if len(list) == 0 {
		a.note("no tools")
	}
	const most = 40 // longer names do not widen the column
	names := 0
	for _, t := range list {
		if n := breadth(safeLine(t.Name)); n <= most {
			names = max(names, n)
		}
	}
	for _, t := range list {
		name := pad(safeLine(t.Name), names)
		a.note("%s", strings.TrimRight(name+"  "+shorten(safeLine(about(t.Description)), a.width()-breadth(name)-3),
			" "))
	}
}
