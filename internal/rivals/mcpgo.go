package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/tenonhq/tenon/internal/figures/bench"
)

// mcpGo is a client of mcp-go.
type mcpGo struct {
	client *client.Client
	stop   func() error
}

// dialMCPGo joins a client to the server that the command starts: mcp-go-stdio
// or mcp-go-http.
func dialMCPGo(ctx context.Context, name string, command ...string) (bench.Peer, error) {
	p := &mcpGo{stop: func() error { return nil }}
	var t transport.Interface
	switch name {
	case "mcp-go-stdio":
		t = transport.NewStdioWithOptions(command[0], nil, command[1:])
	case "mcp-go-http":
		url, stop, err := bench.StartHTTP(command...)
		if err != nil {
			return nil, err
		}
		p.stop = stop
		pool := &http.Transport{MaxIdleConns: 128, MaxIdleConnsPerHost: 128, DisableCompression: true}
		t, err = transport.NewStreamableHTTP(url, transport.WithHTTPBasicClient(&http.Client{Transport: pool}))
		if err != nil {
			return nil, errors.Join(err, stop())
		}
	default:
		return nil, fmt.Errorf("no rival %q", name)
	}
	p.client = client.NewClient(t, client.WithProtocolVersion(version2025))
	if err := p.client.Start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), p.stop())
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = version2025
	hello.Params.ClientInfo = mcp.Implementation{Name: "rivals", Version: "1"}
	if _, err := p.client.Initialize(ctx, hello); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting as %s: %w", name, err), p.Close())
	}
	return p, nil
}

// Call implements [bench.Peer].
func (p *mcpGo) Call(ctx context.Context, tool, text string) (string, error) {
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, map[string]any{"text": text}
	res, err := p.client.CallTool(ctx, r)
	if err != nil {
		return "", err
	}
	if len(res.Content) == 1 {
		if c, ok := res.Content[0].(mcp.TextContent); ok && !res.IsError {
			return c.Text, nil
		}
	}
	return "", fmt.Errorf("%s: not the one text that was expected", tool)
}

// Close implements [bench.Peer].
func (p *mcpGo) Close() error { return errors.Join(p.client.Close(), p.stop()) }

// serveMCPGo serves the two tools with mcp-go.
func serveMCPGo(name string) error {
	s := server.NewMCPServer("rivals", "1")
	for _, tool := range []string{bench.EchoTool, bench.StatTool} {
		s.AddTool(mcp.NewTool(tool, mcp.WithString("text")),
			func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				text, err := bench.Answer(tool, r.GetString("text", ""))
				if err != nil {
					return nil, err
				}
				return mcp.NewToolResultText(text), nil
			})
	}
	if name == "mcp-go-stdio" {
		return server.ServeStdio(s)
	}
	return bench.ServeHTTP(os.Stdin, os.Stdout, server.NewStreamableHTTPServer(s))
}
