// Package tui is the terminal program of tenon chat: a conversation that scrolls, an input below it, questions to the
// person, and a status line. It knows nothing of hosts and runs. A [Backend] does the work, and reports it by messages:
//
//	keys ─► model ─► Backend (internal/cli: asks, steers, decides)
//	          ▲          │
//	          └── Send ──┘   Delta, Answered, Call, Note, Asks, Status, …
//
// The model is a value of Bubble Tea: Update changes it, View draws the visible part of it. Blocks of the conversation
// keep their lines, so a key costs the same after five thousand lines. A text that is still arriving is drawn again
// only from its last stable block on (package markdown).
//
// All texts are escaped when they are drawn: no text of a model or server moves the cursor or hides another. The
// program takes the whole screen of the terminal and gives it back at the end, also after a panic or a signal. For a
// question that needs plain lines, [Program.Lines] lends the terminal out; [Program.Secret] asks for a hidden text.
package tui

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Backend does the work of a conversation. Its methods run in separate goroutines and may block until their context
// ends.
type Backend interface {
	// Submit handles a question or a command that begins with a slash, and returns when its run has ended. It reports
	// everything through the program, errors too. When ctx ends it stops the run and reports the text so far.
	Submit(ctx context.Context, text string)
	// Continue follows the unfinished run of an earlier conversation, if there is one, like Submit.
	Continue(ctx context.Context)
	// Steer sends a message to the run in progress. The error is [ErrLate] if the run takes no more messages.
	Steer(ctx context.Context, text string) error
	// Decide answers a question. If it returns an error, the error is shown, and the question stays open.
	Decide(ctx context.Context, ask Ask, r Ruling) error
	// Complete returns the completion of the text before the cursor.
	Complete(ctx context.Context, before string) Completion
	// Edit lets the person change a text in an external editor. It runs while the terminal is lent out.
	Edit(ctx context.Context, text string) (string, error)
}

// ErrLate means that a run ended before it took a message. The message becomes the next question.
var ErrLate = errors.New("the run has ended")

// ErrLeft is the cause of a context that ends because the person left while questions waited. The run keeps waiting.
var ErrLeft = errors.New("the person left")

// Config is the configuration of a program. Backend is required.
type Config struct {
	Backend Backend
	In      io.Reader // a terminal; if nil, stdin
	Out     io.Writer // a terminal; if nil, stdout
	Env     []string  // environment with TERM, NO_COLOR and COLORTERM; if nil, the process's
	Width   int       // columns and rows, for tests; if 0, the terminal's
	Height  int
	History []string          // earlier inputs, oldest first
	Kept    func(string)      // called with each new input; may be nil
	Now     func() time.Time  // if nil, time.Now
	Hint    string            // shown while the conversation is empty
	Mode    []string          // modes of approval that Shift-Tab switches between
	ModeAt  int               // index of the mode that applies first
	SetMode func(string)      // called with the chosen mode; may be nil
	Confirm map[string]string // modes that a second key confirms: the words that ask for it
	Anytime []string          // commands that run at once, even during a run
	// Commands are the commands and what they do. Those that begin with the typed text are shown below the input.
	Commands [][2]string
	Theme    string              // one of Themes; if empty, the first
	Pasted   func(string) string // replaces a text that was pasted into a message; may be nil
	CanEdit  func() error        // returns an error if there is no editor; may be nil
	// Picture returns the text that Ctrl-V inserts for a picture in the clipboard. It may be nil.
	Picture func(context.Context) (string, error)
}

// The messages that a backend sends. Their texts may come from models and servers; the program escapes them.
type (
	// Delta is a piece of an answer, or of the model's reasoning.
	Delta struct {
		Thinking bool
		Text     string
	}
	// Restart discards the unfinished answer, because the model is asked again.
	Restart struct{ Reason string }
	// Answered is the stored answer of a model, with its reasoning. It replaces the pieces.
	Answered struct{ Thinking, Text string }
	// Said is an earlier message of the conversation.
	Said struct {
		Person bool
		Text   string
	}
	// Call is the state of a tool call. It replaces an earlier Call with the same key.
	Call struct {
		Key     string
		Name    string // server.tool
		Args    string // on one line
		Depth   int    // number of runs above the call's run
		State   CallState
		Note    string // progress, outcome or error
		Took    string
		Details string // arguments and result, shown when unfolded
	}
	// Decided replaces the note of a call that is still open.
	Decided struct{ Key, Note string }
	// Note is a remark of tenon.
	Note struct{ Text string }
	// Page is a text that is read from its beginning: if it does not fit, the view does not go to its end.
	Page struct{ Text string }
	// Steered reports that the run took a message.
	Steered struct{ Text string }
	// Withdrawn reports that a run which the person stopped did not take a message. It returns to the input.
	Withdrawn struct{ Text string }
	// Asks is the list of pending questions, oldest first. It replaces the earlier list.
	Asks struct{ List []Ask }
	// Status updates the status line.
	Status struct {
		Parts []string // most important first; parts that do not fit are omitted
		Down  []string // servers that are down
	}
	// Cleared empties the conversation on the screen.
	Cleared struct{}
	// Copied puts a text into the terminal's clipboard (OSC 52).
	Copied struct{ Text string }
	// Theme changes the styles to one of [Themes].
	Theme struct{ Name string }
	// Choices offers values for a command. The person chooses a value with the keys, and the program submits the
	// command with this value.
	Choices struct {
		Title   string
		Command string // such as /model
		Items   []Choice
	}
	// Continue starts [Backend.Continue], unless other work is in progress.
	Continue struct{}
	// Closed ends the program.
	Closed struct{}
)

