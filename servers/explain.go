package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"unicode"

	"github.com/tenonhq/tenon"

	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// connectError returns an error that says which server could not be reached, why, and what to do. The caller holds
// the lock.
func (s *Server) connectError(step string, err error) error {
	code := tenon.ErrorCode(err)
	if code == tenon.CodeInternal || code == tenon.CodeCancelled {
		code = tenon.CodeUnreachable
	}
	text := clean(err.Error())
	if code == tenon.CodeTimeout {
		what := map[string]string{mcp.StepDiscover: "answer server/discover",
			mcp.StepInitialize: "answer initialize"}[step]
		text = fmt.Sprintf("it did not %s within %s", cmp.Or(what, "start"), s.cfg.Timeout)
		if s.cfg.Transport == TransportStdio {
			text += "; command: " + short(s.target())
		}
		if s.process != nil {
			text += lastWords(s.process.LastWords())
			if printed := s.process.Printed(); printed != "" {
				text += "; it printed text to stdout where MCP messages are expected: " +
					transport.MaskURLs(clean(strings.ReplaceAll(printed, "\n", " / ")))
			}
		}
		if program, pkg := s.cfg.fetches(); pkg != "" {
			text += fmt.Sprintf("; %s may still have been fetching %s", program, short(pkg))
		}
		text += fmt.Sprintf("; raise %s if it is slow to start", s.key("timeout"))
	}
	switch code {
	case tenon.CodeAuth:
		text += "; " + s.remedy(err)
	case tenon.CodeProtocol:
		switch {
		case strings.Contains(text, "check the URL"):
		case s.cfg.Transport == TransportAuto:
			text += "; check the URL: " + usualPaths
		case (s.cfg.Transport == TransportHTTP || s.cfg.Transport == TransportSSE) && isOther(err):
			text += fmt.Sprintf("; check the URL: %s; %s: auto finds out which transport the URL has", usualPaths,
				s.key("transport"))
		default:
			text += "; check that this is an MCP server"
			if s.cfg.Transport != TransportStdio {
				text += " over " + s.cfg.Transport
			}
		}
	case tenon.CodeRateLimited:
		text += "; try again later"
	case tenon.CodeUnreachable:
		if noFiles(err) {
			text += "; " + filesRemedy
		} else if s.cfg.Transport != TransportStdio {
			if !strings.Contains(text, "check the URL") {
				text += "; check that it runs, and the URL"
			}
		} else if errors.Is(err, exec.ErrNotFound) {
			text += "; " + s.cfg.install() + ", or correct " + s.key("command")
		} else if !strings.Contains(text, "working directory") {
			text += "; check the command: " + short(s.target())
		}
	}
	text += s.silence(err)
	e := &tenon.Error{Code: code, Message: fmt.Sprintf("could not start MCP server '%s': %s", s.name, text), Err: err}
	if s.cfg.Transport != TransportStdio {
		e.Message = fmt.Sprintf("Failed to connect to MCP server '%s' at %s: %s", s.name, s.target(), text)
	}
	e.Message = transport.MaskURLs(e.Message) // a foreign error may quote our URLs
	var cause *tenon.Error
	if errors.As(err, &cause) {
		e.Data = cause.Data
	}
	return e
}

// usualPaths names the paths that most servers use.
const usualPaths = "the path of an MCP endpoint is often /mcp, and over HTTP+SSE /sse"

// explain turns an error of a connection into a message: which tool of which server, what happened, and what to do.
// tool is empty if the error does not belong to a call.
func (s *Server) explain(tool string, err error) error {
	who := fmt.Sprintf("server '%s'", s.name)
	if tool != "" {
		return s.explainAbout(fmt.Sprintf("tool '%s' of %s", tool, who), tool, err)
	}
	return broken(s.explainAbout("the list of tools of "+who, "", err))
}

// broken gives the error of a server that answers a request for a list with an error the code of a server that does not
// work. A tool's error, whose code it has from the answer, is a result of a call.
func broken(err error) error {
	var e *tenon.Error
	if errors.As(err, &e) && e.Code == tenon.CodeTool {
		e.Code = tenon.CodeProtocol
	}
	return err
}

