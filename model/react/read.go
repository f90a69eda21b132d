package react

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model/textcall"
)

// Reading is a reply as [Read] understood it.
type Reading struct {
	Step
	Hidden  string   // the text in thinking tags, which is never a step
	Repairs []string // differences from the form that the prompt asked for
	Hint    string   // with an error: the expected form, and the most similar tool
	Nearest string   // tool with the most similar name; may be ""

	wrote bool // the reply has arguments
}

// isWritten reports whether the model wrote all of the arguments. Otherwise they are missing, or their end is.
func (r *Reading) isWritten() bool {
	return r.wrote && !slices.Contains(r.Repairs, textcall.BracketAdded)
}

// form is the form of a step, for hints.
const form = `write "Action: NAME" with the name of a tool and on the next line "Args: {"key": "value"}", ` +
	`or "Final Answer: TEXT"`

// Read reads a complete reply. A reply in the grammar of [Parser] is parsed as that grammar says. Other replies are
// read in the forms that small models write instead; see marker and package textcall. A tool never gets arguments that
// the model did not write: a reply that is not completely understood is an error of code protocol.
func Read(text string, tools []tenon.Tool) (Reading, error) {
	text = unwrapped(text)
	r := &read{tools: tools, raw: text}
	p := NewParser(func(string, string) {})
	p.Feed(text)
	step, err := p.End()
	r.lead, r.tail = text[:p.acted], text[p.to:]
	if r.isPlain(text, p, step, err) {
		r.wrote = p.wrote
		return r.done(step, nil)
	}
	first, whole := p, step
	visible, hidden := textcall.Cut(text)
	r.Hidden = hidden
	if hidesStep := inComment(text, first.from); hidesStep || visible != text {
		visible, p, step, err = parseVisible(unwrapped(visible))
		r.lead, r.tail = visible[:p.acted], visible[p.to:]
		if r.isPlain(visible, p, step, err) {
			r.wrote = p.wrote
			return r.done(step, nil)
		}
		if hidesStep {
			whole = Step{}
		}
	}
	lead, tail := r.lead, r.tail
	r.tail = ""
	found, ferr := r.loose(visible)
	if ferr == nil && !found.Final && isExample(visible) {
		found, ferr = Step{}, &textcall.NoCallError{Why: "the action is in a code block with text after it"}
	}
	if ferr != nil && whole.Final && first.from > 0 && !textcall.HasTag(text[:first.from]) {
		return r.done(whole, nil) // the tag is a part of the answer
	}
	var none *textcall.NoCallError
	switch {
	case ferr == nil:
		r.wrote = r.explicit
		return r.done(found, nil)
	case errors.As(ferr, &none):
		r.Nearest = none.Nearest
		if err == nil || step.Action == "" {
			err = tenon.Errorf(tenon.CodeProtocol, "Could not read the action: %s: %s", none.Why, excerpt(p.head))
		}
	case err == nil && p.wrote && isName(step.Action), err == nil && step.Action == "":
		r.wrote, r.lead, r.tail = p.wrote, lead, tail
		return r.done(step, nil) // the core reports an unknown tool
	case err == nil && isName(step.Action) && p.isBare():
		return r.done(step, nil)
	case err == nil:
		err = tenon.Errorf(tenon.CodeProtocol, "Could not read the action: the arguments of %q are not understood: %s",
			excerpt([]byte(step.Action)), excerpt(p.head))
	}
	if step.Action != "" && r.Nearest == "" {
		if _, _, ok := textcall.Name(step.Action, tools); !ok {
			r.Nearest = textcall.Nearest(step.Action, tools)
		}
	}
	return r.done(step, err)
}

// read is the state while a reply is interpreted.
type read struct {
	Reading
	tools    []tenon.Tool
	explicit bool   // the reply contains arguments; they are not inferred
	raw      string // the reply
	lead     string // the text in front of the action
	tail     string // the text behind its arguments
}

func (r *read) done(step Step, err error) (Reading, error) {
	if err == nil && !step.Final && (textcall.IsMended(step.Action) || textcall.IsMended(string(step.Args))) {
		err = tenon.Errorf(tenon.CodeProtocol, "Could not read the action: thinking tags are in the arguments of %q",
			textcall.Mend(step.Action))
	}
	if err == nil && !step.Final {
		if why := r.refusal(step); why != "" {
			err = tenon.Errorf(tenon.CodeProtocol, "Could not read the action: %s: %s", why,
				excerpt([]byte(r.raw[max(0, len(r.raw)-excerptLen):])))
		}
	}
	step.Thought, step.Answer = textcall.Mend(step.Thought), textcall.Mend(step.Answer)
	r.Step = step
	if err != nil {
		r.Hint = form
		if r.Nearest != "" {
			r.Hint += "; did you mean the tool '" + r.Nearest + "'?"
		}
	}
	return r.Reading, err
}

