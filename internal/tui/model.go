package tui

import (
	"context"
	"encoding/json"
	"image/color"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// mode is the purpose of the text in the input.
type mode int

const (
	modeTalk    mode = iota
	modeReason       // why a call is denied
	modeEdit         // changed arguments, as JSON
	modeForm         // changed arguments, field by field
	modeIf           // the condition of a permanent approval
	modeHistory      // a search in earlier inputs
	modeFind         // a search in the conversation
	modePick         // a choice between values of a command
	modeSecret       // a text that is not shown
)

// decides reports whether the input is part of the answer to a question.
func (m mode) decides() bool { return m == modeReason || m == modeEdit || m == modeIf || m == modeForm }

// model is the state of the program. Only Update changes it.
type model struct {
	c      Config
	ctx    context.Context
	end    context.CancelCauseFunc
	work   sync.WaitGroup // goroutines of the backend
	left   chan struct{}  // closed when the program ends
	leaves sync.Once

	keys          *keyboard // if nil, Bubble Tea reads the terminal
	width, height int
	blocks        []*block
	current       *block // the answer or reasoning that is arriving
	calls         map[string]*block
	rows          []string // the lines of the conversation
	stale         bool     // rows must be drawn again
	top           int      // first row on the screen, unless follow is set
	follow        bool     // the view stays at the end of the conversation
	shows         *block   // the next layout moves the view to its first row, if the rows below do not fit
	unfolded      bool

	in      input
	mode    mode
	form    *form       // of modeForm
	pick    *picker     // of modePick
	secret  *secretMsg  // of modeSecret
	theme   string      // see Themes
	look    *look       // theme on the background
	behind  color.Color // the terminal's background; nil if it is not known, or the terminal has few colours
	asksFor bool        // the background was asked for
	draft   string      // the input before a mode or the history replaced it
	past    int         // position in the history
	query   string      // text of a search
	found   int         // row that a search found, or -1
	note    string      // below the input: completion, hints
	queue   []string
	steered []string // messages that were sent to the run and not taken yet

	back      []string // messages that a stopped run did not take
	returned  []string // messages of back that are in the input again
	round     int      // number of the work
	stoppedIn int      // the round that the person stopped last; 0 for none

	busy    bool
	stop    context.CancelFunc // stops the backend's work
	stopped bool
	began   time.Time
	spin    int
	turned  time.Time // when the spinner turned last
	letters int       // characters of the run's answers, to estimate tokens
	leaving time.Time
	focused bool

	asks     []Ask
	asked    string // id of the question that is shown
	askedOf  string // its content
	wanted   string // id of the question that the person chose to see, if it is not the oldest
	place    int    // of the question that is shown, among all in the order of their age, from 1 on
	shownAt  time.Time
	lastKey  time.Time
	typedAt  time.Time // the last key or paste that went to the message
	handled  time.Time // when the last message came
	lasting  string    // the key of an answer for later calls too, until it is confirmed
	choice   string    // the key of any other answer, until it was alone for a pause
	opener   string    // the key that has just opened the input of an answer
	chosenAt time.Time // when one of these was pressed
	choices  int       // number of choices so far
	later    func(time.Duration, tea.Msg) tea.Cmd
	// switching is set while the next mode of approval must be confirmed.
	switching bool
	deciding  bool
	clipping  bool                       // Ctrl-V reads the clipboard
	sight     sight                      // the part of the question that was seen
	step      int                        // index of the server's request that is shown
	contents  map[string]json.RawMessage // answers to the requests before it
	kept      map[int]*form              // forms that the person left with Esc, by request
	status    Status
	modeAt    int // index into Config.Mode
}

func newModel(ctx context.Context, c Config) *model {
	ctx, end := context.WithCancelCause(ctx)
	return &model{c: c, ctx: ctx, end: end, left: make(chan struct{}), calls: map[string]*block{}, follow: true,
		focused: true, found: -1, theme: c.Theme, look: newLook(c.Theme, nil), past: len(c.History), stale: true,
		width: c.Width, height: c.Height, modeAt: c.ModeAt, later: after}
}

// leave ends the work of the backend. A cause of nil means that its run is stopped.
func (m *model) leave(cause error) {
	m.leaves.Do(func() {
		m.end(cause)
		close(m.left)
	})
}

// The results of the backend's work.
type (
	idleMsg  struct{}
	steerMsg struct {
		text  string
		round int
		err   error
	}
	decidedMsg struct {
		id  string
		err error
	}
	completedMsg struct {
		before string
		c      Completion
	}
	editedMsg struct {
		text string
		err  error
	}
	pictureMsg struct {
		text string
		err  error
	}
	spinMsg struct{}
)

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd { return nil }

// do starts work of the backend in a goroutine. Run waits for it before it returns.
func (m *model) do(f func() tea.Msg) tea.Cmd {
	m.work.Add(1)
	return func() tea.Msg {
		defer m.work.Done()
		return f()
	}
}

const spinEvery = 100 * time.Millisecond

// turn turns the spinner if its last turn was at least some time ago. Pieces of an answer turn it, too, so that the
// screen is not drawn once for them and once for the spinner.
func (m *model) turn(after time.Duration) {
	now := m.c.Now()
	if now.Sub(m.turned) < after {
		return
	}
	if !m.turned.IsZero() {
		m.spin++
	}
	m.turned = now
}

func spin() tea.Cmd { return tea.Tick(spinEvery, func(time.Time) tea.Msg { return spinMsg{} }) }

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.handled = m.c.Now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height, m.stale = msg.Width, msg.Height, true
		if m.asked != "" {
			m.shownAt = m.c.Now() // the question moves: a key may be meant for another part of it
			m.unchoose()
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.PasteMsg:
		m.lastKey = m.c.Now()
		m.typedAt, m.switching = m.lastKey, false
		m.unchoose()
		if m.mode == modeTalk && m.c.Pasted != nil {
			msg.Content = m.c.Pasted(msg.Content)
		}
		if m.mode == modeForm && m.form.offered {
			m.in.set("")
			m.form.offered = false
		}
		m.in.insert(msg.Content)
		m.note = ""
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			m.scroll(-3)
		case tea.MouseWheelDown:
			m.scroll(3)
		}
	case tea.FocusMsg:
		m.focused = true
		if m.behind != nil {
			return m, tea.RequestBackgroundColor // it may have become light or dark meanwhile
		}
	case tea.ColorProfileMsg:
		return m, m.profile(msg.Profile.String())
	case tea.BackgroundColorMsg:
		if msg.Color != nil && m.asksFor {
			m.paint(msg.Color)
		}
	case tea.BlurMsg:
		m.focused = false
	case spinMsg:
		if m.busy {
			m.turn(spinEvery)
			return m, spin()
		}
	case aloneMsg:
		if int(msg) == m.choices {
			return m, m.chosen()
		}
	case secretMsg:
		m.askSecret(msg)
	case lendMsg:
		return m, m.lend(func() error {
			msg.done <- msg.f()
			return nil
		}, nil)
	case Closed:
		m.leave(nil)
		return m, tea.Quit
	case Continue:
		if !m.busy {
			return m, m.begin(m.c.Backend.Continue)
		}
	case idleMsg, steerMsg, decidedMsg, completedMsg, pictureMsg, editedMsg:
		return m, m.result(msg)
	default:
		return m, m.report(msg)
	}
	return m, nil
}

