package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestLabelsByIdentity checks that a server or tool with the name of another one has a different label.
func TestLabelsByIdentity(t *testing.T) {
	m := NewMetrics()
	for _, d := range []agent.Decision{
		{Server: "bank", Identity: "project:bank", Remote: "send"},
		{Server: "bank", Identity: "target:sha256:0123456789", Remote: "send"},
		{Server: "bank-1", Identity: "target:sha256:0123456789", Remote: "send"}, // the same under another name
		{Server: "bank", Identity: "project:bank", Remote: "send"},
	} {
		m.ended(&Ended{Step: "1.0", Name: "send", Server: d.Server, Identity: d.Identity, Remote: d.Remote, Verdict: tenon.Allow})
	}
	var b strings.Builder
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tenon_server_calls_total{server="bank"} 2`, `tenon_server_calls_total{server="bank (01234567)"} 2`,
		`tenon_tool_calls_total{tool="send"} 2`, `tenon_tool_calls_total{tool="send of bank (01234567)"} 2`} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("%s is missing in\n%s", want, b.String())
		}
	}
}

// TestSpansNameTheIdentity checks that spans contain the identity of a server in addition to its name.
func TestSpansNameTheIdentity(t *testing.T) {
	for _, identity := range []string{"user:bank", "project:bank", "target:sha256:0123456789"} {
		at := time.Unix(1, 0)
		list := spans(&Ended{Step: "1.0", Name: "send", Server: "bank", Identity: identity, Remote: "send", Verdict: tenon.Allow,
			Proposed: at, Decided: at, Started: at, End: at})
		found := 0
		for _, s := range list {
			for _, a := range s.Attrs {
				if a.Key == attrID && a.Value == identity {
					found++
				}
			}
		}
		if found != 2 { // the spans of the call and of the request
			t.Errorf("%s: %d spans of %d name it", identity, found, len(list))
		}
	}
}
