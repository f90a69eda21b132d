package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// Config configures a [Collector]. The zero value collects metrics and sends nothing.
type Config struct {
	// Endpoint is the address of an OpenTelemetry collector (OTLP over HTTP), such as http://127.0.0.1:4318.
	// If empty, nothing is sent.
	Endpoint string
	Headers  map[string]string // sent with each request
	Service  string            // service.name; "" means tenon
	Version  string
	Logger   *slog.Logger // if nil, nothing is logged
	Client   *http.Client // if nil, a client with a timeout
	// Every is the interval between two sends. 0 means 5 s. Metrics are sent at every twelfth.
	Every time.Duration
}

// Limits of the queue and of a request.
const (
	maxQueue = 8192 // spans
	maxBatch = 1024
	sendTime = 10 * time.Second
)

// Collector derives metrics and spans from events. It is safe for concurrent use.
type Collector struct {
	*Metrics
	cfg   Config
	shown string // the endpoint in logs, without a password
	fold  fold
	began time.Time

	mu    sync.Mutex
	queue []Span

	wake   chan struct{}
	stop   chan struct{}
	stopMu sync.Once
	done   chan struct{}
}

// New returns a collector. It sends until Close.
func New(cfg Config) *Collector {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Client == nil {
		// Following a redirect would send the headers, which may contain a key, to another host.
		stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		cfg.Client = &http.Client{Timeout: sendTime, CheckRedirect: stay}
	}
	if cfg.Every <= 0 {
		cfg.Every = 5 * time.Second
	}
	c := &Collector{Metrics: NewMetrics(), cfg: cfg, shown: shown(cfg.Endpoint),
		fold: fold{runs: map[string]map[string]*Ended{}}, began: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if cfg.Endpoint == "" {
		close(c.done)
	} else {
		go c.send()
	}
	return c
}

// shown returns an address without its credentials.
func shown(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "an invalid address"
	}
	if u.User == nil {
		return u.String()
	}
	u.User = nil
	return strings.Replace(u.String(), "//", "//***@", 1) // url.User would escape the stars
}

// Observe handles the stored events of a run, with the run's row at that time. It does not block.
func (c *Collector) Observe(run tenon.Run, events []tenon.Event) {
	if run.Imported != nil {
		return
	}
	if len(events) > 0 && events[0].Kind == tenon.EventRun && run.Parent == "" && run.Caller == "" &&
		run.Session != "" {
		c.add(c.sessions, 1)
	}
	for _, e := range c.fold.add(run, events) {
		c.ended(&e)
		if c.cfg.Endpoint != "" {
			c.enqueue(spans(&e))
		}
	}
}

func (c *Collector) enqueue(list []Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue)+len(list) > maxQueue {
		c.add(c.dropped, float64(len(list)))
		return
	}
	c.queue = append(c.queue, list...)
	if len(c.queue) >= maxBatch {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// send sends the queue at intervals until Close.
func (c *Collector) send() {
	defer close(c.done)
	t := time.NewTicker(c.cfg.Every)
	defer t.Stop()
	for n := 1; ; n++ {
		last := false
		select {
		case <-t.C:
		case <-c.wake:
		case <-c.stop:
			last = true
		}
		for c.sendSpans() {
		}
		if n%12 == 0 || last {
			c.sendMetrics()
		}
		if last {
			return
		}
	}
}

// sendSpans sends a batch and reports whether the queue has more spans.
func (c *Collector) sendSpans() (more bool) {
	c.mu.Lock()
	n := min(len(c.queue), maxBatch)
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	more = len(c.queue) > 0
	c.mu.Unlock()
	if n == 0 {
		return false
	}
	if err := c.post("/v1/traces", c.tracesBody(batch)); err != nil {
		c.add(c.dropped, float64(n))
		c.cfg.Logger.Warn("the collector did not accept traces", "endpoint", c.shown, "spans", n, "error", err.Error())
	}
	return more
}

func (c *Collector) sendMetrics() {
	if err := c.post("/v1/metrics", c.metricsBody()); err != nil {
		c.cfg.Logger.Warn("the collector did not accept metrics", "endpoint", c.shown, "error", err.Error())
	}
}

// Close sends the remaining telemetry and stops the collector. It returns at the latest when ctx ends.
func (c *Collector) Close(ctx context.Context) error {
	c.stopMu.Do(func() { close(c.stop) })
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return tenon.Errorf(tenon.CodeTimeout, "some telemetry was not sent: %w", context.Cause(ctx))
	}
}
