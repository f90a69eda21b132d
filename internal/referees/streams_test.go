package referees

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const streams = "../../../shared/data/llm-streams"

// recorded is one streamed answer.
type recorded struct {
	name, wire string
	body       []byte
}

// RoundTrip answers any request with the recording.
func (r recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(r.body)), Request: req}, nil
}

var folders = []struct {
	path *regexp.Regexp
	wire string
}{
	{regexp.MustCompile(`^vercel-ai/anthropic/`), "anthropic"},
	{regexp.MustCompile(`^vercel-ai/(deepseek|groq|mistral|moonshotai|xai|openai/chat|openai-compatible)/`), "chat"},
	{regexp.MustCompile(`^vercel-ai/(openai|open-responses)/responses/`), "responses"},
	{regexp.MustCompile(`^vercel-ai/google/`), "gemini"},
}

// recordings reads all recorded streams of the four wire formats.
func recordings(t *testing.T) []recorded {
	t.Helper()
	if _, err := os.Stat(streams); err != nil {
		t.Skip("no recorded streams: the folder shared/data/llm-streams beside the repository is not there")
	}
	var all []recorded
	err := filepath.WalkDir(streams, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(streams, path)
		name = filepath.ToSlash(name)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "fantasy/") && strings.HasSuffix(name, ".yaml") {
			all = append(all, tapes(t, name, data)...)
		}
		for _, f := range folders {
			if f.path.MatchString(name) && strings.HasSuffix(name, ".chunks.txt") {
				all = append(all, chunks(name, f.wire, string(data))...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func tapes(t *testing.T, name string, data []byte) []recorded {
	var tape struct {
		Interactions []struct {
			Request  struct{ URL string }
			Response struct {
				Body    string
				Headers map[string][]string
			}
		}
	}
	if err := yaml.Unmarshal(data, &tape); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var out []recorded
	for i, x := range tape.Interactions {
		wire := ""
		switch u := x.Request.URL; {
		case strings.Contains(u, "streamGenerateContent"):
			wire = "gemini"
		case strings.HasSuffix(u, "/v1/messages"), strings.Contains(u, ":streamRawPredict"):
			wire = "anthropic"
		case strings.HasSuffix(u, "/chat/completions"), strings.Contains(u, "/chat/completions?"):
			wire = "chat"
		case strings.HasSuffix(u, "/responses"):
			wire = "responses"
		}
		if wire != "" && strings.HasPrefix(strings.Join(x.Response.Headers["Content-Type"], ""), "text/event-stream") {
			out = append(out, recorded{name + "#" + string(rune('0'+i)), wire, []byte(x.Response.Body)})
		}
	}
	return out
}

// chunks makes streams of a file with one payload in each line. Some files contain several answers.
func chunks(name, wire, data string) []recorded {
	var out []recorded
	var b bytes.Buffer
	flush := func() {
		if b.Len() == 0 {
			return
		}
		if wire == "chat" {
			b.WriteString("data: [DONE]\n\n")
		}
		out = append(out, recorded{name + "#" + string(rune('0'+len(out))), wire, bytes.Clone(b.Bytes())})
		b.Reset()
	}
	for _, line := range strings.Split(strings.TrimRight(data, "\n"), "\n") {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(line), &e) // a line that is not JSON has no type
		if wire == "anthropic" || wire == "responses" {
			b.WriteString("event: " + e.Type + "\n")
		}
		b.WriteString("data: " + line + "\n\n")
		switch e.Type {
		case "message_stop", "response.completed", "response.incomplete", "response.failed":
			flush()
		}
	}
	flush()
	return out
}
