package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// The children of P3 and P4: the client of a path, and the proxy to a URL.
const (
	pathChild  = "path"
	proxyChild = "proxy"
	// largeTool begins the names of the backend's tools whose results have a size.
	largeTool = "large"
	// oursLarge is the backend.
	oursLarge = "ours-large"
)

// pathPeer is a client at one end of a path.
type pathPeer struct {
	client *mcp.Client
	stat   *mcp.Client // reaches the server directly; nil: there is none
	middle []int       // processes in between, whose CPU counts
	tool   string      // called in place of the echo tool
	dir    string      // of tenon serve
	ends   []func() error
}

// runPath is the process of a path: KIND|PROTOCOL|SIZE|TENON.
func runPath(ctx context.Context, spec string) error {
	part := strings.Split(spec, "|")
	if len(part) != 4 {
		return fmt.Errorf("path %q", spec)
	}
	size, err := strconv.Atoi(part[2])
	if err != nil {
		return err
	}
	switch part[0] {
	case pathEcho:
		return runEcho(ctx)
	case pathCommits:
		return runCommits(ctx, part[1], part[3])
	}
	p := &pathPeer{}
	if size > 0 {
		p.tool = largeTool + part[2]
	}
	if err := p.open(ctx, part[0], part[1], part[3]); err != nil {
		return errors.Join(err, p.Close())
	}
	return errors.Join(bench.Serve(ctx, os.Stdin, os.Stdout, p), p.Close())
}

func (p *pathPeer) open(ctx context.Context, kind, protocol, program string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	upstream := map[string]any{"command": exe, "args": []string{"child", "server", ours}, "protocol": protocol}
	backend := ""
	if kind != pathBridge {
		url, stop, err := bench.StartHTTP(exe, "child", "server", oursLarge)
		if err != nil {
			return err
		}
		p.ends = append(p.ends, stop)
		backend = url
		upstream = map[string]any{"url": backend, "protocol": protocol}
		if p.stat, err = p.dial(ctx, protocol, backend, ""); err != nil {
			return err
		}
	}
	target, token := backend, ""
	switch kind {
	case pathProxy:
		cmd := exec.Command(exe, "child", proxyChild, backend)
		target, err = p.start(cmd)
	case pathHub, pathBridge:
		target, token, err = p.serve(program, upstream, nil)
	case pathDurable:
		target, token, err = p.serve(program, upstream, map[string]any{"day": map[string]any{"tool_calls": 1 << 30}})
	}
	if err != nil {
		return err
	}
	p.client, err = p.dial(ctx, protocol, target, token)
	return err
}

// start starts a process that runs [bench.ServeHTTP], and returns its URL.
func (p *pathPeer) start(cmd *exec.Cmd) (string, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	p.middle = append(p.middle, cmd.Process.Pid)
	p.ends = append(p.ends, func() error { return errors.Join(in.Close(), cmd.Wait()) })
	var at string
	return at, json.NewDecoder(out).Decode(&at)
}

// serve starts tenon serve with one server, a rule and budgets, and returns the URL of its endpoint and the token.
func (p *pathPeer) serve(program string, upstream, budgets map[string]any) (at, token string, err error) {
	dir, err := os.MkdirTemp("", "tenon-figures-hub-")
	if err != nil {
		return "", "", err
	}
	p.ends = append(p.ends, func() error { return os.RemoveAll(dir) })
	p.dir = dir
	s := &session{}
	h, err := s.startServe(program, dir, map[string]any{
		"budgets": budgets,
		"servers": map[string]any{"up": upstream},
		"serve":   map[string]any{"listen": "127.0.0.1:0"},
		"policy": map[string]any{"defaults": map[string]any{"approval": "never"}, "rules": []any{map[string]any{
			"when": `tool.remote_name == "echo" && args.text == "never"`, "verdict": "deny"}}},
	})
	if err != nil {
		return "", "", err
	}
	p.middle = append(p.middle, h.cmd.Process.Pid)
	p.ends = append(p.ends, h.stop)
	if err := os.MkdirAll(filepath.Join(dir, ".tenon"), 0o700); err != nil {
		return "", "", err
	}
	return strings.TrimSuffix(h.url, "/") + "/mcp", h.token, nil
}

