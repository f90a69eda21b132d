package textcall

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

const none = "none"

const hermes = `<tool_call>{"name":"get","arguments":{}}</tool_call>`

// slipCase is a text, and the calls that [Slips] reads in it.
type slipCase struct {
	text   string
	want   string // NAME ARGS, separated by |
	before string
	err    string // "" for no error, or a part of the reason
}

var slipCases = map[string]slipCase{
	"hermes":           {"I look.\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": 1}}\n</tool_call>", `get {"a":1}`, "I look.\n", ""},
	"hermes, unclosed": {"<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}", `get {"a":1}`, "", ""},
	"hermes, two": {"<tool_call>{\"name\":\"get\",\"arguments\":{\"a\":1}}</tool_call>\n" +
		"<tool_call>{\"name\":\"ping\",\"arguments\":{}}</tool_call><|im_end|>", `get {"a":1}|ping {}`, "", ""},
	"qwen coder": {"<tool_call>\n<function=get>\n<parameter=a>\n3\n</parameter>\n<parameter=s>\nx y\n</parameter>\n" +
		"</function>\n</tool_call>", `get {"a":3,"s":"x y"}`, "", ""},
	"llama function": {`<function=get>{"a": 2}</function>`, `get {"a":2}`, "", ""},
	"llama object":   {`{"name": "get", "parameters": {"a": 9007199254740993}}`, `get {"a": 9007199254740993}`, "", ""},
	"llama tag":      {`Well. <|python_tag|>{"name": "get", "parameters": {"a": 1}}`, `get {"a":1}`, "Well. ", ""},
	"mistral": {`[TOOL_CALLS] [{"name": "get", "arguments": {"a": 1}}, {"name": "ping", "arguments": {}}]`,
		`get {"a":1}|ping {}`, "", ""},
	"mistral, version 11": {`[TOOL_CALLS]get[ARGS]{"a": 1}`, `get {"a":1}`, "", ""},
	"deepseek": {"Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{\"a\": 1}\n```" +
		"<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>ping\n```json\n{}\n```<｜tool▁call▁end｜>" +
		"<｜tool▁calls▁end｜>", `get {"a":1}|ping {}`, "Yes.", ""},
	"wrong case of the name": {`<tool_call>{"name": "GET", "arguments": {"a": 1}}</tool_call>`, `get {"a":1}`, "", ""},

	"an answer":                      {"It is 5 < 7.", "", "", none},
	"text after":                     {"<tool_call>{\"name\":\"get\",\"arguments\":{}}</tool_call>\nis the form.", "", "", "text after"},
	"in a code block":                {"```\n<tool_call>{\"name\":\"get\",\"arguments\":{}}</tool_call>\n```", "", "", none},
	"in an open code block":          {"~~~xml\n<tool_call>{\"name\":\"get\",\"arguments\":{}}</tool_call>", "", "", none},
	"indented code":                  {"Form:\n\n    <tool_call>{\"name\":\"get\",\"arguments\":{}}</tool_call>", "", "", none},
	"quoted line":                    {"> <tool_call>{\"name\":\"get\",\"arguments\":{}}</tool_call>", "", "", none},
	"in quotation marks":             {"It says \"<|python_tag|>{\"name\":\"get\",\"parameters\":{}}", "", "", none},
	"in backticks":                   {"Use `[TOOL_CALLS] [{\"name\":\"get\",\"arguments\":{}}]`", "", "", none},
	"tag within a line":              {"Use <tool_call>{\"name\":\"get\",\"arguments\":{}}</tool_call>", "", "", none},
	"no such tool":                   {`<tool_call>{"name": "rm", "arguments": {}}</tool_call>`, "", "", "there is no tool 'rm'"},
	"one of two unknown":             {`[TOOL_CALLS][{"name":"get","arguments":{}},{"name":"rm","arguments":{}}]`, "", "", "no tool 'rm'"},
	"no arguments":                   {`<tool_call>{"name": "get"}</tool_call>`, "", "", "has no arguments"},
	"broken":                         {`<tool_call>{"name": "get", "arguments": {"a": }}</tool_call>`, "", "", "not JSON"},
	"object of data":                 {`{"name": "get", "age": 3}`, "", "", none},
	"object, other tool":             {`{"name": "Ann", "parameters": {}}`, "", "", none},
	"object after text":              {"See:\n{\"name\": \"get\", \"parameters\": {}}", "", "", none},
	"object in a code block":         {"```json\n{\"name\": \"get\", \"parameters\": {}}\n```", "", "", none},
	"object, name twice":             {`{"name": "get", "name": "ping", "parameters": {}}`, "", "", none},
	"empty":                          {"", "", "", none},
	"only a mark":                    {"[TOOL_CALLS]", "", "", "not a call"},
	"an empty list":                  {"[TOOL_CALLS][]", "", "", "not a call"},
	"cut after the name, qwen coder": {"<tool_call>\n<function=get>\n", "", "", "ends before its arguments"},
	"cut after the name, function":   {"<function=get>", "", "", "ends before its arguments"},
	"cut after the name, mistral":    {"[TOOL_CALLS]get[ARGS]", "", "", "ends before its arguments"},
	"cut after the name, deepseek": {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>", "", "",
		"ends before its arguments"},
	"cut after the name, older deepseek": {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get", "", "",
		"ends before its arguments"},
	"cut after the name, DSML": {"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get\">", "", "",
		"ends before its arguments"},
	"cut after the name, invoke": {"<function_calls>\n<invoke name=\"get\">", "", "", "ends before its arguments"},
	"cut after the name, harmony": {"<|channel|>commentary to=functions.get <|constrain|>json<|message|>", "", "",
		"ends before its arguments"},
	"cut after the name, kimi": {"<|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>", "", "",
		"ends before its arguments"},
	"cut after a parameter": {"<tool_call>\n<function=get>\n<parameter=a>\n1\n</parameter>", "", "",
		"ends before its arguments"},
	"cut after an argument": {"<tool_call>get\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>", "", "",
		"ends before its arguments"},
	"cut at a brace": {`<tool_call>{"name": "get", "arguments": {"a": 1`, "", "", "ends before its arguments"},
	"a parameter that is not closed": {"<function=get><parameter=s>x<parameter=a>1</parameter></function>", "", "",
		"not closed one by one"},
	"no parameters, closed":     {"<function=get>\n</function>", `get {}`, "", ""},
	"no parameters, outer mark": {"<tool_call>\n<function=get>\n</tool_call>", `get {}`, "", ""},
	"no object, closed":         {"<｜tool▁call▁begin｜>get<｜tool▁sep｜><｜tool▁call▁end｜>", "", "", "has no arguments"},
	"llama 4":                   {`[get(a=1, s="x")]`, `get {"a":1,"s":"x"}`, "", ""},
	"llama 3.1":                 {`<|python_tag|>get.call(a=1)`, `get {"a":1}`, "", ""},
	"mistral, an id":            {`[TOOL_CALLS]get[CALL_ID]abc123456[ARGS]{"a": 1}`, `get {"a":1}`, "", ""},
	"mistral, only a list": {`[{"name": "get", "arguments": {"a": 1}}, {"name": "ping", "arguments": {}}]`,
		`get {"a": 1}|ping {}`, "", ""},
	"deepseek, ASCII": {"<|tool▁calls▁begin|><|tool▁call▁begin|>function<|tool▁sep|>get\n```json\n{\"a\": 1}\n```" +
		"<|tool▁call▁end|><|tool▁calls▁end|>", `get {"a":1}`, "", ""},
	"list of data":                       {`[{"name": "get", "age": 3}]`, "", "", none},
	"list with one call":                 {`[{"name": "get", "arguments": {}}, {"name": "Ann"}]`, "", "", none},
	"code in a text":                     {"For example:\n[get(a=1)]", "", "", none},
	"code, unknown tool":                 {"[rm(a=1)]", "", "", none},
	"in a longer fence":                  {"````\n```\n" + hermes, "", "", none},
	"in a shorter fence":                 {"```\n````\n~~~\n" + hermes, "", "", none},
	"in a fence with longer marks":       {"```\n````\n" + hermes, "", "", none},
	"after fences":                       {"````\n```\n````\n" + hermes, `get {}`, "````\n```\n````\n", ""},
	"quotation begun on an earlier line": {"The document says: \"run this\n" + hermes, "", "", none},
	"typographic quotation":              {"It says “run this\n" + hermes, "", "", none},
	"quotation that ended":               {"It says \"no\".\n" + hermes, `get {}`, "It says \"no\".\n", ""},
	"lazy block quote":                   {"> The page says:\n" + hermes, "", "", none},
	"after a block quote":                {"> The page.\n\n" + hermes, `get {}`, "> The page.\n\n", ""},
	"in pre":                             {"<pre>\n" + hermes, "", "", none},
	"in blockquote":                      {"<BLOCKQUOTE class=x>\n\n" + hermes, "", "", none},
	"after pre":                          {"<pre>x</pre>\n" + hermes, `get {}`, "<pre>x</pre>\n", ""},
	"too many": {strings.Repeat(`<tool_call>{"name":"ping","arguments":{}}</tool_call>`, maxSlips+1), "", "",
		"too many calls"},
}

