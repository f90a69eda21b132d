package main

import (
	"encoding/json"
	"os"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/servers"
)

// typicalCalls is the number of calls in a round of SC-002.
const typicalCalls = 100

// measureSC002 measures the duration of typical tool calls, including the start of the server. HoloDeck
// requires 95 of 100 within 10 seconds.
func measureSC002(s *session) error {
	var p95 []float64
	for range s.rounds {
		srv := servers.New("typical", servers.Config{Command: s.exe, Args: []string{"child", "server", ours}},
			servers.Options{LookupEnv: os.LookupEnv})
		var took []float64
		var err error
		for range typicalCalls {
			begun := time.Now()
			if _, err = srv.Call(s.ctx, tenon.Call{Tool: bench.EchoTool,
				Arguments: json.RawMessage(`{"text":"hello"}`)}); err != nil {
				break
			}
			took = append(took, time.Since(begun).Seconds())
		}
		_ = srv.Close() // the first error is more useful
		if err != nil {
			return err
		}
		p95 = append(p95, percentile(took, 95))
	}
	s.add("HD-SC-002", "a tool call over stdio: 95 of 100 within", "s", p95)
	return nil
}
