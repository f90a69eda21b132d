package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/tenonhq/tenon/internal/sse"
	"github.com/tenonhq/tenon/mcp"
)

// gatewayIdle connects clients to the gateway of tenon serve, and returns the resident memory in MB that they add to
// its process. Each has listed the tools and holds a connection: in the older era a session with the stream of its
// notifications, in the modern one a subscription to changes of lists. The warm ones fill pools that exist in any case.
func (s *session) gatewayIdle(tenon, protocol string, warm, n int) (mb float64, err error) {
	dir, err := os.MkdirTemp(s.tmp, "gateway-")
	if err != nil {
		return 0, err
	}
	h, err := s.startServe(tenon, dir, map[string]any{
		"servers": map[string]any{"up": map[string]any{"command": s.exe, "args": []string{"child", "server", ours},
			"protocol": mcp.LatestLegacy}},
		"serve": map[string]any{"listen": "127.0.0.1:0"}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	c := newGatewayClient(ctx, h)
	var open []io.Closer
	defer func() {
		cancel()
		for _, o := range open {
			_ = o.Close() // cancelled by ctx
		}
		c.client.CloseIdleConnections()
	}()
	join := func(n int) error {
		for range n {
			stream, err := c.stay(protocol)
			if err != nil {
				return fmt.Errorf("client %d: %w", len(open), err)
			}
			open = append(open, stream)
		}
		return nil
	}
	if err := join(warm); err != nil {
		return 0, err
	}
	before, err := h.resident()
	if err != nil {
		return 0, err
	}
	if err := join(n); err != nil {
		return 0, err
	}
	after, err := h.resident()
	return float64(after-before) / 1e6, err
}

// stay connects a client, lists the tools, and returns its open stream.
func (c *gatewayClient) stay(protocol string) (io.Closer, error) {
	if protocol == mcp.Modern {
		return c.subscribe()
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"`
	session := ""
	for _, m := range []string{
		call + `initialize","params":{"protocolVersion":"` + protocol +
			`","capabilities":{},"clientInfo":{"name":"figures","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		call + `tools/list"}`,
	} {
		res, err := c.send(http.MethodPost, c.url, m, sessionHeaders(session, protocol)...)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return nil, err
		}
		if session == "" {
			session = res.Header.Get("Mcp-Session-Id")
		}
		if session == "" || strings.Contains(m, "tools/list") && !strings.Contains(string(b), `"inputSchema"`) {
			return nil, fmt.Errorf("no session, or no list: %.200s", b)
		}
	}
	res, err := c.send(http.MethodGet, c.url, "", sessionHeaders(session, protocol)...)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// sessionHeaders returns the headers of a request of a session; none before there is one.
func sessionHeaders(session, protocol string) []string {
	if session == "" {
		return nil
	}
	return []string{"Mcp-Session-Id", session, "MCP-Protocol-Version", protocol}
}

// subscribe is stay of the modern era. It waits until the gateway has confirmed the subscription.
func (c *gatewayClient) subscribe() (io.Closer, error) {
	b, err := c.post(c.url, mcp.Modern, "tools/list", modernRequest("tools/list", ""))
	if err != nil || !strings.Contains(string(b), `"inputSchema"`) {
		return nil, errors.Join(fmt.Errorf("no list: %.200s", b), err)
	}
	const listen = "subscriptions/listen"
	res, err := c.send(http.MethodPost, c.url, modernRequest(listen, `"notifications":{"toolsListChanged":true},`),
		"MCP-Protocol-Version", mcp.Modern, "Mcp-Method", listen)
	if err != nil {
		return nil, err
	}
	r := sse.NewReader(res.Body, 1<<20)
	defer r.Close()
	e, err := r.Next()
	if err != nil || !strings.Contains(string(e.Data), "notifications/subscriptions/acknowledged") {
		return nil, errors.Join(fmt.Errorf("the subscription is not confirmed: %.200s", e.Data), err, res.Body.Close())
	}
	return res.Body, nil
}
