package host_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// TestPrivateAddresses checks that policy.urls.allow_private: false prevents every connection to this machine, over any
// transport and by a tool of kind http. It also applies to a configuration that a program made, which was not checked
// as a file.
func TestPrivateAddresses(t *testing.T) {
	var conns atomic.Int32
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	web.Start()
	t.Cleanup(web.Close)
	no := false
	entry := func(transport, url string) servers.Config { return servers.Config{Transport: transport, URL: url} }
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }, Config: &config.Config{
		Policy: policy.Config{URLs: policy.URLs{AllowPrivate: &no}},
		Servers: map[string]servers.Config{
			"http": entry(servers.TransportHTTP, web.URL), "sse": entry(servers.TransportSSE, web.URL), "auto": entry(servers.TransportAuto, web.URL),
			"jsonrpc": entry(servers.TransportJSONRPC, web.URL), "websocket": entry(servers.TransportWebSocket, "ws"+strings.TrimPrefix(web.URL, "http")),
		},
		Tools: map[string]catalog.Tool{"get": {Kind: tenon.KindHTTP, Description: "x", Request: catalog.Request{URL: web.URL + "/x", AllowPrivate: true}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	_, problems, err := h.Tools().Snapshot(t.Context())
	if err != nil || len(problems) != 5 {
		t.Fatalf("%v, problems %v", err, problems)
	}
	for _, p := range problems {
		if tenon.ErrorCode(p.Err) != tenon.CodeDenied || !strings.Contains(p.Err.Error(), "127.0.0.1 is a private address, which is not connected to: policy.urls.allow_private is false") {
			t.Errorf("%s: %v", p.Server, p.Err)
		}
		if st := h.Service().Connections()[p.Server].Status(); st.State != servers.StateFailed && p.Server != "jsonrpc" || !st.Retry.IsZero() { // plain JSON-RPC opens no connection until the first call
			t.Errorf("%s: state %s, tried again at %s", p.Server, st.State, st.Retry)
		}
	}
	if _, _, err := host.CallTool(t.Context(), h, "get", json.RawMessage("{}"), nil); tenon.ErrorCode(err) != tenon.CodeDenied || !strings.Contains(err.Error(), "policy.urls.allow_private is false") {
		t.Errorf("http tool: %v", err)
	}
	if n := conns.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}
