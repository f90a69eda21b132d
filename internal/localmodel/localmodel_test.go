package localmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/view"
)

const asked = "What is the weather in London?"

// grammar restricts every reply of the model to a step of the text loop: the call of the only tool, or an
// answer.
const grammar = `root ::= ("Thought: " word{1,12} "\n")? (call | "Final Answer: " word{1,20})
word ::= [A-Za-z0-9°,.]+ " "
call ::= "Action: get_weather\nArgs: {\"location\": \"" [A-Z] [a-z]{1,12} "\"}\n"
`

// server starts llama.cpp with the model and returns its address.
func server(t *testing.T) string {
	dir := os.Getenv("TENON_LOCAL_MODEL")
	if dir == "" {
		t.Skip("no local model: make localmodel fetches and starts one")
	}
	port := clitest.FreePort(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "llama.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "llama-server"), "--model", filepath.Join(dir, "model.gguf"), "--host",
		"127.0.0.1", "--port", port,
		"--jinja", "--chat-template-file", filepath.Join(dir, "tools.jinja"), "--ctx-size", "8192", "--parallel", "1",
		"--threads", "2", "--seed", "1")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // returns an error because the process is killed, or crashed, which its state says
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = log.Close()
	})
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get("http://127.0.0.1:" + port + "/health")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == 200 {
				return "http://127.0.0.1:" + port + "/v1"
			}
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("llama.cpp's server ended: %v\n%s", cmd.ProcessState, text)
		default:
		}
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("llama.cpp's server does not start:\n%s", text)
	return ""
}

// weather is the tool of the tests.
type weather struct{ calls atomic.Int32 }

func (*weather) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Server: "weather", Remote: "get_weather", Description: "Current weather of a city",
		Annotations: tenon.Annotations{ReadOnly: &yes},
		Input: json.RawMessage(
			`{"type":"object","properties":{"location":{"type":"string","description":"City"}},` +
				`"required":["location"]}`)}}, nil
}

func (w *weather) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	w.calls.Add(1)
	return &tenon.Result{Content: []tenon.Content{tenon.Text("15°C, Cloudy")}}, nil
}

// ask asks the question, follows the stream and returns the report.
func ask(t *testing.T, base string, settings map[string]any, q host.Question) (view.Report, *weather, int) {
	t.Helper()
	entry := map[string]any{"provider": "llamacpp", "model": "smollm2", "base_url": base, "temperature": 0,
		"max_tokens": 96, "timeout": "5m", "retries": 0}
	for k, v := range settings {
		entry[k] = v
	}
	doc, err := json.Marshal(map[string]any{"models": map[string]any{"local": entry},
		"agents": map[string]any{"default": map[string]any{"model": "local",
			"instructions": map[string]any{"text": "You are a helpful assistant. Call the tool, then answer with " +
				"what it says."},
			"limits": map[string]any{"max_turns": 3, "run_timeout": "20m", "on_limit": "final_response"}}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("tenon.yaml", doc, config.Options{Dir: t.TempDir()}) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	w := &weather{}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(),
		Toolsets: map[string]tenon.Toolset{"weather": w}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	run, pieces := "", 0
	q.Text = asked
	start := time.Now()
	for e, err := range h.Stream(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		run = e.Run
		if e.Kind == engine.LiveDelta {
			pieces++
		}
	}
	r, err := h.Runs().Open(run).Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Runs().Open(run).Replay(t.Context()); err != nil {
		t.Errorf("the journal does not fold again: %v", err)
	}
	t.Log(told(r, time.Since(start)))
	return r, w, pieces
}

// told summarizes what the model did with the question.
func told(r view.Report, took time.Duration) string {
	right := func(ok bool) string {
		if ok {
			return "yes"
		}
		return "no"
	}
	called, reads := false, false
	for _, c := range r.ToolCalls {
		called = called || c.Success && strings.Contains(strings.ToLower(string(c.Args)), "london")
	}
	reads = strings.Contains(r.Answer, "15")
	return fmt.Sprintf(
		"called the tool rightly: %s, answered with its result: %s; %d turns, %d calls, %d tokens read, %d written, "+
			"%s; it said %q",
		right(called), right(reads), r.Turns, len(r.ToolCalls), r.Usage.Input, r.Usage.Output,
		took.Round(100*time.Millisecond), r.Answer)
}

// sound checks what must hold even if the model understands little.
func sound(t *testing.T, r view.Report, pieces int) {
	t.Helper()
	if r.Error != nil && r.Error.Code != tenon.CodeLimit {
		t.Errorf("%v", r.Error)
	}
	if r.Turns == 0 || r.Usage.Input == 0 || r.Usage.Output == 0 {
		t.Errorf("the server reported no usage: %+v", r)
	}
	if pieces < 2 {
		t.Errorf("%d pieces were streamed", pieces)
	}
	for _, c := range r.ToolCalls {
		if c.Outcome == view.CallOpen || c.Outcome == view.CallUnknown {
			t.Errorf("call %s ended as %s", c.Name, c.Outcome)
		}
	}
}

func TestLocalModel(t *testing.T) {
	base := server(t)
	t.Run("native", func(t *testing.T) {
		r, _, pieces := ask(t, base, nil, host.Question{})
		sound(t, r, pieces)
	})
	t.Run("react with a grammar", func(t *testing.T) {
		r, w, pieces := ask(t, base, map[string]any{"tool_mode": "react", "extra": map[string]any{"grammar": grammar}},
			host.Question{})
		sound(t, r, pieces)
		for _, c := range r.ToolCalls { // the grammar excludes invalid calls
			if c.Name != "get_weather" || c.Outcome != view.CallDone {
				t.Errorf("%s %s ended as %s: %s", c.Name, c.Args, c.Outcome, c.Error)
			}
		}
		if int(w.calls.Load()) != len(r.ToolCalls) {
			t.Errorf("%d calls arrived of %d", w.calls.Load(), len(r.ToolCalls))
		}
	})
	t.Run("an answer held to a schema", func(t *testing.T) {
		r, _, _ := ask(t, base, nil, host.Question{NoTools: true, Output: json.RawMessage(
			`{"type":"object","properties":{"city":{"type":"string","maxLength":20},"degrees":{"type":"integer",` +
				`"minimum":-50,"maximum":60}},"required":["city","degrees"],"additionalProperties":false}`)})
		var answer struct {
			City    string
			Degrees int
		}
		if r.Error != nil || r.Turns != 1 || json.Unmarshal(r.Output, &answer) != nil || answer.City == "" {
			t.Errorf("%d turns, %s, %v", r.Turns, r.Output, r.Error)
		}
	})
}
