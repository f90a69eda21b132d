package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tenonhq/tenon/internal/history"
)

// cmdProviders starts a server that implements all four wire formats of model providers, and sets a variable to its
// URL: providers NAME. It runs until the script ends. It checks each request against the rules of its provider. The
// answer is OK, or names the mistake.
func cmdProviders(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: providers NAME")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = history.Check(r.URL.String(), body)
		}
		if err != nil {
			http.Error(w, fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":%q}}`, err.Error()), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, okStream(r.URL.Path)) // who went away sees nothing
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}

// okStream returns a streamed answer with the text OK.
func okStream(path string) string {
	var events []string
	switch {
	case strings.HasSuffix(path, "/messages"):
		events = []string{`{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":11,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"OK"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`}
	case strings.HasSuffix(path, "/completions"):
		events = []string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":"OK"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"}
	case strings.HasSuffix(path, "/responses"):
		events = []string{`{"type":"response.created","response":{"id":"r","status":"in_progress"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`,
			`{"type":"response.output_text.delta","output_index":0,"delta":"OK"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"OK","annotations":[]}]}}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":11,"output_tokens":7}}}`}
	default:
		events = []string{`{"candidates":[{"content":{"role":"model","parts":[{"text":"OK"}]}}]}`,
			`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":7}}`}
	}
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}