// isPlain reports whether a reply in the grammar of [Parser] can be used without changes. There must be no thinking
// around the step, and an action must have the name of a tool and explicit arguments.
func (r *read) isPlain(text string, p *Parser, step Step, err error) bool {
	switch {
	case err != nil, textcall.HasTag(text[:p.from]), textcall.EndsThinking(text[p.to:]), inComment(text, p.from):
		return false
	case step.Final:
		return true
	case !p.wrote && !p.isBare(), strings.HasPrefix(strings.TrimLeft(text[p.to:], " \t"), ","):
		return false
	case contradicts(text[p.to:], p.wrote), isExample(text):
		return false
	}
	if len(r.tools) == 0 {
		return true
	}
	name, repair, ok := textcall.Name(step.Action, r.tools)
	return ok && repair == "" && name == step.Action
}

// isName reports whether a text can be the name of a tool. The core then reports that there is no such tool.
func isName(s string) bool { return s != "" && !strings.ContainsAny(s, " \t(){}[]<>\"'`=:;,*|") }

// loose reads a reply without thinking in the other forms of a step. A line that begins in a comment is ignored.
func (r *read) loose(text string) (Step, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var step Step
	var thoughts []string
	hidden, shown := comment(text, 0)
	quoted := allQuoted(text)
	for at := 0; at < len(text); {
		for at >= shown {
			hidden, shown = comment(text, shown)
		}
		begin := at
		line, rest := cutLine(text[at:])
		if hidden < at {
			at = len(text) - len(rest)
			continue
		}
		mark, tail := marker(line)
		at = len(text) - len(rest)
		if !quoted && strings.HasPrefix(strings.TrimSpace(line), ">") { // an example, unless all is quoted
			mark = ""
		}
		switch mark {
		case markThought:
			thoughts = append(thoughts, tail)
		case markAnswer:
			step.Thought = joined(thoughts)
			return r.answer(step, tail, rest)
		case markAction:
			step.Thought, r.lead = joined(thoughts), text[:begin]
			err := r.action(&step, tail, rest)
			return step, err
		case markObservation:
			at = len(text)
		default:
			if len(thoughts) > 0 && !strings.HasPrefix(strings.TrimSpace(line), fence) {
				thoughts = append(thoughts, line)
			}
		}
	}
	return r.markless(text)
}

// answer reads a final answer: the rest of the line and the lines up to the next step.
func (r *read) answer(step Step, tail, rest string) (Step, error) {
	lines := []string{tail}
	for rest != "" {
		var line string
		line, rest = cutLine(rest)
		if t := strings.TrimLeft(line, " \t"); strings.HasPrefix(t, markThought) || strings.HasPrefix(t, markAction) {
			break
		}
		lines = append(lines, line)
	}
	step.Final, step.Answer = true, strings.TrimSpace(strings.Join(lines, "\n"))
	if strings.Count(step.Answer, fence)%2 == 1 {
		step.Answer = strings.TrimSpace(strings.TrimSuffix(step.Answer, fence))
	}
	r.note(respelled)
	return step, nil
}

func (r *read) note(what string) {
	if len(r.Repairs) == 0 {
		r.Repairs = append(r.Repairs, what)
	}
}

// action reads the name and the arguments of an action. tail is the rest of the line with the marker, rest the text
// after it.
func (r *read) action(step *Step, tail, rest string) error {
	if textcall.Bare(tail) == "" || strings.HasPrefix(tail, fence) && !strings.Contains(tail, "{") {
		if tail == "" || strings.HasPrefix(tail, fence) {
			tail, rest = nextLine(rest)
		}
	}
	if mark, _ := marker(tail); mark != "" {
		tail = ""
	}
	if name, ok := bracketed(tail); ok {
		if _, _, ok := textcall.Name(name, r.tools); ok {
			tail = name
		}
	}
	if strings.HasPrefix(tail, "{") || strings.HasPrefix(tail, "<") || strings.HasPrefix(tail, "[") {
		c, before, err := textcall.Find(untilStep(tail+"\n"+rest), r.tools)
		if err == nil && strings.TrimSpace(before) != "" || errors.Is(err, textcall.ErrNone) {
			err = &textcall.NoCallError{Why: "the action is not a call"}
		}
		if err != nil {
			return err
		}
		thought := step.Thought
		*step, _ = stepOf(c)
		step.Thought = cmp.Or(step.Thought, thought)
		r.explicit = true
		r.Repairs = append(r.Repairs, append(c.Repairs, otherForm)...)
		return nil
	}
	name, after := r.split(tail)
	exact, repair, ok := textcall.Name(name, r.tools)
	if !ok && len(r.tools) > 0 {
		r.Nearest = textcall.Nearest(name, r.tools)
		if isName(textcall.Bare(name)) && after == "" {
			return textcall.ErrNone // the core reports the unknown tool, if the rest is a step
		}
		return textcall.Unknown(name, r.tools)
	}
	if !ok {
		exact = textcall.Bare(name)
	}
	step.Action = exact
	if repair != "" {
		r.Repairs = append(r.Repairs, repair)
	}
	return r.args(step, after, rest)
}

