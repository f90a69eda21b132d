package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// oursPeer is tenon's client, connected to tenon's server.
type oursPeer struct {
	client *mcp.Client
	stop   func() error
}

// dialOurs connects tenon's client to tenon's server over a dialed stream.
func dialOurs(ctx context.Context, protocol string, dial func(context.Context) (mcp.Stream, error),
	stop func() error) (bench.Peer, error) {
	c, err := mcp.Connect(ctx, mcp.ClientConfig{Dial: dial, Protocol: protocol, Name: "figures", Version: "1"})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	p := &oursPeer{c, stop}
	if got := c.Info().Protocol; got != protocol {
		return nil, errors.Join(fmt.Errorf("the server uses protocol %s, not %s", got, protocol), p.Close())
	}
	return p, nil
}

// dialOursStdio starts the command, which must run [serveOursStdio].
func dialOursStdio(ctx context.Context, protocol string, command ...string) (bench.Peer, error) {
	return dialOurs(ctx, protocol, func(ctx context.Context) (mcp.Stream, error) {
		return transport.DialStdio(ctx, transport.StdioConfig{Command: command[0], Args: command[1:], Env: os.Environ(),
			Stderr: func(line string) { fmt.Fprintln(os.Stderr, line) }})
	}, func() error { return nil })
}

// dialOursHTTP starts the command, which must run [serveOursHTTP].
func dialOursHTTP(ctx context.Context, protocol string, command ...string) (bench.Peer, error) {
	url, stop, err := bench.StartHTTP(command...)
	if err != nil {
		return nil, err
	}
	return dialOurs(ctx, protocol, func(context.Context) (mcp.Stream, error) {
		return transport.DialHTTP(transport.HTTPConfig{URL: url})
	}, stop)
}

// Call implements [bench.Peer]. It encodes the arguments for each call, as the floors do.
func (p *oursPeer) Call(ctx context.Context, tool, text string) (string, error) {
	args, err := json.Marshal(echoArguments{text})
	if err != nil {
		return "", err
	}
	r, err := p.client.Call(ctx, tenon.Call{Tool: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	if len(r.Content) != 1 || r.IsError {
		return "", fmt.Errorf("%s: not the one text that was expected: %.200s", tool, r.Raw)
	}
	return r.Content[0].Text, nil
}

// Close implements [bench.Peer].
func (p *oursPeer) Close() error { return errors.Join(p.client.Close(), p.stop()) }

type echoArguments struct {
	Text string `json:"text"`
}

// oursServer returns tenon's server with the two tools, and one for each size of a result.
func oursServer(sizes ...int) (*mcp.Server, error) {
	var tools []mcp.ServerTool
	for _, size := range sizes {
		text := strings.Repeat("x", size)
		tools = append(tools, mcp.ServerTool{Quick: true,
			Definition: json.RawMessage(`{"name":"` + largeTool + strconv.Itoa(size) +
				`","inputSchema":{"type":"object"}}`),
			Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
				return json.Marshal(&tenon.Result{Content: []tenon.Content{tenon.Text(text)}})
			}})
	}
	for _, name := range []string{bench.EchoTool, bench.StatTool} {
		tools = append(tools, mcp.ServerTool{
			Definition: json.RawMessage(`{"name":"` + name +
				`","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`),
			Call: func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
				var args echoArguments
				if err := json.Unmarshal(r.Arguments, &args); err != nil {
					return nil, err
				}
				text, err := bench.Answer(name, args.Text)
				if err != nil {
					return nil, err
				}
				return json.Marshal(&tenon.Result{Content: []tenon.Content{tenon.Text(text)}})
			},
			Quick: true, // handled in the reader, as in the floor's server
		})
	}
	return mcp.NewServer(mcp.ServerConfig{Name: "figures", Version: "1", Tools: tools})
}

// serveOursStdio serves the two tools over stdin and stdout.
func serveOursStdio(ctx context.Context) error {
	s, err := oursServer()
	if err != nil {
		return err
	}
	if err := s.Serve(ctx, transport.NewLines(os.Stdin, os.Stdout, 0)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// serveOursHTTP serves the two tools over Streamable HTTP, in both eras, and one for each size of a result.
func serveOursHTTP(sizes ...int) error {
	s, err := oursServer(sizes...)
	if err != nil {
		return err
	}
	return bench.ServeHTTP(os.Stdin, os.Stdout, s.HTTP(mcp.HTTPConfig{}))
}

var _ bench.Peer = (*oursPeer)(nil)
