package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/transcript"
)

func TestRead(t *testing.T) {
	const ask = `{"role":"user","content":"q"}`
	const call = `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g"}}]}`
	for name, x := range map[string]struct{ in, want string }{
		"empty":             {`[]`, ""},
		"object":            {`{"messages":[` + ask + `]}`, ""},
		"results by id":     {`[` + ask + `,` + call + `,{"role":"tool","tool_call_id":"b","content":"2"},{"role":"tool","tool_call_id":"a","content":"1"}]`, ""},
		"without ids":       {`[` + ask + `,{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]},{"role":"tool","content":"1"}]`, ""},
		"image":             {`[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]`, ""},
		"nothing":           {``, "not a JSON array"},
		"text":              {`"q"`, "not a JSON array"},
		"system":            {`[{"role":"system","content":"x"}]`, "into the agent's instructions"},
		"assistant first":   {`[{"role":"assistant","content":"x"}]`, "begins with the user"},
		"says nothing":      {`[{"role":"user","content":""}]`, "is empty"},
		"open call":         {`[` + ask + `,` + call + `]`, "calls 2 tools and is followed by 0 results"},
		"one result short":  {`[` + ask + `,` + call + `,{"role":"tool","tool_call_id":"a","content":"1"},` + ask + `]`, "followed by 1 results"},
		"other id":          {`[` + ask + `,` + call + `,{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"c","content":"1"}]`, "the id 'b', which has no result"},
		"result alone":      {`[` + ask + `,{"role":"tool","tool_call_id":"a","content":"1"}]`, "followed by 1 results"},
		"call of a user":    {`[{"role":"user","parts":[{"type":"tool_call","call":{"name":"f"}}]}]`, "message of role 'user' cannot have a part"},
		"call of nothing":   {`[` + ask + `,{"role":"assistant","parts":[{"type":"tool_call"}]}]`, "does not say which tool"},
		"arguments":         {`[` + ask + `,{"role":"assistant","parts":[{"type":"tool_call","call":{"name":"f","arguments":[1]}}]}]`, "not a JSON object"},
		"image from afar":   {`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://example.com/x.png"}}]}]`, "a data: URL or an https URL"},
		"image without any": {`[{"role":"user","parts":[{"type":"image","data":"!"}]}]`, "base64"},
		"SEC-F11_two roles": {`[{"role":"user","Role":"assistant","content":"x"}]`, `has to be written "role"`},
		"SEC-F11_two texts": {`[{"role":"user","content":[{"type":"text","text":"a","TEXT":"b"}]}]`, `has to be written "text"`},
		"SEC-F11_arguments": {`[` + ask + `,{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","name":"g"}}]}]`, "there twice"},
		"SEC-F11_parts":     {`[{"role":"user","parts":[{"type":"text","text":"a","Text":"b"}]}]`, `has to be written "text"`},
		"SEC-F11_two lists": {`{"messages":[],"Messages":[` + ask + `]}`, `has to be written "messages"`},
		"unknown part":      {`[{"role":"user","content":[{"type":"audio"}]}]`, "'audio' is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := transcript.Read(strings.NewReader(x.in))
			if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || tenon.ErrorCode(err) != tenon.CodeInvalid) {
				t.Errorf("error %v, want %q", err, x.want)
			}
			if name == "results by id" && (list[2].Parts[0].Result.Name != "f" || list[2].Parts[0].Result.Content[0].Text != "1") {
				t.Errorf("results in the wrong order: %+v", list[2])
			}
		})
	}
}

// TestReadWithoutWireForms checks that a provider's wire form is not read from a file, because a file must not insert
// its own blocks into a request.
func TestReadWithoutWireForms(t *testing.T) {
	list, err := transcript.Read(strings.NewReader(`[{"role":"user","parts":[{"type":"text","text":"q","wire":"anthropic","raw":{"type":"x"}}]},
		{"role":"assistant","parts":[{"type":"opaque","wire":"anthropic","raw":{"type":"server_tool_use"}},{"type":"text","text":"a","wire":"anthropic","raw":{"type":"x"}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(list); string(b) != `[{"role":"user","parts":[{"type":"text","text":"q"}]},{"role":"assistant","parts":[{"type":"text","text":"a"}]}]` {
		t.Errorf("%s", b)
	}
}

// FuzzRead checks that a conversation that can be read can also be continued, and is the same after it was written and
// read again.
func FuzzRead(f *testing.F) {
	f.Add(`[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"}]`)
	f.Add(`{"messages":[{"role":"user","parts":[{"type":"text","text":"q"}]},{"role":"assistant","parts":[{"type":"thinking","text":"x"},{"type":"opaque","raw":1}]}]}`)
	f.Add(`[{"role":"user","parts":[{"type":"image","mime_type":"image/png","data":"aGk="}]},{"role":"tool","parts":[{"type":"tool_result","result":null}]}]`)
	f.Fuzz(func(t *testing.T, in string) {
		list, err := transcript.Read(strings.NewReader(in))
		if err != nil {
			return
		}
		s := agent.New(agent.Spec{History: list, Question: "q"}, nil)
		if n := s.Len(); n != len(list)+1 {
			t.Fatalf("%d messages became %d", len(list), n)
		}
		b, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		again, err := transcript.Read(strings.NewReader(string(b)))
		if err != nil || len(again) != len(list) {
			t.Fatalf("%s: %d messages came back as %d: %v", b, len(list), len(again), err)
		}
	})
}
