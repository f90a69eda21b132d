package servers

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// TestListsHoldNoSecret checks that secrets are masked in the texts of a server about itself and its tools, as soon as
// they arrive.
func TestListsHoldNoSecret(t *testing.T) {
	var r tenon.Redactor
	r.Add(tenon.NewSecret("TOP-secret-123"))
	s := New("h", Config{Command: "x"}, Options{Mask: r.Text})
	defer s.Close() //nolint:errcheck // it never started
	var tools []tenon.Tool
	for _, raw := range []string{
		`{"name":"plain","inputSchema":{"type":"object"}}`,
		`{"name":"leak","title":"TOP-secret-123","description":"uses \u0054OP-secret-123","inputSchema":{"properties":{"a":{"description":"TOP-secret-123"}}}}`,
		`{"name":"TOP-secret-123","inputSchema":{}}`,
		`{"name":"last","inputSchema":{"type":"object"}}`,
	} {
		tool, err := mcp.ParseTool([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool)
	}
	plain := s.maskTools(tools[:1])
	if &plain[0] != &tools[0] {
		t.Error("SEC-G10: tools without a secret were copied")
	}
	var names []string
	for _, tool := range s.maskTools(tools) {
		names = append(names, tool.Remote)
		if all := tool.Title + tool.Description + string(tool.Input) + string(tool.Raw); strings.Contains(all, "OP-secret") {
			t.Errorf("SEC-G10: tool '%s' holds the secret: %s", tool.Remote, all)
		}
	}
	if got := strings.Join(names, " "); got != "plain leak last" {
		t.Errorf("SEC-G10: the tools are %s", got)
	}
	if got := strings.Join(s.maskedAll([]string{"h TOP-secret-123", "tools"}), ", "); got != "h ***, tools" {
		t.Errorf("SEC-G10: the server says %s", got)
	}
	prompts := maskOffers(s, "prompts", []mcp.Prompt{{Name: "a", Description: "TOP-secret-123", Raw: []byte(`{"name":"a","description":"TOP-secret-123"}`)},
		{Name: "TOP-secret-123", Raw: []byte(`{"name":"TOP-secret-123"}`)}}, s.maskPrompt)
	if len(prompts) != 1 || prompts[0].Description != "***" {
		t.Errorf("SEC-G10: prompts %+v", prompts)
	}
	resources := maskOffers(s, "resources", []mcp.Resource{{URI: "a:", Name: "TOP-secret-123", Raw: []byte(`{"uri":"a:","name":"TOP-secret-123"}`)},
		{URI: "a:TOP-secret-123", Raw: []byte(`{"uri":"a:TOP-secret-123"}`)}}, s.maskResource)
	if len(resources) != 1 || resources[0].Name != "***" {
		t.Errorf("SEC-G10: resources %+v", resources)
	}
}