// bracketed returns a name in brackets. Prompts write the names of the tools in brackets, and small models copy them.
func bracketed(line string) (name string, ok bool) {
	name, ok = strings.CutPrefix(strings.TrimSpace(line), "[")
	if !ok || !strings.HasSuffix(name, "]") {
		return "", false
	}
	return name[:len(name)-1], true
}

// unwrapped removes special tokens of chat templates around a reply, and the name of the speaker before a step.
func unwrapped(text string) string {
	text = textcall.Strip(text)
	if rest, ok := strings.CutPrefix(text, "Assistant:"); ok {
		if mark, _ := marker(strings.SplitN(rest, "\n", 2)[0]); mark != "" {
			return strings.TrimLeft(rest, " \t")
		}
	}
	return text
}

// split splits the line of an action after the name of the tool.
func (r *read) split(line string) (name, after string) {
	if _, _, ok := textcall.Name(line, r.tools); ok {
		return line, ""
	}
	i := strings.IndexAny(line, " \t({[,;|")
	if i < 0 {
		return line, ""
	}
	return line[:i], strings.TrimLeft(line[i:], " \t,;|*`")
}

// args reads the arguments after the name of the tool: on the same line, or on the next ones.
func (r *read) args(step *Step, after, rest string) error {
	if strings.HasPrefix(after, "(") {
		c, err := textcall.Arguments(step.Action, strings.TrimRight(untilStep(after+"\n"+rest), " \t\n`"), r.tools)
		if err != nil {
			return err
		}
		step.Args, r.Repairs, r.explicit = c.Args, append(r.Repairs, c.Repairs...), true
		return nil
	}
	if mark, tail := marker(after); mark == markArgs {
		after = tail
	} else if after == "" {
		var line string
		line, rest = nextLine(rest)
		mark, tail := marker(line)
		switch {
		case mark == markArgs:
			after = tail
		case mark == markAction:
			return &textcall.NoCallError{Why: "there are two actions, and the first has no arguments"}
		case mark != "", line == "":
			step.Args = json.RawMessage("{}")
			r.note(respelled)
			return nil
		default:
			after = line
		}
	}
	if after == "" {
		after, rest = nextLine(rest)
	}
	text := strings.TrimLeft(strings.TrimPrefix(after, "json"), "` \t")
	if !strings.HasPrefix(text, "{") {
		return &textcall.NoCallError{Why: "the arguments are not a JSON object"}
	}
	text += "\n" + rest
	object, n, repairs, err := textcall.Object(text)
	if cut := untilStep(text); err != nil && len(cut) < len(text) { // the end of the object may be missing
		text = cut
		object, n, repairs, err = textcall.Object(text)
	}
	if err != nil {
		return &textcall.NoCallError{Why: err.Error()}
	}
	end, _, _ := strings.Cut(text[n:], "\n")
	if end = strings.Trim(end, " \t`)]}.;*"); end != "" && !strings.HasPrefix(end, "<") && !isStep(end) {
		return &textcall.NoCallError{Why: "there is text after the arguments"}
	}
	if contradicts(text[n:], true) {
		return &textcall.NoCallError{Why: "the action has arguments twice"}
	}
	step.Args, r.explicit, r.tail = json.RawMessage(object), true, text[n:]
	r.Repairs = append(r.Repairs, repairs...)
	r.note(respelled)
	return nil
}

// respelled describes a step in the usual form with other markers.
const respelled = "the markers were spelled differently"

// otherForm describes a step in a form of package textcall.
const otherForm = "the step was written in another form"

// cutLine splits a text after its first line.
func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return line, rest
}

// nextLine returns the next line that is neither empty nor the fence of a code block.
func nextLine(s string) (line, rest string) {
	for s != "" {
		line, s = cutLine(s)
		line = strings.TrimSpace(line)
		word, fenced := strings.CutPrefix(line, fence)
		if line != "" && !(fenced && !strings.ContainsAny(word, "{(`")) {
			return line, s
		}
	}
	return "", ""
}

// isStep reports whether a line begins with a marker that ends an action.
func isStep(line string) bool {
	mark, _ := marker(line)
	return mark != "" && mark != markArgs
}

// untilStep returns the beginning of a text, up to the first line that ends an action. The first line of the text never
// counts.
func untilStep(text string) string {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return text
		}
		at += i + 1
		line, _ := cutLine(text[at:])
		if isStep(line) {
			return text[:at]
		}
	}
}

func joined(lines []string) string { return oneLine(strings.Join(lines, " ")) }