func (p *pathPeer) dial(ctx context.Context, protocol, at, token string) (*mcp.Client, error) {
	headers := map[string]string{}
	if token != "" {
		headers["Authorization"] = "Bearer " + token
	}
	c, err := mcp.Connect(ctx, mcp.ClientConfig{Protocol: protocol, Name: "figures", Version: "1",
		Dial: func(context.Context) (mcp.Stream, error) {
			return transport.DialHTTP(transport.HTTPConfig{URL: at, Headers: headers})
		}})
	if err == nil {
		p.ends = append(p.ends, c.Close)
	}
	return c, err
}

// Call implements [bench.Peer].
func (p *pathPeer) Call(ctx context.Context, tool, text string) (string, error) {
	client := p.client
	name := tool
	switch {
	case tool == bench.StatTool && p.stat != nil:
		client = p.stat
	case tool == bench.EchoTool && p.tool != "":
		name = p.tool
	}
	args, err := json.Marshal(echoArguments{text})
	if err != nil {
		return "", err
	}
	r, err := client.Call(ctx, tenon.Call{Tool: name, Arguments: args})
	if err != nil {
		return "", err
	}
	if len(r.Content) != 1 || r.IsError {
		return "", fmt.Errorf("%s: not the one text that was expected: %.200s", tool, r.Raw)
	}
	got := r.Content[0].Text
	switch {
	case name == p.tool && p.tool != "":
		if largeTool+strconv.Itoa(len(got)) != p.tool {
			return "", fmt.Errorf("%s: a result of %d bytes", name, len(got))
		}
		return text, nil
	case tool == bench.StatTool:
		return p.used(got)
	}
	return got, nil
}

// used adds the CPU of the processes in between to the stat of the server.
func (p *pathPeer) used(stat string) (string, error) {
	var s bench.Stat
	if err := json.Unmarshal([]byte(stat), &s); err != nil {
		return "", err
	}
	for _, pid := range p.middle {
		d, err := clockOf(pid)
		if err != nil {
			return "", err
		}
		s.CPU += int64(d)
	}
	b, err := json.Marshal(s)
	return string(b), err
}

// Close implements [bench.Peer].
func (p *pathPeer) Close() (err error) {
	for i := len(p.ends) - 1; i >= 0; i-- {
		err = errors.Join(err, p.ends[i]())
	}
	return err
}

// serveProxy is the process of the reverse proxy.
func serveProxy(backend string) error {
	to, err := url.Parse(backend)
	if err != nil {
		return err
	}
	to.Path = ""
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{MaxIdleConns: 128, MaxIdleConnsPerHost: 128, DisableCompression: true}}
	return bench.ServeHTTP(os.Stdin, os.Stdout, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise the server takes the rest of the request's body when an answer is larger than its buffer. The
		// transport, which has yet to see the end of that body, then closes its connection in the middle of the answer.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}))
}

// echoPeer is the client of a bare HTTP echo.
type echoPeer struct {
	client http.Client
	url    string
	stop   func() error
}

func runEcho(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	at, stop, err := bench.StartHTTP(exe, "child", "server", pathEcho)
	if err != nil {
		return err
	}
	p := &echoPeer{url: at, stop: stop, client: http.Client{Transport: &http.Transport{MaxIdleConns: 128,
		MaxIdleConnsPerHost: 128, DisableCompression: true}}}
	return errors.Join(bench.Serve(ctx, os.Stdin, os.Stdout, p), p.Close())
}

// Call implements [bench.Peer].
func (p *echoPeer) Call(ctx context.Context, tool, text string) (string, error) {
	if tool == bench.StatTool {
		return bench.Answer(tool, text) // the CPU of the server is not needed
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader([]byte(text)))
	if err != nil {
		return "", err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(resp.Body)
	return string(b), errors.Join(err, resp.Body.Close())
}

// Close implements [bench.Peer].
func (p *echoPeer) Close() error {
	p.client.CloseIdleConnections()
	return p.stop()
}

// handleEcho answers with the body.
func handleEcho(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = w.Write(b) // fails if the client has gone
}

var (
	_ bench.Peer = (*pathPeer)(nil)
	_ bench.Peer = (*echoPeer)(nil)
)
