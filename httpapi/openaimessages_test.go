package httpapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// seeing is a model that records its last request and answers with a JSON object.
type seeing struct {
	mu  sync.Mutex
	req *tenon.Request
}

func (*seeing) Name() string { return "own/seeing" }

func (m *seeing) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.req = req
	return func(yield func(tenon.Delta, error) bool) {
		yield(tenon.Delta{Response: &tenon.Response{Stop: tenon.StopEnd, Message: &tenon.Message{
			Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: `{"a":1}`}}}}}, nil)
	}
}

var _ tenon.Model = (*seeing)(nil)

// pngData is the beginning of a picture, in base64.
var pngData = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n0000"))

// TestCompletionContent checks that pictures, files and settings of a request reach the model, or are refused with a
// reason.
func TestCompletionContent(t *testing.T) {
	fetch := func(_ context.Context, url string) ([]byte, error) {
		if url != "https://pictures.example.com/a.png" {
			return nil, tenon.Errorf(tenon.CodeDenied, "not for you")
		}
		return base64.StdEncoding.DecodeString(pngData)
	}
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4 x"))
	user := func(parts string) string {
		return `"messages":[{"role":"user","content":[{"type":"text","text":"Look. "},` + parts + `]}]`
	}
	for name, tt := range map[string]struct {
		body, want string // part of the last message, or of the error
		status     int
	}{
		"RP-4_data_url": {user(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pngData + `","detail":"low"}}`),
			`"type":"image","mime_type":"image/png"`, 200},
		"RP-4_https": {user(`{"type":"image_url","image_url":{"url":"https://pictures.example.com/a.png"}}`),
			`"type":"image","mime_type":"image/png"`, 200},
		"RP-4_history": {`"messages":[{"role":"user","content":[{"type":"text","text":"See"},{"type":"file","file":{"filename":"a.pdf","file_data":"` +
			pdf + `"}}]},{"role":"assistant","content":"Yes."},{"role":"user","content":"Look. "}]`, "Look. ", 200},
		"RP-4_pdf": {user(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}`),
			`"mime_type":"application/pdf"`, 200},
		"RP-4_text_file": {user(`{"type":"file","file":{"filename":"../a.txt","file_data":"aGVsbG8="}}`), `File a.txt:\n\nhello`, 200},
		"MD-7_file_id":   {user(`{"type":"file","file":{"file_id":"file-1","filename":"a.pdf"}}`), `"text":"a.pdf","uri":"file-id:file-1"`, 200},
		"RP-4_no_file":   {user(`{"type":"file","file":{}}`), "needs file_data", 400},
		"RP-4_base64":    {user(`{"type":"file","file":{"file_data":"?"}}`), "not in base64", 400},
		"RP-4_no_image":  {user(`{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}`), "it is no picture", 400},
		"RP-4_http":      {user(`{"type":"image_url","image_url":{"url":"http://pictures.example.com/a.png"}}`), "must be a data: or https: URL", 400},
		"RP-4_file_url":  {user(`{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}`), "must be a data: or https: URL", 400},
		"RP-4_refused":   {user(`{"type":"image_url","image_url":{"url":"https://secret.example.com/a.png"}}`), "not for you", 400},
		"RP-4_part":      {user(`{"type":"video","video":{}}`), "type 'video' is not supported", 400},
		"RP-4_system":    {`"messages":[{"role":"system","content":[{"type":"image_url"}]},{"role":"user","content":"x"}]`, "only text is", 400},
	} {
		t.Run(name, func(t *testing.T) {
			m := &seeing{}
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"own": m}, Model: "own", Fetch: fetch})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close() //nolint:errcheck // nothing is read any more
			s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
			defer s.Close()
			status, _, text := send(t, s.URL+"/v1/chat/completions", `{"model":"default",`+tt.body+"}")
			if status != tt.status {
				t.Fatalf("%d %s", status, text)
			}
			if status == 200 {
				b, err := json.Marshal(m.req.Messages[len(m.req.Messages)-1])
				if err != nil || !strings.Contains(string(b), "Look. ") {
					t.Errorf("%s, %v", b, err)
				}
				text = string(b)
			}
			if !strings.Contains(text, tt.want) {
				t.Errorf("%q is not in %s", tt.want, text)
			}
			if name == "RP-4_history" && m.req.Messages[0].Parts[1].MimeType != "application/pdf" {
				t.Errorf("%+v", m.req.Messages[0])
			}
		})
	}
	t.Run("RP-4_private", func(t *testing.T) {
		h := knocking(t, used)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
		defer s.Close()
		for _, url := range []string{"https://127.0.0.1:1/a.png", "https://localhost:1/a.png", "https://[::1]:1/", "https://169.254.169.254/"} {
			status, _, text := send(t, s.URL+"/v1/chat/completions",
				`{"model":"default",`+user(`{"type":"image_url","image_url":{"url":"`+url+`"}}`)+"}")
			if status != 400 || !strings.Contains(text, "only public addresses") {
				t.Errorf("%s: %d %s", url, status, text)
			}
		}
	})
}

// TestCompletionSettings checks that the settings of a request reach the model.
func TestCompletionSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		body  string
		check func(r *tenon.Request) bool
	}{
		"RP-4_stop":        {`"stop":"END"`, func(r *tenon.Request) bool { return len(r.Stop) == 1 && r.Stop[0] == "END" }},
		"RP-4_stops":       {`"stop":["a","b"]`, func(r *tenon.Request) bool { return len(r.Stop) == 2 }},
		"RP-4_effort":      {`"reasoning_effort":"low"`, func(r *tenon.Request) bool { return r.Effort == "low" }},
		"RP-4_seed":        {`"seed":7,"presence_penalty":1,"frequency_penalty":0`, func(r *tenon.Request) bool { return *r.Seed == 7 && *r.Presence == 1 && r.Frequency == nil }},
		"RP-4_serial":      {`"parallel_tool_calls":false`, func(r *tenon.Request) bool { return r.Serial }},
		"RP-4_json_object": {`"response_format":{"type":"json_object"}`, func(r *tenon.Request) bool { return string(r.Output) == `{"type":"object"}` }},
		"RP-4_json_schema": {`"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"object","required":["a"]}}}`,
			func(r *tenon.Request) bool { return strings.Contains(string(r.Output), `"required":["a"]`) }},
		"RP-4_tool_choice": {`"tool_choice":{"type":"function","function":{"name":"sensor"}},` + clientTools,
			func(r *tenon.Request) bool { return r.ToolChoice == "sensor" && r.Tools[0].Name == "sensor" }},
		"RP-4_required": {`"tool_choice":"required",` + clientTools, func(r *tenon.Request) bool { return r.ToolChoice == "any" }},
		"MD-9_allowed": {`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"sensor"}}]}},` + clientTools,
			func(r *tenon.Request) bool { return r.ToolChoice == "auto:sensor" }},
		"MD-9_logprobs":  {`"logprobs":true,"top_logprobs":2`, func(r *tenon.Request) bool { return *r.Logprobs == 2 }},
		"MD-9_verbosity": {`"verbosity":"low"`, func(r *tenon.Request) bool { return r.Verbosity == "low" }},
		"RP-4_none":      {`"tool_choice":"none",` + clientTools, func(r *tenon.Request) bool { return r.ToolChoice == "none" }},
	} {
		t.Run(name, func(t *testing.T) {
			m := &seeing{}
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"own": m}, Model: "own"})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close() //nolint:errcheck // nothing is read any more
			s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
			defer s.Close()
			status, a, _ := completes(t, s.URL, `{"model":"default",`+tt.body+`,"messages":[{"role":"user","content":"x"}]}`)
			if status != 200 || *a.Choices[0].Message.Content != `{"a":1}` || !tt.check(m.req) {
				t.Errorf("%d %+v; the model got %+v", status, a, m.req)
			}
		})
	}
	t.Run("RP-4_misfit", func(t *testing.T) {
		h := knocking(t, "steps:\n  - {text: not JSON, repeat: forever}\n")
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
		defer s.Close()
		for _, stream := range []string{"false", "true"} {
			_, _, text := send(t, s.URL+"/v1/chat/completions", `{"model":"default","stream":`+stream+
				`,"response_format":{"type":"json_object"},"messages":[{"role":"user","content":"x"}]}`)
			if strings.Contains(text, `"content":"not JSON"`) || !strings.Contains(text, `"error":{`) {
				t.Errorf("%s", text)
			}
		}
	})
}
