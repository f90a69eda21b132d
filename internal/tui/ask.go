package tui

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// quiet is the pause in typing that must come before a key may answer a question that has just appeared. A key without
// this pause was probably meant for the input.
const quiet = 500 * time.Millisecond

// ask replaces the list of pending questions.
func (m *model) ask(list []Ask) tea.Cmd {
	m.order(list)
	first, content := "", ""
	if len(m.asks) > 0 {
		first, content = m.asks[0].ID, m.asks[0].content()
	}
	if first == m.asked && content == m.askedOf {
		return nil
	}
	if m.mode.decides() {
		lost := m.mode == modeForm && !m.deciding
		m.leaveMode() // the question was decided elsewhere
		if lost {
			m.note = "the question has ended: it was decided elsewhere, or its call is over"
		}
	}
	m.asked, m.askedOf, m.shownAt, m.deciding = first, content, m.c.Now(), false
	m.unchoose()
	m.step, m.contents, m.kept, m.sight = 0, nil, nil, sight{}
	if first != "" {
		m.settle()
		if !m.focused {
			return tea.Raw("\a")
		}
	}
	return nil
}

// order keeps the list of pending questions, with the question that the person chose to see at its beginning.
func (m *model) order(list []Ask) {
	m.asks, m.place = list, 1
	i := slices.IndexFunc(list, func(a Ask) bool { return a.ID == m.wanted })
	if i > 0 {
		m.asks, m.place = slices.Concat(list[i:i+1], list[:i], list[i+1:]), i+1
	}
}

// nextAsk shows the next pending question.
func (m *model) nextAsk() tea.Cmd {
	list := slices.Concat(m.asks[1:m.place], m.asks[:1], m.asks[m.place:]) // the order of their age
	m.wanted = list[m.place%len(list)].ID
	return m.ask(list)
}

// content returns what the question is about. A question can take the place of a decided one with its id, for example
// after its arguments were changed; a key must not answer it unseen.
func (a Ask) content() string {
	parts := append([]string{a.Head, string(a.JSON), a.If}, a.Args...)
	for _, f := range a.Fields {
		parts = append(parts, f[0], f[1])
	}
	for _, r := range a.Requests {
		parts = append(append(parts, r.Key, r.Head), r.Text...)
	}
	return strings.Join(parts, "\x00")
}

// request returns the request of a server that is shown, or nil if the first question is none.
func (m *model) request() *Request {
	if len(m.asks) == 0 || m.step >= len(m.asks[0].Requests) {
		return nil
	}
	return &m.asks[0].Requests[m.step]
}

// askKey handles a key while a question is pending and the input is empty. It reports whether the key was used.
func (m *model) askKey(name, text string, before time.Time) (tea.Cmd, bool) {
	if m.choice != "" {
		if cmd, ok := m.alone(name, text); ok || text != "" {
			return cmd, ok
		}
	}
	if m.scrollAsk(name) {
		return nil, true
	}
	if name == "tab" && len(m.asks) > 1 {
		return m.nextAsk(), true
	}
	a, q := m.asks[0], m.request()
	now := m.c.Now()
	word := strings.ToLower(text)
	if m.lasting != "" {
		if cmd, ok := m.confirm(name, word); ok {
			return cmd, true
		}
	}
	if name == "enter" && q != nil && len(q.Inputs) > 0 {
		word = "a"
	}
	i := slices.IndexFunc(a.answers(q), func(x answer) bool { return x.key == word })
	switch {
	case i < 0 || len(m.in.text) > 0 || now.Sub(m.typedAt) < quiet && m.typedAt.After(m.shownAt):
		return nil, false // a part of a message
	case now.Sub(m.shownAt) < quiet || now.Sub(before) < quiet && before.After(m.shownAt.Add(-quiet)) &&
		before.Before(m.shownAt):
		return nil, true // typed before the person could read the question
	case m.deciding:
		return nil, true
	case a.answers(q)[i].sees && !m.sees():
		return nil, true
	}
	m.note = ""
	m.opener, m.chosenAt = "", now
	switch {
	case q != nil && word == "a":
		f := m.kept[m.step]
		if f == nil {
			f = newForm(q.Inputs)
		}
		m.openForm(f)
		m.opener = text // "" for Enter, which begins no message
	case q != nil, word == "y", word == "n" && a.Limit:
		return m.chooseKey(text), true
	case word == "s", word == "a":
		m.lasting = text
	case word == "i":
		m.enter(modeIf)
		m.in.set(a.If)
		m.opener = text
	case word == "e":
		if len(a.Inputs) > 0 {
			m.openForm(newForm(a.Inputs))
		} else {
			m.enter(modeEdit)
			m.in.set(indented(a.JSON))
		}
		m.opener = text
	case word == "n":
		m.enter(modeReason)
		m.in.set("")
	}
	return nil, true
}

// waitMoment is shown while the pause before keys answer is not over.
const waitMoment = "in a moment"

// wait says why no key answers the question now, or returns "". A key right after the question appeared was meant for
// something else, and one right after typed text continues this text.
func (m *model) wait() string {
	now := m.c.Now()
	switch {
	case len(m.in.text) > 0:
		return "send or clear your text to answer"
	case now.Sub(m.shownAt) < quiet, now.Sub(m.typedAt) < quiet && m.typedAt.After(m.shownAt):
		return waitMoment
	}
	return ""
}

