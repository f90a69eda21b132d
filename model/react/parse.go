package react

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// Step is what a reply says.
type Step struct {
	Thought string          // its lines joined with a space; may be empty
	Action  string          // the tool's name; empty where the step is final
	Args    json.RawMessage // a JSON object; {} where the reply names none
	Final   bool            // Answer is the final answer, which may be empty
	Answer  string
}

// Parse reads a whole reply. See [Parser].
func Parse(text string) (Step, error) {
	p := NewParser(func(string, string) {})
	p.Feed(text)
	return p.End()
}

// The markers. They count at the beginning of a line only, after white space,
// and in this spelling.
const (
	markThought     = "Thought:"
	markAction      = "Action:"
	markArgs        = "Args:"
	markAnswer      = "Final Answer:"
	markObservation = "Observation:" // a model's own invention: ends an action
	fence           = "```"
)

// The places in a reply.
type place int

const (
	before  place = iota // nothing yet
	thought              // in the thought
	skipped              // in a line of it that is left out
	dropped              // in something that belongs to no step
	action               // in the tool's name
	named                // behind it
	seeking              // behind Args:, before the object
	object               // in the arguments
	answer               // in the final answer
	done                 // the step is complete; what follows is ignored
)

// marks are the markers that end each place.
var marks = map[place][]string{
	before:  {markThought, markAction, markArgs, markAnswer},
	dropped: {markThought, markAction, markArgs, markAnswer},
	thought: {markThought, markAction, markArgs, markAnswer, fence},
	named:   {markThought, markAction, markArgs, markAnswer, markObservation},
	seeking: {markThought, markAction, markArgs, markAnswer, markObservation},
	answer:  {markThought, markAction},
}

// Parser reads a reply as it comes. The first complete step counts, and for any
// division of a text into chunks it is the same step:
//
//   - Text before the first marker, code fences around the step, and everything
//     behind an action are ignored.
//   - A thought runs to the next marker. It may be missing.
//   - An action's arguments are the first JSON object behind Args:, on that line or
//     a later one. Markers and braces in its strings do no harm. Without Args:
//     they are {}.
//   - A final answer keeps its line breaks and ends before a line that begins with
//     Thought: or Action:.
//
// Thought and answer are passed on as soon as they cannot be a marker any more.
// The zero value is of no use; see [NewParser].
type Parser struct {
	emit func(kind, text string)

	at    place
	buf   []byte // of what came, what is not taken yet
	seen  int    // of buf, what was searched in vain
	begin bool   // the next byte is the first of a line, but for white space
	fresh bool   // the same, or the first behind a marker
	lead  []byte // the white space at the beginning of this line
	gap   []byte // what stands between the last text and the next, if there is a next
	said  []byte // thought or answer so far

	inside, fenced bool // an answer is within a code block; its gap holds a fence

	head []byte // the beginning of the reply, for errors
	args []byte // what stands behind Args: in vain
	step Step
	err  error

	depth         int // of braces
	quoted, slash bool
}

// headBytes is how much of a reply an error can quote.
const headBytes = 1024

// NewParser returns a parser that passes on what it has understood: pieces of the
// thought as [tenon.DeltaThinking], of the answer as [tenon.DeltaText], the name of
// a tool whose arguments are complete as [tenon.DeltaCall].
func NewParser(emit func(kind, text string)) *Parser {
	return &Parser{emit: emit, begin: true, fresh: true}
}

// Feed takes the next chunk, which may end anywhere, also within a character.
func (p *Parser) Feed(chunk string) {
	if n := headBytes - len(p.head); n > 0 {
		p.head = append(p.head, chunk[:min(n, len(chunk))]...)
	}
	if p.at == done {
		return
	}
	p.buf = append(p.buf, chunk...)
	p.run(false)
}

// IsComplete reports whether the step is known before the reply has ended.
func (p *Parser) IsComplete() bool { return p.at == done }

// End takes the end of the reply and returns its step, or says what is wrong with
// it, with code protocol. The thought is there in any case.
func (p *Parser) End() (Step, error) {
	p.run(true)
	switch p.at {
	case named:
		p.call("{}")
	case seeking:
		p.invalid("there is no JSON object", p.args)
	case object:
		p.invalid("the text ends before the object does", p.buf)
	case answer:
		p.step.Final, p.step.Answer, p.at = true, string(p.said), done
	}
	if p.at == thought {
		p.step.Thought = string(p.said)
	}
	switch {
	case p.err != nil || p.at == done:
	case p.step.Thought != "":
		p.err = tenon.Errorf(tenon.CodeProtocol, "Response has thought but no action or final answer: %s", excerpt(p.head))
	default:
		p.err = tenon.Errorf(tenon.CodeProtocol, "Could not parse response: %s", excerpt(p.head))
	}
	return p.step, p.err
}