// Choice is a value of [Choices].
type Choice struct {
	Value string
	About string
	Now   bool // the current value
}

// CallState is the state of a tool call.
type CallState int

// The states of calls.
const (
	CallRunning CallState = iota
	CallDone
	CallWarned // denied, stopped, interrupted
	CallFailed
)

// Ask is a question to the person: a tool call that needs approval, a limit, or a question of a server.
type Ask struct {
	ID     string
	Head   string          // "approval required"
	Fields [][2]string     // names and values, such as server, tool, rule
	Args   []string        // lines of the arguments, as they would be sent
	JSON   json.RawMessage // the arguments, for editing
	Inputs []Input         // form for the arguments; if empty, they are edited as JSON
	If     string          // condition for a permanent approval, or ""
	Limit  bool            // only yes and no are possible

	Requests []Request // requests of a server, which the person answers one after the other
}

// Request is one request of a server to the person: a form to fill in, or a question such as whether a page was opened.
type Request struct {
	Key     string      // of its content in [Ruling.Contents]
	Head    string      // replaces the head of the question
	Text    []string    // lines of a text of the server
	Fields  [][2]string // more names and values, such as the address of a page
	Warn    string      // a warning of tenon, or ""
	Form    bool        // the answer has a content, which is empty if there are no Inputs
	Inputs  []Input     // fields of the form
	Yes     string      // what a yes means, such as "I opened it"; for a question without a form
	Copy    string      // an address that a key copies to the terminal's clipboard, or ""
	Decides bool        // must be accepted or declined: the protocol has no third answer
	Broken  bool        // cannot be accepted
}

// Ruling is the person's answer.
type Ruling struct {
	Allow    bool
	Cancel   bool                       // a server's requests are neither accepted nor declined
	Contents map[string]json.RawMessage // accepted forms, by the keys of their requests
	Remember string                     // "", session or always
	If       string
	Reason   string
	Args     json.RawMessage
}

// Completion is the effect of Tab. Text replaces the last Back bytes before the cursor, and Note is shown below the
// input.
type Completion struct {
	Back int
	Text string
	Note string
}

// frames is the maximum number of times per second that a changed screen is drawn. On average, a key waits half of the
// time between two frames. More frames would cost CPU time while an answer arrives (TUI.key, TUI.cpu).
const frames = 100

// Program is a running conversation.
type Program struct {
	tea   *tea.Program
	model *model
}

// New returns a program. Run starts it.
func New(ctx context.Context, c Config) *Program {
	if c.Now == nil {
		c.Now = time.Now
	}
	m := newModel(ctx, c)
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithFPS(frames)}
	if m.keys = openKeyboard(c.In); m.keys != nil {
		options = append(options, tea.WithInput(m.keys))
	} else if c.In != nil {
		options = append(options, tea.WithInput(c.In))
	}
	if c.Out != nil {
		options = append(options, tea.WithOutput(c.Out))
	}
	if c.Env != nil {
		options = append(options, tea.WithEnvironment(c.Env))
	}
	if c.Width > 0 {
		options = append(options, tea.WithWindowSize(c.Width, c.Height))
	}
	return &Program{tea: tea.NewProgram(m, options...), model: m}
}

// Run shows the conversation until the person leaves it, or until the context of New ends. It waits for the backend's
// work.
func (p *Program) Run() error {
	defer p.model.keys.close()
	if err := p.model.keys.begin(); err != nil {
		return err
	}
	_, err := p.tea.Run()
	p.model.leave(nil)
	p.model.work.Wait()
	if errors.Is(err, tea.ErrProgramKilled) && p.model.ctx.Err() != nil {
		return context.Cause(p.model.ctx)
	}
	return err
}

// Send reports one of the messages of this package. It does nothing after the end of the program.
func (p *Program) Send(message any) { p.tea.Send(message) }

// Lines lends the terminal to f, for questions in plain lines. It returns the error of f.
func (p *Program) Lines(f func() error) error {
	done := make(chan error, 1)
	p.tea.Send(lendMsg{f: f, done: done})
	select {
	case err := <-done:
		return err
	case <-p.model.left:
		return context.Canceled
	}
}

// lendMsg requests the terminal.
type lendMsg struct {
	f    func() error
	done chan error
}

// lent runs a function as a command of Bubble Tea, which releases the terminal for it.
type lent struct {
	f    func() error
	keys *keyboard // paused before Bubble Tea releases the terminal
}

// lentLeast is the minimum time for which the terminal is lent out. Bubble Tea stops the ticker of its renderer
// concurrently. If the next renderer began at once, its ticker could be stopped instead, and the screen would stay
// blank.
const lentLeast = 50 * time.Millisecond

func (l lent) Run() error {
	time.Sleep(lentLeast)
	return errors.Join(l.f(), l.keys.begin())
}

func (lent) SetStdin(io.Reader)    {}
func (lent) SetStdout(_ io.Writer) {}
func (lent) SetStderr(_ io.Writer) {}

var _ tea.ExecCommand = lent{}
