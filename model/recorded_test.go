package model_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// recorded is a stream that another project has recorded, read from ../shared. See section 11 of the reference about
// models.
type recorded struct {
	name     string
	wire     string   // "anthropic", "chat", "responses" or "gemini"
	events   []string // the payloads, including [DONE]
	body     []byte   // the bytes on the wire
	next     []byte   // the request that followed in the recording, or nil
	handMade bool     // made or changed by its authors, so it is no evidence of real behaviour
}

const sharedStreams = "../../shared/data/llm-streams"

// recordings reads all streams.
func recordings(t *testing.T) []recorded {
	t.Helper()
	if _, err := os.Stat(sharedStreams); err != nil {
		t.Skip("no recorded streams: the folder shared/data/llm-streams beside the repository is not there")
	}
	var all []recorded
	err := filepath.WalkDir(sharedStreams, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(sharedStreams, path)
		name = filepath.ToSlash(name)
		switch {
		case strings.HasSuffix(name, ".yaml") && strings.HasPrefix(name, "fantasy/"):
			all = append(all, cassette(t, name, path)...)
		case strings.HasSuffix(name, ".chunks.txt"), strings.HasSuffix(name, ".sse"):
			all = append(all, chunks(t, name, path)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	return all
}

func cassette(t *testing.T, name, path string) []recorded {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The binary frames of Bedrock are not needed here.
	if bytes.Contains(data, []byte("vnd.amazon.eventstream")) || !bytes.Contains(data, []byte("text/event-stream")) {
		return nil
	}
	var tape struct {
		Interactions []struct {
			Request struct {
				URL  string `yaml:"url"`
				Body string `yaml:"body"`
			} `yaml:"request"`
			Response struct {
				Body    string              `yaml:"body"`
				Headers map[string][]string `yaml:"headers"`
			} `yaml:"response"`
		} `yaml:"interactions"`
	}
	if err := yaml.Unmarshal(data, &tape); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var out []recorded
	for i, x := range tape.Interactions {
		wire := ""
		switch url := x.Request.URL; {
		case strings.Contains(url, "/v1/messages"), strings.Contains(url, "streamRawPredict"):
			wire = "anthropic"
		case strings.Contains(url, "/chat/completions"):
			wire = "chat"
		case strings.HasSuffix(url, "/responses"), strings.Contains(url, "/responses?"):
			wire = "responses"
		case strings.Contains(url, ":streamGenerateContent"):
			wire = "gemini"
		}
		kind := strings.Join(x.Response.Headers["Content-Type"], "")
		if wire == "" || !strings.HasPrefix(kind, "text/event-stream") {
			continue
		}
		r := recorded{name: name + "#" + string(rune('0'+i)), wire: wire, body: []byte(x.Response.Body)}
		r.events = payloads(x.Response.Body)
		if i+1 < len(tape.Interactions) {
			r.next = []byte(tape.Interactions[i+1].Request.Body)
		}
		out = append(out, r)
	}
	return out
}

// payloads returns the payloads of the events in a complete stream.
func payloads(body string) []string {
	var out []string
	for _, line := range strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
		if p, ok := strings.CutPrefix(line, "data:"); ok {
			out = append(out, strings.TrimPrefix(p, " "))
		}
	}
	return out
}

var chatFolder = regexp.MustCompile(`^vercel-ai/(deepseek|groq|mistral|moonshotai|xai|openai/chat|openai-compatible)/`)

var responsesFolder = regexp.MustCompile(`^vercel-ai/(openai|open-responses)/responses/`)

// handMade contains the ids of recordings that their authors wrote or changed.
var handMade = regexp.MustCompile(`msg_01RefusalStream|msg_01FallbackStream|msg_advisor_stop_reasons|msg_dup|msg_first|msg_sanitized|chatcmpl-stream|resp_custom_tool_test_001|resp_delete_001|resp_parallel|resp_0f1a2b3c|capture-id-`)

func chunks(t testing.TB, name, path string) []recorded {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	base := recorded{handMade: handMade.Match(data)}
	switch {
	case strings.HasPrefix(name, "vercel-ai/anthropic/"):
		base.wire = "anthropic"
	case chatFolder.MatchString(name):
		base.wire = "chat"
	case responsesFolder.MatchString(name):
		base.wire = "responses"
	case strings.HasPrefix(name, "vercel-ai/google/"):
		base.wire = "gemini"
	default:
		return nil
	}
	if strings.HasSuffix(name, ".sse") {
		base.name, base.body, base.events = name, data, payloads(string(data))
		return []recorded{base}
	}
	var out []recorded
	var events []string
	flush := func() {
		if len(events) == 0 {
			return
		}
		r := base
		r.name, r.events = name+"#"+string(rune('0'+len(out))), events
		if r.wire == "chat" {
			r.events = append(r.events, "[DONE]")
		}
		r.body = frame(r.wire, r.events)
		out = append(out, r)
		events = nil
	}
	for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		events = append(events, line)
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(line), &e) // a line that is not JSON does not end a stream
		switch e.Type {
		case "message_stop", "response.completed", "response.incomplete", "response.failed":
			flush()
		}
	}
	flush()
	return out
}

// frame encodes payloads as an event stream.
func frame(wire string, events []string) []byte {
	var b bytes.Buffer
	for _, e := range events {
		if wire == "anthropic" || wire == "responses" {
			var typ struct{ Type string }
			_ = json.Unmarshal([]byte(e), &typ) // a payload that is not JSON has no type
			b.WriteString("event: " + typ.Type + "\n")
		}
		b.WriteString("data: " + e + "\n\n")
	}
	return b.Bytes()
}