// profile asks for the terminal's background if the terminal has enough colours to choose from. Nothing waits for the
// answer: a terminal that gives none keeps its own colours.
func (m *model) profile(name string) tea.Cmd {
	if m.asksFor || name != "ANSI256" && name != "TrueColor" {
		return nil
	}
	m.asksFor = true
	return tea.RequestBackgroundColor
}

// paint draws everything in the theme's colours for a background.
func (m *model) paint(behind color.Color) {
	if behind != nil {
		behind = color.RGBA64Model.Convert(behind)
	}
	if l := newLook(m.theme, behind); m.behind != behind || l.theme != m.look.theme {
		m.look, m.behind, m.stale = l, behind, true
	}
}

// lend lends the terminal to a function. done converts its error to a message; it may be nil.
func (m *model) lend(f func() error, done tea.ExecCallback) tea.Cmd {
	m.keys.pause()
	return tea.Exec(lent{f: f, keys: m.keys}, done)
}

// result handles the result of work of the backend.
func (m *model) result(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case idleMsg:
		return m.idle()
	case steerMsg:
		return m.steerResult(msg)
	case decidedMsg:
		m.deciding = false
		if msg.err == nil && msg.id == m.asked && m.mode.decides() {
			m.leaveMode()
		}
		if msg.err != nil {
			m.note = "tenon: " + msg.err.Error()
			m.shownAt = m.c.Now()
			if m.step > 0 && msg.id == m.asked { // any of the answers may be wrong
				if m.mode.decides() {
					m.leaveMode()
					m.note = "tenon: " + msg.err.Error()
				}
				m.step, m.contents = 0, nil
			}
		}
	case completedMsg:
		if m.mode == modeTalk && m.in.before() == msg.before {
			m.in.replace(msg.c.Back, safeLine(msg.c.Text))
			m.note = msg.c.Note
		}
	case pictureMsg:
		m.clipping, m.note = false, ""
		if msg.err != nil {
			m.note = "tenon: " + msg.err.Error()
		} else if m.mode == modeTalk {
			m.in.insert(msg.text)
		}
	case editedMsg:
		if msg.err != nil {
			m.note = "tenon: " + msg.err.Error()
		} else {
			m.in.set(strings.TrimRight(msg.text, "\n"))
		}
	}
	return nil
}

