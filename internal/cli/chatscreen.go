package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/tui"
)

// stage replaces stdout and stderr while the chat program (package tui) has the terminal. Lines that are written to it
// become notes of the conversation.
type stage struct {
	mu   sync.Mutex
	real io.Writer
	send func(text string) // nil: the terminal is lent out
	part []byte            // a line without its end
}

// Write implements [io.Writer].
func (s *stage) Write(b []byte) (int, error) {
	s.mu.Lock()
	if s.send == nil {
		defer s.mu.Unlock()
		return s.real.Write(b)
	}
	s.part = append(s.part, b...)
	end := bytes.LastIndexByte(s.part, '\n')
	text, send := string(s.part[:end+1]), s.send
	s.part = append([]byte(nil), s.part[end+1:]...)
	s.mu.Unlock()
	if text != "" {
		send(strings.TrimRight(text, "\n"))
	}
	return len(b), nil
}

// to sets where lines go: to a function, or with nil to the terminal.
func (s *stage) to(send func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send = send
}

// unstaged returns the stream below a stage.
func unstaged(stream any) any {
	if s, ok := stream.(*stage); ok {
		return s.real
	}
	return stream
}

// fullScreen reports whether chat runs as a program of the whole terminal. Stderr may be a file.
func (a *app) fullScreen(plain bool) bool {
	t, _ := a.env("TERM")
	_, in := a.in.(*os.File)
	return !plain && in && a.inTTY && a.outTTY && a.format == formatText && !a.quiet && !a.noInput &&
		t != "" && t != "dumb" && runtime.GOOS != "windows"
}

// chatOnScreen holds a conversation in the program of package tui. It returns when the person leaves.
func (a *app) chatOnScreen(ctx context.Context, h desk, q *asking) error {
	ctx, stop := a.interruptScreen(ctx)
	defer stop()
	out, errs := &stage{real: beneath(a.out)}, &stage{real: beneath(a.err)}
	if !a.errTTY { // questions in plain lines need the terminal; the logs go to the file
		errs.real = out.real
	}
	past := a.chatHistory()
	t := &talk{a: a, h: h, q: q, screens: []*stage{out, errs}, poke: make(chan struct{}, 1),
		complete: a.completer(h, q.cassette.replay != "", screenWords...)}
	in, _ := a.in.(*os.File)
	env := os.Environ()
	if a.noColor {
		env = append(env, "NO_COLOR=1")
	}
	notice := ""
	if a.scripted != "" {
		notice = "\n\n" + a.scripted + "\nFor other questions save a provider's API key: /login openai " +
			"(or anthropic, gemini, openrouter)."
	}
	pictures := &clips{a: a}
	defer pictures.close()
	t.p = tui.New(ctx, tui.Config{Backend: t, In: in, Out: out.real, Env: env, History: past.list, Kept: past.keep,
		Mode: []string{modeAsk, modeAllow}, ModeAt: modeOf(q), SetMode: t.setMode, CanEdit: a.canEdit, Pasted: a.pasted,
		Confirm: map[string]string{modeAllow: "Shift-Tab again allows all calls of the next questions"},
		Picture: pictures.take,
		Theme:   a.chatTheme(),
		Anytime: []string{"/help", "/session", "/cost", "/copy", "/theme", "/servers", "/tools", "/prompts",
			"/resources", "/allowed", "/sessions"},
		Commands: screenCommands(),
		Hint: "Ask something. /help shows the commands, Ctrl-C twice leaves.\nEnter sends, Alt-Enter adds a line, " +
			"Ctrl-O unfolds tool calls, Shift-Tab switches approvals." + notice})
	beforeOut, beforeErr, color, errTTY := a.out, a.err, [2]bool{a.outColor, a.errColor}, a.errTTY
	a.out, a.err, a.outColor, a.errColor, a.errTTY = newScreen(out), newScreen(errs), false, false, true
	if errTTY {
		a.logs.to(a.err)
	}
	defer func() {
		t.lend()
		a.flush()
		a.out, a.err, a.outColor, a.errColor, a.errTTY = beforeOut, beforeErr, color[0], color[1], errTTY
		a.logs.to(a.err)
	}()
	t.take()
	a.onScreen.Store(true)
	a.remarks.Store(errTTY) // a file gets whole records, as at other times
	defer a.onScreen.Store(false)
	defer a.remarks.Store(false)
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		t.begin(ctx)
	}()
	err := t.p.Run()
	<-ready
	t.lend()
	if t.waits != "" {
		a.tellWaits(context.WithoutCancel(ctx), h, t.waits)
	}
	t.tellUnsent()
	if session := t.session(); session != "" {
		a.hint("continue with: %s", a.again("chat", "-s", session))
	}
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx, nil)
	}
	return err
}

