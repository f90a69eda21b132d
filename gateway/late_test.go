package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_10_EndedRunGetsNoCredentials checks that a client that fetches the result of an ended run gives it no
// credentials again, which nothing would release. While the run waits, the client's credentials replace the earlier
// ones.
func TestGW_10_EndedRunGetsNoCredentials(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, "servers: {up: {url: '"+u.url+"', caller_credentials: {bearer: true}}}\ngateway: {park: 100ms}\n", gateway.Config{})
	call := func() string {
		t.Helper()
		_, _, body := w.post(t, annaToken, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{},"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"MCP-Protocol-Version", mcp.Modern, "Mcp-Method", "tools/call", "Mcp-Name", "write",
			"Tenon-Server-Credentials", `{"up":{"bearer":"token-of-anna-at-up"}}`)
		return body
	}
	if body := call(); !strings.Contains(body, "waits for a person") {
		t.Fatalf("parked: %s", body)
	}
	run := w.waiting(t, 1)[0].Run
	if err := w.host.Service().Callers().SetCredentials(t.Context(), run, nil); err != nil {
		t.Fatalf("the waiting run has no credentials: %v", err)
	}
	w.decide(t, run, tenon.Allow)
	until(t, "the end of the run", func() bool {
		row, err := w.host.Runs().Get(t.Context(), run)
		return err == nil && row.State.Ended() && tenon.ErrorCode(w.host.Service().Callers().SetCredentials(t.Context(), run, nil)) == tenon.CodeAuth
	})
	if body := call(); !strings.Contains(body, "written") {
		t.Errorf("fetched: %s", body)
	}
	if err := w.host.Service().Callers().SetCredentials(t.Context(), run, nil); tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Errorf("the ended run has credentials again: %v", err)
	}
}

// TestGW_11_LinksByHand checks that a principal without a sign-in gets a link for a completion, a subscription, a task,
// and a workflow whose step needs one. A client is asked to visit it only where a repeated request has no effects.
func TestGW_11_LinksByHand(t *testing.T) {
	a := serveAccounts(t)
	w := openWith(t, accountsConfig(a, "", "sign_in: true", "tools: {flow: {kind: workflow, path: steps.yaml, annotations: {read_only: true}}}\n"),
		map[string]string{"secret.txt": "secret-of-tenon-0123456789", "steps.yaml": steps})
	plain, visits := w.client(t, mcp.LatestLegacy, annaToken), w.client(t, mcp.LatestLegacy, annaToken, visitsURLs)
	tab := mcp.CompletionRequest{Prompt: "greet", Argument: "whom"}
	if _, err := plain.Complete(t.Context(), tab); err == nil || !strings.Contains(err.Error(), "/sign-in/") {
		t.Errorf("a completion: %v", err)
	}
	if _, err := visits.Complete(t.Context(), tab); err == nil || !strings.Contains(err.Error(), "-32042") {
		t.Errorf("a completion of a client that visits: %v", err)
	}
	if _, err := w.client(t, mcp.Modern, annaToken, visitsURLs).Complete(t.Context(), tab); err == nil || !strings.Contains(err.Error(), "/sign-in/") {
		t.Errorf("a completion of a modern client: %v", err)
	}
	for name, c := range map[string]*mcp.Client{"/sign-in/": plain, "-32042": visits} {
		err := c.Watch(t.Context(), "mem://acc", func() {}, func(string) {})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a subscription: %v, want %s", err, name)
		}
	}
	r, err := visits.Call(t.Context(), tenon.Call{Tool: "flow"})
	if err != nil || !r.IsError || !strings.Contains(r.Text(), "/sign-in/") {
		t.Fatalf("a workflow: %+v, %v", r, err)
	}
	_, link, _ := strings.Cut(r.Text(), "Open ")
	link, _, _ = strings.Cut(link, " ")
	signIn(t, link, annaToken)
	if r, err := visits.Call(t.Context(), tenon.Call{Tool: "flow"}); err != nil || r.IsError {
		t.Errorf("after the sign-in: %+v, %v", r, err)
	}
	if found, err := plain.Complete(t.Context(), tab); err != nil || len(found.Values) != 1 {
		t.Errorf("a completion after the sign-in: %+v, %v", found, err)
	}
}

// TestGW_11_LinkOfTask checks that the result of a task whose principal has not signed in contains a link.
func TestGW_11_LinkOfTask(t *testing.T) {
	a := serveAccounts(t)
	w := openAccounts(t, a, "", "sign_in: true", "policy: {rules: [{when: 'tool.remote_name == \"echo\"', verdict: ask}]}\n")
	get := func(method, name, params string) string {
		t.Helper()
		r, failure := w.modern(t, annaToken, tasksDeclared, method, name, params)
		if failure != "" {
			t.Fatal(failure)
		}
		return r
	}
	r := get("tools/call", "echo", `"name":"echo","arguments":{}`)
	id := rawjson.String(rawjson.Field([]byte(r), "taskId"))
	if id == "" {
		t.Fatalf("no task: %s", r)
	}
	w.decide(t, id, tenon.Allow)
	until(t, "the end of the task", func() bool {
		r = get("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
		return rawjson.String(rawjson.Field([]byte(r), "status")) != "working"
	})
	if !strings.Contains(r, "/sign-in/") {
		t.Errorf("%s", r)
	}
	status, _, _ := newBrowser(t).visit(t, http.MethodPost, "http"+strings.SplitN(strings.SplitN(r, "Open http", 2)[1], " ", 2)[0], annaToken)
	if status != http.StatusOK {
		t.Errorf("the link: %d", status)
	}
}
