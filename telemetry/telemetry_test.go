package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal collects events, one second apart.
type journal struct {
	run  tenon.Run
	list []tenon.Event
}

func newJournal() *journal {
	return &journal{run: tenon.Run{ID: "run_1", Session: "ses_1", Principal: "anna", Agent: "helper",
		Model: "openai/gpt-5", State: tenon.RunWorking, Created: time.Unix(1000, 0)}}
}

func (j *journal) add(step, kind string, data any) {
	b, _ := json.Marshal(data)
	n := len(j.list)
	j.list = append(j.list, tenon.Event{Run: j.run.ID, Seq: uint64(n + 1), Time: time.Unix(1000+int64(n), 0),
		Step: step, Kind: kind, Data: b})
}

// call adds a tool call.
func (j *journal) call(step, name string, d agent.Decision, end string, data any) {
	j.add(step, agent.EventProposed, tenon.ToolCall{ID: "c" + step, Name: name})
	d.Server, d.Remote = "t", name
	j.add(step, agent.EventDecided, d)
	if end != "" {
		j.add(step, tenon.EventStarted, tenon.StartedData{})
		j.add(step, end, data)
	}
}

// story returns a run with four calls: one runs, one is answered from the cache, one is denied and one fails.
// The model fails at the end.
func story() *journal {
	j := newJournal()
	j.add("", tenon.EventRun, struct{}{})
	j.add("1", tenon.EventStarted, tenon.StartedData{})
	cost := tenon.Dollars(0.5)
	j.add("1", agent.EventModel, tenon.Response{Stop: "tool_use", Usage: &tenon.Usage{Input: 10, Output: 5},
		Cost: &cost})
	allow := agent.Decision{Verdict: tenon.Allow, By: "policy", Timeout: time.Second, Cache: &agent.Caching{}}
	j.call("1.0", "add", allow, agent.EventResult, agent.Outcome{Result: &tenon.Result{}})
	j.call("1.1", "add", allow, agent.EventResult, agent.Outcome{Result: &tenon.Result{}, Source: agent.SourceCache})
	j.call("1.2", "rm", agent.Decision{Verdict: tenon.Deny, By: "policy"}, "", nil)
	j.call("1.3", "fail", agent.Decision{Verdict: tenon.Allow, By: "policy"}, agent.EventResult,
		agent.Outcome{Result: &tenon.Result{IsError: true}})
	j.add("2", tenon.EventStarted, tenon.StartedData{})
	j.add("2", agent.EventFailed, agent.Failure{Error: tenon.Errorf(tenon.CodeModel, "no")})
	j.add("", tenon.EventDone, tenon.DoneData{State: tenon.RunFailed, Error: tenon.Errorf(tenon.CodeModel, "no")})
	return j
}

// observe passes a journal to a collector in several parts.
func observe(c *Collector, j *journal) {
	for i, e := range j.list {
		if i == len(j.list)-1 {
			j.run.State = tenon.RunFailed
		}
		c.Observe(j.run, []tenon.Event{e})
	}
}

// TestWaitingCall checks that a call that waited for a person is counted under its name after the run has
// continued. The name of a call proposed in another process is unknown.
func TestWaitingCall(t *testing.T) {
	c := New(Config{})
	j := newJournal()
	j.add("", tenon.EventRun, struct{}{})
	j.call("1.0", "send", agent.Decision{Verdict: tenon.Ask, By: "policy"}, "", nil)
	c.Observe(j.run, j.list)
	waits := j.run
	waits.State = tenon.RunInputRequired
	c.Observe(waits, nil)
	for _, run := range []string{j.run.ID, "run_of_another_process"} {
		k := newJournal()
		k.run.ID = run
		k.add("1.0", agent.EventDecision, agent.Ruling{Verdict: tenon.Allow, By: "anna"})
		k.add("1.0", tenon.EventStarted, tenon.StartedData{})
		k.add("1.0", agent.EventResult, agent.Outcome{Result: &tenon.Result{}})
		c.Observe(k.run, k.list)
	}
	var b strings.Builder
	if err := c.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{`tenon_tool_calls_total{tool="send"} 1`, `tenon_tool_calls_total{tool="unknown"} 1`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in:\n%s", want, text)
		}
	}
}

