package telemetry

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// maxSeries bounds the series of one family. Further series are counted under the label other.
const maxSeries = 1000

// family is one metric with all its series.
type family struct {
	name, help string
	labels     []string
	buckets    []float64 // bounds of a histogram; nil for a counter
	otel       string    // OpenTelemetry name, or ""
	unit       string
	attrs      []string // OpenTelemetry names of the labels
	fixed      string   // OpenTelemetry operation
	series     map[string]*series
}

type series struct {
	labels []string
	value  float64 // value of a counter, or sum of a histogram
	counts []uint64
	count  uint64
}

// The buckets recommended by OpenTelemetry's conventions.
func secondBuckets() []float64 {
	return []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
}

func tokenBuckets() []float64 {
	return []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
}

// Metrics holds the metrics of a process. It is safe for concurrent use.
type Metrics struct {
	mu       sync.Mutex
	families []*family

	sessions, runs, turns, calls, serverCalls, toolErrors, denied, cached, modelCalls, modelErrors, cost *family
	toolTime, modelTime, runTime, tokenUse                                                               *family
	requests, requestTime, dropped                                                                       *family

	toolLabels, serverLabels labels
}

// NewMetrics returns metrics with all values zero.
func NewMetrics() *Metrics {
	m := &Metrics{}
	counter := func(name, help string, labels ...string) *family {
		f := &family{name: name, help: help, labels: labels, series: map[string]*series{}}
		m.families = append(m.families, f)
		return f
	}
	histogram := func(name, help, otel, unit, op string, buckets []float64, attrs []string, labels ...string) *family {
		f := counter(name, help, labels...)
		f.buckets, f.otel, f.unit, f.fixed, f.attrs = buckets, otel, unit, op, attrs
		return f
	}
	m.sessions = counter("tenon_sessions_total", "Sessions started.")
	m.runs = counter("tenon_runs_total", "Runs ended.", "agent", "state")
	m.turns = counter("tenon_turns_total", "Model responses within runs.", "agent")
	m.calls = counter("tenon_tool_calls_total", "Tool calls ended, including denied ones.", "tool")
	m.serverCalls = counter("tenon_server_calls_total", "Tool calls sent to each server.", "server")
	m.toolErrors = counter("tenon_tool_errors_total", "Tool calls that failed or returned an error.",
		"tool", "code")
	m.denied = counter("tenon_tool_denied_total", "Tool calls denied by a rule or a person.", "tool")
	m.cached = counter("tenon_tool_cached_total", "Tool calls answered from the cache.", "tool")
	m.modelCalls = counter("tenon_model_calls_total", "Model requests ended.", "model")
	m.modelErrors = counter("tenon_model_errors_total", "Model requests that failed.", "model", "code")
	m.cost = counter("tenon_model_cost_dollars_total",
		"Cost of model requests in US dollars, if the price is known.", "model")
	m.toolTime = histogram("tenon_tool_duration_seconds", "Duration of tool calls.", metricToolTime, "s", opTool,
		secondBuckets(), []string{attrTool}, "tool")
	m.modelTime = histogram("tenon_model_duration_seconds", "Duration of model requests.", metricModelTime, "s",
		opChat, secondBuckets(), []string{attrModel}, "model")
	m.runTime = histogram("tenon_run_duration_seconds", "Duration of runs, including waits.", metricRunTime, "s",
		opAgent, secondBuckets(), []string{attrAgent}, "agent")
	m.tokenUse = histogram("tenon_model_tokens", "Tokens of model requests.", metricTokens, "{token}", opChat,
		tokenBuckets(), []string{attrModel, attrTokenType}, "model", "type")
	m.requests = counter("tenon_http_requests_total", "HTTP requests.", "route", "status")
	m.requestTime = histogram("tenon_http_request_duration_seconds", "Duration of HTTP requests.", "", "s", "",
		secondBuckets(), nil, "route")
	m.dropped = counter("tenon_telemetry_dropped_total", "Spans dropped before sending.")
	m.add(m.sessions, 0)
	m.add(m.dropped, 0)
	return m
}

// at returns the series with the labels. The caller holds the lock.
func (f *family) at(labels []string) *series {
	key := strings.Join(labels, "\x00")
	s := f.series[key]
	if s == nil && len(f.series) >= maxSeries {
		labels = slices.Repeat([]string{otherLabel}, len(labels))
		key = strings.Join(labels, "\x00")
		s = f.series[key]
	}
	if s == nil {
		s = &series{labels: slices.Clone(labels), counts: make([]uint64, len(f.buckets))}
		f.series[key] = s
	}
	return s
}

func (m *Metrics) add(f *family, v float64, labels ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f.at(labels).value += v
}

func (m *Metrics) observe(f *family, v float64, labels ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := f.at(labels)
	s.count++
	s.value += v
	if i, _ := slices.BinarySearch(f.buckets, v); i < len(s.counts) {
		s.counts[i]++
	}
}

// Request counts an HTTP request. The duration is in seconds.
func (m *Metrics) Request(route string, status int, took float64) {
	m.add(m.requests, 1, route, strconv.Itoa(status))
	m.observe(m.requestTime, took, route)
}

