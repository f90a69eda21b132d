package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/mcp/elicit"
	"github.com/tenonhq/tenon/servers"
)

// client runs the client side of a scenario.
func client(ctx context.Context, name, url string) error {
	cfg := servers.Config{URL: url}
	if strings.HasPrefix(name, "auth/") {
		var err error
		if cfg.Auth, err = account(name); err != nil {
			return err
		}
	}
	s := servers.New("suite", cfg, servers.Options{Version: "0", Sign: visitor{},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	drive := scenarios[name]
	if drive == nil {
		drive = callAll
	}
	return errors.Join(drive(ctx, s), s.Close())
}

// scenarios lists the scenarios that do more than calling each tool once.
var scenarios = map[string]func(context.Context, *servers.Server) error{
	"http-standard-headers":            everything,
	"http-custom-headers":              callContext,
	"sep-2322-client-request-state":    callAll,
	"json-schema-2020-12-preservation": echoSchema,
}

// callAll lists the tools and calls each of them, with 5 for numbers and a word for strings.
func callAll(ctx context.Context, s *servers.Server) error {
	tools, err := s.List(ctx)
	if err != nil {
		return err
	}
	for _, t := range tools {
		if _, err := call(ctx, s, t.Remote, sample(t.Input)); err != nil {
			return err
		}
	}
	return nil
}

// everything requests every list and calls every method once.
func everything(ctx context.Context, s *servers.Server) error {
	if err := callAll(ctx, s); err != nil {
		return err
	}
	prompts, err := s.Prompts(ctx)
	if err != nil {
		return err
	}
	for _, p := range prompts {
		if _, err := s.Prompt(ctx, p.Name, nil); err != nil {
			return err
		}
	}
	resources, err := s.Resources(ctx)
	if err != nil {
		return err
	}
	for _, r := range resources {
		if r.URI == "" {
			continue
		}
		if _, err := s.Read(ctx, r.URI); err != nil {
			return err
		}
	}
	return nil
}

// callContext makes the calls that the suite specifies.
func callContext(ctx context.Context, s *servers.Server) error {
	var given struct {
		ToolCalls []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given); err != nil {
		return err
	}
	if _, err := s.List(ctx); err != nil {
		return err
	}
	for _, c := range given.ToolCalls {
		if _, err := call(ctx, s, c.Name, c.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema passes the schema of one tool as the argument of another.
func echoSchema(ctx context.Context, s *servers.Server) error {
	tools, err := s.List(ctx)
	if err != nil {
		return err
	}
	for _, t := range tools {
		if t.Remote == "json_schema_2020_12_tool" {
			_, err = call(ctx, s, "json_schema_echo", json.RawMessage(fmt.Sprintf(`{"schema":%s}`, t.Input)))
		}
	}
	return err
}

// call calls a tool as a run does: it answers the server's requests and, in the modern era, repeats the call with the
// answers.
func call(ctx context.Context, s *servers.Server, tool string, args json.RawMessage) (*tenon.Result, error) {
	c := tenon.Call{Tool: tool, Arguments: args, Ask: answer}
	for range 10 {
		r, err := s.Call(ctx, c)
		if err != nil || r.Input == nil {
			return r, err
		}
		requests := map[string]struct {
			Method string
			Params json.RawMessage
		}{}
		if len(r.Input.Requests) > 0 {
			if err := json.Unmarshal(r.Input.Requests, &requests); err != nil {
				return nil, err
			}
		}
		answers := map[string]json.RawMessage{}
		for key, q := range requests {
			if answers[key], err = answer(ctx, q.Method, q.Params); err != nil {
				return nil, err
			}
		}
		c.Input = &tenon.InputAnswer{State: r.Input.State}
		if len(answers) > 0 {
			if c.Input.Responses, err = json.Marshal(answers); err != nil {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("tool %s never stops asking", tool)
}

// answer accepts every form with its defaults.
func answer(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != mcp.MethodElicit {
		return nil, tenon.Errorf(tenon.CodeDenied, "nobody answers %s", method)
	}
	form, err := elicit.Parse(params)
	if err != nil {
		return nil, err
	}
	content, err := form.Fill(json.RawMessage("{}"))
	if err != nil {
		content = json.RawMessage(`{"confirmed":true}`) // a field without a default
	}
	return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":%s}`, content)), nil
}

// sample returns arguments that match a schema.
func sample(schema json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]struct{ Type any }
	}
	_ = json.Unmarshal(schema, &s) // other schemas get no arguments
	args := map[string]any{}
	for name, p := range s.Properties {
		switch p.Type {
		case "number", "integer":
			args[name] = 5
		case "string":
			args[name] = "word"
		case "boolean":
			args[name] = true
		}
	}
	b, err := json.Marshal(args)
	if err != nil {
		return nil // unreachable: strings and numbers always encode
	}
	return b
}
