package kill

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
)

// heldModel is a model whose answers the test holds back. The last message of a person selects the answer.
type heldModel struct {
	heard   chan struct{} // closed after a follower has received the beginning of the answer to "talk"
	asked   chan struct{} // receives a value for each request of "wait", which never gets an answer
	working chan struct{} // closed when the model works again, for "break"
}

func newHeldModel(t *testing.T) (m *heldModel, url string) {
	t.Helper()
	m = &heldModel{heard: make(chan struct{}), asked: make(chan struct{}, 16), working: make(chan struct{})}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return m, s.URL
}

func (m *heldModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q struct {
		Messages []struct{ Role, Content string }
	}
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var said []string
	for _, message := range q.Messages {
		if message.Role == "user" {
			said = append(said, message.Content)
		}
	}
	say := func(words string, calls ...any) {
		delta := map[string]any{"role": "assistant", "content": words, "tool_calls": calls}
		// A failed write means that the client has gone.
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text(map[string]any{"choices": []any{
			map[string]any{"index": 0, "delta": delta}}}))
		_ = http.NewResponseController(w).Flush()
	}
	end := func(reason string) {
		_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", text(map[string]any{"choices": []any{
			map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}}}))
	}
	all := strings.Join(said, " ")
	if strings.HasPrefix(all, "break") {
		select {
		case <-m.working:
		default:
			http.Error(w, `{"error":{"type":"invalid_request_error","message":"out of order"}}`, http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch {
	case all == "talk":
		say("live text.") // the last letter would be held back: the token of tenon serve, which is masked, begins with a t
		select {
		case <-m.heard:
		case <-r.Context().Done():
			return
		}
		say(" two", map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]any{
			"name": askedTool, "arguments": `{"a":20,"b":22}`}})
		end("tool_calls")
	case strings.HasPrefix(all, "wait"):
		say("let me think")
		m.asked <- struct{}{}
		<-r.Context().Done()
	default:
		say("answered: " + all)
		end("stop")
	}
}

// heard follows a run over the HTTP API of a tenon serve and returns after a delta event with the wanted text has
// arrived.
func (f *field) heard(t *testing.T, run, at, want string) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(f.Dir, ".tenon", "serve.token"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), clitest.Patience)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/api/v1/runs/"+run+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		got.WriteString(lines.Text() + "\n")
		if line := lines.Text(); strings.Contains(line, `"kind":"delta"`) && strings.Contains(line, want) {
			return
		}
	}
	t.Fatalf("no live text came, status %d:\n%s", res.StatusCode, got.String())
}

// TestReplicas_Steered starts two processes of tenon serve on one database. The first one executes the runs. Over the
// HTTP API of the second one, a person follows a run with live text, steers it while its model answers, allows its call
// and cancels another run. A run that failed in the first process is resumed in the second one.
func TestReplicas_Steered(t *testing.T) {
	a := newField(t)
	held, url := newHeldModel(t)
	path := filepath.Join(a.Dir, "tenon.yaml")
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a.WriteFile(t, "tenon.yaml", strings.Replace(string(config), "models:\n", fmt.Sprintf(
		"models:\n  held: {provider: openai-compatible, model: held, base_url: \"%s/v1\", api_key: {env: KEY}}\n", url), 1))
	a.inPostgres(t, fmt.Sprintf("steered_%d", os.Getpid()))
	b := a.replica(t)
	if config, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	listen := "127.0.0.1:" + clitest.FreePort(t)
	b.WriteFile(t, "tenon.yaml", string(config)+"serve: {listen: \""+listen+"\"}\n")
	first, second := a.serve(t), b.serve(t)
	start := func(message string) string {
		t.Helper()
		return strings.TrimSpace(a.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--model", "held", message).Out)
	}
	through := func(args ...string) clitest.Output {
		t.Helper()
		return b.Run(t, append(args, "-c", "tenon.yaml", "--remote", "http://"+listen)...)
	}
	ok := func(args ...string) clitest.Output {
		t.Helper()
		o := through(args...)
		if o.Status != 0 {
			t.Fatal(o)
		}
		return o
	}

	run := start("talk")
	b.heard(t, run, "http://"+listen, "live text")
	ok("runs", "steer", run, "Be brief.")
	close(held.heard)
	ok("approvals", "allow", b.awaits(t, run).ID)
	ok("runs", "follow", run)
	journal := ok("runs", "events", run, "-o", "jsonl").Out
	if !strings.Contains(journal, "talk Be brief.") {
		t.Errorf("the model did not get the message:\n%s", journal)
	}
	if n := a.effectsOf(t, run)["1.0"]; n != 1 {
		t.Errorf("the call took effect %d times", n)
	}

	long := start("wait")
	<-held.asked
	ok("runs", "cancel", long)
	through("runs", "follow", long)
	if o := ok("runs", "show", long, "-o", "json"); !strings.Contains(o.Out, `"cancelled"`) {
		t.Errorf("the run is not cancelled: %s", o)
	}

	broken := start("break")
	through("runs", "follow", broken)
	if o := ok("runs", "show", broken, "-o", "json"); !strings.Contains(o.Out, `"failed"`) {
		t.Errorf("the run has not failed: %s", o)
	}
	close(held.working)
	ok("runs", "resume", broken)
	if o := ok("runs", "show", broken, "-o", "json"); !strings.Contains(o.Out, `"completed"`) {
		t.Errorf("the run is not completed: %s", o)
	}
	for _, s := range []*serving{first, second} {
		if err := s.cmd.Process.Signal(interrupt); err != nil {
			t.Fatal(err)
		}
		if status, log := s.ended(); status != 0 {
			t.Errorf("tenon serve ended with status %d:\n%s", status, log)
		}
	}
}
