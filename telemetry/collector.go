package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// Config says where telemetry goes. The zero value counts and sends nothing.
type Config struct {
	// Endpoint is that of an OpenTelemetry collector over HTTP, such as
	// http://127.0.0.1:4318; empty: nothing is sent.
	Endpoint string
	Headers  map[string]string // of each request to it
	Service  string            // its name there; empty: tenon
	Version  string
	Logger   *slog.Logger // nil: nothing is logged
	Client   *http.Client // nil: one with a time limit
	// Every is the time between two sendings; 0: 5 s. Metrics go at each twelfth.
	Every time.Duration
}

// The bounds of what is kept to be sent.
const (
	maxQueue = 8192 // spans
	maxBatch = 1024
	sendTime = 10 * time.Second
)

// Collector is told of events. It is safe for concurrent use.
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

// New returns a collector, which sends until Close.
func New(cfg Config) *Collector {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Client == nil {
		// A redirect would take the headers, which may hold a key, to another place.
		stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		cfg.Client = &http.Client{Timeout: sendTime, CheckRedirect: stay}
	}
	if cfg.Every <= 0 {
		cfg.Every = 5 * time.Second
	}
	c := &Collector{Metrics: NewMetrics(), cfg: cfg, shown: shown(cfg.Endpoint), fold: fold{runs: map[string]map[string]*Ended{}}, began: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if cfg.Endpoint == "" {
		close(c.done)
	} else {
		go c.send()
	}
	return c
}

// shown is an address without its login.
func shown(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "what is no address"
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	return u.String()
}

// Observe is told of the events that a run has stored, with its row as it is then. It
// does not block.
func (c *Collector) Observe(run tenon.Run, events []tenon.Event) {
	if run.Imported != nil {
		return
	}
	if len(events) > 0 && events[0].Kind == tenon.EventRun && run.Parent == "" && run.Caller == "" && run.Session != "" {
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

// send sends what has come together, until Close.
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

// sendSpans sends a batch and reports whether there is more.
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
		c.cfg.Logger.Warn("traces were not taken", "endpoint", c.shown, "spans", n, "error", err.Error())
	}
	return more
}

func (c *Collector) sendMetrics() {
	if err := c.post("/v1/metrics", c.metricsBody()); err != nil {
		c.cfg.Logger.Warn("metrics were not taken", "endpoint", c.shown, "error", err.Error())
	}
}

// Close sends what is left and ends. It takes as long as the collector does, at most
// until ctx ends.
func (c *Collector) Close(ctx context.Context) error {
	c.stopMu.Do(func() { close(c.stop) })
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return tenon.Errorf(tenon.CodeTimeout, "telemetry was not all sent: %w", context.Cause(ctx))
	}
}
