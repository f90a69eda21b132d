package httpapi

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// Sessions returns the handle of the principal's sessions. List uses the fields Prefix and Limit of its filter.
func (c *Client) Sessions() host.Sessions { return remoteSessions{c} }

type (
	remoteSessions    struct{ *Client }
	remoteTranscripts struct{ *Client }
)

func (c remoteSessions) Transcripts() host.Transcripts { return remoteTranscripts(c) }

func (c remoteSessions) List(ctx context.Context, f host.SessionFilter) ([]tenon.Session, error) {
	q := url.Values{}
	if f.Prefix != "" {
		q.Set("prefix", f.Prefix)
	}
	f.Limit = cmp.Or(f.Limit, 100)
	return pages[tenon.Session](ctx, c.Client, at("sessions"), q, f.Limit)
}

func (c remoteSessions) Get(ctx context.Context, ref string) (tenon.Session, error) {
	if n, err := strconv.Atoi(ref); err == nil && n < 0 {
		all, err := c.Sessions().List(ctx, host.SessionFilter{Limit: -n})
		if err == nil && len(all) < -n {
			err = tenon.Errorf(tenon.CodeNotFound, "there is no session %s: there are %d", ref, len(all))
		}
		if err != nil {
			return tenon.Session{}, err
		}
		return all[-n-1], nil
	}
	if ref == "" {
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session ''; tenon sessions list "+
			"shows them")
	}
	s, err := fetch[SessionInfo](ctx, c.Client, http.MethodGet, at("sessions", ref), nil, "")
	if tenon.ErrorCode(err) != tenon.CodeNotFound {
		return s.Session, err
	}
	found, err := pages[tenon.Session](ctx, c.Client, at("sessions"), url.Values{"prefix": {ref}}, 2)
	switch {
	case err != nil:
		return tenon.Session{}, err
	case len(found) == 0:
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session '%s'; tenon sessions list "+
			"shows them", ref)
	case len(found) > 1:
		return tenon.Session{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of several sessions; give "+
			"more of it", ref)
	}
	return found[0], nil
}

func (c remoteTranscripts) Messages(ctx context.Context, session string) ([]transcript.Message, error) {
	l, err := fetch[list[transcript.Message]](ctx, c.Client, http.MethodGet, at("sessions", session, "messages"), nil,
		"")
	if err == nil && slices.ContainsFunc(l.Items, func(s transcript.Message) bool { return s.Message == nil }) {
		return nil, c.noMessage()
	}
	return l.Items, err
}

func (c remoteTranscripts) Calls(ctx context.Context, session string) ([]view.Call, error) {
	l, err := fetch[list[view.Call]](ctx, c.Client, http.MethodGet, at("sessions", session, "calls"), nil, "")
	return l.Items, err
}

func (c remoteSessions) Rename(ctx context.Context, session, title string) (tenon.Session, error) {
	s, err := c.Sessions().Get(ctx, session)
	if err != nil {
		return s, err
	}
	return fetch[tenon.Session](ctx, c.Client, http.MethodPatch, at("sessions", s.ID), RenameRequest{title}, "")
}

func (c remoteSessions) Delete(ctx context.Context, session string) error {
	return c.done(ctx, http.MethodDelete, at("sessions", session), nil)
}

func (c remoteSessions) Fork(ctx context.Context, f host.Fork) (tenon.Session, int, error) {
	s, err := c.Sessions().Get(ctx, f.Session)
	if err != nil {
		return s, 0, err
	}
	r, err := fetch[ForkResponse](ctx, c.Client, http.MethodPost, at("sessions", s.ID, "fork"),
		ForkRequest{f.At, f.Title}, "")
	return r.Session, r.At, err
}

func (c remoteSessions) Compact(ctx context.Context, session, model string) (tenon.Run, error) {
	s, err := c.Sessions().Get(ctx, session)
	if err != nil {
		return tenon.Run{}, err
	}
	return fetch[tenon.Run](ctx, c.Client, http.MethodPost, at("sessions", s.ID, "compact"), CompactRequest{model}, "")
}

func (c remoteTranscripts) Context(context.Context, string, bool) ([]*tenon.Message, error) {
	return nil, notOverHTTP("the conversation as the model sees it")
}

func (c remoteTranscripts) Import(context.Context, transcript.Import) (transcript.ImportReport, error) {
	return transcript.ImportReport{}, notOverHTTP("importing a session")
}

func (c remoteTranscripts) Export(ctx context.Context, w io.Writer, session string, f host.Format) error {
	s, err := c.Sessions().Get(ctx, session)
	if err != nil {
		return err
	}
	data, _, err := c.file(ctx, at("sessions", s.ID, "export")+"?format="+url.QueryEscape(string(f)))
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func (c remoteTranscripts) Search(ctx context.Context, q transcript.Query) ([]transcript.Hit, error) {
	v := url.Values{"q": {q.Words}}
	if q.Session != "" {
		s, err := c.Sessions().Get(ctx, q.Session)
		if err != nil {
			return nil, err
		}
		v.Set("session", s.ID)
	}
	q.Limit = cmp.Or(q.Limit, 20)
	v.Set("limit", strconv.Itoa(min(q.Limit, maxPageSize)))
	l, err := fetchBehind[list[transcript.Hit]](ctx, c.Client, prefix+"/search?"+v.Encode(), q.Behind)
	return l.Items, err
}

// file downloads the content of a path without decoding it.
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
		return nil, "", tenon.Errorf(tenon.CodeTooLarge, "the file from %s has more than %d bytes", c.whose, maxFile)
	}
	return data, res.Header.Get("Content-Type"), nil
}

// maxFile bounds an artifact or an export, in bytes.
const maxFile = 1 << 30

var (
	_ host.Handles     = (*Client)(nil)
	_ host.Sessions    = remoteSessions{}
	_ host.Transcripts = remoteTranscripts{}
)