// interruptScreen returns a context that SIGINT ends. While the terminal is lent out, Ctrl-C is a signal that only ends
// the question in plain lines; otherwise it is a key, and the signal comes from another process.
func (a *app) interruptScreen(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signal.Reset(os.Interrupt)
	got, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(got, os.Interrupt)
	go func() {
		defer close(over)
		for range got {
			if a.lent.Load() == 0 {
				cancel(signalled{syscall.SIGINT})
			}
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(got)
		<-over
		cancel(nil)
	}
}

// The modes of approval that Shift-Tab switches between.
const (
	modeAsk   = "asks before calls"
	modeAllow = "allows all calls"
)

// modeOf returns the index of the mode of approval that the flags choose.
func modeOf(q *asking) int {
	if q.yes {
		return 1
	}
	return 0
}

// talk does the work of a conversation on the screen.
type talk struct {
	a        *app
	h        desk
	p        *tui.Program
	screens  []*stage
	complete func(ctx context.Context, line string) completion
	poke     chan struct{} // a question was decided

	mu     sync.Mutex
	q      *asking
	run    string // the run in progress, or ""
	waits  string // the run that waits after the person has left
	asked  stoppable
	unsent []string // messages that a run did not take after the person had left
	last   string   // the last answer
	totals totals
	asks   map[string]host.Approval
	forms  map[string][]tui.Input // of the asks, by id
}

func (t *talk) take() {
	for _, s := range t.screens {
		s.to(func(text string) { t.p.Send(tui.Note{Text: text}) })
	}
}

func (t *talk) lend() {
	for _, s := range t.screens {
		s.to(nil)
	}
}

// lines runs questions in plain lines, with the terminal lent out.
func (t *talk) lines(f func() error) error {
	return t.p.Lines(func() error {
		t.a.lent.Add(1)
		t.lend()
		defer func() {
			t.take()
			t.a.lent.Add(-1)
		}()
		return f()
	})
}

func (t *talk) note(format string, args ...any) { t.a.note(format, args...) }

// session returns the session of the conversation. It returns "" before the first question.
func (t *talk) session() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.q.session
}

// setMode sets the mode of approval for the next questions.
func (t *talk) setMode(mode string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.q.yes = mode == modeAllow
}

// begin shows the state of a conversation when the program begins.
func (t *talk) begin(ctx context.Context) {
	t.status(ctx)
	if t.session() != "" {
		if t.a.scripted != "" {
			t.note("%s", t.a.scripted) // no hint is shown, and the line before the screen is hidden
		}
		t.showSession(ctx)
		t.status(ctx)
		t.p.Send(tui.Continue{})
	}
}

// showSession shows the conversation so far, and replaces a reference to the session by its id.
func (t *talk) showSession(ctx context.Context) {
	s, err := t.h.Sessions().Get(ctx, t.session())
	if err == nil {
		t.mu.Lock()
		t.q.session = s.ID
		t.mu.Unlock()
		var list []*tenon.Message
		list, err = t.h.Sessions().Transcripts().Context(ctx, s.ID, false)
		open := -1 // the message whose calls goOn shows
		if run, _, uerr := unfinishedRun(ctx, t.h, s.ID); uerr == nil && run.ID != "" {
			for i, m := range list {
				if m.Role == tenon.RoleAssistant {
					open = i
				}
			}
		}
		for i, m := range list {
			var results *tenon.Message
			if i+1 < len(list) && list[i+1].Role == tenon.RoleTool {
				results = list[i+1]
			}
			t.showMessage(i, m, results, i == open)
		}
	}
	if err != nil {
		t.note("tenon: %s", safeLine(err.Error()))
	}
}

