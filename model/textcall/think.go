package textcall

import (
	"strings"

	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// thinking lists the tags around text that a model wrote for itself, as pairs of opening and closing tag. The case of
// letters does not matter. Sources: the chat templates of DeepSeek R1 and Qwen 3 (think), Anthropic's prompt examples
// (thinking, scratchpad), Seed-OSS (seed:think), MiniMax (mm:think), Magistral ([THINK]), Kimi-VL (◁think▷), Command A
// (START_THINKING), Sky-T1 and Open Thoughts (begin_of_thought), gpt-oss (the analysis channel of its harmony format),
// Hermes' prompt (scratch_pad), MiniCPM (thought_start), Apertus (inner_prefix), Gemma 4 (its thought channel),
// MedGemma (unused94), Claude's prompts for artifacts (antthinking), Letta (inner_thoughts), DeepSeek
// (begin▁of▁thinking), and replies of small models (reason, cot, ponder, plan). White space may precede the > of a tag.
var thinking = [][2]string{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<thoughts>", "</thoughts>"},
	{"<reasoning>", "</reasoning>"},
	{"<reflection>", "</reflection>"},
	{"<analysis>", "</analysis>"},
	{"<scratchpad>", "</scratchpad>"},
	{"<scratch_pad>", "</scratch_pad>"},
	{"<inner_monologue>", "</inner_monologue>"},
	{"<seed:think>", "</seed:think>"},
	{"<mm:think>", "</mm:think>"},
	{"<|begin_of_thought|>", "<|end_of_thought|>"},
	{"<|start_thinking|>", "<|end_thinking|>"},
	{"[think]", "[/think]"},
	{"◁think▷", "◁/think▷"},
	{"<|channel|>analysis", "<|end|>"},
	{"<|channel>thought", "<channel|>"},
	{"<|thought_start|>", "<|thought_end|>"},
	{"<|inner_prefix|>", "<|inner_suffix|>"},
	{"<|thinking|>", "<|/thinking|>"},
	{"<|think|>", "<|/think|>"},
	{"<unused94>", "<unused95>"},
	{"<antthinking>", "</antthinking>"},
	{"<ant_thinking>", "</ant_thinking>"},
	{"<inner_thoughts>", "</inner_thoughts>"},
	{"<inner_thought>", "</inner_thought>"},
	{"<reason>", "</reason>"},
	{"<cot>", "</cot>"},
	{"<ponder>", "</ponder>"},
	{"<plan>", "</plan>"},
	{"<｜begin▁of▁thinking｜>", "<｜end▁of▁thinking｜>"},
}

// longestTag is the length of the longest tag in bytes.
const longestTag = 29

// tag is a thinking tag in a text.
type tag struct {
	pair     int // index in thinking
	closes   bool
	from, to int
}

// nextTag returns the first thinking tag at or after an offset.
func nextTag(text string, at int) (tag, bool) {
	for ; at < len(text); at++ {
		i := strings.IndexAny(text[at:], "<[◁")
		if i < 0 {
			break
		}
		at += i
		for pair, names := range thinking {
			for side, name := range names {
				if n := tagLength(text[at:], name); n > 0 {
					return tag{pair, side == 1, at, at + n}, true
				}
			}
		}
	}
	return tag{}, false
}

// tagLength returns the length of a tag at the beginning of a text, or 0. White space may precede its last character.
func tagLength(text, name string) int {
	if hasPrefixFold(text, name) {
		return len(name)
	}
	head := name[:len(name)-1]
	if !strings.HasSuffix(name, ">") || strings.HasSuffix(head, "|") || !hasPrefixFold(text, head) {
		return 0
	}
	rest := text[len(head):]
	end := strings.TrimLeft(rest[:min(len(rest), maxGap)], " \t\r\n")
	if !strings.HasPrefix(end, ">") {
		return 0
	}
	return len(head) + strings.IndexByte(rest, '>') + 1
}

// maxGap bounds the white space before the end of a tag.
const maxGap = 8

// process are the words around the thinking of Granite 3.2 (vllm-project/vllm, granite_reasoning_parser.py). They count
// only at the beginning of a text.
var process = lazyregexp.New(
	`(?is)^\s*here(?:'s|’s| is) my thought process:(.*?)(?:here(?:'s|’s| is) my response:|$)`)

// Split separates a text from the text in thinking tags. An opening tag without a closing tag hides the rest of the
// text. A closing tag without an opening tag hides all text before it, because chat templates often write the opening
// tag themselves. Tags in the strings of a JSON object are data.
func Split(text string) (visible, hidden string) {
	visible, hidden = Cut(text)
	return Mend(visible), hidden
}

// seam marks a place in a text from which thinking was removed. It is a noncharacter of Unicode.
const seam = "\uFDD0"

// Mend removes the marks of [Cut].
func Mend(text string) string { return strings.ReplaceAll(text, seam, "") }

// IsMended reports whether a text contains a mark of [Cut]. It is then not what the model wrote.
func IsMended(text string) bool { return strings.Contains(text, seam) }

// Cut is like [Split], but leaves a mark where thinking was removed within a line or an argument. A call whose name or
// arguments contain the mark must not be executed, because the model wrote something else.
func Cut(text string) (visible, hidden string) {
	if m := process().FindStringSubmatchIndex(text); m != nil {
		visible, hidden = Cut(text[m[1]:])
		return visible, strings.TrimSpace(text[m[2]:m[3]] + "\n" + hidden)
	}
	c := cutter{text: text}
	for from := 0; ; {
		t, ok := nextTag(text, from)
		if !ok {
			return c.end()
		}
		from = c.tag(t)
	}
}

// cutter is the state of [Cut].
type cutter struct {
	text        string
	out, in     strings.Builder
	at          int // the text before it is in out or in
	depth, pair int
	data        data
}

// tag handles a tag and returns the offset at which the search for the next one begins.
func (c *cutter) tag(t tag) int {
	if c.depth == 0 {
		switch end, broken := c.data.around(c.text, c.at, t.from); {
		case broken: // an object that cannot be read; what follows may be its text or thinking
			c.out.WriteString(c.text[c.at:t.from])
			c.hide(c.text[t.from:])
			c.at = len(c.text)
			return c.at
		case end > 0:
			return end
		}
	}
	switch {
	case c.depth > 0 && t.pair != c.pair:
	case c.depth > 0 && !t.closes:
		c.depth++
	case c.depth > 1:
		c.depth--
	case c.depth == 1:
		c.hide(c.text[c.at:t.from])
		c.at, c.depth = t.to, 0
		c.join()
	case t.closes:
		c.out.WriteString(c.text[c.at:t.from])
		c.hide(c.out.String())
		c.out.Reset()
		c.at = t.to
	default:
		c.out.WriteString(c.text[c.at:t.from])
		c.at, c.depth, c.pair = t.to, 1, t.pair
	}
	return t.to
}

func (c *cutter) hide(s string) {
	if s = strings.TrimSpace(Mend(s)); s != "" {
		if c.in.Len() > 0 {
			c.in.WriteByte('\n')
		}
		c.in.WriteString(s)
	}
}

// join marks the place of a removed thought, unless only white space is before or after it in its line, and it is not
// in a parameter.
func (c *cutter) join() {
	before := c.out.String()
	line := before[strings.LastIndexByte(before, '\n')+1:]
	after, _ := cutLine(c.text[c.at:])
	if strings.TrimSpace(line) != "" && strings.TrimSpace(after) != "" || inParameter(before) {
		c.out.WriteString(seam)
	}
}

func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return line, rest
}