// TestTriedAgain checks that a retried call counts once: when it has a result, or when the run continues
// without it.
func TestTriedAgain(t *testing.T) {
	c := New(Config{})
	j := newJournal()
	gone := agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "gone"), Retry: true}
	allow := agent.Decision{Verdict: tenon.Allow, Server: "t", By: "policy"}
	j.add("", tenon.EventRun, struct{}{})
	j.call("1.0", "late", allow, agent.EventFailed, gone)
	j.add("1.0", tenon.EventStarted, tenon.StartedData{})
	j.add("1.0", agent.EventResult, agent.Outcome{Result: &tenon.Result{}})
	j.call("1.1", "never", allow, agent.EventFailed, gone)
	j.add("1.1", tenon.EventStarted, tenon.StartedData{})
	j.add("1.1", agent.EventFailed, gone)
	j.add("2", tenon.EventStarted, tenon.StartedData{})
	c.Observe(j.run, j.list)
	var b strings.Builder
	if err := c.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tenon_tool_calls_total{tool="late"} 1`, `tenon_tool_calls_total{tool="never"} 1`,
		`tenon_server_calls_total{server="t"} 2`,
		`tenon_tool_errors_total{tool="never",code="unreachable"} 1`,
		`tenon_tool_duration_seconds_count{tool="never"} 1`} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() || strings.Contains(b.String(), "unknown") || strings.Contains(b.String(), `tool="late",code`) {
		t.Errorf("the metrics are:\n%s", b.String())
	}
}

// TestNoRedirect checks that a redirect of the collector does not receive the headers.
func TestNoRedirect(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	srv := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	c := New(Config{Endpoint: srv.URL, Headers: map[string]string{"X-Key": "secret"}})
	observe(c, story())
	if err := c.Close(t.Context()); err != nil || asked.Load() != 0 {
		t.Errorf("the redirect target got %d requests; %v", asked.Load(), err)
	}
}

func TestMetricsText(t *testing.T) {
	c := New(Config{})
	observe(c, story())
	c.Request("/x\"y\n", 200, 0.5)
	var b strings.Builder
	if err := c.WriteText(&b, Gauge{Name: "up", Help: "Up.", Label: "server",
		Values: map[string]float64{"t": 1}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`tenon_tool_calls_total{tool="add"} 2`, `tenon_tool_cached_total{tool="add"} 1`,
		`tenon_tool_denied_total{tool="rm"} 1`,
		`tenon_tool_errors_total{tool="fail",code="tool_error"} 1`, `tenon_server_calls_total{server="t"} 2`,
		`tenon_sessions_total 1`,
		`tenon_runs_total{agent="helper",state="failed"} 1`, `tenon_turns_total{agent="helper"} 1`,
		`tenon_model_calls_total{model="openai/gpt-5"} 2`,
		`tenon_model_errors_total{model="openai/gpt-5",code="model_error"} 1`,
		`tenon_model_cost_dollars_total{model="openai/gpt-5"} 0.5`,
		`tenon_tool_duration_seconds_count{tool="add"} 1`, `tenon_tool_duration_seconds_bucket{tool="add",le="0.64"} 0`,
		`tenon_tool_duration_seconds_bucket{tool="add",le="1.28"} 1`,
		`tenon_model_tokens_sum{model="openai/gpt-5",type="input"} 10`,
		`tenon_http_requests_total{route="/x\"y\n",status="200"} 1`, `up{server="t"} 1`, "# TYPE up gauge",
		"# TYPE tenon_tool_duration_seconds histogram",
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

// TestSeriesAreBounded checks that names invented by a model take a bounded amount of memory.
func TestSeriesAreBounded(t *testing.T) {
	m := NewMetrics()
	for i := range 3 * maxSeries {
		m.add(m.calls, 1, strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String())
	}
	if n := len(m.calls.series); n > maxSeries+1 || m.calls.at([]string{"other"}).value < 1 {
		t.Errorf("%d series", n)
	}
	f := fold{runs: map[string]map[string]*Ended{}}
	for i := range maxRuns + 10 {
		f.add(tenon.Run{ID: time.Duration(i).String(), State: tenon.RunWorking}, nil)
	}
	if len(f.runs) > maxRuns {
		t.Errorf("%d runs are kept", len(f.runs))
	}
}

// TestOrderOfACall (AI-21) checks the order of the spans of a call: the trace, then policy, limits, cache,
// timeout and the call itself, each within or after the previous one. A cached result has no call span, a
// denied call no limits span.
func TestOrderOfACall(t *testing.T) {
	t.Run("AI-21", func(t *testing.T) {
		got := map[string][]string{}
		var f fold
		f.runs = map[string]map[string]*Ended{}
		j := story()
		ended := f.add(j.run, j.list)
		for i := range ended {
			if !ended[i].IsTool() {
				continue
			}
			list := spans(&ended[i])
			for k, s := range list {
				got[ended[i].Step] = append(got[ended[i].Step], s.Name)
				if s.Trace != TraceID("run_1") || s.End.Before(s.Start) || k > 0 && s.Start.Before(list[k-1].Start) ||
					k > 0 && s.Parent == "" {
					t.Errorf("step %s: span %+v", ended[i].Step, s)
				}
			}
		}
		want := map[string][]string{
			"1.0": {"execute_tool add", "policy", "limits", "cache", "timeout", "tools/call add"},
			"1.1": {"execute_tool add", "policy", "limits", "cache"},
			"1.2": {"execute_tool rm", "policy"},
			"1.3": {"execute_tool fail", "policy", "limits", "tools/call fail"},
		}
		for step, names := range want {
			if !slices.Equal(got[step], names) {
				t.Errorf("step %s: %q, want %q", step, got[step], names)
			}
		}
	})
}

// collector is a fake OTLP collector. It checks all names against the published conventions.
type collector struct {
	mu      sync.Mutex
	spans   []map[string]any
	metrics []string
	bad     []string
	header  string
}

// conventions lists the attributes of the GenAI and MCP conventions that tenon uses, and the common ones of
// resources and users.
var conventions = []string{"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.conversation.id",
	"gen_ai.agent.name", "gen_ai.request.model",
	"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens",
	"gen_ai.usage.reasoning.output_tokens",
	"gen_ai.response.finish_reasons", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.token.type", "mcp.method.name",
	"error.type", "user.id",
	"session.id", "service.name", "service.version"}

func (c *collector) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	var body struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []map[string]any }
		}
		ResourceMetrics []struct {
			ScopeMetrics []struct {
				Metrics []struct {
					Name, Unit string
					Histogram  struct {
						DataPoints []struct {
							Count          string
							BucketCounts   []string
							ExplicitBounds []float64
						}
					}
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := json.Unmarshal(b, &body); err != nil {
		c.bad = append(c.bad, err.Error())
	}
	c.header = req.Header.Get("X-Key")
	for _, r := range body.ResourceSpans {
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	for _, r := range body.ResourceMetrics {
		for _, s := range r.ScopeMetrics {
			for _, m := range s.Metrics {
				c.metrics = append(c.metrics, m.Name)
				for _, p := range m.Histogram.DataPoints {
					if len(p.BucketCounts) != len(p.ExplicitBounds)+1 || m.Unit == "" {
						c.bad = append(c.bad, "a histogram of "+m.Name)
					}
				}
			}
		}
	}
	for _, part := range strings.Split(string(b), `"key":"`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if !slices.Contains(conventions, name) && !strings.HasPrefix(name, "tenon.") {
			c.bad = append(c.bad, "attribute "+name)
		}
	}
}

