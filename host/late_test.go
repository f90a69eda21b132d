package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// lateServer is a server without tools. Its method add adds the tool query, and announces it on the stream of
// notifications.
type lateServer struct {
	url   string
	has   atomic.Bool
	added chan struct{}
}

func newLate(t *testing.T) *lateServer {
	l := &lateServer{added: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-l.added:
				fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			case <-r.Context().Done():
			}
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answer := `"result":{"content":[{"type":"text","text":"found"}]}`
		switch {
		case m.Method == "server/discover":
			answer = `"error":{"code":-32601,"message":"unknown"}`
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s") // a legacy server without sessions has no stream of notifications
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},` +
				`"serverInfo":{"name":"x","version":"1"}}`
		case m.Method == "tools/list" && l.has.Load():
			answer = `"result":{"tools":[{"name":"query","inputSchema":{"type":"object"}}]}`
		case m.Method == "tools/list":
			answer = `"result":{"tools":[]}`
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}))
	l.url = srv.URL
	t.Cleanup(func() { // runs after the host is closed, whose stream would keep the server open
		srv.CloseClientConnections()
		srv.Close()
	})
	return l
}

// add adds the tool, and waits until a host has it.
func (l *lateServer) add(ctx context.Context, h *host.Host) error {
	if !l.has.Swap(true) {
		close(l.added)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond) // gives the notification time to arrive
		s, _, err := h.Tools().Snapshot(ctx, "t")
		if err != nil {
			return err
		}
		if len(s.Tools()) > 0 {
			return nil
		}
	}
	return ctx.Err()
}

// lateModel lets the server add its tool during its first answer, and calls the tool in each answer.
type lateModel struct {
	server *lateServer
	host   *host.Host
	saw    []string // the tools of each request
}

func (*lateModel) Name() string { return "late" }

func (m *lateModel) Generate(ctx context.Context, r *tenon.Request) iter.Seq2[tenon.Delta, error] {
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	m.saw = append(m.saw, strings.Join(names, " "))
	answer := calls(`query {}`)
	if len(m.saw) == 3 {
		answer = says("done")
	}
	return func(yield func(tenon.Delta, error) bool) {
		if err := m.server.add(ctx, m.host); err != nil {
			yield(tenon.Delta{}, err)
			return
		}
		yield(tenon.Delta{Response: answer}, nil)
	}
}

// TestLateTools checks that a run that begins without tools gets the tools that a server adds, unless the question or
// the agent excludes tools. The journal records both cases.
func TestLateTools(t *testing.T) {
	off := false
	for _, c := range []struct {
		name     string
		question host.Question
		agent    agent.Config
		saw      []string
		excluded string
		calls    string
	}{
		{"RP-8_none", host.Question{}, agent.Config{}, []string{"", "query", "query"}, "nobody", "t.query result"},
		{"RP-8_question", host.Question{NoTools: true}, agent.Config{}, []string{"", "", ""}, "question", ""},
		{"RP-8_agent", host.Question{}, agent.Config{Tools: agent.Tools{Enabled: &off}}, []string{"", "", ""}, "agent", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &lateModel{server: newLate(t)}
			m.host = openModel(t, t.TempDir(), m, &config.Config{Servers: map[string]servers.Config{"t": {URL: m.server.url}},
				Agents: map[string]agent.Config{"default": c.agent.WithDefaults()}})
			c.question.Text, c.question.Grant = "go", "test"
			r, err := host.Ask(t.Context(), m.host, c.question)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.saw, m.saw); diff != "" {
				t.Error(diff)
			}
			if got := callsOf(t, m.host, r.Run.ID); c.calls != "" && !strings.Contains(got, c.calls) || c.calls == "" &&
				strings.Contains(got, "t.query") {
				t.Errorf("calls:\n%s", got)
			}
			if got := excluded(t, m.host, r.Run.ID); got != c.excluded {
				t.Errorf("the journal says that %q excluded tools", got)
			}
			replay, err := m.host.Runs().Open(r.Run.ID).Replay(t.Context())
			if err != nil || !replay.Same {
				t.Errorf("%+v, %v", replay, err)
			}
		})
	}
	t.Run("RP-8_model", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "script.yaml")
		if err := os.WriteFile(path, []byte("steps: [{text: done}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "plain",
			LookupEnv: func(string) (string, bool) { return "", false },
			Config: &config.Config{Servers: map[string]servers.Config{"t": {URL: newLate(t).url}},
				Models: map[string]model.Config{"plain": {Provider: "script", Path: path, ToolMode: model.ToolsNone}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = h.Close() }()
		r, err := host.Ask(t.Context(), h, host.Question{Text: "go"})
		if err != nil {
			t.Fatal(err)
		}
		if got := excluded(t, h, r.Run.ID); got != "model" {
			t.Errorf("the journal says that %q excluded tools", got)
		}
	})
}

// excluded returns what excluded all tools from a run, according to its journal: for example "model".
func excluded(t *testing.T, h *host.Host, run string) string {
	t.Helper()
	for e, err := range h.Runs().Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == tenon.EventRun {
			_, spec, _ := view.Spec[struct {
				Excluded string `json:"tools_excluded"`
			}](e)
			return spec.Excluded
		}
	}
	return ""
}

// TestRemovedToolOfAStep checks that a workflow step is not called after its server has removed the tool, and that the
// journal gives the reason.
func TestRemovedToolOfAStep(t *testing.T) {
	for name, c := range map[string]struct {
		after []string
		want  string
	}{
		"RP-8_removed": {[]string{"login"}, "the server removed this tool during the run, so it was not called"},
		"RP-8_kept":    {[]string{"login", "query", "other"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := openModel(t, t.TempDir(), answering(nil), &config.Config{Servers: map[string]servers.Config{
				"t": {URL: announcing(t, []string{"login", "query"}, c.after)}}})
			w := flowFile(t, `steps:
- {id: first, tool: login, server: t}
- {id: second, tool: query, server: t, args: {x: steps.first.ok}}
`)
			row, events := runFlow(t, h, host.WorkflowCall{Workflow: w, Grant: "test"})
			if want := map[bool]tenon.RunState{true: tenon.RunCompleted, false: tenon.RunFailed}[c.want == ""]; row.State != want {
				t.Errorf("the run %s", row.State)
			}
			var reasons []string
			for _, e := range events {
				if e.Kind == agent.EventDecided {
					reasons = append(reasons, view.As[agent.Decision](e).Reason)
				}
			}
			if len(reasons) != 2 || reasons[0] != "" || !strings.HasPrefix(reasons[1], c.want) || c.want == "" && reasons[1] != "" {
				t.Errorf("reasons: %q", reasons)
			}
		})
	}
}
