// Package sdkclient connects the client of the official Go SDK to the gateway of tenon, for package internal/peers:
//
//	peers ──starts──► rivals client URL          (this module's version of the SDK)
//	      ──starts──► oldsdk URL                 (module internal/peers/oldsdk: the version before it)
//	                      └─► Run ──MCP──► tenon serve
//
// It only uses what both versions of the SDK have. The program prints what the client got, and the test compares that
// with what the clients of other languages got. Nothing of tenon is imported, so that nothing of tenon can hide a
// mistake of the gateway. Package rivals has the servers and the measured calls of the SDK; this package is separate
// because a nested module with another version of the SDK imports it.
package sdkclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tokenVariable is the environment variable with the bearer token of [Run].
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
	Grown     int      `json:"grown"`
	Changes   int      `json:"changes"`
	Quiet     int      `json:"quiet"`
}

// connectClient connects the client of the official Go SDK to an MCP endpoint. The channels receive a value for each
// notification of progress, and of a changed list of tools.
func connectClient(ctx context.Context, url string, progress, changes chan struct{}) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "peer-go", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			progress <- struct{}{}
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changes <- struct{}{} }})
	return client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url,
		HTTPClient: &http.Client{Transport: authorized{}}}, nil)
}

// namesOf returns the sorted names of the tools for whose name is returns true.
func namesOf(ctx context.Context, s *mcp.ClientSession, is func(string) bool) (names []string, err error) {
	tools, err := s.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, t := range tools.Tools {
		if is(t.Name) {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// grow has the server add tools, and counts the notifications to the client and to another one, at the endpoint
// url/quiet, whose tools do not change.
func (g *got) grow(ctx context.Context, url string, s *mcp.ClientSession, changes chan struct{}) (err error) {
	quiet := make(chan struct{}, 100)
	other, err := connectClient(ctx, url+"/quiet", make(chan struct{}, 100), quiet)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	if _, err := other.ListTools(ctx, nil); err != nil { // clients are notified of changes of lists that they have read
		return err
	}
	mine := fmt.Sprintf("go_%d", os.Getpid())
	params := &mcp.CallToolParams{Name: "grow", Arguments: map[string]any{"name": mine}}
	if _, err := s.CallTool(ctx, params); err != nil {
		return err
	}
	select {
	case <-changes:
		time.Sleep(time.Second) // for more notifications than there should be
		g.Changes = 1 + len(changes)
	case <-time.After(30 * time.Second):
	}
	g.Quiet = len(quiet)
	grown, err := namesOf(ctx, s, func(name string) bool { return strings.HasPrefix(name, "grown_"+mine+"_") })
	g.Grown = len(grown)
	return err
}

// Run connects to an MCP endpoint and prints what it gets as JSON.
func Run(ctx context.Context, url string) (err error) {
	progress, changes := make(chan struct{}, 100), make(chan struct{}, 100)
	s, err := connectClient(ctx, url, progress, changes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var g got
	g.Tools, err = namesOf(ctx, s, func(name string) bool { return !strings.HasPrefix(name, "grow") })
	if err != nil {
		return err
	}
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
	if err := g.grow(ctx, url, s, changes); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(g)
}