func TestOTLP(t *testing.T) {
	fake := &collector{}
	s := httptest.NewServer(fake)
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c := New(Config{Endpoint: s.URL + "/", Headers: map[string]string{"X-Key": "k"}, Version: "1", Client: client,
		Every: time.Hour})
	observe(c, story())
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	fake.mu.Lock()
	defer fake.mu.Unlock()
	if len(fake.bad) > 0 || fake.header != "k" {
		t.Errorf("%q, header %q", fake.bad, fake.header)
	}
	var names []string
	for _, s := range fake.spans {
		names = append(names, s["name"].(string))
		if id := s["traceId"].(string); id != TraceID("run_1") || len(id) != 32 || len(s["spanId"].(string)) != 16 {
			t.Errorf("ids of %v", s)
		}
		if s["name"] == "tools/call add" && s["spanId"] != strings.Split(TraceParent("run_1", "1.0"), "-")[2] {
			t.Error("the span of the call differs from the one sent to the server")
		}
	}
	if len(names) != 19 || !slices.Contains(names, "invoke_agent helper") ||
		!slices.Contains(names, "chat openai/gpt-5") {
		t.Errorf("%d spans: %q", len(names), names)
	}
	for _, m := range []string{"gen_ai.client.token.usage", "gen_ai.client.operation.duration",
		"gen_ai.execute_tool.duration", "gen_ai.invoke_agent.duration"} {
		if !slices.Contains(fake.metrics, m) {
			t.Errorf("no metric %s in %q", m, fake.metrics)
		}
	}
}

// TestCollectorThatIsDown checks that telemetry never blocks if the collector does not respond, and that lost
// spans are counted.
func TestCollectorThatIsDown(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c := New(Config{Endpoint: s.URL, Client: client, Every: time.Hour})
	for range maxQueue / 10 {
		observe(c, story())
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.dropped.at(nil).value < maxQueue/2 {
		t.Errorf("%v spans were dropped", c.dropped.at(nil).value)
	}
}

// TestEndpointInLogs checks that logs do not contain the login of the collector's address.
func TestEndpointInLogs(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "s3cret" {
			t.Error("the login was not sent")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	var log bytes.Buffer
	c := New(Config{Endpoint: strings.Replace(s.URL, "://", "://me:s3cret@", 1),
		Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Every:  time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	observe(c, story())
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text, "s3cret") || strings.Count(text, "did not accept") != 2 {
		t.Errorf("the log: %s", text)
	}
}
