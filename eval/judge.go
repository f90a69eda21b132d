package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/view"
)

// judged reports whether the case expects anything. That the run ends by itself is no expectation, unless the file says
// so.
func (c *Case) judged() bool {
	e := &c.Expect
	a := &e.Answer
	return e.Calls != nil || len(e.used) > 0 || len(e.Context) > 0 || e.StopReason != "" || c.Tools == ToolsMocked ||
		e.MaxTurns > 0 || e.MaxTokens > 0 || e.MaxCost > 0 || e.MaxTime > 0 ||
		a.Equals != nil || len(a.Contains) > 0 || len(a.NotContains) > 0 || a.regex != nil || a.schema != nil ||
		a.JSON != nil
}

// judge checks a run's report against the expectations. It returns a sentence for each expectation
// that is not met. context contains the retrieved texts.
func (e *Expect) judge(r *view.Report, context []string, took time.Duration) []string {
	var bad []string
	miss := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	want := cmp.Or(tenon.StopReason(e.StopReason), tenon.StopEnd)
	if r.Stop != want {
		text := fmt.Sprintf("stop reason: want %s, got %s", want, orNone(string(r.Stop)))
		if r.Error != nil {
			text += ": " + r.Error.Message
		}
		miss("%s", text)
	}
	if e.Calls != nil {
		bad = append(bad, e.calls(r.ToolCalls)...)
	}
	for _, want := range e.used {
		if text := want.missing(r.ToolCalls); text != "" {
			miss("%s", text)
		}
	}
	for _, want := range e.Context {
		contains := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(want)) }
		if !slices.ContainsFunc(context, contains) {
			miss("context: want %s in the retrieved texts, got %d texts: %s",
				brief(want), len(context), brief(strings.Join(context, " ")))
		}
	}
	bad = append(bad, e.Answer.judge(r.Answer)...)
	if e.MaxTurns > 0 && r.Turns > e.MaxTurns {
		miss("turns: %d, at most %d", r.Turns, e.MaxTurns)
	}
	if n := r.Tokens().Input + r.Tokens().Output; e.MaxTokens > 0 && n > e.MaxTokens {
		miss("tokens: %d, at most %d", n, e.MaxTokens)
	}
	if e.MaxCost > 0 && r.Cost != nil && *r.Cost > tenon.Dollars(e.MaxCost) {
		miss("cost: %s, at most %s", r.Cost, tenon.Dollars(e.MaxCost))
	}
	if e.MaxCost > 0 && r.Cost == nil {
		miss("cost: the price of the model is unknown, so max_cost cannot be checked")
	}
	if e.MaxTime > 0 && took > e.MaxTime {
		miss("time: %s, at most %s", took.Round(time.Millisecond), e.MaxTime)
	}
	return bad
}

func orNone(s string) string {
	return cmp.Or(s, "none")
}

// calls checks the tool calls against the expected calls.
func (e *Expect) calls(got []view.Call) []string {
	want := *e.Calls
	var bad []string
	used := make([]bool, len(got))
	switch e.Order {
	case "", OrderExact:
		for i, w := range want {
			if i >= len(got) {
				bad = append(bad, fmt.Sprintf("call %d: want %s, got none", i+1, w))
				continue
			}
			used[i] = true
			if text := w.fits(got[i]); text != "" {
				bad = append(bad, fmt.Sprintf("call %d: %s", i+1, text))
			}
		}
	default:
		from := 0
		for i, w := range want {
			at := slices.IndexFunc(got[from:], func(r view.Call) bool { return w.fits(r) == "" })
			if e.Order != OrderOrdered {
				at = slices.IndexFunc(got, func(r view.Call) bool {
					return !used[indexOf(got, r)] && w.fits(r) == ""
				})
			}
			if at < 0 {
				bad = append(bad, fmt.Sprintf("call %d: want %s%s", i+1, w, nearestCall(w, got)))
				continue
			}
			if e.Order == OrderOrdered {
				at += from
				from = at + 1
			}
			used[at] = true
		}
	}
	if e.Order == OrderOrdered || e.Order == OrderAny {
		return bad
	}
	for i, r := range got {
		if !used[i] {
			bad = append(bad, fmt.Sprintf("call %d is not expected: %s", i+1, recordText(r)))
		}
	}
	return bad
}

