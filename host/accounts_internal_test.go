package host

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestGW_11_SignInNeeded checks which runs are searched for a call that failed without a sign-in: also those of a run
// that began many others, and never more than the bound.
func TestGW_11_SignInNeeded(t *testing.T) {
	decided := func(step, kind, server string) tenon.Event {
		return tenon.Event{Kind: agent.EventDecided, Step: step, Data: tenon.EventData(agent.Decision{Kind: kind, Server: server})}
	}
	failed := func(step string, code tenon.Code) tenon.Event {
		return tenon.Event{Kind: agent.EventFailed, Step: step, Data: tenon.EventData(agent.Failure{Error: &tenon.Error{Code: code}})}
	}
	call := func(server string, code tenon.Code) []tenon.Event {
		return []tenon.Event{decided("1.0", "mcp", server), failed("1.0", code)}
	}
	var many []tenon.Event
	for n := range 100 {
		many = append(many, decided(strconv.Itoa(n)+".0", agent.KindWorkflow, ""))
	}
	chain := func(string) []tenon.Event { return []tenon.Event{decided("1.0", agent.KindAgent, "")} }
	for name, tt := range map[string]struct {
		events func(run string) []tenon.Event
		want   string
		read   int
	}{
		"the run itself":      {func(string) []tenon.Event { return call("own", tenon.CodeAuth) }, "own", 1},
		"a server of all":     {func(string) []tenon.Event { return call("shared", tenon.CodeAuth) }, "", 1},
		"another error":       {func(string) []tenon.Event { return call("own", tenon.CodeTool) }, "", 1},
		"a chain without end": {chain, "", maxSearchedRuns},
		"a step of very many": {nil, "own", 42},
		"beyond the bound":    {func(run string) []tenon.Event { return map[string][]tenon.Event{"r": many}[run] }, "", maxSearchedRuns},
		"the end of the chain": {func(run string) []tenon.Event {
			if strings.Count(run, "/") == maxSearchedRuns-1 {
				return call("own", tenon.CodeAuth)
			}
			return chain(run)
		}, "own", maxSearchedRuns},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.events == nil {
				tt.events = func(run string) []tenon.Event {
					return map[string][]tenon.Event{"r": many, "r/40.0": call("own", tenon.CodeAuth)}[run]
				}
			}
			read := 0
			got := signInNeeded("r", func(run string) ([]tenon.Event, error) { read++; return tt.events(run), nil },
				func(server string) bool { return server == "own" })
			if got != tt.want || read != tt.read {
				t.Errorf("%q after %d runs, want %q after %d", got, read, tt.want, tt.read)
			}
		})
	}
}
