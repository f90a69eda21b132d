package executor

import (
	"github.com/tenonhq/tenon"
)

// A question may contain a configured secret, and the model may repeat it. Its answer is masked like everything else
// that is shown and stored, so that a run and its replay, whose recording is masked, print the same.

// maskText masks secrets in the texts of an answer. Reasoning stays as it is, because signatures cover it. The
// arguments of calls stay whole, because the calls are made with them.
func (x *Executor) maskText(m *tenon.Message) {
	if m == nil || x.cfg.Redactor.IsEmpty() {
		return
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type != tenon.PartText {
			continue
		}
		masked := x.cfg.Redactor.Text(p.Text)
		if masked == p.Text {
			continue
		}
		p.Text = masked
		for k := range p.Citations { // their positions in the text are not valid any more
			p.Citations[k].Start, p.Citations[k].End = 0, 0
		}
	}
}

// maskedDeltas masks the pieces of an answer while they arrive. It holds back the end of a piece if a secret may begin
// there. Only the goroutine that reads the model's stream uses it.
type maskedDeltas struct {
	redactor *tenon.Redactor
	pass     func(tenon.Delta)
	kind     string // of the text that is held back
	held     string
}

// add masks a piece and passes it on.
func (m *maskedDeltas) add(d tenon.Delta) {
	if d.Kind != m.kind {
		m.end()
	}
	if m.held == "" && m.redactor.IsEmpty() || d.Kind != tenon.DeltaText && d.Kind != tenon.DeltaThinking {
		m.pass(d)
		return
	}
	m.kind, m.held = d.Kind, m.held+d.Text
	at := len(m.held) - m.redactor.Begun(m.held)
	text := m.redactor.Text(m.held[:at])
	m.held = m.held[at:]
	if text != "" {
		m.pass(tenon.Delta{Kind: d.Kind, Text: text})
	}
}

// end passes on the text that is held back.
func (m *maskedDeltas) end() {
	if m.held != "" {
		m.pass(tenon.Delta{Kind: m.kind, Text: m.redactor.Text(m.held)})
	}
	m.drop()
}

// drop drops the text that is held back, because the answer starts over.
func (m *maskedDeltas) drop() { m.kind, m.held = "", "" }