// run takes what can be taken of the buffer.
func (p *Parser) run(end bool) {
	for p.at != done && len(p.buf) > 0 && p.next(end) {
	}
	if p.at == done {
		p.buf = nil
	}
}

// next takes one piece and reports whether another look is worth it.
func (p *Parser) next(end bool) bool {
	switch p.at {
	case action:
		return p.name(end)
	case object:
		return p.json()
	}
	if p.fresh {
		n := 0
		for n < len(p.buf) && (p.buf[n] == ' ' || p.buf[n] == '\t' || p.buf[n] == '\r') {
			n++
		}
		p.lead = append(p.lead, p.buf[:n]...)
		if p.take(n); len(p.buf) == 0 {
			return false
		}
		switch mark, wait := p.mark(); {
		case wait && !end:
			return false
		case mark != "":
			p.take(len(mark))
			p.marked(mark)
			return true
		}
		if p.at == answer {
			if p.fence(end) {
				return false
			}
			p.gap = append(p.gap, p.lead...)
		}
		p.begin, p.fresh, p.lead = false, false, p.lead[:0]
		return true
	}
	return p.text(end)
}

// mark returns the marker that the line begins with. Wait says that it cannot be
// known yet.
func (p *Parser) mark() (mark string, wait bool) {
	if !p.begin {
		return "", false
	}
	for _, m := range marks[p.at] {
		if bytes.HasPrefix(p.buf, []byte(m)) {
			return m, false
		}
		wait = wait || strings.HasPrefix(m, string(p.buf[:min(len(p.buf), len(m))]))
	}
	return "", wait
}

// marked goes where a marker leads.
func (p *Parser) marked(mark string) {
	from := p.at
	p.begin, p.fresh, p.lead = false, true, p.lead[:0]
	if from == thought && mark != markThought {
		p.step.Thought = string(p.said)
	}
	switch {
	case mark == fence:
		p.at, p.fresh = skipped, false
	case from == answer:
		p.step.Final, p.step.Answer, p.at = true, string(p.said), done
	case from == named && mark == markArgs:
		p.at = seeking
	case from == named:
		p.call("{}")
	case from == seeking:
		p.invalid("there is no JSON object", p.args)
	case from == thought && mark == markThought: // a second one goes on with the first
		p.gap = []byte(" ")
	case mark == markThought:
		p.at, p.said, p.gap = thought, []byte(p.step.Thought), []byte(" ")
	case mark == markAction:
		p.at = action
	case mark == markAnswer:
		p.at, p.said, p.gap = answer, nil, nil
	case from != before: // arguments of nothing
		p.at = dropped
	}
}

// text takes what is neither at the beginning of a line nor part of a marker.
func (p *Parser) text(end bool) bool {
	n, line := bytes.IndexByte(p.buf, '\n'), true
	if n < 0 {
		n, line = len(p.buf), false
	}
	b := p.buf[:n]
	if !line && !end {
		b = whole(b)
	}
	switch p.at {
	case thought:
		p.say(tenon.DeltaThinking, b)
	case answer:
		p.say(tenon.DeltaText, b)
	case seeking:
		if p.seek(b) {
			return true
		}
	}
	if p.take(len(b)); !line {
		return false
	}
	p.take(1)
	p.begin, p.fresh = true, true
	switch p.at {
	case skipped:
		p.at = thought
	case thought:
		p.gap = []byte(" ")
	case answer:
		p.gap = append(bytes.TrimSuffix(p.gap, []byte("\r")), '\n')
	}
	return true
}

