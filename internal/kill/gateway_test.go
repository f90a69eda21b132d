package kill

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

// gatewayClient is a client with a tenon gateway process that it started.
type gatewayClient struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// gateway starts tenon gateway and begins a session.
func (f *field) gateway(t *testing.T) *gatewayClient {
	t.Helper()
	g := &gatewayClient{cmd: f.Command(context.Background(), "gateway", "-c", "tenon.yaml")}
	ownGroup(g.cmd)
	var err error
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.out = bufio.NewScanner(out)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.send(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	g.answer(t, 1)
	g.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return g
}

func (g *gatewayClient) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(g.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// call sends a call that needs approval.
func (g *gatewayClient) call(t *testing.T, n int) {
	t.Helper()
	g.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"unsafe_add",`+
		`"arguments":{"a":%d,"b":2}}}`, n))
}

// answer returns the answer to a request.
func (g *gatewayClient) answer(t *testing.T, id int) string {
	t.Helper()
	for g.out.Scan() {
		var m struct {
			ID     int
			Method string
		}
		if json.Unmarshal(g.out.Bytes(), &m) == nil && m.ID == id && m.Method == "" {
			return g.out.Text()
		}
	}
	t.Fatalf("tenon gateway ended without an answer to %d", id)
	return ""
}

// TestGW_27_KilledBetweenAskAndDecision kills tenon gateway while a call waits for a person. The next process makes the
// call after the decision, once, and an equal call of the client gets its result.
func TestGW_27_KilledBetweenAskAndDecision(t *testing.T) {
	t.Parallel()
	f := newField(t)
	for n := range gatewayKills(t, 2) { // the decision comes before the next process, or while it works
		g := f.gateway(t)
		g.call(t, n)
		var asked []approval
		for end := time.Now().Add(clitest.Patience); len(asked) == 0 && time.Now().Before(end); {
			asked = clitest.Decode[[]approval](t, f.OK(t, "approvals", "list", "-c", "tenon.yaml", "-o", "json"))
		}
		killGroup(g.cmd)
		_ = g.cmd.Wait()
		if len(asked) != 1 {
			t.Fatalf("%d calls wait: %+v", len(asked), asked)
		}
		early := n%2 == 0 // the decision is made while no process works on the call
		decide := func() { f.OK(t, "approvals", "allow", asked[0].ID, "-c", "tenon.yaml") }
		if early {
			decide()
		}
		g = f.gateway(t)
		g.call(t, n)
		if !early {
			decide()
		}
		if got := g.answer(t, 2); !strings.Contains(got, fmt.Sprint(n+2)) || strings.Contains(got, `"isError":true`) {
			t.Errorf("round %d: %s", n, got)
		}
		killGroup(g.cmd)
		_ = g.cmd.Wait()
		if got := f.effectsOf(t, asked[0].Run)["1.0"]; got != 1 {
			t.Errorf("round %d: the call was made %d times", n, got)
		}
		left := clitest.Decode[[]approval](t, f.OK(t, "approvals", "list", "-c", "tenon.yaml", "-o", "json"))
		if len(left) != 0 {
			t.Errorf("round %d: %+v wait", n, left)
		}
	}
}