// ended counts an ended step or run.
func (m *Metrics) ended(e *Ended) {
	took := e.End.Sub(e.Started).Seconds()
	switch {
	case e.Step == "":
		m.add(m.runs, 1, e.Run.Agent, string(e.Run.State))
		m.observe(m.runTime, took, e.Run.Agent)
	case e.IsTool():
		m.tool(e, took)
	default:
		m.add(m.modelCalls, 1, e.Run.Model)
		if e.Error != "" {
			m.add(m.modelErrors, 1, e.Run.Model, e.Error)
			return
		}
		m.add(m.turns, 1, e.Run.Agent)
		if !e.Started.IsZero() {
			m.observe(m.modelTime, took, e.Run.Model)
		}
		if e.Usage != nil {
			m.observe(m.tokenUse, float64(e.Usage.Input), e.Run.Model, "input")
			m.observe(m.tokenUse, float64(e.Usage.Output), e.Run.Model, "output")
		}
		if e.Cost != nil {
			m.add(m.cost, e.Cost.Dollars(), e.Run.Model)
		}
	}
}

// labels assigns a visible name to each counted object. If two objects have the same name, the
// second one gets a different label.
type labels struct {
	of    map[string]string // key → label
	taken map[string]bool
}

// otherLabel is the label of all objects beyond the limit.
const otherLabel = "other"

// label returns the label of an object. This is its name, or apart if another object already has this label.
func (l *labels) label(key, name, apart string) string {
	if label, ok := l.of[key]; ok {
		return label
	}
	if l.of == nil {
		l.of, l.taken = map[string]string{}, map[string]bool{}
	}
	if len(l.of) >= maxSeries {
		return otherLabel
	}
	if l.taken[name] {
		name = apart
	}
	l.of[key], l.taken[name] = name, true
	return name
}

// named returns the labels of a call's tool and server. Tools and servers are distinguished by the identity of the
// server.
func (m *Metrics) named(e *Ended) (tool, server string) {
	if e.Server == "" {
		return e.Name, ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := cmp.Or(e.Identity, e.Server)
	server = m.serverLabels.label(id, e.Server, agent.IdentityLabel(e.Server, e.Identity))
	return m.toolLabels.label(id+"\x00"+e.Remote, e.Name, e.Name+" of "+server), server
}

func (m *Metrics) tool(e *Ended, took float64) {
	name, server := m.named(e)
	m.add(m.calls, 1, name)
	switch {
	case e.Verdict == tenon.Deny:
		m.add(m.denied, 1, name)
		return
	case e.Hit:
		m.add(m.cached, 1, name)
		return
	case server != "":
		m.add(m.serverCalls, 1, server)
	}
	if e.Error != "" {
		m.add(m.toolErrors, 1, name, e.Error)
	}
	if !e.Started.IsZero() {
		m.observe(m.toolTime, took, name)
	}
}

// Gauge is a metric with current values.
type Gauge struct {
	Name, Help string
	Label      string // label name; "" for a single value under the key ""
	Values     map[string]float64
}

// WriteText writes all metrics and the gauges in the Prometheus text format (version 0.0.4).
func (m *Metrics) WriteText(w io.Writer, gauges ...Gauge) error {
	var b strings.Builder
	for _, g := range gauges {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", g.Name, g.Help, g.Name)
		for _, k := range slices.Sorted(maps.Keys(g.Values)) {
			if g.Label == "" {
				fmt.Fprintf(&b, "%s %s\n", g.Name, number(g.Values[k]))
				continue
			}
			fmt.Fprintf(&b, "%s{%s} %s\n", g.Name, pairs([]string{g.Label}, []string{k}), number(g.Values[k]))
		}
	}
	m.mu.Lock()
	for _, f := range m.families {
		f.write(&b)
	}
	m.mu.Unlock()
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *family) write(b *strings.Builder) {
	kind := "counter"
	if f.buckets != nil {
		kind = "histogram"
	}
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, kind)
	for _, k := range slices.Sorted(maps.Keys(f.series)) {
		s := f.series[k]
		labels := pairs(f.labels, s.labels)
		if f.buckets == nil {
			fmt.Fprintf(b, "%s%s %s\n", f.name, braced(labels), number(s.value))
			continue
		}
		sum := uint64(0)
		for i, n := range s.counts {
			sum += n
			fmt.Fprintf(b, "%s_bucket%s %d\n", f.name, braced(joined(labels, `le="`+number(f.buckets[i])+`"`)), sum)
		}
		fmt.Fprintf(b, "%s_bucket%s %d\n", f.name, braced(joined(labels, `le="+Inf"`)), s.count)
		fmt.Fprintf(b, "%s_sum%s %s\n%s_count%s %d\n", f.name, braced(labels), number(s.value), f.name,
			braced(labels), s.count)
	}
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "," + b
}

func braced(labels string) string {
	if labels == "" {
		return ""
	}
	return "{" + labels + "}"
}

// pairs formats labels. Values may contain any characters.
func pairs(names, values []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		v := strings.ToValidUTF8(values[i], "�")
		b.WriteString(n + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(v) + `"`)
	}
	return b.String()
}

func number(f float64) string {
	if math.IsInf(f, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
