package textcall

import (
	"regexp"
	"strings"
)

// thinking lists the tags around text that a model wrote for itself, as pairs of opening and closing tag. The case of
// letters does not matter. Sources: the chat templates of DeepSeek R1 and Qwen 3 (think), Anthropic's prompt examples
// (thinking, scratchpad), Seed-OSS (seed:think), MiniMax (mm:think), Magistral ([THINK]), Kimi-VL (◁think▷), Command A
// (START_THINKING), Sky-T1 and Open Thoughts (begin_of_thought), gpt-oss (the analysis channel of its harmony format),
// Hermes' prompt (scratch_pad), MiniCPM (thought_start), Apertus (inner_prefix), Gemma 4 (its thought channel).
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
}

// longestTag is the length of the longest tag in bytes.
const longestTag = 22

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
				if hasPrefixFold(text[at:], name) {
					return tag{pair, side == 1, at, at + len(name)}, true
				}
			}
		}
	}
	return tag{}, false
}

// process are the words around the thinking of Granite 3.2 (vllm-project/vllm, granite_reasoning_parser.py). They count
// only at the beginning of a text.
var process = regexp.MustCompile(
	`(?is)^\s*here(?:'s|’s| is) my thought process:(.*?)(?:here(?:'s|’s| is) my response:|$)`)

// Split separates a text from the text in thinking tags. An opening tag without a closing tag hides the rest of the
// text. A closing tag without an opening tag hides all text before it, because chat templates often write the opening
// tag themselves.
func Split(text string) (visible, hidden string) {
	if m := process.FindStringSubmatchIndex(text); m != nil {
		visible, hidden = Split(text[m[1]:])
		return visible, strings.TrimSpace(text[m[2]:m[3]] + "\n" + hidden)
	}
	var out, in strings.Builder
	hide := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			if in.Len() > 0 {
				in.WriteByte('\n')
			}
			in.WriteString(s)
		}
	}
	at, depth, pair := 0, 0, 0
	for from := 0; ; {
		t, ok := nextTag(text, from)
		switch {
		case !ok && depth > 0:
			hide(text[at:])
			return out.String(), in.String()
		case !ok:
			out.WriteString(text[at:])
			return out.String(), in.String()
		case depth > 0 && t.pair != pair:
		case depth > 0 && !t.closes:
			depth++
		case depth > 1:
			depth--
		case depth == 1:
			hide(text[at:t.from])
			at, depth = t.to, 0
		case t.closes:
			out.WriteString(text[at:t.from])
			hide(out.String())
			out.Reset()
			at = t.to
		default:
			out.WriteString(text[at:t.from])
			at, depth, pair = t.to, 1, t.pair
		}
		from = t.to
	}
}

// HasTag reports whether a text has a thinking tag.
func HasTag(text string) bool {
	_, ok := nextTag(text, 0)
	return ok || process.MatchString(text)
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
	for i := max(from, len(text)-longestTag); i < len(text); i++ {
		if c := text[i]; c != '<' && c != '[' && c != '\xe2' {
			continue
		}
		for _, names := range thinking {
			for _, name := range names {
				if rest := text[i:]; len(rest) < len(name) && strings.EqualFold(rest, name[:len(rest)]) ||
					len(rest) < len(name) && strings.HasPrefix(name, rest) {
					return i
				}
			}
		}
	}
	return len(text)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
