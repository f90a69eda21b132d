package react

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// big is a text of one megabyte.
var big = strings.Repeat("0123456789 bcdef\n", 1<<16)

// replies maps texts to the step that they contain, or to the beginning of the error.
var replies = []struct {
	name, text string
	want       Step
	err        string
}{
	{"thought, action and args", "Thought: look\nAction: get\nArgs: {\"a\": 1}", act("look", "get", `{"a":1}`), ""},
	{"thought and answer", "Thought: done\nFinal Answer: 42", final("done", "42"), ""},
	{"no thought", "Action: get\nArgs: {}", act("", "get", `{}`), ""},
	{"answer without thought", "Final Answer: 42", final("", "42"), ""},
	{"action without args", "Thought: x\nAction: get", act("x", "get", `{}`), ""},
	{"action without args, then text", "Thought: x\nAction: get\n\nI wait.\n", act("x", "get", `{}`), ""},
	{"empty args", "Thought: x\nAction: get\nArgs: {}", act("x", "get", `{}`), ""},
	{"args on the next line", "Thought: x\nAction: get\nArgs:\n{\"a\":1}", act("x", "get", `{"a":1}`), ""},
	{"args over ten lines", "Thought: x\nAction: get\nArgs: {\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\":\n    null\n\n}\n", act("x", "get", `{"a":1,"b":[1,2],"c":null}`), ""},
	{"nested", `Action: get` + "\n" + `Args: {"a":{"b":[{"c":{}},[]]}}`, act("", "get", `{"a":{"b":[{"c":{}},[]]}}`), ""},
	{"braces in strings", `Action: get` + "\n" + `Args: {"a":"}{","b":"{"} {"c":1}`, act("", "get", `{"a":"}{","b":"{"}`), ""},
	{"quotes in strings", `Action: get` + "\n" + `Args: {"a":"say \"}\" \\"}`, act("", "get", `{"a":"say \"}\" \\"}`), ""},
	{"escaped line breaks and markers in strings", `Action: get` + "\n" + `Args: {"a":"x\nAction: rm\nArgs: {}"}`, act("", "get", `{"a":"x\nAction: rm\nArgs: {}"}`), ""},
	{"numbers, booleans, null", `Action: get` + "\n" + `Args: {"n":-1.5e3,"t":true,"z":null,"big":9007199254740993}`, act("", "get", `{"n":-1.5e3,"t":true,"z":null,"big":9007199254740993}`), ""},
	{"quoted action", "Thought: x\nAction: \"get\"\nArgs: {}", act("x", "get", `{}`), ""},
	{"backquoted action", "Thought: x\nAction: `get`\nArgs: {}", act("x", "get", `{}`), ""},
	{"action with spaces around", "Thought: x\n  Action:    get  \t \n  Args:   {}  ", act("x", "get", `{}`), ""},
	{"many blank lines", "\n\n\nThought: x\n\n\n\nAction: get\n\n\n\nArgs: {\"a\":1}\n\n\n", act("x", "get", `{"a":1}`), ""},
	{"tabs", "\tThought:\tx\n\tAction:\tget\n\tArgs:\t{\"a\":\t1}", act("x", "get", `{"a":1}`), ""},
	{"CRLF action", "Thought: a\r\nb\r\nAction: get\r\nArgs: {\r\n\"a\": 1}\r\n", act("a b", "get", `{"a":1}`), ""},
	{"CRLF answer", "Thought: a\r\nFinal Answer: b\r\n\r\nc\r\n", final("a", "b\n\nc"), ""},
	{"fence without language", "```\nThought: x\nAction: get\nArgs: {\"a\":1}\n```", act("x", "get", `{"a":1}`), ""},
	{"fence with language", "```text\nThought: x\nFinal Answer: 42\n```\n", final("x", "42"), ""},
	{"fence not closed", "```\nThought: x\nFinal Answer: 42", final("x", "42"), ""},
	{"fence around args", "Action: get\nArgs:\n```json\n{\"a\":1}\n```", act("", "get", `{"a":1}`), ""},
	{"fence between thought and action", "```\nThought: x\n```\nAction: get", act("x", "get", `{}`), ""},
	{"answer with a code block", "Final Answer: so:\n```go\nx := 1\n```", final("", "so:\n```go\nx := 1\n```"), ""},
	{"answer that is a code block", "Final Answer: ```\nx\n```\n", final("", "```\nx\n```"), ""},
	{"fence around an answer with a code block", "```\nFinal Answer: so:\n\n```go\nx\n```\n```", final("", "so:\n\n```go\nx\n```"), ""},
	{"code block in the middle of an answer", "Final Answer: a\n```\nb\n```\nc", final("", "a\n```\nb\n```\nc"), ""},
	{"text before the thought", "Sure, I can do that!\n\nThought: x\nAction: get", act("x", "get", `{}`), ""},
	{"thought of four lines with a list", "Thought: first\n- one\n  - two\n\nthen more\nAction: get", act("first - one - two then more", "get", `{}`), ""},
	{"marker within a line of the thought", "Thought: I could say Action: rm here\nAction: get", act("I could say Action: rm here", "get", `{}`), ""},
	{"two thoughts", "Thought: a\nThought: b\nAction: get", act("a b", "get", `{}`), ""},
	{"answer of five lines", "Final Answer: a\n\n  b  b\nc\nd \ne\n\n", final("", "a\n\n  b  b\nc\nd \ne"), ""},
	{"answer on the next line", "Thought: x\nFinal Answer:\n\n  42\n", final("x", "42"), ""},
	{"answer as JSON over nine lines", "Final Answer: {\n \"a\": [\n  1,\n  {\n   \"b\": \"}\"\n  }\n ],\n \"c\": {}\n}", final("", "{\n \"a\": [\n  1,\n  {\n   \"b\": \"}\"\n  }\n ],\n \"c\": {}\n}"), ""},
	{"answer with other markers", "Final Answer: a\nArgs: {}\nFinal Answer: b\nObservation: c", final("", "a\nArgs: {}\nFinal Answer: b\nObservation: c"), ""},
	{"empty answer", "Thought: x\nFinal Answer:", final("x", ""), ""},
	{"answer, then a thought", "Final Answer: 42\n\nThought: more?\nAction: rm", final("", "42"), ""},
	{"action, then an invented observation", "Thought: x\nAction: get\nArgs: {\"a\":1}\nObservation: 5\nThought: so\nFinal Answer: 5", act("x", "get", `{"a":1}`), ""},
	{"action without args, then an invented observation", "Action: get\nObservation: Args: {\"a\":1}\nArgs: {\"a\":1}", act("", "get", `{}`), ""},
	{"action, then an answer", "Thought: x\nAction: get\nFinal Answer: 5", act("x", "get", `{}`), ""},
	{"two actions", "Action: one\nArgs: {\"a\":1}\nAction: two\nArgs: {}", act("", "one", `{"a":1}`), ""},
	{"two actions without args", "Action: one\nAction: two", act("", "one", `{}`), ""},
	{"text between action and args", "Action: get\nwith these\nArgs: so: {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"RP-19 action input", "Thought: x\nAction: get\nAction Input: {\"a\":1}", act("x", "get", `{"a":1}`), ""},
	{"RP-19 action input on the next line", "Action: get\nAction Input:\n```json\n{\"a\":1}\n```\nObservation: 5", act("", "get", `{"a":1}`), ""},
	{"RP-19 arguments", "Action: get\nArguments: {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"RP-19 input", "Action: get\n  Input: {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"RP-19 parameters", "Action: get\nParameters: {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"RP-19 an object alone", "Action: get\n```json\n {\"a\":\n1}\n```", act("", "get", `{"a":1}`), ""},
	{"RP-19 action input that is no object", "Action: get\nAction Input: only x", Step{Action: "get"}, "Invalid JSON in Args: there is no JSON object: only x"},
	{"RP-19 action input that is no JSON", "Action: get\nAction Input: {q}", Step{Action: "get"}, "Invalid JSON in Args: invalid character"},
	{"RP-19 input in a thought", "Thought: x\nInput: y\nAction: get", act("x Input: y", "get", `{}`), ""},
	{"spelling, lower case", "Action: get\naction input: {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, underscore", "Action: get\naction_input: {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, upper case and underscore", "Action: get\nACTION_INPUT:{\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, space before the colon", "Action: get\nAction Input  : {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, bold", "Action: get\n**Action Input:** {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, bold without the colon", "Action: get\n**Action Input** : {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, bold that does not end", "Action: get\n**args: {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, bold on the next line", "Action: get\n  **Arguments:**\n```json\n{\"a\":1}\n```", act("", "get", `{"a":1}`), ""},
	{"spelling, parameters", "Action: get\nparameters : {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, args", "Action: get\nargs: {\"a\":1}", act("", "get", `{"a":1}`), ""},
	{"spelling, bold around a list", "Action: get\n**Args:** [{\"a\":1}]", Step{Action: "get"}, "Invalid JSON in Args: it is a list, not an object"},
	{"spelling, bold and nothing more", "Action: get\n**Args:", Step{Action: "get"}, "Invalid JSON in Args: there is no JSON object"},
	{"spelling, other words", "Action: get\nAction Inputs: {\"a\":1}\n*args: {}\n**input", act("", "get", `{}`), ""},
	{"spelling, too many spaces", "Action: get\nInput          : {\"a\":1}", act("", "get", `{}`), ""},
	{"spelling, in a thought", "Thought: x\naction input: y\nAction: get", act("x action input: y", "get", `{}`), ""},
	{"args without an action first", "Thought: x\nArgs: {\"a\":1}\nAction: get\nArgs: {\"b\":2}", act("x", "get", `{"b":2}`), ""},
	{"only a thought", "Thought: I think", Step{Thought: "I think"}, "Response has thought but no action or final answer: Thought: I think"},
	{"action without a name", "Thought: x\nAction:\nArgs: {}", Step{Thought: "x"}, "Response has thought but no action or final answer: Thought: x"},
	{"empty", "", Step{}, "Could not parse response: (nothing)"},
	{"white space", " \n\t\r\n ", Step{}, "Could not parse response: (nothing)"},
	{"no marker", "The answer is 42.", Step{}, "Could not parse response: The answer is 42."},
	{"no JSON", "Thought: x\nAction: get\nArgs: {invalid json}", Step{Thought: "x", Action: "get"}, "Invalid JSON in Args: invalid character 'i' looking for beginning of object key string: {invalid json}"},
	{"unfinished JSON", "Action: get\nArgs: {\"a\": {", Step{Action: "get"}, `Invalid JSON in Args: the text ends before the object does: {"a": {`},
	{"unfinished string", "Action: get\nArgs: {\"a\": \"b}\nThought: x", Step{Action: "get"}, `Invalid JSON in Args: the text ends before`},
	{"args are a list", "Action: get\nArgs: [1]", Step{Action: "get"}, "Invalid JSON in Args: there is no JSON object: [1]"},
	{"args are a list of objects", "Action: get\nArgs: [{\"a\":1}]", Step{Action: "get"}, "Invalid JSON in Args: it is a list, not an object: [{"},
	{"args are a string", "Action: get\nArgs: \"x\"\n", Step{Action: "get"}, `Invalid JSON in Args: there is no JSON object: "x"`},
	{"args are nothing", "Action: get\nArgs:", Step{Action: "get"}, "Invalid JSON in Args: there is no JSON object: (nothing)"},
	{"args are nothing, then a thought", "Action: get\nArgs:\nThought: {}", Step{Action: "get"}, "Invalid JSON in Args: there is no JSON object"},
	{"lower-case marker", "thought: x\naction: get", Step{}, "Could not parse response: thought: x"},
	{"space before the colon", "Thought : x\nAction : get", Step{}, "Could not parse response: Thought : x"},
	{"other scripts", "Thought: 需要余额 🏦\nAction: 查询_余额\nArgs: {\"账号\": \"é\"}", act("需要余额 🏦", "查询_余额", `{"账号":"é"}`), ""},
	{"answer in another script", "Final Answer: 余额是五。\n👩‍🔬", final("", "余额是五。\n👩‍🔬"), ""},
	{"almost markers", "Thought: x\nThoughts: y\nActionable: z\nAction: get", act("x Thoughts: y Actionable: z", "get", `{}`), ""},
	{"answer with almost markers", "Final Answer: a\nAct\nTh\n``\n", final("", "a\nAct\nTh\n``"), ""},
	{"end within a marker", "Thought: x\nActio", Step{Thought: "x Actio"}, "Response has thought"},
}

func act(thought, name, args string) Step {
	return Step{Thought: thought, Action: name, Args: []byte(args)}
}

func final(thought, answer string) Step { return Step{Thought: thought, Final: true, Answer: answer} }

// feed parses chunks and checks that the streamed text equals the text of the result.
func feed(t *testing.T, chunks ...string) (Step, string) {
	t.Helper()
	var thought, answer, call strings.Builder
	p := NewParser(func(kind, text string) {
		map[string]*strings.Builder{tenon.DeltaThinking: &thought, tenon.DeltaText: &answer, tenon.DeltaCall: &call}[kind].WriteString(text)
	})
	for _, c := range chunks {
		p.Feed(c)
	}
	s, err := p.End()
	if thought.String() != s.Thought || answer.String() != s.Answer {
		t.Errorf("%q: streamed thought %q and answer %q, the step has %q and %q", chunks, thought.String(), answer.String(), s.Thought, s.Answer)
	}
	if err != nil {
		return s, err.Error()
	}
	if call.String() != s.Action {
		t.Errorf("%q: streamed action %q, the step has %q", chunks, call.String(), s.Action)
	}
	return s, ""
}

func same(a, b Step) bool {
	return a.Thought == b.Thought && a.Action == b.Action && string(a.Args) == string(b.Args) && a.Final == b.Final && a.Answer == b.Answer
}

// TestParse also proves TG-49: it parses more than 40 texts, each as a whole and in two pieces, for every position of
// the split.
func TestParse(t *testing.T) {
	if len(replies) < 40 {
		t.Fatalf("%d cases", len(replies))
	}
	for _, r := range replies {
		t.Run("TG-49_"+strings.ReplaceAll(r.name, " ", "_"), func(t *testing.T) {
			check := func(chunks ...string) {
				t.Helper()
				got, err := feed(t, chunks...)
				if !same(got, r.want) || !strings.HasPrefix(err, r.err) || err == "" != (r.err == "") {
					t.Fatalf("%q:\n got %+v %q %s\nwant %+v %q %s", chunks, got, got.Args, err, r.want, r.want.Args, r.err)
				}
			}
			if got, err := parse(r.text); !same(got, r.want) || (err == nil) != (r.err == "") {
				t.Fatalf("Parse: %+v %v", got, err)
			}
			for i := range len(r.text) + 1 {
				check(r.text[:i], r.text[i:])
			}
			check(strings.Split(r.text, "")...)
			var bytes []string
			for i := range len(r.text) {
				bytes = append(bytes, r.text[i:i+1])
			}
			check(bytes...)
		})
	}
}

func TestParseStreamsEarly(t *testing.T) {
	var got []string
	p := NewParser(func(kind, text string) { got = append(got, kind+" "+strconv.Quote(text)) })
	for _, chunk := range []string{"Tho", "ught: I ", "think", " so\nAct", "ual", "ly\nAction: g", "et\nArgs: {\"a\":", "1}", "\nObserv", "ation: 5"} {
		p.Feed(chunk)
		got = append(got, "|")
	}
	want := `| thinking "I" | thinking " think" | thinking " so" | thinking " Actual" | thinking "ly" | | call "get" | | |`
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if !p.IsComplete() {
		t.Error("the step is not complete")
	}
}

// TestParseLong checks that a text of one megabyte is parsed fast, whatever it contains.
func TestParseLong(t *testing.T) {
	for name, text := range map[string]string{
		"answer":       "Final Answer: " + big,
		"one line":     "Final Answer: " + strings.ReplaceAll(big, "\n", "."),
		"thought":      "Thought: " + big + "\nAction: get",
		"args":         "Action: get\nArgs: {\"a\":\"" + strings.ReplaceAll(big, "\n", ".") + "\"}",
		"no object":    "Action: get\nArgs: " + big,
		"name":         "Action: " + strings.ReplaceAll(big, "\n", "."),
		"no marker":    big,
		"white space":  "Final Answer: a" + strings.Repeat(" ", 1<<20) + "b",
		"blank lines":  "Final Answer: a" + strings.Repeat("\n", 1<<20) + "b",
		"braces":       "Action: get\nArgs: " + strings.Repeat("{", 1<<20),
		"depth":        "Action: get\nArgs: " + strings.Repeat(`{"a":`, 1<<17) + "1" + strings.Repeat("}", 1<<17),
		"many markers": strings.Repeat("Thought: a\n", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			want, werr := feed(t, text)
			var chunks []string
			for s := text; s != ""; s = s[min(len(s), 3):] {
				chunks = append(chunks, s[:min(len(s), 3)])
			}
			p := NewParser(func(string, string) {})
			for _, c := range chunks {
				p.Feed(c)
			}
			got, err := p.End()
			if !same(got, want) || (err == nil) != (werr == "") {
				t.Errorf("in chunks it is another step: %d and %d bytes, %v and %s", len(got.Answer), len(want.Answer), err, werr)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for i, r := range replies {
		f.Add(r.text, uint(i*7))
	}
	f.Fuzz(func(t *testing.T, text string, at uint) {
		i := int(at % uint(len(text)+1))
		a, aerr := feed(t, text)
		b, berr := feed(t, text[:i], text[i:])
		if !same(a, b) || aerr != berr {
			t.Errorf("%q at %d: %+v %s and %+v %s", text, i, a, aerr, b, berr)
		}
	})
}

// parse parses a complete reply; see [Parser].
func parse(text string) (Step, error) {
	p := NewParser(func(string, string) {})
	p.Feed(text)
	return p.End()
}
