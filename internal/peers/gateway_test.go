package peers

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
)

// testSupergateway connects to a stdio server through supergateway over WebSocket.
func (p *peers) testSupergateway(t *testing.T) {
	port := clitest.FreePort(t)
	child := strings.Join(p.server(t, "server-everything", "stdio"), " ")
	background(t, nil, p.node, p.bin(t, "supergateway", "dist", "index.js"),
		"--stdio", child, "--outputTransport", "ws", "--port", port, "--messagePath", "/message")
	answers(t, "http://127.0.0.1:"+port+"/nothing")
	s := p.shell(t)
	server := []string{"--url", "ws://127.0.0.1:" + port + "/message"}
	call := func(args ...string) []string {
		return append(append([]string{"tools", "call"}, args...), server...)
	}
	s.offers(t, everythingTools, server...)
	if o := s.OK(t, call("echo", "message=grüezi")...); o.Out != "Echo: grüezi\n" {
		t.Errorf("not the echo\n%s", o)
	}
	o := s.OK(t, call("get-structured-content", "location=New York", "-o", "json")...)
	if r := clitest.Decode[callResult](t, o); !strings.Contains(string(r.StructuredContent), "temperature") {
		t.Errorf("no structured content\n%s", o)
	}
	// supergateway loses responses to the server's requests, because it converts their ids to numbers. Such a call ends
	// with its time limit.
	s.config(t, map[string]any{"servers": map[string]any{"gateway": map[string]any{"url": server[1],
		"request_timeout": "5s"}}})
	if o := s.Run(t, "tools", "call", "-c", "tenon.yaml", "trigger-elicitation-request"); o.Status != 5 ||
		!strings.Contains(o.ErrOut, "timed out") {
		t.Errorf("want the call to time out\n%s", o)
	}
	if o := s.OK(t, call("echo", "message=still there")...); o.Out != "Echo: still there\n" {
		t.Errorf("the connection does not continue\n%s", o)
	}
}
