package telemetry

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
)

// maxSeries bounds the series of one family; what comes after is counted under other.
const maxSeries = 1000

// family is one metric with all its series.
type family struct {
	name, help string
	labels     []string
	buckets    []float64 // of a histogram; nil: a counter
	otel       string    // its name at OpenTelemetry; "" for none
	unit       string
	attrs      []string // the labels' names there
	fixed      string   // the operation there
	series     map[string]*series
}

type series struct {
	labels []string
	value  float64 // of a counter; the sum of a histogram
	counts []uint64
	count  uint64
}

// The buckets of OpenTelemetry's conventions.
func secondBuckets() []float64 {
	return []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
}

func tokenBuckets() []float64 {
	return []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
}

// Metrics counts. It is safe for concurrent use.
type Metrics struct {
	mu       sync.Mutex
	families []*family

	sessions, runs, turns, calls, serverCalls, toolErrors, denied, cached, modelCalls, modelErrors, cost *family
	toolTime, modelTime, runTime, tokenUse                                                               *family
	requests, requestTime, dropped                                                                       *family
}

// NewMetrics returns metrics that are all zero.
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
	m.sessions = counter("tenon_sessions_total", "Sessions that were begun.")
	m.runs = counter("tenon_runs_total", "Runs that have ended.", "agent", "state")
	m.turns = counter("tenon_turns_total", "Answers of models within runs.", "agent")
	m.calls = counter("tenon_tool_calls_total", "Tool calls that have ended, denied ones included.", "tool")
	m.serverCalls = counter("tenon_server_calls_total", "Tool calls of each server that were made.", "server")
	m.toolErrors = counter("tenon_tool_errors_total", "Tool calls that failed, or whose tool reported an error.", "tool", "code")
	m.denied = counter("tenon_tool_denied_total", "Tool calls that a rule or a person denied.", "tool")
	m.cached = counter("tenon_tool_cached_total", "Tool calls that the result of an equal call answered.", "tool")
	m.modelCalls = counter("tenon_model_calls_total", "Requests to models that have ended.", "model")
	m.modelErrors = counter("tenon_model_errors_total", "Requests to models that failed.", "model", "code")
	m.cost = counter("tenon_model_cost_dollars_total", "What models came to, in US dollars, as far as prices are known.", "model")
	m.toolTime = histogram("tenon_tool_duration_seconds", "How long tool calls took.", metricToolTime, "s", opTool, secondBuckets(), []string{attrTool}, "tool")
	m.modelTime = histogram("tenon_model_duration_seconds", "How long requests to models took.", metricModelTime, "s", opChat, secondBuckets(), []string{attrModel}, "model")
	m.runTime = histogram("tenon_run_duration_seconds", "How long runs took, waiting included.", metricRunTime, "s", opAgent, secondBuckets(), []string{attrAgent}, "agent")
	m.tokenUse = histogram("tenon_model_tokens", "Tokens of requests to models.", metricTokens, "{token}", opChat, tokenBuckets(), []string{attrModel, attrTokenType}, "model", "type")
	m.requests = counter("tenon_http_requests_total", "HTTP requests.", "route", "status")
	m.requestTime = histogram("tenon_http_request_duration_seconds", "How long HTTP requests took.", "", "s", "", secondBuckets(), nil, "route")
	m.dropped = counter("tenon_telemetry_dropped_total", "Spans that were not sent.")
	m.add(m.sessions, 0)
	m.add(m.dropped, 0)
	return m
}

// at finds a series; the caller holds the lock.
func (f *family) at(labels []string) *series {
	key := strings.Join(labels, "\x00")
	s := f.series[key]
	if s == nil && len(f.series) >= maxSeries {
		labels = slices.Repeat([]string{"other"}, len(labels))
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

// Request counts an HTTP request.
func (m *Metrics) Request(route string, status int, took float64) {
	m.add(m.requests, 1, route, strconv.Itoa(status))
	m.observe(m.requestTime, took, route)
}

// ended counts a step, or a run.
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

func (m *Metrics) tool(e *Ended, took float64) {
	m.add(m.calls, 1, e.Name)
	switch {
	case e.Verdict == tenon.Deny:
		m.add(m.denied, 1, e.Name)
		return
	case e.Hit:
		m.add(m.cached, 1, e.Name)
		return
	case e.Server != "":
		m.add(m.serverCalls, 1, e.Server)
	}
	if e.Error != "" {
		m.add(m.toolErrors, 1, e.Name, e.Error)
	}
	if !e.Started.IsZero() {
		m.observe(m.toolTime, took, e.Name)
	}
}

// Gauge is a value of the moment.
type Gauge struct {
	Name, Help string
	Label      string // its name; "": there is one value, under the key ""
	Values     map[string]float64
}

// WriteText writes all metrics, and gauges, in Prometheus' text form (version 0.0.4).
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
		fmt.Fprintf(b, "%s_sum%s %s\n%s_count%s %d\n", f.name, braced(labels), number(s.value), f.name, braced(labels), s.count)
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

// pairs writes labels; a value may hold anything.
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
