package cli

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon/mcp"
)

// TestTabWhileChatRecords checks that a completion of chat --record is recorded, and that chat --replay does not need
// it.
func TestTabWhileChatRecords(t *testing.T) {
	s, err := mcp.NewServer(mcp.ServerConfig{Name: "s", Completions: true,
		Offers: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			switch method {
			case "prompts/list":
				return json.RawMessage(`{"prompts":[{"name":"p","arguments":[{"name":"day"}]}]}`), nil
			case "completion/complete":
				return json.RawMessage(`{"completion":{"values":["monday"]}}`), nil
			}
			return nil, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
	defer web.Close()
	a, _ := simulated(t, "servers: {s: {url: '"+web.URL+"'}}\n")
	for _, c := range []cassette{{record: "rec"}, {replay: "rec"}} {
		h, err := a.open(t.Context(), opening{connect: true, cassette: c})
		if err != nil {
			t.Fatal(err)
		}
		got := a.completer(h, c.replay != "")(t.Context(), "/s:p day=mo")
		if c.record != "" && got.text != "day=monday " {
			t.Errorf("Tab gives %+v", got)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	names, err := filepath.Glob(filepath.Join("rec", "mcp", "s", "*.json"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil || !json.Valid(data) {
		t.Errorf("%s, %v", data, err)
	}
}