// indexOf returns the index of the record with the same step. Steps are unique.
func indexOf(list []view.Call, r view.Call) int {
	return slices.IndexFunc(list, func(o view.Call) bool { return o.Step == r.Step })
}

// nearestCall explains why no call matches the expected call.
func nearestCall(w Call, got []view.Call) string {
	for _, r := range got {
		if w.names(r) {
			return ": " + w.fits(r)
		}
	}
	if len(got) == 0 {
		return ", but there were no calls"
	}
	var names []string
	for _, r := range got {
		names = append(names, r.Name)
	}
	return ", but the calls were: " + shorten(strings.Join(names, ", "), 200)
}

func (w Call) names(r view.Call) bool {
	return (w.Tool == r.Name || w.Tool == r.Remote) && (w.Server == "" || w.Server == r.Server)
}

// fits describes how a call differs from the expected call. It returns "" if they do not differ.
func (w Call) fits(r view.Call) string {
	if !w.names(r) {
		return fmt.Sprintf("want %s, got %s", w, recordText(r))
	}
	if w.Outcome != "" && w.Outcome != r.Outcome {
		return fmt.Sprintf("%s: want the outcome %s, got %s", recordText(r), w.Outcome, r.Outcome)
	}
	if text := notMade(r); w.Outcome == "" && text != "" {
		return text
	}
	if w.Arguments == nil {
		return ""
	}
	want, _ := decode(w.Arguments) // checked by Load
	got, err := decode(r.Args)
	if err != nil {
		return fmt.Sprintf("the arguments of %s are not JSON", r.Name)
	}
	if text := fit("", want, got, w.Exact); text != "" {
		return fmt.Sprintf("arguments of %s: %s", r.Name, text)
	}
	return ""
}

// notMade explains why a call did not reach its tool. It returns "" if the tool answered, with an error or not, or may
// have worked.
func notMade(r view.Call) string {
	if r.Outcome == view.CallDone || r.Outcome == view.CallUnknown {
		return ""
	}
	text := fmt.Sprintf("%s was not made: %s", recordText(r), r.Outcome)
	if r.Outcome == view.CallFailed { // it may have reached the server
		text = recordText(r) + " got no result: " + r.Outcome
	}
	if r.Error != "" {
		text += ": " + shorten(r.Error, 300)
	}
	return text
}

// String formats the expected call in one line.
func (w Call) String() string {
	name := w.Tool
	if w.Server != "" {
		name = w.Server + "." + name
	}
	if w.Arguments == nil {
		return name
	}
	return name + shorten(string(w.Arguments), 200)
}

func recordText(r view.Call) string { return r.Name + shorten(string(r.Args), 200) }

// judge checks the last text of a run.
func (a *Answer) judge(answer string) []string {
	var bad []string
	miss := func(format string, args ...any) { bad = append(bad, "answer: "+fmt.Sprintf(format, args...)) }
	text := strings.TrimSpace(answer)
	shown := brief(text)
	if a.Equals != nil && text != strings.TrimSpace(*a.Equals) {
		miss("want %s, got %s", brief(*a.Equals), shown)
	}
	lower := strings.ToLower(text)
	for _, c := range a.Contains {
		if !strings.Contains(lower, strings.ToLower(c)) {
			miss("want a text that contains %s, got %s", brief(c), shown)
		}
	}
	for _, c := range a.NotContains {
		if strings.Contains(lower, strings.ToLower(c)) {
			miss("want a text without %s, got %s", brief(c), shown)
		}
	}
	if a.regex != nil && !a.regex.MatchString(text) {
		miss("want a text that matches /%s/, got %s", a.Regex, shown)
	}
	if a.schema != nil {
		if err := a.schema.Check([]byte(text)); err != nil {
			miss("%s: %s", err, shown)
		}
	}
	if a.JSON != nil {
		want, _ := decode(a.JSON) // checked by Load
		got, err := decode([]byte(text))
		if err != nil || !json.Valid([]byte(text)) {
			miss("want JSON, got %s", shown)
		} else if miss2 := fit("", want, got, false); miss2 != "" {
			miss("%s", miss2)
		}
	}
	return bad
}