func without(list []string, text string) []string {
	for i, s := range list {
		if s == text {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

// idle handles the end of the current work, and begins the next work.
func (m *model) idle() tea.Cmd {
	long := m.c.Now().Sub(m.began) > 10*time.Second
	m.settle()
	if m.stopped { // nothing is sent unasked after a stop
		m.back, m.queue = append(m.back, m.queue...), nil
	}
	m.busy, m.stopped, m.steered, m.asks = false, false, nil, nil
	m.asked, m.askedOf, m.wanted = "", "", ""
	m.stop()
	if m.note == noteStopping {
		m.note = ""
	}
	if m.mode.decides() || m.mode == modeSecret {
		m.leaveMode()
	}
	for _, b := range m.calls {
		if b.call.State == CallRunning {
			b.call.State, b.call.Note, b.fresh = CallWarned, "stopped", false
		}
	}
	clear(m.calls)
	m.stale = true
	m.giveBack()
	next := m.next()
	if long && !m.focused && next == nil {
		return tea.Raw("\a")
	}
	return next
}

// next submits the first of the queued questions.
func (m *model) next() tea.Cmd {
	if len(m.queue) == 0 {
		return nil
	}
	text := m.queue[0]
	m.queue = m.queue[1:]
	return m.submit(text)
}

// submit passes a text to the backend.
func (m *model) submit(text string) tea.Cmd {
	if !strings.HasPrefix(text, "/") || strings.Contains(text, ":") {
		m.push(blockPerson, text)
	} else {
		m.remark(text)
	}
	return m.begin(func(ctx context.Context) { m.c.Backend.Submit(ctx, text) })
}

// maxBlocks bounds the blocks of the conversation in memory. Older blocks are dropped; the journal contains them.
const maxBlocks = 5000

// push adds a block.
func (m *model) push(kind blockKind, text string) *block {
	b := &block{kind: kind}
	b.add(text)
	m.blocks = append(m.blocks, b)
	if len(m.blocks) > maxBlocks {
		m.blocks = append([]*block(nil), m.blocks[len(m.blocks)-maxBlocks:]...)
	}
	m.stale = true
	return b
}

// remark adds a note of tenon to the conversation.
func (m *model) remark(text string) {
	m.settle()
	if strings.TrimSpace(text) != "" {
		m.push(blockNote, text)
	}
}

// settle ends the block that is arriving.
func (m *model) settle() {
	if m.current != nil {
		m.current.open, m.current.fresh = false, false
		m.current, m.stale = nil, true
	}
}

// stream adds a piece of an answer or of reasoning.
func (m *model) stream(kind blockKind, text string) {
	if text == "" {
		return
	}
	if m.current == nil || m.current.kind != kind {
		m.settle()
		if strings.TrimSpace(text) == "" {
			return // blanks do not begin a block
		}
		m.current = m.push(kind, "")
		m.current.open = true
	}
	m.current.add(text)
	m.letters += len(text)
	m.turn(spinEvery * 2 / 3)
	m.stale = true
}

// report handles a message of the backend.
func (m *model) report(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case Delta:
		kind := blockAnswer
		if msg.Thinking {
			kind = blockThinking
		}
		m.stream(kind, msg.Text)
	case Restart:
		m.drop()
		m.remark("the answer starts over: " + msg.Reason)
	case Answered:
		if b := m.current; b != nil && b.kind == blockAnswer { // replace the block, because messages may follow it
			b.text.Reset()
			b.stable, b.settled = 0, nil
			b.add(msg.Text)
			m.settle()
			break
		}
		m.settle()
		if last := len(m.blocks) - 1; strings.TrimSpace(msg.Thinking) != "" &&
			(last < 0 || m.blocks[last].kind != blockThinking) { // no piece of the reasoning was received
			m.push(blockThinking, msg.Thinking)
		}
		if strings.TrimSpace(msg.Text) != "" {
			m.push(blockAnswer, msg.Text)
		}
	case Said:
		m.settle()
		kind := blockAnswer
		if msg.Person {
			kind = blockPerson
		}
		m.push(kind, msg.Text)
	case Call:
		m.call(msg)
	case Decided:
		if b := m.calls[msg.Key]; b != nil && b.call.State == CallRunning {
			b.call.Note, b.fresh, m.stale = msg.Note, false, true
		}
	case Page:
		m.settle()
		m.push(blockNote, msg.Text)
		m.shows = m.blocks[len(m.blocks)-1]
	case Note:
		if b := m.current; b != nil && b.kind == blockAnswer && strings.TrimSpace(msg.Text) != "" {
			m.push(blockNote, msg.Text) // the answer that is arriving continues above the note
			break
		}
		m.remark(msg.Text)
	case Steered: // the answer that is arriving continues above the message
		m.steered = without(m.steered, msg.Text)
		m.push(blockPerson, msg.Text)
	case Withdrawn:
		m.withdrawn(msg.Text)
	case Asks:
		return m.ask(msg.List)
	case Choices:
		m.offer(msg)
	case Status:
		m.status = msg
	case Theme:
		m.theme = msg.Name
		m.paint(m.behind)
	case Cleared:
		m.settle()
		m.blocks, m.stale, m.follow = nil, true, true
		clear(m.calls)
	case Copied:
		return tea.SetClipboard(msg.Text)
	}
	return nil
}

var _ tea.Model = (*model)(nil)
