package react

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// Step is a parsed reply.
type Step struct {
	Thought string          // lines joined with spaces; may be empty
	Action  string          // name of the tool; "" if the step is final
	Args    json.RawMessage // a JSON object; {} if the reply has none
	Final   bool            // Answer is the final answer, which may be empty
	Answer  string
}

// The markers. A marker counts only at the beginning of a line, after optional white space. It counts only in this
// spelling, except for the markers in inputs.
const (
	markThought     = "Thought:"
	markAction      = "Action:"
	markArgs        = "Args:"
	markInput       = "Action Input:" // other programs' spelling of Args:
	markArguments   = "Arguments:"
	markPlainInput  = "Input:"
	markParameters  = "Parameters:"
	markAnswer      = "Final Answer:"
	markObservation = "Observation:" // written by the model, which thereby ends an action
	fence           = "```"
)

// inputs are the markers of arguments. After an action, other spellings of them count, too; see [spelled]. Otherwise
// the call would be made without the arguments.
var inputs = []string{markArgs, markInput, markArguments, markPlainInput, markParameters}

// place is the state of a parser.
type place int

const (
	before  place = iota // before the first marker
	thought              // in the thought
	skipped              // in a line of the thought that is ignored
	dropped              // in text that belongs to no step
	action               // in the tool's name
	named                // after the tool's name
	seeking              // after Args:, before the object
	object               // in the arguments
	answer               // in the final answer
	done                 // the step is complete; the rest is ignored
)

// marks maps a state to the markers that end it.
var marks = map[place][]string{
	before:  {markThought, markAction, markArgs, markAnswer},
	dropped: {markThought, markAction, markArgs, markAnswer},
	thought: {markThought, markAction, markArgs, markAnswer, fence},
	named: {markThought, markAction, markArgs, markInput, markArguments, markPlainInput, markParameters, markAnswer,
		markObservation},
	seeking: {markThought, markAction, markArgs, markAnswer, markObservation},
	answer:  {markThought, markAction},
}

// Parser parses a reply as it is streamed. It returns the first complete step, however the text is
// split into chunks:
//
//   - Text before the first marker, code fences around the step, and text after an action are
//     ignored.
//   - A thought extends to the next marker. It is optional.
//   - The arguments of an action are the first JSON object after Args:, on the same line or a later
//     one. Markers and braces in its strings are ignored. Action Input:, Arguments:, Input:,
//     Parameters:, or the object at the beginning of a line do as well. These words count in any
//     case, with _ between them, with spaces before the colon, and in bold (**Args:**). Without any
//     of them, the arguments are {}.
//   - A final answer keeps its line breaks. It ends before a line that begins with Thought: or
//     Action:.
//
// The parser emits the text of thoughts and answers as soon as it cannot be part of a marker. The
// zero value is not usable; see [NewParser].
type Parser struct {
	emit func(kind, text string)

	at    place
	buf   []byte // text that has not been consumed
	seen  int    // length of the part of buf that has been searched
	begin bool   // the next byte is the first of a line, after white space
	fresh bool   // like begin, or the next byte is the first after a marker
	lead  []byte // the white space at the beginning of the line
	gap   []byte // white space to emit before the next text, if there is any
	said  []byte // the thought or answer so far

	inside, fenced bool // an answer is in a code block; gap contains a fence

	head []byte // the beginning of the reply, for errors
	args []byte // text after Args: that is not an object
	step Step
	err  error

	fed, from, to int  // bytes so far; the arguments or the answer are between from and to
	acted         int  // where the marker of the action begins
	wrote         bool // the reply has arguments
	stray         bool // text that is not arguments follows the name of the tool
	depth         int  // nesting depth of braces
	quoted, slash bool
}

// headBytes bounds the part of a reply that errors quote.
const headBytes = 1024

// NewParser returns a parser that calls emit with [tenon.DeltaThinking] for pieces of the thought,
// with [tenon.DeltaText] for pieces of the answer, and with [tenon.DeltaCall] for the name of a
// tool when its arguments are complete.
func NewParser(emit func(kind, text string)) *Parser {
	return &Parser{emit: emit, begin: true, fresh: true}
}

// Feed adds a chunk, which may end anywhere, even within a character.
func (p *Parser) Feed(chunk string) {
	if n := headBytes - len(p.head); n > 0 {
		p.head = append(p.head, chunk[:min(n, len(chunk))]...)
	}
	if p.at == done {
		return
	}
	p.buf, p.fed = append(p.buf, chunk...), p.fed+len(chunk)
	p.run(false)
}

// isBare reports whether the reply has an action and no text after it that could be its arguments.
func (p *Parser) isBare() bool { return !p.wrote && !p.stray }

// IsComplete reports whether the step is complete, although the reply may continue.
func (p *Parser) IsComplete() bool { return p.at == done }