// showMessage shows a message of the conversation so far, with the results of its calls. If open is set, goOn shows its
// calls.
func (t *talk) showMessage(number int, m, results *tenon.Message, open bool) {
	if text := m.Text(); strings.TrimSpace(text) != "" {
		t.p.Send(tui.Said{Person: m.Role == tenon.RoleUser, Text: text})
		if m.Role == tenon.RoleAssistant {
			t.mu.Lock()
			t.last = text
			t.mu.Unlock()
		}
	}
	if open {
		return
	}
	for i, c := range m.Calls() {
		call := tui.Call{Key: fmt.Sprintf("past/%d/%d", number, i), Name: c.Name,
			Args: argShort(c.Arguments, argsShown), State: tui.CallDone}
		r := resultOf(results, c.ID)
		if r != nil && r.IsError {
			call.State, call.Note = tui.CallFailed, "error: "+firstLine(strings.TrimPrefix(r.Text(), "Error: "))
		}
		call.Details = details(c.Arguments, r)
		t.p.Send(call)
	}
}

// resultOf returns the result of a call in a message with results, or nil.
func resultOf(m *tenon.Message, id string) *tenon.Result {
	if m == nil {
		return nil
	}
	for _, p := range m.Parts {
		if p.Result != nil && p.Result.ID == id {
			return &tenon.Result{Content: p.Result.Content, IsError: p.Result.IsError}
		}
	}
	return nil
}

// Submit implements [tui.Backend].
func (t *talk) Submit(ctx context.Context, text string) {
	err := t.submit(ctx, text)
	if r := (reported{}); err != nil && !errors.As(err, &r) {
		t.note("tenon: %s", safeText(err.Error()))
	}
	t.status(context.WithoutCancel(ctx))
}

func (t *talk) submit(ctx context.Context, text string) error {
	switch {
	case text == "/exit" || text == "/quit":
		t.p.Send(tui.Closed{})
		return nil
	case strings.HasPrefix(text, "/") && strings.Contains(text, ":") && !t.q.noTools:
		here, ok := t.h.(*host.Host)
		if !ok {
			return tenon.Errorf(tenon.CodeInvalid, "prompts do not go with --remote")
		}
		p, ok, err := t.a.chatPrompt(ctx, here, text)
		switch {
		case err != nil:
			return err
		case !ok:
			return t.word(ctx, text)
		}
		t.note("%s", safeText(p.Text))
		question := t.question(p.Text)
		question.Files = append(question.Files, p.Files...)
		return t.turn(ctx, question, false)
	case strings.HasPrefix(text, "/"):
		return t.word(ctx, text)
	}
	return t.turn(ctx, t.question(text), true)
}

func (t *talk) question(text string) host.Question {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.q.question(text)
	q.Files = append([]tenon.Part(nil), q.Files...)
	if t.q.switched {
		q.Model = t.q.model
	}
	return q
}

// Steer implements [tui.Backend].
func (t *talk) Steer(ctx context.Context, text string) error {
	t.mu.Lock()
	run := t.run
	t.mu.Unlock()
	if run == "" {
		return tui.ErrLate
	}
	_, err := t.h.Runs().Steer(ctx, run, text, string(tenon.PrincipalLocal))
	if tenon.ErrorCode(err) == tenon.CodeConflict {
		return tui.ErrLate
	}
	return err
}

// Complete implements [tui.Backend].
func (t *talk) Complete(ctx context.Context, before string) tui.Completion {
	if c, ok := t.a.offeredFiles(ctx, before); ok {
		return c
	}
	line := before[strings.LastIndexByte(before, '\n')+1:]
	c := t.complete(ctx, line)
	return tui.Completion{Back: c.back, Text: c.text, Note: c.note}
}

// canEdit returns an error if there is no editor that can start.
func (a *app) canEdit() error {
	editor := a.editor()
	if len(editor) == 0 {
		return tenon.Errorf(tenon.CodeInvalid, "set VISUAL or EDITOR to edit the text in a program")
	}
	if _, err := exec.LookPath(editor[0]); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the editor %s is not found; set VISUAL or EDITOR to another program",
			editor[0])
	}
	return nil
}

// Edit implements [tui.Backend].
func (t *talk) Edit(ctx context.Context, text string) (string, error) {
	if err := t.a.canEdit(); err != nil {
		return "", err
	}
	editor := t.a.editor()
	t.a.lent.Add(1)
	t.lend()
	defer func() {
		t.take()
		t.a.lent.Add(-1)
	}()
	return t.a.editText(ctx, editor, "tenon-question-*.md", []byte(text))
}

// interruptible makes Ctrl-C end f while the terminal is lent out.
func interruptible(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	return f(ctx)
}

var _ tui.Backend = (*talk)(nil)
