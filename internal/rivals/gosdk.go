package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tenonhq/tenon/internal/figures/bench"
)

// goSDK is a client of the official Go SDK.
type goSDK struct {
	session *mcp.ClientSession
	stop    func() error
}

// dialGoSDK joins a client to the server that the command starts: go-sdk-stdio,
// go-sdk-http or go-sdk-http-2026.
func dialGoSDK(ctx context.Context, name string, command ...string) (bench.Peer, error) {
	p := &goSDK{stop: func() error { return nil }}
	var transport mcp.Transport
	options := &mcp.ClientSessionOptions{ProtocolVersion: version2025}
	switch name {
	case "go-sdk-stdio":
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stderr = os.Stderr
		transport = &mcp.CommandTransport{Command: cmd}
	case "go-sdk-http", "go-sdk-http-2026":
		url, stop, err := bench.StartHTTP(command...)
		if err != nil {
			return nil, err
		}
		p.stop = stop
		pool := &http.Transport{MaxIdleConns: 128, MaxIdleConnsPerHost: 128, DisableCompression: true}
		transport = &mcp.StreamableClientTransport{
			Endpoint: url, HTTPClient: &http.Client{Transport: pool}, DisableStandaloneSSE: true,
		}
		if name == "go-sdk-http-2026" {
			options.ProtocolVersion = "2026-07-28"
		}
	default:
		return nil, fmt.Errorf("no rival %q", name)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "rivals", Version: "1"},
		&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	var err error
	if p.session, err = client.Connect(ctx, transport, options); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting as %s: %w", name, err), p.stop())
	}
	if got := p.session.InitializeResult().ProtocolVersion; got != options.ProtocolVersion {
		return nil, errors.Join(fmt.Errorf("%s speaks %s, not %s", name, got, options.ProtocolVersion), p.Close())
	}
	return p, nil
}

// Call implements [bench.Peer].
func (p *goSDK) Call(ctx context.Context, tool, text string) (string, error) {
	res, err := p.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": text}})
	if err != nil {
		return "", err
	}
	if len(res.Content) == 1 {
		if c, ok := res.Content[0].(*mcp.TextContent); ok && !res.IsError {
			return c.Text, nil
		}
	}
	return "", fmt.Errorf("%s: not the one text that was expected", tool)
}

// Close implements [bench.Peer].
func (p *goSDK) Close() error { return errors.Join(p.session.Close(), p.stop()) }

// serveGoSDK serves the two tools with the official Go SDK.
func serveGoSDK(ctx context.Context, name string) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "rivals", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	for _, tool := range []string{bench.EchoTool, bench.StatTool} {
		s.AddTool(&mcp.Tool{Name: tool, InputSchema: schema},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var args struct {
					Text string `json:"text"`
				}
				if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
					return nil, err
				}
				text, err := bench.Answer(tool, args.Text)
				if err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
			})
	}
	if name == "go-sdk-stdio" {
		return s.Run(ctx, &mcp.StdioTransport{})
	}
	return bench.ServeHTTP(os.Stdin, os.Stdout, mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{JSONResponse: true, Stateless: name == "go-sdk-http-2026"}))
}
