package react

import (
	"slices"
	"strings"
)

// words maps other spellings of the markers of [Parser] to these markers, in lower case. Sources: the ReAct paper
// (Thought 1:), the prompts of LangChain (Action Input), LlamaIndex and Qwen-Agent (✿FUNCTION✿), and replies of small
// models.
var words = []struct{ mark, words string }{
	{markThought, "thought"}, {markThought, "thoughts"}, {markThought, "thinking"}, {markThought, "reasoning"},
	{markAnswer, "final answer"}, {markAnswer, "final response"}, {markAnswer, "finalanswer"},
	{markArgs, "action input"}, {markArgs, "action inputs"}, {markArgs, "actioninput"}, {markArgs, "action args"},
	{markArgs, "action arguments"}, {markArgs, "action parameters"}, {markArgs, "tool input"}, {markArgs, "tool args"},
	{markArgs, "args"}, {markArgs, "arg"}, {markArgs, "arguments"}, {markArgs, "argument"}, {markArgs, "input"},
	{markArgs, "inputs"}, {markArgs, "parameters"}, {markArgs, "parameter"}, {markArgs, "params"},
	{markAction, "action"}, {markAction, "actions"}, {markAction, "action name"}, {markAction, "tool"},
	{markAction, "tool name"}, {markAction, "tool call"}, {markAction, "function"}, {markAction, "function call"},
	{markObservation, "observation"}, {markObservation, "observations"},
}

// marker returns the marker at the beginning of a line and the rest of the line. The case of letters does not matter. A
// bullet, a number, a heading sign or a quotation sign may precede the marker. The marker may be bold or italic, and a
// number may follow its words (Thought 1:), or white space before the colon. A line that is entirely bold, or a
// heading, needs no colon.
func marker(line string) (mark, rest string) {
	s, title := strings.TrimSpace(line), false
	s = strings.TrimSpace(strings.TrimLeft(s, ">"))
	if t := strings.TrimLeft(s, "#"); t != s && strings.HasPrefix(t, " ") {
		s, title = strings.TrimSpace(t), true
	}
	s = bullet(s)
	styled := strings.TrimLeft(s, "*_`")
	title = title || styled != s && strings.HasSuffix(s, s[:len(s)-len(styled)])
	s = styled
	for i, c := range []byte(s) {
		if i > 32 {
			return "", ""
		}
		if c != ':' && i+1 < len(s) && !strings.HasPrefix(s[i:], "：") {
			continue
		}
		head, rest := s[:i], strings.TrimPrefix(s[i:], "：")
		if c == ':' {
			rest = s[i+1:]
		} else if rest == s[i:] { // the last character of a line without a colon
			if !title {
				return "", ""
			}
			head, rest = s, ""
		}
		if mark = markOfWords(head); mark != "" {
			return mark, strings.TrimSpace(strings.TrimLeft(rest, "*_"))
		}
		return "", ""
	}
	return "", ""
}

// markOfWords returns the marker with these words, or "".
func markOfWords(s string) string {
	s = strings.TrimRight(strings.ToLower(strings.TrimSpace(s)), "*_` \t")
	s = strings.TrimRight(s, "0123456789 #")
	fields := strings.Fields(strings.NewReplacer("_", " ", "-", " ", "✿", "").Replace(s))
	if len(fields) == 3 && strings.Trim(fields[1], "0123456789") == "" { // Action 1 Input:
		fields = slices.Delete(fields, 1, 2)
	}
	s = strings.Join(fields, " ")
	for _, w := range words {
		if w.words == s {
			return w.mark
		}
	}
	return ""
}

// bullet removes a bullet or a number from the beginning of a line.
func bullet(s string) string {
	for _, b := range []string{"- ", "* ", "+ ", "• "} {
		if rest, ok := strings.CutPrefix(s, b); ok {
			return strings.TrimSpace(rest)
		}
	}
	digits := strings.TrimLeft(s, "0123456789")
	if digits != s && len(digits) > 1 && strings.ContainsRune(".)", rune(digits[0])) && digits[1] == ' ' {
		return strings.TrimSpace(digits[1:])
	}
	return s
}