// inParameter reports whether a text ends in the value of a parameter in tags.
func inParameter(text string) bool {
	for _, p := range [][2]string{{"<parameter", "</parameter>"}, {"parameter name=", "parameter>"},
		{"<arg_value>", "</arg_value>"}} {
		if i := strings.LastIndex(text, p[0]); i >= 0 && !strings.Contains(text[i:], p[1]) {
			return true
		}
	}
	return false
}

func (c *cutter) end() (visible, hidden string) {
	if c.depth > 0 {
		c.hide(c.text[c.at:])
		if inParameter(c.out.String()) {
			c.out.WriteString(seam)
		}
	} else {
		c.out.WriteString(c.text[c.at:])
	}
	return c.out.String(), c.in.String()
}

// data finds the JSON objects of a text.
type data struct {
	at, end int // the last object, if it can be read
	next    int // the text before it was searched
	cost    int // bytes that were read in vain
}

// around looks for the object with a string in which an offset is. It returns the end of the object, or 0 if there is
// none. It reports whether the offset is in a string of an object that cannot be read. from is the beginning of the
// text that was not searched before.
func (d *data) around(text string, from, offset int) (end int, broken bool) {
	for d.next = max(d.next, from); d.next < offset; {
		i := strings.IndexByte(text[d.next:offset], '{')
		if i < 0 {
			break
		}
		start := d.next + i
		if _, n, _, err := Object(text[start:]); err == nil {
			d.at, d.end = start, start+n
			d.next = d.end
			continue
		}
		r := &reader{text: text[start:offset]}
		err := r.value(0)
		d.cost += r.at
		if err == errEnd && r.inText || d.cost > 8*len(text)+1024 { //nolint:errorlint // problems are not wrapped
			return 0, true
		}
		d.next = start + 1
	}
	if d.at <= offset && offset < d.end {
		return d.end, false
	}
	return 0, false
}