// End ends the reply and returns its step. The error has code protocol; the step then still
// contains the thought.
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
		p.err = tenon.Errorf(tenon.CodeProtocol,
			"Response has thought but no action or final answer: %s", excerpt(p.head))
	default:
		p.err = tenon.Errorf(tenon.CodeProtocol, "Could not parse response: %s", excerpt(p.head))
	}
	return p.step, p.err
}

// run consumes as much of the buffer as possible.
func (p *Parser) run(end bool) {
	for p.at != done && len(p.buf) > 0 && p.next(end) {
	}
	if p.at == done {
		p.buf = nil
	}
}

// next consumes one piece. It returns false if it needs more text.
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
		p.take(n)
		if len(p.buf) == 0 {
			return false
		}
		switch mark, n, wait := p.mark(); {
		case wait && !end:
			return false
		case mark != "":
			p.take(n)
			p.marked(mark)
			return true
		}
		if p.at == named && p.begin && p.buf[0] == '{' {
			p.at = object
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

// mark returns the marker at the beginning of the line and its length. If there is none, it returns "". If wait is
// true, more text is needed to decide.
func (p *Parser) mark() (mark string, n int, wait bool) {
	if !p.begin {
		return "", 0, false
	}
	for _, m := range marks[p.at] {
		if p.at == named && slices.Contains(inputs, m) {
			n, more := spelled(p.buf, strings.TrimSuffix(m, ":"))
			if n > 0 {
				return m, n, more
			}
			wait = wait || more
			continue
		}
		if bytes.HasPrefix(p.buf, []byte(m)) {
			return m, len(m), false
		}
		wait = wait || strings.HasPrefix(m, string(p.buf[:min(len(p.buf), len(m))]))
	}
	return "", 0, wait
}

// marked enters the state that follows a marker.
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
	case from == named && slices.Contains([]string{markThought, markAction, markAnswer, markObservation}, mark):
		p.call("{}")
	case from == named:
		p.at = seeking
	case from == seeking:
		p.invalid("there is no JSON object", p.args)
	case from == thought && mark == markThought: // a second thought continues the first
		p.gap = []byte(" ")
	case mark == markThought:
		p.at, p.said, p.gap = thought, []byte(p.step.Thought), []byte(" ")
	case mark == markAction:
		p.at, p.acted = action, p.fed-len(p.buf)-len(mark)
	case mark == markAnswer:
		p.at, p.said, p.gap = answer, nil, nil
		p.from = p.fed - len(p.buf)
		p.to = p.from
	case from != before: // arguments without an action
		p.at = dropped
	}
}

// text consumes text that is neither white space at the beginning of a line nor part of a marker.
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
	case named:
		p.stray = p.stray || !bytes.HasPrefix(b, []byte(fence))
	case seeking:
		if p.seek(b) {
			return true
		}
	}
	p.take(len(b))
	if !line {
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

// whole returns b without an incomplete character at its end.
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

// say adds text to the thought or answer and emits it, except for trailing white space.
func (p *Parser) say(kind string, b []byte) {
	text := bytes.TrimRight(b, " \t\r")
	if len(text) == 0 {
		p.gap = append(p.gap, b...)
		return
	}
	if p.fenced {
		p.inside, p.fenced = true, false // text follows the fence, so it opened a block
	}
	n := len(p.said)
	if n == 0 {
		p.gap = bytes.TrimLeft(p.gap, " \t\r\n")
	}
	p.said = append(append(p.said, p.gap...), text...)
	p.gap = append(p.gap[:0], b[len(text):]...)
	p.emit(kind, string(p.said[n:]))
}

// fence handles a code fence at the beginning of a line of the answer. A fence that closes nothing
// is held back until text follows it, because it may end the reply.
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

// name consumes the line with the tool's name.
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
	p.step.Action, p.at = name, named
	p.from = p.fed - len(p.buf)
	p.to = p.from
	if name == "" {
		p.at = dropped
	}
	return true
}

// seek looks for the object in a part of a line. It returns true if it finds the object or a list.
func (p *Parser) seek(b []byte) bool {
	i := bytes.IndexByte(b, '{')
	if i < 0 {
		p.args = append(p.args, b[:min(len(b), headBytes)]...)
		p.args = p.args[:min(len(p.args), headBytes)]
		return false
	}
	p.args = append(p.args, b[:i+1]...)
	if bytes.HasPrefix(bytes.TrimLeft(p.args, " \t\r"), []byte("[")) {
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
			p.depth--
			if p.depth > 0 {
				continue
			}
			p.from, p.to, p.wrote = p.fed-len(p.buf), p.fed-len(p.buf)+i+1, true
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

// invalid ends the step as an action with invalid arguments.
func (p *Parser) invalid(why string, text []byte) {
	p.err = tenon.Errorf(tenon.CodeProtocol, "Invalid JSON in Args: %s: %s", why, excerpt(text))
	p.at = done
}

// excerptLen is the maximum number of characters that an error quotes.
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

// take removes the first n bytes from the buffer.
func (p *Parser) take(n int) { p.buf, p.seen = p.buf[n:], 0 }
