package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/mcp"
)

// Scale of GW. One tool of each server is denied to the principal that lists.
const (
	gwServers = 20
	gwTools   = 50
	gwLists   = 60
	gwClients = 1000
	gwWarm    = 50
)

// bytesChild serves the files of a folder, as they were when it started.
const bytesChild = "bytes"

// measureGW measures lists of the gateway and the memory of its idle clients.
func measureGW(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	var over, list, plain []float64
	idle := map[string][]float64{}
	for range s.rounds {
		l, p, err := s.gatewayLists(tenon, gwServers, gwTools, gwLists)
		if err != nil {
			return err
		}
		over, list, plain = append(over, l/p), append(list, l), append(plain, p)
		for _, protocol := range []string{mcp.LatestLegacy, mcp.Modern} {
			mb, err := s.gatewayIdle(tenon, protocol, gwWarm, gwClients)
			if err != nil {
				return err
			}
			idle[protocol] = append(idle[protocol], mb)
		}
	}
	s.add("GW.list", "the gateway's list of 1,000 tools of 20 servers for a principal that is denied 20 more, against "+
		"a process that sends its bytes: p50", "ratio", over)
	s.add("GW.list.ours", "the gateway's list of 1,000 tools: p50", "µs", list)
	s.add("GW.list.bytes", "its bytes from a bare process: p50", "µs", plain)
	s.add("GW.idle", "1,000 idle clients of the gateway with a session and an open stream, "+mcp.LatestLegacy+
		", add to tenon serve", "MB", idle[mcp.LatestLegacy])
	s.add("GW.idle.modern", "1,000 idle clients of the gateway with a subscription, "+mcp.Modern+
		", add to tenon serve", "MB", idle[mcp.Modern])
	return nil
}

// gatewayLists returns two durations in microseconds: a list of all tools over the gateway in 2026-07-28, page by page,
// and the same bytes from a process that only writes them. They take turns.
func (s *session) gatewayLists(tenon string, servers, tools, lists int) (mine, bare float64, err error) {
	dir, err := os.MkdirTemp(s.tmp, "gateway-")
	if err != nil {
		return 0, 0, err
	}
	config := map[string]any{}
	for i := range servers {
		config["s"+strconv.Itoa(i)] = map[string]any{"command": s.exe, "protocol": mcp.LatestLegacy,
			"args": []string{"child", "server", tableServer + strconv.Itoa(tools+1)}}
	}
	h, err := s.startServe(tenon, dir, map[string]any{"servers": config,
		"serve": map[string]any{"listen": "127.0.0.1:0"},
		"policy": map[string]any{"defaults": map[string]any{"approval": "never"}, "rules": []any{map[string]any{
			"when":    fmt.Sprintf(`principal == "local" && tool.remote_name == "tool_%d"`, tools),
			"verdict": "deny"}}}})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	c := newGatewayClient(s.ctx, h)
	defer c.client.CloseIdleConnections()
	requests, pages, err := c.pages(servers * tools)
	if err != nil {
		return 0, 0, err
	}
	kept := filepath.Join(dir, "pages")
	if err := os.Mkdir(kept, 0o700); err != nil {
		return 0, 0, err
	}
	for i, p := range pages {
		if err := os.WriteFile(filepath.Join(kept, strconv.Itoa(i)), p, 0o600); err != nil {
			return 0, 0, err
		}
	}
	floor, stop, err := bench.StartHTTP(s.exe, "child", bytesChild, kept)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var took [2][]float64
	for n := range lists + lists/5 {
		for k := range took {
			begun := time.Now()
			for i, request := range requests {
				at := c.url
				if k == 1 {
					at = floor + "?" + strconv.Itoa(i)
				}
				b, err := c.post(at, mcp.Modern, "tools/list", request)
				if err != nil || len(b) != len(pages[i]) {
					return 0, 0, errors.Join(fmt.Errorf("page %d: %d bytes of %d", i, len(b), len(pages[i])), err)
				}
			}
			if n >= lists/5 { // the first lists warm up
				took[k] = append(took[k], float64(time.Since(begun))/1e3)
			}
		}
	}
	return median(took[0]), median(took[1]), nil
}

// gatewayClient sends messages to the gateway of tenon serve without the code of tenon's client.
type gatewayClient struct {
	client     *http.Client
	ctx        context.Context
	url, token string
	buf        bytes.Buffer
}

func newGatewayClient(ctx context.Context, h *serveProcess) *gatewayClient {
	return &gatewayClient{ctx: ctx, url: h.url + "/mcp", token: h.token,
		client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
}

// send sends a request. A status other than 2xx is an error. The caller closes the body.
func (c *gatewayClient) send(verb, at, body string, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(c.ctx, verb, at, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+c.token)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.client.Do(r)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, 1000))
	return nil, errors.Join(fmt.Errorf("%s %s: %s: %s", verb, at, res.Status, b), err, res.Body.Close())
}

// post sends a message and returns the response, which is valid until the next one.
func (c *gatewayClient) post(at, protocol, method, body string) ([]byte, error) {
	res, err := c.send(http.MethodPost, at, body, "MCP-Protocol-Version", protocol, "Mcp-Method", method)
	if err != nil {
		return nil, err
	}
	c.buf.Reset()
	_, err = c.buf.ReadFrom(res.Body)
	return c.buf.Bytes(), errors.Join(err, res.Body.Close())
}

// pages lists the tools, of which there must be n, and returns the requests and the responses.
func (c *gatewayClient) pages(n int) (requests []string, pages [][]byte, err error) {
	cursor, listed := "", 0
	for {
		request := modernRequest("tools/list", cursor)
		b, err := c.post(c.url, mcp.Modern, "tools/list", request)
		if err != nil {
			return nil, nil, err
		}
		var page struct {
			Result struct {
				Tools      []json.RawMessage `json:"tools"`
				NextCursor string            `json:"nextCursor"`
			} `json:"result"`
		}
		if err := json.Unmarshal(b, &page); err != nil {
			return nil, nil, fmt.Errorf("this is not a list: %.200s: %w", b, err)
		}
		requests, pages = append(requests, request), append(pages, bytes.Clone(b))
		listed += len(page.Result.Tools)
		if page.Result.NextCursor == "" || listed > n {
			break
		}
		cursor = `"cursor":` + strconv.Quote(page.Result.NextCursor) + `,`
	}
	if listed != n {
		return nil, nil, fmt.Errorf("the list has %d tools, not %d", listed, n)
	}
	return requests, pages, nil
}

// modernRequest returns a request of 2026-07-28 with members of its params, each with a comma.
func modernRequest(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + mcp.Modern +
		`","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"figures","version":"1"}}}}`
}

// serveBytes is the process of the floor of GW.list. The query names a file.
func serveBytes(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	kept := map[string][]byte{}
	for _, f := range files {
		if kept[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return bench.ServeHTTP(os.Stdin, os.Stdout, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // like the gateway, it reads the whole request
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(kept[r.URL.RawQuery]) // fails if the client has gone
	}))
}
