package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// Sessions returns the sessions, most recently used first.
func (c *Client) Sessions(ctx context.Context, limit int) ([]tenon.Session, error) {
	if limit == 0 {
		limit = 100
	}
	return pages[tenon.Session](ctx, c, at("sessions"), url.Values{}, limit)
}

// Session finds a session: by id, by the unique beginning of one, or counted from the
// last ("-1").
func (c *Client) Session(ctx context.Context, ref string) (tenon.Session, error) {
	if n, err := strconv.Atoi(ref); err == nil && n < 0 {
		all, err := c.Sessions(ctx, -n)
		if err == nil && len(all) < -n {
			err = tenon.Errorf(tenon.CodeNotFound, "there is no session %s: there are %d", ref, len(all))
		}
		if err != nil {
			return tenon.Session{}, err
		}
		return all[-n-1], nil
	}
	if ref == "" {
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session ''; tenon sessions list shows them")
	}
	s, err := fetch[SessionInfo](ctx, c, http.MethodGet, at("sessions", ref), nil, "")
	if tenon.ErrorCode(err) != tenon.CodeNotFound {
		return s.Session, err
	}
	found, err := pages[tenon.Session](ctx, c, at("sessions"), url.Values{"prefix": {ref}}, 2)
	switch {
	case err != nil:
		return tenon.Session{}, err
	case len(found) == 0:
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session '%s'; tenon sessions list shows them", ref)
	case len(found) > 1:
		return tenon.Session{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of several sessions; give more of it", ref)
	}
	return found[0], nil
}

// Said returns all that was said in a session, numbered.
func (c *Client) Said(ctx context.Context, session string) ([]host.Said, error) {
	l, err := fetch[list[host.Said]](ctx, c, http.MethodGet, at("sessions", session, "messages"), nil, "")
	return l.Items, err
}

// Calls returns the audit records of a session.
func (c *Client) Calls(ctx context.Context, session string) ([]agent.CallRecord, error) {
	l, err := fetch[list[agent.CallRecord]](ctx, c, http.MethodGet, at("sessions", session, "calls"), nil, "")
	return l.Items, err
}

// RenameSession gives a session a title.
func (c *Client) RenameSession(ctx context.Context, session, title string) (tenon.Session, error) {
	s, err := c.Session(ctx, session)
	if err != nil {
		return s, err
	}
	return fetch[tenon.Session](ctx, c, http.MethodPatch, at("sessions", s.ID), RenameRequest{title}, "")
}

// DeleteSession deletes a session with its runs.
func (c *Client) DeleteSession(ctx context.Context, session string) error {
	return c.done(ctx, http.MethodDelete, at("sessions", session), nil)
}

// Fork begins a session that goes on from another one.
func (c *Client) Fork(ctx context.Context, f host.Fork) (tenon.Session, int, error) {
	s, err := c.Session(ctx, f.Session)
	if err != nil {
		return s, 0, err
	}
	r, err := fetch[ForkResponse](ctx, c, http.MethodPost, at("sessions", s.ID, "fork"), ForkRequest{f.At, f.Title}, "")
	return r.Session, r.At, err
}

// Compact begins the run that puts a summary in the place of a conversation.
func (c *Client) Compact(ctx context.Context, session, model string) (tenon.Run, error) {
	s, err := c.Session(ctx, session)
	if err != nil {
		return tenon.Run{}, err
	}
	return fetch[tenon.Run](ctx, c, http.MethodPost, at("sessions", s.ID, "compact"), CompactRequest{model}, "")
}

// Export writes a session as one file of JSON.
func (c *Client) Export(ctx context.Context, w io.Writer, session string) error {
	return c.copySession(ctx, w, session, "json")
}

// ExportMarkdown writes a session as Markdown.
func (c *Client) ExportMarkdown(ctx context.Context, w io.Writer, session string) error {
	return c.copySession(ctx, w, session, "markdown")
}

// Search finds what was said.
func (c *Client) Search(ctx context.Context, q host.Search) ([]host.Found, error) {
	v := url.Values{"q": {q.Words}}
	if q.Session != "" {
		s, err := c.Session(ctx, q.Session)
		if err != nil {
			return nil, err
		}
		v.Set("session", s.ID)
	}
	if q.Limit == 0 {
		q.Limit = 20
	}
	return pages[host.Found](ctx, c, prefix+"/search", v, q.Limit)
}

// copySession writes a session in a format.
func (c *Client) copySession(ctx context.Context, w io.Writer, ref, format string) error {
	s, err := c.Session(ctx, ref)
	if err != nil {
		return err
	}
	data, _, err := c.file(ctx, at("sessions", s.ID, "export")+"?format="+format)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// file reads what is at a path, as it is.
func (c *Client) file(ctx context.Context, path string) (data []byte, mimeType string, err error) {
	res, err := c.do(ctx, http.MethodGet, path, nil, "", "")
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	data, err = io.ReadAll(io.LimitReader(res.Body, maxFile+1))
	switch {
	case err != nil:
		return nil, "", tenon.Errorf(tenon.CodeUnreachable, "%s broke off: %w", c.whose, err)
	case len(data) > maxFile:
		return nil, "", tenon.Errorf(tenon.CodeTooLarge, "what %s sends has more than %d bytes", c.whose, maxFile)
	}
	return data, res.Header.Get("Content-Type"), nil
}

// maxFile bounds an artifact or an export, in bytes.
const maxFile = 1 << 30
