package httpapi

import (
	"bytes"
	"net/http"
	"runtime"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/telemetry"
)

// counting notes the status of an answer.
type counting struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *counting) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *counting) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// metrics sends all counters in Prometheus' text form.
func (c *call) metrics() error {
	if c.cfg.Telemetry == nil {
		return tenon.Errorf(tenon.CodeNotFound, "there are no metrics here: telemetry.metrics is false")
	}
	_, all := c.h.AtWork("")
	up := map[string]float64{}
	for _, st := range c.h.Statuses() {
		up[st.Name] = 0
		if st.State == servers.StateReady || st.State == servers.StateDegraded {
			up[st.Name] = 1
		}
	}
	var b bytes.Buffer
	err := c.cfg.Telemetry.WriteText(&b,
		telemetry.Gauge{Name: "tenon_runs_working", Help: "Runs that this process works on.", Values: map[string]float64{"": float64(all)}},
		telemetry.Gauge{Name: "tenon_server_up", Help: "Whether a server is connected.", Label: "server", Values: up},
		telemetry.Gauge{Name: "tenon_build_info", Help: "The version.", Label: "version", Values: map[string]float64{c.h.Version(): 1}},
		telemetry.Gauge{Name: "go_goroutines", Help: "Goroutines.", Values: map[string]float64{"": float64(runtime.NumGoroutine())}})
	if err != nil {
		return err
	}
	c.sendBytes(http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", c.h.Masked(b.Bytes()))
	return nil
}

var _ http.ResponseWriter = (*counting)(nil)
