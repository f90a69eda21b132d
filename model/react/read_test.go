package react

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// household is the list of tools for testdata/replies.tsv.
var household = []tenon.Tool{
	{Name: "get_weather", Input: []byte(`{"type":"object","properties":{"location":{"type":"string"},"unit":{"type":"string"}},"required":["location"]}`)},
	{Name: "get", Input: []byte(`{"type":"object","properties":{"a":{"type":"integer"}}}`)},
	{Name: "list", Input: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
	{Name: "note", Input: []byte(`{"type":"object","properties":{"text":{"type":"string"},"draft":{"type":"boolean"},"tags":{"type":"array"}}}`)},
	{Name: "rm", Input: []byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	{Name: "lookup", Input: []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`)},
	{Name: "Lookup", Input: []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`)},
	{Name: "ping", Input: []byte(`{"type":"object","properties":{}}`)},
}

// row is a row of testdata/replies.tsv.
type row struct{ why, reply, want string }

func table(t testing.TB) []row {
	t.Helper()
	b, err := os.ReadFile("testdata/replies.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		cells := strings.Split(line, "\t")
		if i == 0 {
			continue
		}
		var r row
		if len(cells) != 3 || json.Unmarshal([]byte(cells[1]), &r.reply) != nil {
			t.Fatalf("line %d is not a row: %s", i+1, line)
		}
		r.why, r.want = cells[0], cells[2]
		rows = append(rows, r)
	}
	return rows
}

// outcome describes a response in the form of the table's column outcome.
func outcome(t *testing.T, resp *tenon.Response) string {
	t.Helper()
	calls := resp.Message.Calls()
	switch {
	case resp.Stop == tenon.StopBadCall && len(calls) == 0:
		for _, p := range resp.Message.Parts {
			var f failure
			if p.Wire == wire && p.Type == tenon.PartOpaque && json.Unmarshal(p.Raw, &f) == nil &&
				!strings.Contains(f.Hint, `"Action: NAME"`) {
				t.Errorf("the question does not say the form: %s", p.Raw)
			}
		}
		return "ask"
	case len(calls) == 1:
		for _, tool := range household {
			if tool.Name == calls[0].Name {
				return "call " + calls[0].Name + " " + string(calls[0].Arguments)
			}
		}
		return "unknown " + calls[0].Name
	}
	return "answer " + resp.Message.Text()
}

// TestReplies parses replies in other forms than the expected one, as a whole and in pieces. The streamed text must be
// the text of the step.
func TestReplies(t *testing.T) {
	rows := table(t)
	if len(rows) < 80 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Run("MD-11_"+strings.ReplaceAll(r.why, " ", "_"), func(t *testing.T) {
			for _, size := range []int{len(r.reply) + 1, 1, 3, 7} {
				var pieces []string
				for s := r.reply; s != ""; s = s[min(size, len(s)):] {
					pieces = append(pieces, s[:min(size, len(s))])
				}
				deltas := append(text(pieces...), ended(tenon.StopEnd, textPart(r.reply)))
				req := &tenon.Request{Tools: household, Messages: []*tenon.Message{tenon.UserMessage("?")}}
				var shown, call string
				for d, err := range Wrap(&canned{deltas: deltas}, p).Generate(t.Context(), req) {
					switch {
					case err != nil:
						t.Fatal(err)
					case d.Kind == tenon.DeltaText:
						shown += d.Text
					case d.Kind == tenon.DeltaCall:
						call = d.Text
					case d.Kind == tenon.DeltaReset:
						shown, call = "", ""
					}
					if d.Response == nil {
						continue
					}
					got := outcome(t, d.Response)
					if got != r.want {
						t.Errorf("in pieces of %d: %q\n got %s: %s\nwant %s", size, r.reply, got, d.Response.RawStop, r.want)
					}
					if shown != "" && shown != d.Response.Message.Text() {
						t.Errorf("in pieces of %d: shown as %q, the answer is %q", size, shown, d.Response.Message.Text())
					}
					if calls := d.Response.Message.Calls(); call != "" && (len(calls) != 1 || calls[0].Name != call) {
						t.Errorf("in pieces of %d: shown as a call of %s: %+v", size, call, calls)
					}
				}
			}
		})
	}
}

// TestRepairsAreReported checks that each correction of a reply is in the journal and the log, and that the next prompt
// shows the right form and the name of the most similar tool.
func TestRepairsAreReported(t *testing.T) {
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	respond := func(text string, stop tenon.StopReason) *tenon.Response {
		req := &tenon.Request{Tools: household, Messages: []*tenon.Message{tenon.UserMessage("?")}}
		var resp *tenon.Response
		for d, err := range Wrap(&canned{deltas: []tenon.Delta{ended(stop, textPart(text))}}, p).Generate(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			resp = d.Response
		}
		return resp
	}
	t.Run("MD-11_warning", func(t *testing.T) {
		resp := respond("Action: Get_Weather\nArgs: {'location': 'Oslo'", tenon.StopEnd)
		want := "the call of 'get_weather' was not in the form that was asked for: the tool's name was 'Get_Weather'; " +
			"quotation marks were replaced by \"; a closing bracket was added at the end; its arguments were read as " +
			`{"location":"Oslo"}`
		if len(resp.Warnings) != 1 || resp.Warnings[0] != want {
			t.Errorf("got %q\nwant %q", resp.Warnings, want)
		}
		if resp := respond("Action: get_weather\nArgs: {\"location\": \"Oslo\"}", tenon.StopEnd); len(resp.Warnings) > 0 {
			t.Errorf("%q", resp.Warnings)
		}
	})
	t.Run("MD-11_cut_off", func(t *testing.T) { // the text may end early because the reply was cut off
		resp := respond("Action: get_weather\nArgs: {'location': 'Oslo'", tenon.StopMaxTokens)
		if len(resp.Message.Calls()) > 0 || resp.Stop != tenon.StopMaxTokens {
			t.Errorf("%+v", resp)
		}
	})
	t.Run("MD-11_hint", func(t *testing.T) {
		resp := respond("{\"name\": \"get_wether\", \"arguments\": {\"location\": \"Oslo\"}}", tenon.StopEnd)
		next, err := p.Request(&tenon.Request{Tools: household, Messages: []*tenon.Message{tenon.UserMessage("?"), resp.Message}})
		if err != nil {
			t.Fatal(err)
		}
		prompt := next.Messages[0].Text()
		for _, want := range []string{"there is no tool 'get_wether'", `write "Action: NAME"`, "did you mean the tool 'get_weather'?"} {
			if !strings.Contains(prompt, want) {
				t.Errorf("the prompt has no %q:\n%s", want, prompt)
			}
		}
	})
}

// FuzzRead checks that no reply causes a panic, that the arguments of a call come from the reply, and that text in
// thinking tags is never a step.
func FuzzRead(f *testing.F) {
	for _, r := range table(f) {
		f.Add(r.reply)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read(text, household)
		switch {
		case err != nil && tenon.ErrorCode(err) != tenon.CodeProtocol, err == nil && !r.Final && !json.Valid(r.Args):
			t.Errorf("%q: %+v, %v", text, r, err)
		case err == nil && !r.Final && string(r.Args) != "{}" && !strings.Contains(text, "{") && !strings.ContainsAny(text, "(<"):
			t.Errorf("%q has no arguments: %s", text, r.Args)
		}
		if r, err := Read("<think>"+strings.ReplaceAll(text, "</think>", ""), household); err == nil {
			t.Errorf("a step in thinking tags: %+v", r)
		}
	})
}
