package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// rawRelay is a relay whose client sends and reads lines.
func rawRelay(t *testing.T, w *world) (send func(string), next func() string) {
	t.Helper()
	network := &moving{}
	network.to.Store(&w.url)
	here, there := io.Pipe()
	back, forth := io.Pipe()
	lines := transport.NewLines(here, forth, 0)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = gateway.Relay(ctx, lines, gateway.RelayConfig{URL: "http://tenon/mcp", Network: network}) // it ends with ctx
	}()
	got := make(chan string, 100)
	go func() {
		defer close(read)
		for in := bufio.NewScanner(back); in.Scan(); {
			got <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = there.Close()
		cancel()
		_ = back.Close()
		<-done
		<-read
	})
	return func(line string) {
			t.Helper()
			if _, err := io.WriteString(there, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}, func() string {
			t.Helper()
			select {
			case line := <-got:
				return line
			case <-time.After(20 * time.Second):
				t.Fatal("the relay says nothing")
				return ""
			}
		}
}

// waitTool waits until the returned channel gives it leave, or until the call is cancelled.
func waitTool() (tool mcp.ServerTool, began chan struct{}, leave chan struct{}) {
	began, leave = make(chan struct{}, 10), make(chan struct{}, 10)
	return mcp.ServerTool{
		Definition: json.RawMessage(`{"name":"wait","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(ctx context.Context, _ *mcp.ToolRequest) (json.RawMessage, error) {
			began <- struct{}{}
			select {
			case <-leave:
			case <-ctx.Done():
			}
			return json.RawMessage(`{"content":[{"type":"text","text":"waited"}]}`), ctx.Err()
		}}, began, leave
}

// TestGW_1_IDsOfARelay checks what the relay answers to the ids of requests: a second request with the id of a running
// one is refused, in a way that cannot be read as the answer to the first; a cancelled request gets no answer; and an
// id can be used again afterwards.
func TestGW_1_IDsOfARelay(t *testing.T) {
	tool, began, leave := waitTool()
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, tool), ""), gateway.Config{})
	for era := range eras {
		t.Run(era, func(t *testing.T) {
			send, next := rawRelay(t, w)
			request := func(method, params string) string {
				return strings.Replace(modern(1, method, params, "c"), `"id":1`, `"id":7`, 1)
			}
			if era == "legacy" {
				request = func(method, params string) string {
					return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + strings.TrimSuffix(params, ",") + `}}`
				}
				send(initialize("2025-11-25", "{}", "c", "1"))
				if got := next(); !strings.Contains(got, `"serverInfo"`) {
					t.Fatal(got)
				}
				send(initialized)
			}
			wait := request("tools/call", `"name":"wait","arguments":{},`)
			send(wait)
			<-began
			send(request("tools/list", ""))
			if got := next(); !strings.Contains(got, `"id":null,"error"`) || !strings.Contains(got, "the id 7 belongs to a request") {
				t.Errorf("the second request: %s", got)
			}
			leave <- struct{}{}
			if got := next(); !strings.Contains(got, `"id":7,"result"`) || !strings.Contains(got, "waited") {
				t.Errorf("the first request: %s", got)
			}
			send(wait)
			<-began
			send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
			time.Sleep(100 * time.Millisecond) // an answer would come now
			send(request("tools/list", ""))
			if got := next(); !strings.Contains(got, `"id":7,"result"`) || !strings.Contains(got, `"tools"`) {
				t.Errorf("the request after the cancelled one: %s", got)
			}
			send(`[{"jsonrpc":"2.0","method":"notifications/x"},` + request("tools/list", "") + `]`)
			if got := next(); !strings.Contains(got, `"id":7,"result"`) {
				t.Errorf("a request in a batch: %s", got)
			}
		})
	}
}
