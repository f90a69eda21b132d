package model_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestToolsOfBedrock checks answers in which Bedrock used a tool that it runs itself. tenon does not execute such a use. It
// sends the use and its result back, and attributes sources in a separate block to the text before them.
func TestToolsOfBedrock(t *testing.T) {
	const use = `"toolUse":{"toolUseId":"t1","name":"nova_grounding","input":{"query":"x"},"type":"server_tool_use"}`
	const result = `"toolResult":{"status":"success","toolUseId":"t1","type":"nova_grounding_result","content":[{"text":"[HIDDEN]"}]}`
	const source = `{"location":{"web":{"domain":"a.example","url":"https://a.example/p"}}}`
	var stream bytes.Buffer
	for _, event := range []string{
		`{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"name":"nova_grounding","toolUseId":"t1","type":"server_tool_use"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"query\":"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"\"x\"}"}}}}`,
		`{"contentBlockStop":{"contentBlockIndex":0}}`,
		`{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolResult":{"status":"success","toolUseId":"t1","type":"nova_grounding_result"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"toolResult":[{"text":"[HIDDEN]"}]}}}`,
		`{"contentBlockStop":{"contentBlockIndex":1}}`,
		`{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"text":"It is 4."}}}`,
		`{"contentBlockStop":{"contentBlockIndex":2}}`,
		`{"contentBlockDelta":{"contentBlockIndex":3,"delta":{"citation":` + source + `}}}`,
		`{"contentBlockStop":{"contentBlockIndex":3}}`,
		`{"messageStop":{"stopReason":"end_turn"}}`,
	} {
		stream.Write(eventFrame([]byte(event)))
	}
	document := `{"output":{"message":{"role":"assistant","content":[{` + use + `},{` + result + `},{"text":"It is 4."},` +
		`{"citationsContent":{"citations":[` + source + `]}}]}},"stopReason":"end_turn"}`
	for name, r := range map[string]reply{
		"MD-6_stream":   {body: stream.String(), header: map[string]string{"Content-Type": "application/vnd.amazon.eventstream"}},
		"MD-6_document": {body: document, header: map[string]string{"Content-Type": "application/json"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{replies: []reply{r}}
			cfg := model.Config{Model: "amazon.nova-2-lite-v1:0", APIKey: tenon.NewSecret("k")}
			a, err := generate(t.Context(), adapter(t, "bedrock", cfg, p.env()), question)
			if err != nil {
				t.Fatal(err)
			}
			msg := a.resp.Message
			cited := msg.Citations()
			if a.resp.Stop != tenon.StopEnd || len(msg.Calls()) > 0 || msg.Text() != "It is 4." || len(a.calls) > 0 ||
				strings.Join(msg.Hosted(), "; ") != `nova_grounding {"query":"x"}` ||
				len(cited) != 1 || cited[0].URL != "https://a.example/p" || cited[0].End != len(msg.Text()) {
				t.Errorf("%+v, %+v", a.resp, cited)
			}
			msg = &tenon.Message{Role: msg.Role, Parts: msg.Parts} // of a model at any address
			history := []*tenon.Message{tenon.UserMessage("q"), msg, tenon.UserMessage("q")}
			back := sent(t, "bedrock", cfg, &tenon.Request{Tools: []tenon.Tool{{Name: "f"}}, Messages: history})
			if !strings.Contains(back, "{"+use+"}") || !strings.Contains(back, "{"+result+"}") {
				t.Errorf("it is sent back as %s", back)
			}
			if back := sent(t, "bedrock", cfg, &tenon.Request{Messages: history}); strings.Contains(back, "nova_grounding") {
				t.Errorf("without tools, it is sent back as %s", back)
			}
		})
	}
}
