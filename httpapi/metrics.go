package httpapi

import (
	"bytes"
	"net/http"
	"runtime"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/telemetry"
)

// counting is a [http.ResponseWriter] that records the status of the answer.
type counting struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *counting) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] find the underlying writer.
func (w *counting) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// metrics sends all counters in the text format of Prometheus.
func (c *call) metrics() error {
	if c.cfg.Telemetry == nil {
		return tenon.Errorf(tenon.CodeNotFound, "there are no metrics here: telemetry.metrics is false")
	}
	_, working := c.h.Service().Callers().Working("")
	// A server that nobody has used yet is neither up nor down.
	up, down := map[string]float64{}, map[string]float64{}
	all, err := c.h.Servers().List(c.ctx())
	if err != nil {
		return err
	}
	for _, st := range all {
		up[st.Name], down[st.Name] = 0, 0
		switch st.State {
		case servers.StateReady, servers.StateDegraded:
			up[st.Name] = 1
		case servers.StateBackoff, servers.StateAuth, servers.StateFailed:
			down[st.Name] = 1
		}
	}
	usage := c.h.Service().Storage().State().Usage()
	free := map[string]float64{}
	if usage.Free >= 0 {
		free[""] = float64(usage.Free)
	}
	var b bytes.Buffer
	err = c.cfg.Telemetry.WriteText(&b,
		telemetry.Gauge{Name: "tenon_runs_working", Help: "Runs that this process works on.",
			Values: map[string]float64{"": float64(working)}},
		telemetry.Gauge{Name: "tenon_server_up", Help: "Whether a server is connected.", Label: "server", Values: up},
		telemetry.Gauge{Name: "tenon_server_down", Label: "server", Values: down,
			Help: "Whether a server was lost, or the last attempt to connect it failed."},
		telemetry.Gauge{Name: "tenon_store_free_bytes", Help: "Free space on the disk of the store.", Values: free},
		telemetry.Gauge{Name: "tenon_store_failed_writes", Help: "Writes to the store that failed.",
			Values: map[string]float64{"": float64(usage.FailedWrites)}},
		telemetry.Gauge{Name: "tenon_build_info", Help: "The version.", Label: "version",
			Values: map[string]float64{c.h.Service().Info().Version: 1}},
		telemetry.Gauge{Name: "go_goroutines", Help: "Goroutines.",
			Values: map[string]float64{"": float64(runtime.NumGoroutine())}})
	if err != nil {
		return err
	}
	c.sendBytes(http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", c.h.Service().Callers().Mask(b.Bytes()))
	return nil
}

var _ http.ResponseWriter = (*counting)(nil)
