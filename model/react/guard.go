package react

import (
	"strings"

	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model/textcall"
)

// This file refuses steps that [Read] found but that the whole reply contradicts: the model wrote other arguments than
// the step has, or it quotes somebody else's step.

// refusal returns why the call of a step must not be made, or "".
func (r *read) refusal(step Step) string {
	isEmpty := string(step.Args) == "{}"
	switch {
	case textcall.Withheld(r.lead), reports(r.lead):
		return "the text before it says that it is not to be run"
	case isQuoted(r.lead):
		return "it is in a quotation or in an observation, which only tools write"
	case argues(r.lead, isEmpty, !r.wrote):
		return "the arguments are before the action"
	case r.wrote && r.continues(step.Action, r.tail, isEmpty):
		return "there is text after the arguments"
	case r.wrote && arguesAgain(r.tail), isEmpty && r.wrote && arguesAgain(behindAction(r.raw, step.Action)[1]):
		return "the action has arguments twice"
	case !r.wrote && r.hasArguments(step.Action, behindAction(r.raw, step.Action)[0]):
		return "other text is between the action and its arguments"
	}
	return ""
}

// argues reports whether the text in front of an action contains arguments. If the step has none, an object counts,
// too: within a line only if the model wrote no arguments at all.
func argues(lead string, isEmpty, isBare bool) bool {
	if isBare && strings.Contains(lead, "{") {
		return true
	}
	for line := range strings.Lines(lead) {
		if mark, _ := marker(line); mark == markArgs {
			return true
		}
		if isEmpty && strings.HasPrefix(strings.TrimLeft(line, " \t`>*-"), "{") {
			return true
		}
	}
	return false
}

// continues reports whether the text behind the arguments of a tool belongs to the arguments.
func (r *read) continues(tool, tail string, isEmpty bool) bool {
	line, rest := cutLine(tail)
	line = strings.Trim(line, " \t\r`)]}.;*'\"")
	switch {
	case line == "", isStep(line), remark().MatchString(line) && !isEmpty:
	case !strings.HasPrefix(line, "<"), openTag().MatchString(line) && !textcall.HasTag(line):
		return true
	}
	return !isStep(line) && r.hasArguments(tool, textBeforeStep(rest))
}

// hasArguments reports whether a text contains an object, a marker of arguments, or an assignment to a parameter of the
// tool.
func (r *read) hasArguments(tool, text string) bool {
	if strings.ContainsAny(text, "{}") {
		return true
	}
	for line := range strings.Lines(text) {
		if mark, _ := marker(line); mark == markArgs {
			return true
		}
		if m := assignment().FindStringSubmatch(line); m != nil && r.isParameter(tool, m[1]) {
			return true
		}
	}
	return false
}

// arguesAgain reports whether arguments follow an action that has some already, before another action.
func arguesAgain(tail string) bool {
	_, tail = cutLine(tail)
	for line := range strings.Lines(tail) {
		mark, _ := marker(line)
		switch {
		case mark == markArgs:
			return true
		case mark == markAction, strings.Contains(lowered(line), "action:"):
			return false
		}
	}
	return false
}

var (
	// assignment is a line that gives a parameter a value.
	assignment = lazyregexp.New(`^[\s"'*\x60-]*([\w-]+)["'*\x60]*\s*[=:]\s*\S`)
	openTag    = lazyregexp.New(`^<[A-Za-z]`)
	// remark is a remark in parentheses behind an object. Its end was cut off.
	remark = lazyregexp.New(`^\([^(){}=:"]+$`)
	// turns begin a turn of a conversation that a model invented behind its step.
	turns = lazyregexp.New(`(?m)^(?:Human|User|Assistant|Question):`)
)

// isParameter reports whether a tool has a parameter with this name.
func (r *read) isParameter(tool, name string) bool {
	for _, t := range r.tools {
		if t.Name == tool {
			return rawjson.Field(rawjson.Field(t.Input, "properties"), name) != nil
		}
	}
	return false
}

// textBeforeStep returns the beginning of a text, up to the first line that is a step.
func textBeforeStep(text string) string {
	line, _ := cutLine(text)
	if isStep(line) {
		return ""
	}
	if at := turns().FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return untilStep(text)
}

// behindAction returns the text behind the last line of a reply with the action, thinking included, up to the next
// action, and that text behind the line of the arguments. Without such a line, both are empty.
func behindAction(reply, tool string) (parts [2]string) {
	at := 0
	for line := range strings.Lines(reply) {
		at += len(line)
		mark, tail := marker(line)
		switch {
		case mark == markAction && strings.Contains(tail, tool):
			parts = [2]string{"", ""}
			rest := reply[at:]
			for next := range strings.Lines(rest) {
				if mark, _ := marker(next); mark == markAction {
					break
				}
				parts[0] = rest[:len(parts[0])+len(next)]
			}
			parts[1] = parts[0]
		}
	}
	for line := range strings.Lines(parts[0]) {
		if strings.Contains(line, "{") {
			parts[1] = parts[1][strings.Index(parts[1], line):]
			break
		}
	}
	return parts
}

// The bounds of the text in front of a step that is searched for the words of somebody else.
const maxReports = 64

// reports reports whether a line in front of a step introduces the words of somebody else.
func reports(lead string) bool {
	n := 0
	for end := len(lead); n < maxReports; n++ {
		end = strings.LastIndex(lead[:end], ":\n")
		if end < 0 {
			return false
		}
		if textcall.Withheld(lead[:end+1]) {
			return true
		}
	}
	return false
}

// quoting are the tags around the words of somebody else: results of tools in chat templates, and quotations.
var quoting = lazyregexp.New(`(?i)<(/?)(tool_response|tool_responses|tool_result|tool_results|tool_output|` +
	`function_response|function_result|function_results|function_output|observation|observations|result|results|` +
	`output|document|documents|document_content|quote|blockquote|q|pre|code|samp|example|examples|page|content|` +
	`untrusted|untrusted_content|data|email|message|file)(?:\s[^<>]{0,200})?>`)

// speakers begin the turns of others in transcripts.
var speakers = lazyregexp.New(`(?im)^[\s#>*_-]*(?:tool )?(?:result|results|output|response|observation|observations|` +
	`user|human|system|tool)[*_ ]*(?:\d*[*_ ]*[:：]|$)`)

// isQuoted reports whether the step behind a text is a part of a quotation: of a tool's result, of a block between
// triple quotation marks, or of an element that quotes.
func isQuoted(lead string) bool {
	if speakers().MatchString(lead) || strings.Count(lead, `"""`)%2 == 1 || strings.Count(lead, `'''`)%2 == 1 {
		return true
	}
	depth := map[string]int{}
	for _, m := range quoting().FindAllStringSubmatch(lead, -1) {
		name := strings.ToLower(m[2])
		if m[1] == "" {
			depth[name]++
		} else if depth[name] > 0 {
			depth[name]--
		}
	}
	for _, n := range depth {
		if n > 0 {
			return true
		}
	}
	return false
}