// lone reports whether a message is only a key, or the word, of an answer to the question that waits. It was probably
// meant as the answer, so it goes neither to the model nor to the question: the person presses the key.
func (m *model) lone(text string) bool {
	if m.asked == "" || len(m.asks) == 0 {
		return false
	}
	word := strings.ToLower(strings.TrimRight(text, ".!"))
	for _, x := range m.asks[0].answers(m.request()) {
		if word == x.key || word == "yes" && x.key == "y" || word == "no" && x.key == "n" {
			m.note = "this was not sent to the model: to answer the question, press the key " + x.key + " alone"
			return true
		}
	}
	return false
}

// lastings are the keys of answers that allow later calls too.
var lastings = map[string]struct{ remember, words string }{
	"s": {"session", "Enter allows such calls in this session, without a question"},
	"a": {"always", "Enter allows such calls always, without a question"},
}

// confirm handles the key after the one of an answer that allows later calls too: Enter, or the same key again,
// confirms it after a pause. So neither the first letter of a message nor a key that is held down allows calls for
// good. It reports whether the key was used.
func (m *model) confirm(name, word string) (tea.Cmd, bool) {
	letter, now := m.lasting, m.c.Now()
	early := now.Sub(m.chosenAt) < quiet
	switch chosen := strings.ToLower(letter); {
	case name != "enter" && word != chosen:
		m.lasting = ""
		if early && word != "" {
			m.in.insert(letter) // it begins a message
		}
		return nil, name == "esc"
	case early:
		m.chosenAt = now
		return nil, true
	default:
		m.lasting = ""
		return m.decide(Ruling{Allow: true, Remember: lastings[chosen].remember}), true
	}
}

// accept keeps the content of an answer and goes to the next request. After the last one, it passes the answer to the
// backend.
func (m *model) accept(content json.RawMessage) tea.Cmd {
	q := m.request()
	if content != nil {
		contents := maps.Clone(m.contents)
		if contents == nil {
			contents = map[string]json.RawMessage{}
		}
		contents[q.Key] = content
		m.contents = contents
	}
	if m.step+1 < len(m.asks[0].Requests) {
		if m.mode.decides() {
			m.leaveMode()
		}
		m.step++
		m.shownAt = m.c.Now()
		return nil
	}
	return m.decide(Ruling{Allow: true, Contents: m.contents})
}

// answer is a key that answers a question.
type answer struct {
	key, words string
	sees       bool // only after the person has seen the whole question
}

// answers lists the keys that answer a question. q is the current request of a server, or nil.
func (a Ask) answers(q *Request) []answer {
	switch {
	case q != nil:
		return q.answers()
	case a.Limit:
		return []answer{{"y", "[y]es", true}, {"n", "[n]o", false}}
	}
	list := []answer{{"y", "[y]es", true}, {"s", "this [s]ession", true}, {"a", "[a]lways", true}}
	if a.If != "" {
		list = append(list, answer{"i", "always [i]f …", true})
	}
	// The form of arguments shows only a part of long values; their JSON is shown in full.
	return append(list, answer{"n", "[n]o", false}, answer{"e", "[e]dit", len(a.Inputs) > 0})
}

func (q *Request) answers() (list []answer) {
	switch {
	case q.Broken:
	case len(q.Inputs) > 0:
		list = append(list, answer{"a", "[a]nswer", true})
	case q.Yes != "":
		list = append(list, answer{"y", "[y]es, " + q.Yes, true})
	default:
		list = append(list, answer{"y", "[y]es", true})
	}
	if q.Copy != "" {
		list = append(list, answer{"p", "co[p]y the address", false})
	}
	list = append(list, answer{"d", "[d]ecline", false})
	if !q.Decides {
		list = append(list, answer{"c", "[c]ancel without an answer", false})
	}
	return list
}

// indented formats arguments for editing. It keeps the order of members and the digits of numbers.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// decide passes an answer to the backend.
func (m *model) decide(r Ruling) tea.Cmd {
	a := m.asks[0]
	m.deciding, m.note = true, ""
	return m.do(func() tea.Msg { return decidedMsg{a.ID, m.c.Backend.Decide(m.ctx, a, r)} })
}

// decideWith passes an answer to the backend. text is the text that the person entered in the current mode.
func (m *model) decideWith(text string) tea.Cmd {
	if m.deciding {
		return nil
	}
	r := Ruling{}
	text = strings.TrimSpace(text)
	switch m.mode {
	case modeReason:
		r.Reason = text
	case modeIf:
		if text == "" {
			m.note = "write a condition, such as args.city == \"London\""
			return nil
		}
		r = Ruling{Allow: true, Remember: "always", If: text}
	case modeEdit:
		var o map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &o); err != nil || o == nil {
			m.note = "the arguments must be a JSON object"
			if err != nil {
				m.note += ": " + err.Error()
			}
			return nil
		}
		r = Ruling{Allow: true, Args: json.RawMessage(text)}
	case modeForm:
		if len(m.asks) == 0 {
			break
		}
		args, ok := m.sendForm()
		if !ok {
			return nil
		}
		if m.request() != nil {
			return m.accept(args)
		}
		r = Ruling{Allow: true, Args: args}
	}
	if len(m.asks) == 0 {
		m.leaveMode()
		return nil
	}
	return m.decide(r) // the text stays until the backend has accepted it, so that further typing is not read as keys
}
