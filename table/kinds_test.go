package table

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKinds writes and reads tools of tenon's kinds with all kinds of characters.
func TestKinds(t *testing.T) {
	request := Request{Method: "POST", URL: "https://example.com/q?a={{ args.a }}&b=1#x", Headers: map[string]string{"X-A": "a: b & c=d", "X-B": ""}, Body: "ä;%00\n{{ args.b }}"}
	prompt := PromptText{Template: "Sum up {{ args.text }}; 100 %+#&", Model: "m/x"}
	for _, tt := range []struct {
		name string
		tool Tool
		want Address
	}{
		{"request", Tool{Kind: HTTP, Server: request.URI()}, Address{Request: &request}},
		{"prompt", Tool{Kind: Prompt, Server: prompt.URI()}, Address{Prompt: &prompt}},
		{"agent", Tool{Kind: Agent, Server: AgentURI("a/b c#d")}, Address{Agent: "a/b c#d"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.tool.Address()
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
			read := Tool{Kind: tt.tool.Kind}
			read.readURI(tt.tool.uri(true))
			if diff := cmp.Diff(tt.tool.Server, read.Server); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, tool := range map[string]Tool{
		"a request of another kind": {Kind: HTTP, Server: prompt.URI()},
		"a request without url":     {Kind: HTTP, Server: "tenon+http:?method=GET"},
		"a header without value":    {Kind: HTTP, Server: "tenon+http:?url=x&header=nothing"},
		"a query that is none":      {Kind: HTTP, Server: "tenon+http:?url=%zz"},
		"a prompt without template": {Kind: Prompt, Server: "tenon+prompt:?model=m"},
		"an agent without name":     {Kind: Agent, Server: "tenon+agent:"},
		"an MCP tool of the scheme": {Kind: MCP, Server: request.URI()},
		"nothing":                   {Kind: Agent},
	} {
		t.Run(name, func(t *testing.T) {
			if a, err := tool.Address(); err == nil {
				t.Errorf("it is taken for %+v", a)
			}
		})
	}
}