// explainAbout is like explain; what describes the request.
func (s *Server) explainAbout(what, tool string, err error) error {
	var cause *tenon.Error
	if !errors.As(err, &cause) {
		cause = &tenon.Error{Code: tenon.CodeInternal, Message: err.Error()}
	}
	who := fmt.Sprintf("server '%s'", s.name)
	said := clean(cause.Message) // it may be the server's own text
	text := what + ": " + said
	switch cause.Code {
	case tenon.CodeUnreachable:
		remedy := s.look()
		if noFiles(err) {
			remedy = filesRemedy
		}
		text = fmt.Sprintf("no %s: %s %s; %s", strings.TrimSuffix(strings.TrimPrefix(what, "the "), " of "+who), who,
			gone(err), remedy)
		if tool != "" {
			text = fmt.Sprintf("tool '%s' was not called: %s %s; %s", tool, who, gone(err), remedy)
		}
	case tenon.CodeUnknown:
		var task *mcp.TaskError
		if errors.As(err, &task) {
			break
		}
		// The caller adds what to do, because it knows whether the call will be repeated.
		text = fmt.Sprintf("the call of tool '%s' broke off: %s %s", tool, who, gone(err))
	case tenon.CodeTimeout:
		_, after, ok := strings.Cut(cause.Message, " timed out after ")
		if !ok { // a limit that the caller set, and therefore knows
			text = what + " timed out"
			break
		}
		text = fmt.Sprintf("%s timed out after %s; raise %s if it needs longer", what, after,
			cmp.Or(s.opts.TimeoutKey, s.key("request_timeout")))
	case tenon.CodeCancelled:
		text = "the call of " + what + " was cancelled"
		if tool == "" {
			text = "the request for " + what + " was cancelled"
		}
	case tenon.CodeAuth:
		text = fmt.Sprintf("%s: %s refuses the credentials (%s); %s", what, who, said, s.remedy(err))
	case tenon.CodeTool:
		text = what + " failed: " + said + details(cause.Data)
		switch {
		case tool != "": // the model reads it
		case s.cfg.Transport == TransportStdio:
			text += "; " + s.look()
		default:
			text += "; see what the server logs, or set disabled: true to leave it out"
		}
	case tenon.CodeProtocol:
		text += "; the server does not keep to MCP: try another version of it"
	case tenon.CodeTooLarge:
		remedy := "; ask it for less"
		if tool == "" {
			remedy = "; only its author can shorten it; set disabled: true to leave the server out"
		}
		text += remedy
	case tenon.CodeRateLimited:
		text += "; try again later"
	}
	return &tenon.Error{Code: cause.Code, Message: text + s.silence(err), Data: cause.Data, Err: err}
}

// silence returns the key that allows longer silence on an event stream, or "" if err is no [transport.SilenceError].
func (s *Server) silence(err error) string {
	var silent *transport.SilenceError
	if !errors.As(err, &silent) {
		return ""
	}
	key := s.key("sse_read_timeout")
	if s.opts.TimeoutKey != "" { // the entry is in no file
		key = "sse_read_timeout of its entry"
	}
	return fmt.Sprintf("; raise %s if it needs longer", key)
}

// key returns the name that error messages use for a key of this server's configuration.
func (s *Server) key(key string) string {
	if s.opts.Key != nil {
		return s.opts.Key(key)
	}
	return "servers." + s.name + "." + key
}

// maxDetails bounds the data of an error in its message, in bytes.
const maxDetails = 500

// details returns the data of a JSON-RPC error as part of a message, or "" if there is none.
func details(data json.RawMessage) string {
	text := strings.TrimSpace(string(data))
	if text == "" || text == "null" || text == "{}" || text == `""` {
		return ""
	}
	if len(text) > maxDetails {
		text = strings.ToValidUTF8(text[:maxDetails], "") + "…"
	}
	return " (data: " + clean(text) + ")"
}

// noFiles reports whether an attempt failed because this process or the machine has no file descriptors left.
func noFiles(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// filesRemedy tells a person what to do about errors that noFiles recognizes.
const filesRemedy = "tenon has no file descriptors left: raise its limit (ulimit -n, or LimitNOFILE of its unit), or " +
	"close other connections"

// look tells a person where to find the cause of an error.
func (s *Server) look() string {
	if s.cfg.Transport == TransportStdio {
		return fmt.Sprintf("see what it wrote with 'tenon servers logs %s'", s.name)
	}
	return "check that it runs"
}

// clean shortens a text of a server, puts it on one line and escapes it for display.
func clean(text string) string {
	const most = 600
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\u{%x}", r)
		}
	}
	return b.String()
}

// gaveUp returns the error of a caller whose context ended while it waited, before anything was sent.
func gaveUp(ctx context.Context, what, while string) error {
	e := &tenon.Error{Code: tenon.CodeCancelled, Message: fmt.Sprintf("%s was cancelled while %s", what, while),
		Err: ctx.Err()}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Code, e.Message = tenon.CodeTimeout, fmt.Sprintf("%s timed out while %s", what, while)
	}
	return e
}

// short shortens a text that a message quotes.
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
	return "; its last words on stderr: " + transport.MaskURLs(clean(strings.ReplaceAll(lines, "\n", " / ")))
}

// gone describes how a connection was lost.
func gone(err error) string {
	var exit *transport.ExitError
	if errors.As(err, &exit) {
		return fmt.Sprintf("is no longer available (%s)", exit.Status) + lastWords(exit.Stderr)
	}
	var e *tenon.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err // without the text that package mcp adds
	}
	return fmt.Sprintf("is no longer available (%s)", clean(err.Error()))
}