func TestMD12_Slips(t *testing.T) {
	for name, tt := range slipCases {
		t.Run(name, func(t *testing.T) {
			calls, before, err := Slips(tt.text, tools)
			var got []string
			for _, c := range calls {
				if c.Text == "" {
					t.Errorf("the text of the call is missing: %+v", c)
				}
				got = append(got, c.Name+" "+string(c.Args))
			}
			if g := strings.Join(got, "|"); g != tt.want || before != tt.before {
				t.Errorf("%q after %q, want %q after %q", g, before, tt.want, tt.before)
			}
			switch {
			case tt.err == "" && err != nil, tt.err == none && !errors.Is(err, ErrNone):
				t.Errorf("error: %v", err)
			case tt.err != "" && tt.err != none && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want %s", err, tt.err)
			}
		})
	}
}

// said is a model that always answers with the same text.
type said struct{ resp *tenon.Response }

func (s said) Name() string { return "test/said" }

func (s said) Generate(context.Context, *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		if yield(tenon.Delta{Kind: tenon.DeltaText, Text: s.resp.Message.Text()}, nil) {
			yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: s.resp}, nil)
		}
	}
}

// noFinish in a case is the end of a stream without a finish reason.
const noFinish = tenon.StopReason("none")

type wrapCase struct {
	text string
	req  tenon.Request
	stop tenon.StopReason
	want string // the parts
	warn string
}

