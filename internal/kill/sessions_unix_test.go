//go:build unix

package kill

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
)

// Tokens of the owner and of another principal at all replicas.
const (
	ownToken = "own-token-0123456789abcdef0123456789"
	bobToken = "bob-token-0123456789abcdef0123456789"
)

// mcpClient is an MCP client of revision 2025-11-25 behind a load balancer: each request may go to another replica.
type mcpClient struct {
	session string
	token   string
}

// send sends a request. A message without a body is a GET or DELETE.
func (c *mcpClient) send(ctx context.Context, method, url, message string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if message != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("MCP-Protocol-Version", "2025-11-25")
	}
	return http.DefaultClient.Do(r)
}

// exchange sends a request and returns its status, the session of the answer, and its body.
func (c *mcpClient) exchange(ctx context.Context, method, url, message string) (status int, session, text string, err error) {
	ctx, stop := context.WithTimeout(ctx, clitest.Patience)
	defer stop()
	res, err := c.send(ctx, method, url, message)
	if err != nil {
		return 0, "", "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header.Get("Mcp-Session-Id"), string(b), err
}

// ask sends a request to the MCP endpoint of the replica at an address, and returns the status and the answer.
func (c *mcpClient) ask(t *testing.T, method, at, message string) (int, string) {
	t.Helper()
	status, session, text, err := c.exchange(t.Context(), method, at+"/mcp", message)
	if err != nil {
		t.Fatal(err)
	}
	c.session = cmp.Or(session, c.session)
	return status, text
}

// initialize begins a session at a replica.
func initialize(t *testing.T, at, token string) *mcpClient {
	t.Helper()
	c := &mcpClient{token: token}
	status, text := c.ask(t, http.MethodPost, at, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
		`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if status != http.StatusOK || c.session == "" {
		t.Fatalf("initialize: %d %s", status, text)
	}
	if status, text := c.ask(t, http.MethodPost, at, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", status, text)
	}
	return c
}

const (
	pingMessage = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	slowMessage = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"safe_slow","arguments":{"ms":3000}}}`
)

// listening returns the address of a replica, and adds its configuration of serve and a longer lease.
func (f *field) listening(t *testing.T) string {
	t.Helper()
	listen := "127.0.0.1:" + clitest.FreePort(t)
	text, err := os.ReadFile(filepath.Join(f.Dir, "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// With a lease of 1 s, a busy machine lets a replica that is alive expire.
	longer := strings.Replace(string(text), "lease: 1s", "lease: 10s", 1)
	f.WriteFile(t, "tenon.yaml", longer+"serve: {listen: \""+listen+"\", replica_url: \"http://"+listen+"\", auth: {secret: {env: OWN_TOKEN}, "+
		"tokens: {bob: {env: BOB_TOKEN}}}}\n")
	return "http://" + listen
}

// TestReplicas_Sessions begins MCP sessions at one tenon serve and continues them at another one on the same database:
// calls, the event stream, the end of a session. Sessions of another principal and made-up ids are unknown. Then the
// owner of the session drains, is killed, and is stopped: each time the client learns that it has to initialize again.
func TestReplicas_Sessions(t *testing.T) {
	a := newField(t)
	a.Env = append(a.Env, "OWN_TOKEN="+ownToken, "BOB_TOKEN="+bobToken)
	a.inPostgres(t, fmt.Sprintf("sessions_%d", os.Getpid()))
	b := a.replica(t)
	owner, other := a.listening(t), b.listening(t)
	first, second := a.serve(t), b.serve(t)

	c := initialize(t, owner, ownToken)
	if status, text := c.ask(t, http.MethodPost, other, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); status != http.StatusOK ||
		!strings.Contains(text, "safe_slow") {
		t.Errorf("tools/list through the other replica: %d %s", status, text)
	}
	t.Run("whom a session belongs to", func(t *testing.T) { c.belongs(t, owner, other) })
	t.Run("the end of a session", func(t *testing.T) {
		ends := initialize(t, other, ownToken)
		if status, text := ends.ask(t, http.MethodDelete, owner, ""); status != http.StatusNoContent {
			t.Errorf("DELETE through the replica without the session: %d %s", status, text)
		}
		if status, text := ends.ask(t, http.MethodPost, other, pingMessage); status != http.StatusNotFound {
			t.Errorf("after DELETE: %d %s", status, text)
		}
	})
	t.Run("a drain", func(t *testing.T) { c.drain(t, first, owner, other) })

	first = a.serve(t)
	c = initialize(t, owner, ownToken)
	killGroup(first.cmd)
	first.ended()
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		message := map[string]string{http.MethodPost: pingMessage}[method]
		if status, text := c.ask(t, method, other, message); status != http.StatusNotFound {
			t.Errorf("%s to a killed owner: %d %s", method, status, text)
		}
	}
	first = a.serve(t)
	if status, text := c.ask(t, http.MethodPost, other, pingMessage); status != http.StatusNotFound {
		t.Errorf("a session of the process before: %d %s", status, text)
	}
	c = initialize(t, owner, ownToken)
	pause(t, first.cmd.Process)
	if status, text := c.ask(t, http.MethodGet, other, ""); status != http.StatusNotFound {
		t.Errorf("GET to a stopped owner: %d %s", status, text)
	}
	if status, text := c.ask(t, http.MethodPost, other, pingMessage); status != http.StatusNotFound {
		t.Errorf("POST to a stopped owner: %d %s", status, text)
	}
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*serving{first, second} {
		if err := s.cmd.Process.Signal(interrupt); err != nil {
			t.Fatal(err)
		}
		if status, log := s.ended(); status != 0 {
			t.Errorf("tenon serve ended with status %d:\n%s", status, log)
		}
	}
}

// belongs uses the session with other tokens and with another id, at the replica that has it and at the other one.
func (c *mcpClient) belongs(t *testing.T, owner, other string) {
	bob := &mcpClient{token: bobToken, session: c.session}
	forged := &mcpClient{token: ownToken, session: c.session[:len(c.session)-4] + "AAAA"}
	unknown := &mcpClient{token: "not-a-token-0123456789abcdef", session: c.session}
	for _, at := range []string{owner, other} {
		if status, text := bob.ask(t, http.MethodPost, at, pingMessage); status != http.StatusNotFound {
			t.Errorf("the session of somebody else: %d %s", status, text)
		}
		if status, text := forged.ask(t, http.MethodPost, at, pingMessage); status != http.StatusNotFound {
			t.Errorf("a made-up id: %d %s", status, text)
		}
		if status, text := unknown.ask(t, http.MethodPost, at, pingMessage); status != http.StatusUnauthorized {
			t.Errorf("an unknown token: %d %s", status, text)
		}
	}
	if mine := initialize(t, owner, bobToken); mine.session != "" {
		if status, text := mine.ask(t, http.MethodPost, other, pingMessage); status != http.StatusOK {
			t.Errorf("the own session of another principal: %d %s", status, text)
		}
	}
}

// drain follows the event stream of a session and makes a call, both through another replica, while the owner of the
// session stops. A change of the lists arrives, the call gets its result, the stream ends, and the session is unknown
// then.
func (c *mcpClient) drain(t *testing.T, s *serving, owner, other string) {
	ctx, stop := context.WithTimeout(t.Context(), clitest.Patience)
	defer stop()
	stream, err := c.send(ctx, http.MethodGet, other+"/mcp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("the event stream through the other replica has status %d", stream.StatusCode)
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil { // the lists may have changed after a reload
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "list_changed") {
	}
	if !strings.Contains(lines.Text(), "list_changed") {
		t.Errorf("the event stream ended: %v", lines.Err())
	}
	answered := make(chan string, 1)
	go func() {
		status, _, text, err := c.exchange(ctx, http.MethodPost, other+"/mcp", slowMessage)
		answered <- fmt.Sprint(status, " ", text, err)
	}()
	for began := false; !began; { // the call is in the journal of the owner
		status, _, text, err := c.exchange(ctx, http.MethodGet, owner+"/api/v1/runs?state=working", "")
		var list struct{ Items []json.RawMessage }
		if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &list) != nil {
			t.Fatalf("the runs: %d %s %v", status, text, err)
		}
		began = len(list.Items) > 0
	}
	if err := s.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	if text := <-answered; !strings.HasPrefix(text, "200 ") || strings.Contains(text, "isError\":true") {
		t.Errorf("the call while the owner drains: %s", text)
	}
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the event stream of a draining owner: %v", err)
	}
	if status, log := s.ended(); status != 0 {
		t.Errorf("tenon serve ended with status %d:\n%s", status, log)
	}
	if status, text := c.ask(t, http.MethodPost, other, pingMessage); status != http.StatusNotFound {
		t.Errorf("after the drain: %d %s", status, text)
	}
}
