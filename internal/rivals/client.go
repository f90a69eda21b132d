package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tokenVariable is the environment variable with the bearer token of runClient.
const tokenVariable = "TENON_PEER_TOKEN"

// authorized adds the token to requests.
type authorized struct{}

func (authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+os.Getenv(tokenVariable))
	return http.DefaultTransport.RoundTrip(r)
}

// got is what a client gets from the gateway of tenon in package peers.
type got struct {
	Tools     []string `json:"tools"`
	Echo      string   `json:"echo"`
	Failed    bool     `json:"failed"`
	Failure   string   `json:"failure"`
	Counted   string   `json:"counted"`
	Progress  int      `json:"progress"`
	Resource  string   `json:"resource"`
	Resources []string `json:"resources"`
	Prompts   []string `json:"prompts"`
	Prompt    string   `json:"prompt"`
	Unknown   int64    `json:"unknown"`
}

// runClient connects the client of the official Go SDK to an MCP endpoint, and prints what it gets as JSON.
func runClient(ctx context.Context, url string) (err error) {
	progress := make(chan struct{}, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "peer-go", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			progress <- struct{}{}
		}})
	s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url,
		HTTPClient: &http.Client{Transport: authorized{}}}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var g got
	tools, err := s.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, t := range tools.Tools {
		g.Tools = append(g.Tools, t.Name)
	}
	slices.Sort(g.Tools)
	call := func(name string, args map[string]any) (text string, failed bool, err error) {
		params := &mcp.CallToolParams{Name: name, Arguments: args}
		params.SetProgressToken(name)
		r, err := s.CallTool(ctx, params)
		if err != nil {
			return "", false, err
		}
		c, _ := r.Content[0].(*mcp.TextContent)
		return c.Text, r.IsError, nil
	}
	if g.Echo, _, err = call("echo", map[string]any{"text": "grüezi"}); err != nil {
		return err
	}
	if g.Failure, g.Failed, err = call("fail", map[string]any{}); err != nil {
		return err
	}
	if g.Counted, _, err = call("count", map[string]any{"to": 3}); err != nil {
		return err
	}
	// The SDK may deliver notifications after the result that followed them.
	select {
	case <-progress:
		g.Progress = 1 + len(progress)
	case <-time.After(30 * time.Second):
	}
	read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: "peer://note"})
	if err != nil {
		return err
	}
	g.Resource = read.Contents[0].Text
	resources, err := s.ListResources(ctx, nil)
	if err != nil {
		return err
	}
	for _, r := range resources.Resources {
		g.Resources = append(g.Resources, r.URI)
	}
	prompts, err := s.ListPrompts(ctx, nil)
	if err != nil {
		return err
	}
	for _, p := range prompts.Prompts {
		g.Prompts = append(g.Prompts, p.Name)
	}
	prompt, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ann"}})
	if err != nil {
		return err
	}
	c, _ := prompt.Messages[0].Content.(*mcp.TextContent)
	g.Prompt = c.Text
	var refused *jsonrpc.Error
	if _, _, err = call("nosuch", map[string]any{}); errors.As(err, &refused) {
		g.Unknown = refused.Code
	}
	return json.NewEncoder(os.Stdout).Encode(g)
}