// called returns an answer with a call.
func called(name, args string) *tenon.Message {
	return &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartCall,
		Call: &tenon.ToolCall{Name: name, Arguments: []byte(args)}}}}
}

func TestMD12_Wrap(t *testing.T) {
	const call = `<tool_call>{"name": "get", "arguments": {"a": 1}}</tool_call>`
	result := func(text string) []*tenon.Message {
		return []*tenon.Message{tenon.UserMessage("q"), {Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult,
			Result: &tenon.ToolResult{Name: "ping", Content: []tenon.Content{tenon.Text(text)}}}}}}
	}
	escaped, _ := json.Marshal(map[string]string{"page": call})
	tests := map[string]wrapCase{
		"a call": {"Hm.\n" + call, tenon.Request{}, "", `text:Hm.|call:get {"a":1}`, "it was text, not a call"},
		"thinking before": {"<think>" + call + "</think>Now.\n" + call, tenon.Request{}, "",
			`thinking:` + call + `|text:Now.|call:get {"a":1}`, "read from the answer"},
		"a tag in an argument": {`<tool_call>{"name": "get", "arguments": {"s": "P<think>a", "t": "x</think>y"}}</tool_call>`,
			tenon.Request{}, "", `call:get {"s":"P<think>a","t":"x</think>y"}`, "read from the answer"},
		"a tag in a parameter": {"<function=get>\n<parameter=s>\nx <think>y</think>\n</parameter>\n</function>", tenon.Request{}, "",
			"text:<function=get>\n<parameter=s>\nx <think>y</think>\n</parameter>\n</function>", "thinking tags are in"},
		"without a finish reason": {call, tenon.Request{}, noFinish, `call:get {"a":1}`, "read from"},
		"in thinking only":        {"<think>\n" + call, tenon.Request{}, "", "text:<think>\n" + call, ""},
		"cut off":                 {call, tenon.Request{}, tenon.StopMaxTokens, "text:" + call, ""},
		"no tools":                {call, tenon.Request{Tools: []tenon.Tool{}}, "", "text:" + call, ""},
		"tool choice none":        {call, tenon.Request{Sampling: tenon.Sampling{}, ToolChoice: "none"}, "", "text:" + call, ""},
		"tool choice another":     {call, tenon.Request{ToolChoice: "ping"}, "", "text:" + call, "there is no tool 'get'"},
		"copied from a result":    {call, tenon.Request{Messages: result("page " + call)}, "", "text:" + call, "same text"},
		"copied, escaped":         {call, tenon.Request{Messages: result(string(escaped))}, "", "text:" + call, "same text"},
		"copied, HTML": {call, tenon.Request{Messages: result("&lt;tool_call&gt;{&quot;name&quot;:&quot;get&quot;," +
			"&quot;arguments&quot;:{&quot;a&quot;:1}}")}, "", "text:" + call, "same text"},
		"copied from the user": {call, tenon.Request{Messages: []*tenon.Message{tenon.UserMessage(call)}}, "", "text:" + call, "same text"},
		"copied, other order":  {call, tenon.Request{Messages: result(`do {"arguments":{"a":1},"name":"get"}`)}, "", "text:" + call, "same text"},
		"copied, parameters":   {call, tenon.Request{Messages: result(`do {"name":"get","parameters":{"a":1}}`)}, "", "text:" + call, "same text"},
		"copied, numbered": {call, tenon.Request{Messages: result("     1\t<tool_call>\n     2\t{\"name\": \"get\",\n     3\t" +
			"\"arguments\": {\"a\": 1}}\n     4\t</tool_call>")}, "", "text:" + call, "same text"},
		"copied, a difference": {call, tenon.Request{Messages: result("+<tool_call>\n+{\"name\": \"get\",\n+\"arguments\": {\"a\": 1}}\n" +
			"+</tool_call>")}, "", "text:" + call, "same text"},
		"copied, quoted": {call, tenon.Request{Messages: result("> {\"name\": \"get\",\n> \"arguments\": {\"a\": 1}}")}, "",
			"text:" + call, "same text"},
		"copied, code": {call, tenon.Request{Messages: result("please get(a=1)")}, "", "text:" + call, "same text"},
		"copied, XML": {call, tenon.Request{Messages: result("<function=get>\n<parameter=a>\n1\n</parameter>\n</function>")}, "",
			"text:" + call, "same text"},
		"copied, an escape": {`<tool_call>{"name":"get","arguments":{"s":"/x"}}</tool_call>`,
			tenon.Request{Messages: result(`{"name":"get","arguments":{"s":"\u002fx"}}`)}, "",
			`text:<tool_call>{"name":"get","arguments":{"s":"/x"}}</tool_call>`, "same text"},
		"copied, other arguments": {call, tenon.Request{Messages: result(`{"name":"get","arguments":{"a":2}}`)}, "", "text:" + call, "a call of the same tool"},
		"copied, other arguments and marks": {call, tenon.Request{Messages: result("do\n<function=get>{\"a\": 2}</function>")}, "",
			"text:" + call, "a call of the same tool"},
		"copied, other arguments, numbered": {call, tenon.Request{Messages: result("1\t{\"name\": \"get\",\n2\t\"arguments\": {\"a\": 2}}")}, "",
			"text:" + call, "a call of the same tool"},
		"another tool in results":     {call, tenon.Request{Messages: result(`{"name":"ping","arguments":{}}`)}, "", `call:get {"a":1}`, "read from"},
		"code in results":             {call, tenon.Request{Messages: result("x = get(a=2)")}, "", `call:get {"a":1}`, "read from"},
		"a definition in results":     {call, tenon.Request{Messages: result(`{"name":"get","parameters":{"type":"object","properties":{"a":{}}}}`)}, "", `call:get {"a":1}`, "read from"},
		"an example of the user":      {call, tenon.Request{Messages: []*tenon.Message{tenon.UserMessage(`{"name":"get","arguments":{"a":2}}`)}}, "", `call:get {"a":1}`, "read from"},
		"its own call in the results": {call, tenon.Request{Messages: append([]*tenon.Message{called("get", `{"a":2}`)}, result(`{"request":{"name":"get","arguments":{"a":2}}}`)...)}, "", `call:get {"a":1}`, "read from"},
		"another call than its own":   {call, tenon.Request{Messages: append([]*tenon.Message{called("get", `{"a":3}`)}, result(`{"request":{"name":"get","arguments":{"a":2}}}`)...)}, "", "text:" + call, "a call of the same tool"},
		"refused":                     {"I will not run this:\n" + call, tenon.Request{}, "", "text:I will not run this:\n" + call, "not to be run"},
		"an example":                  {"For example:\n" + call, tenon.Request{}, "", "text:For example:\n" + call, "not to be run"},
		"refused, then made":          {"I will not guess:\n" + call, tenon.Request{}, "", `text:I will not guess:|call:get {"a":1}`, "read from"},
		"one call allowed":            {call + call, tenon.Request{Sampling: tenon.Sampling{Serial: true}}, "", "text:" + call + call, "one is allowed"},
		"an object as the answer": {`{"name":"get","arguments":{"a":1}}`, tenon.Request{Output: []byte(`{}`)}, "",
			`text:{"name":"get","arguments":{"a":1}}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { checkWrap(t, tt) })
	}
}

// checkWrap checks the answer that a text with a call is converted to.
func checkWrap(t *testing.T, tt wrapCase) {
	if tt.req.Tools == nil {
		tt.req.Tools = tools
	}
	stop, raw := tenon.StopEnd, ""
	if tt.stop == noFinish {
		tt.stop, raw = "", model.NoFinish
	}
	if tt.stop != "" {
		stop = tt.stop
	}
	m := tenon.AssistantMessage(tt.text)
	m.By = "test/said"
	var resp *tenon.Response
	shown := ""
	for d, err := range Wrap(said{&tenon.Response{Message: m, Stop: stop, RawStop: raw}}).Generate(t.Context(), &tt.req) {
		switch {
		case err != nil:
			t.Fatal(err)
		case d.Response != nil:
			resp = d.Response
		case d.Kind == tenon.DeltaReset:
			shown = ""
		case d.Kind == tenon.DeltaText:
			shown += d.Text
		}
	}
	var got []string
	for _, p := range resp.Message.Parts {
		switch {
		case p.Call != nil:
			got = append(got, "call:"+p.Call.Name+" "+string(p.Call.Arguments))
		default:
			got = append(got, p.Type+":"+p.Text)
		}
	}
	if diff := cmp.Diff(tt.want, strings.Join(got, "|")); diff != "" {
		t.Error(diff)
	}
	if warn := strings.Join(resp.Warnings, "|"); !strings.Contains(warn, tt.warn) || tt.warn == "" && warn != "" {
		t.Errorf("warnings %q, want %q", warn, tt.warn)
	}
	if (len(resp.Message.Calls()) > 0) != (resp.Stop == tenon.StopToolUse) || resp.Message.By != "test/said" {
		t.Errorf("stop %s, by %s", resp.Stop, resp.Message.By)
	}
	if shown != resp.Message.Text() {
		t.Errorf("shown %q, text %q", shown, resp.Message.Text())
	}
	if m.Text() != tt.text {
		t.Error("the model's own message was changed")
	}
}

// FuzzMD12_Slips checks that recognized calls have known names and valid arguments, and that the remaining text is the
// beginning of the original text.
func FuzzMD12_Slips(f *testing.F) {
	f.Add("x\n<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}</tool_call>")
	f.Add(`[TOOL_CALLS][{"name":"get","arguments":{}},{"name":"ping","arguments":{}}]`)
	f.Add("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{}<｜tool▁call▁end｜>")
	f.Fuzz(func(t *testing.T, text string) {
		calls, before, err := Slips(text, tools)
		if err != nil && len(calls) > 0 || err == nil && len(calls) == 0 || !strings.HasPrefix(text, before) {
			t.Fatalf("%v, %d calls after %q", err, len(calls), before)
		}
		for _, c := range calls {
			if c.Name != "get" && c.Name != "ping" || !json.Valid(c.Args) || c.Args[0] != '{' {
				t.Errorf("%q %s", c.Name, c.Args)
			}
		}
	})
}
