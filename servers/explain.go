package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"

	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// connectError says which server could not be reached, why, and what to do. The
// caller holds the lock.
func (s *Server) connectError(step string, err error) error {
	code := tenon.ErrorCode(err)
	if code == tenon.CodeInternal || code == tenon.CodeCancelled {
		code = tenon.CodeUnreachable
	}
	text := err.Error()
	if code == tenon.CodeTimeout {
		what := map[string]string{mcp.StepDiscover: "answer server/discover", mcp.StepInitialize: "answer initialize"}[step]
		text = fmt.Sprintf("it did not %s within %s", cmp.Or(what, "start"), s.cfg.Timeout)
		if s.cfg.Transport == TransportStdio {
			text += "; command: " + short(s.target())
		}
		if s.process != nil {
			text += lastWords(s.process.LastWords())
		}
		text += fmt.Sprintf("; raise servers.%s.timeout if it is slow to start", s.name)
	}
	e := &tenon.Error{Code: code, Message: fmt.Sprintf("could not start MCP server '%s': %s", s.name, text), Err: err}
	if s.cfg.Transport != TransportStdio {
		e.Message = fmt.Sprintf("Failed to connect to MCP server '%s' at %s: %s", s.name, s.target(), text)
	}
	e.Message = transport.MaskURLs(e.Message) // what others say may quote ours
	var cause *tenon.Error
	if errors.As(err, &cause) {
		e.Data = cause.Data
	}
	return e
}

// explain makes a sentence of an error of a connection: which tool of which
// server, what happened, and what to do. Tool is "" where the error is not
// that of a call.
func (s *Server) explain(tool string, err error) error {
	var cause *tenon.Error
	if !errors.As(err, &cause) {
		cause = &tenon.Error{Code: tenon.CodeInternal, Message: err.Error()}
	}
	who := fmt.Sprintf("server '%s'", s.name)
	what := fmt.Sprintf("the list of tools of %s", who)
	if tool != "" {
		what = fmt.Sprintf("tool '%s' of %s", tool, who)
	}
	text := what + ": " + cause.Message
	switch cause.Code {
	case tenon.CodeUnreachable:
		text = who + " " + gone(err)
	case tenon.CodeUnknown:
		text = fmt.Sprintf("the call of tool '%s' broke off: %s %s", tool, who, gone(err))
	case tenon.CodeTimeout:
		_, after, ok := strings.Cut(cause.Message, " timed out after ")
		if !ok { // a limit of the caller, who knows it
			text = what + " timed out"
			break
		}
		text = fmt.Sprintf("%s timed out after %s; raise servers.%s.request_timeout if it needs longer", what, after, s.name)
	case tenon.CodeCancelled:
		text = "the call of " + what + " was cancelled"
		if tool == "" {
			text = "the request for " + what + " was cancelled"
		}
	case tenon.CodeAuth:
		text = fmt.Sprintf("%s refuses the credentials (%s); check servers.%s.auth", who, cause.Message, s.name)
	case tenon.CodeTool:
		text = what + " failed: " + cause.Message
	}
	return &tenon.Error{Code: cause.Code, Message: text, Data: cause.Data, Err: err}
}

// gaveUp says that a caller's context ended while it waited; nothing was sent.
func gaveUp(ctx context.Context, what, while string) error {
	e := &tenon.Error{Code: tenon.CodeCancelled, Message: fmt.Sprintf("%s was cancelled while %s", what, while), Err: ctx.Err()}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Code, e.Message = tenon.CodeTimeout, fmt.Sprintf("%s timed out while %s", what, while)
	}
	return e
}

// short bounds what a message quotes.
func short(text string) string {
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func lastWords(lines string) string {
	if lines == "" {
		return ""
	}
	return "; its last words on stderr: " + transport.MaskURLs(strings.ReplaceAll(lines, "\n", " / "))
}

// gone says how a connection was lost.
func gone(err error) string {
	var exit *transport.ExitError
	if errors.As(err, &exit) {
		return fmt.Sprintf("is no longer available (%s)", exit.Status) + lastWords(exit.Stderr)
	}
	var e *tenon.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err // without what package mcp says about it
	}
	return fmt.Sprintf("is no longer available (%v)", err)
}