// whole returns b without the beginning of a character at its end.
func whole(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// say takes a part of a line and passes it on, but for the white space at its end.
func (p *Parser) say(kind string, b []byte) {
	text := bytes.TrimRight(b, " \t\r")
	if len(text) == 0 {
		p.gap = append(p.gap, b...)
		return
	}
	if p.fenced {
		p.inside, p.fenced = true, false // it was the beginning of a block
	}
	n := len(p.said)
	if n == 0 {
		p.gap = bytes.TrimLeft(p.gap, " \t\r\n")
	}
	p.said = append(append(p.said, p.gap...), text...)
	p.gap = append(p.gap[:0], b[len(text):]...)
	p.emit(kind, string(p.said[n:]))
}

// fence looks for a code fence at the beginning of a line of the answer. One that
// closes nothing is kept back until something follows it: it ends the reply.
func (p *Parser) fence(end bool) (wait bool) {
	line, _, isWhole := bytes.Cut(p.buf, []byte{'\n'})
	bare := bytes.TrimRight(line, " \t\r")
	switch {
	case !isWhole && !end && len(bare) <= len(fence) && strings.HasPrefix(fence, string(bare)):
		return true
	case !bytes.HasPrefix(bare, []byte(fence)):
	case len(bare) > len(fence):
		p.inside, p.fenced = true, false
	case p.inside || p.fenced:
		p.inside, p.fenced = false, false
	default:
		p.gap = append(append(p.gap, p.lead...), fence...)
		p.lead, p.fenced = p.lead[:0], true
		p.take(len(fence))
	}
	return false
}

// name takes the line with the tool's name.
func (p *Parser) name(end bool) bool {
	i := bytes.IndexByte(p.buf[p.seen:], '\n')
	if i < 0 && !end {
		p.seen = len(p.buf)
		return false
	}
	n := p.seen + i
	if i < 0 {
		n = len(p.buf)
	}
	name := strings.TrimSpace(string(p.buf[:n]))
	for _, quote := range []string{`"`, "`", "'"} {
		if len(name) >= 2 && strings.HasPrefix(name, quote) && strings.HasSuffix(name, quote) {
			name = strings.TrimSpace(name[1 : len(name)-1])
		}
	}
	p.take(min(n+1, len(p.buf)))
	p.begin, p.fresh = true, true
	if p.step.Action, p.at = name, named; name == "" {
		p.at = dropped
	}
	return true
}

// seek looks for the object in a part of a line, and reports whether it, or
// something else, was found.
func (p *Parser) seek(b []byte) bool {
	i := bytes.IndexByte(b, '{')
	if i < 0 {
		p.args = append(p.args, b[:min(len(b), headBytes)]...)
		p.args = p.args[:min(len(p.args), headBytes)]
		return false
	}
	if p.args = append(p.args, b[:i+1]...); bytes.HasPrefix(bytes.TrimLeft(p.args, " \t\r"), []byte("[")) {
		p.invalid("it is a list, not an object", p.args)
		return true
	}
	p.take(i)
	p.at = object
	return true
}

// json looks for the end of the object.
func (p *Parser) json() bool {
	for i := p.seen; i < len(p.buf); i++ {
		switch c := p.buf[i]; {
		case p.slash:
			p.slash = false
		case p.quoted && c == '\\':
			p.slash = true
		case c == '"':
			p.quoted = !p.quoted
		case p.quoted:
		case c == '{':
			p.depth++
		case c == '}':
			if p.depth--; p.depth > 0 {
				continue
			}
			var args bytes.Buffer
			if err := json.Compact(&args, p.buf[:i+1]); err != nil {
				p.invalid(err.Error(), p.buf[:i+1])
			} else {
				p.call(args.String())
			}
			return false
		}
	}
	p.seen = len(p.buf)
	return false
}

// call completes the step as an action.
func (p *Parser) call(args string) {
	p.step.Args, p.at = json.RawMessage(args), done
	p.emit(tenon.DeltaCall, p.step.Action)
}

// invalid completes the step as an action whose arguments cannot be read.
func (p *Parser) invalid(why string, text []byte) {
	p.err = tenon.Errorf(tenon.CodeProtocol, "Invalid JSON in Args: %s: %s", why, excerpt(text))
	p.at = done
}

// excerptLen is how many characters of a reply an error quotes.
const excerptLen = 200

func excerpt(text []byte) string {
	s := []rune(strings.ToValidUTF8(strings.TrimSpace(string(text[:min(len(text), headBytes)])), ""))
	switch {
	case len(s) == 0:
		return "(nothing)"
	case len(s) > excerptLen:
		return string(s[:excerptLen-1]) + "…"
	}
	return string(s)
}

// take drops the first n bytes of the buffer.
func (p *Parser) take(n int) { p.buf, p.seen = p.buf[n:], 0 }