// HasTag reports whether a text has a thinking tag.
func HasTag(text string) bool {
	_, ok := nextTag(text, 0)
	return ok || process().MatchString(text)
}

// EndsThinking reports whether a text contains a closing tag without an opening tag. Then the text before the tag is
// thinking, and also all earlier text of the answer.
func EndsThinking(text string) bool {
	depth, pair := 0, 0
	for from := 0; ; {
		t, ok := nextTag(text, from)
		switch {
		case !ok:
			return false
		case depth > 0 && t.pair != pair:
		case depth > 0 && t.closes:
			depth--
		case depth > 0:
			depth++
		case t.closes:
			return true
		default:
			depth, pair = 1, t.pair
		}
		from = t.to
	}
}

// Thinking removes thinking from a text that arrives in pieces. The zero value is ready to use.
type Thinking struct {
	held  string // the end of the text, which may be the beginning of a tag
	depth int
	pair  int
	in    strings.Builder
}

// Feed adds a piece of text. It calls visible with text outside of thinking tags, and hidden with each complete
// thought. It does not handle a closing tag without an opening tag; see [Split].
func (h *Thinking) Feed(piece string, visible, hidden func(string)) {
	if h.held == "" && h.depth == 0 && !strings.ContainsAny(piece, "<[") && strings.IndexByte(piece, "◁"[0]) < 0 {
		visible(piece)
		return
	}
	text := h.held + piece
	at := 0
	for from := 0; ; {
		t, ok := nextTag(text, from)
		if !ok {
			break
		}
		from = t.to
		switch {
		case h.depth > 0 && t.pair != h.pair, h.depth == 0 && t.closes:
		case h.depth > 0 && !t.closes:
			h.depth++
		case h.depth > 1:
			h.depth--
		case h.depth == 1:
			h.in.WriteString(text[at:t.from])
			hidden(strings.TrimSpace(h.in.String()))
			h.in.Reset()
			h.depth, at = 0, t.to
		default:
			visible(text[at:t.from])
			h.depth, h.pair, at = 1, t.pair, t.to
		}
	}
	keep := beginsTag(text, at)
	if h.depth > 0 {
		h.in.WriteString(text[at:keep])
	} else if keep > at {
		visible(text[at:keep])
	}
	h.held = text[keep:]
}

// End ends the text.
func (h *Thinking) End(visible, hidden func(string)) {
	if h.depth > 0 {
		hidden(strings.TrimSpace(h.in.String() + h.held))
	} else if h.held != "" {
		visible(h.held)
	}
	*h = Thinking{}
}

// beginsTag returns the first offset at or after from at which an incomplete tag may begin. If there is none, it
// returns the length of the text.
func beginsTag(text string, from int) int {
	for i := max(from, len(text)-longestTag-maxGap); i < len(text); i++ {
		if c := text[i]; c != '<' && c != '[' && c != '\xe2' {
			continue
		}
		for _, names := range thinking {
			for _, name := range names {
				if mayBegin(text[i:], name) {
					return i
				}
			}
		}
	}
	return len(text)
}

// mayBegin reports whether a text may be the beginning of a tag.
func mayBegin(text, name string) bool {
	head := name[:len(name)-1]
	if len(text) > len(head) && strings.HasSuffix(name, ">") && hasPrefixFold(text, head) {
		gap := text[len(head):]
		return len(gap) < maxGap && strings.Trim(gap, " \t\r\n") == ""
	}
	return len(text) < len(name) && (strings.EqualFold(text, name[:len(text)]) || strings.HasPrefix(name, text))
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
