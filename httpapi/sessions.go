package httpapi

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// SessionInfo is the answer of GET /api/v1/sessions/{id}. List has the session's runs, newest first, at most 500.
type SessionInfo struct {
	tenon.Session
	List []RunRow `json:"run_list"`
}

// SessionRow is a session in a list.
type SessionRow struct {
	tenon.Session
	// Interrupted reports that no process works on a run of the session although the state of the run is working.
	Interrupted bool `json:"interrupted,omitempty"`
}

// RenameRequest is the body of PATCH /api/v1/sessions/{id}.
type RenameRequest struct {
	Title string `json:"title"`
}

// ForkRequest is the body of POST /api/v1/sessions/{id}/fork; it may be missing.
type ForkRequest struct {
	At    string `json:"at,omitempty"` // last message to copy: its number, RUN or RUN:SEQ; if empty, all are copied
	Title string `json:"title,omitempty"`
}

// ForkResponse is the answer to a ForkRequest.
type ForkResponse struct {
	Session tenon.Session `json:"session"`
	At      int           `json:"at"` // the number of the last copied message
}

// CompactRequest is the body of POST /api/v1/sessions/{id}/compact; it may be missing.
type CompactRequest struct {
	Model string `json:"model,omitempty"`
}

// sessions lists the caller's sessions, most recently used first.
func (c *call) sessions() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	f := host.SessionFilter{Principal: c.seen(), Prefix: c.req.URL.Query().Get("prefix"), Limit: limit + 1}
	if err := c.afterSession(&f, c.req.URL.Query().Get("cursor")); err != nil {
		return err
	}
	list, err := c.h.Sessions().List(c.ctx(), f)
	if err != nil {
		return err
	}
	rows, err := c.sessionRows(list)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, paged(rows, limit, func(s SessionRow) string {
		return s.ID + "@" + strconv.FormatInt(max(s.Updated.UnixNano(), 0), 10) // an imported one may have no time
	}))
}

// afterSession makes a list begin after a cursor: ID@NANOSECONDS, the last session of the page before and the time of
// its last change. So a page follows although that session was used again or deleted. An id alone is accepted, too: it
// was the cursor of versions before, which answer 404 to the new form.
func (c *call) afterSession(f *host.SessionFilter, cursor string) error {
	if i := strings.LastIndex(cursor, "@"); i > 0 { // the id of an imported session may have the character, too
		if nanos, err := strconv.ParseInt(cursor[i+1:], 10, 64); err == nil {
			f.Before, f.BeforeAt = cursor[:i], time.Unix(0, nanos)
			return nil
		}
	}
	if cursor == "" {
		return nil
	}
	s, err := c.sessionOf(cursor)
	f.Before = s.ID
	return err
}

// sessionRows adds to each session whether it has an interrupted run.
func (c *call) sessionRows(list []tenon.Session) ([]SessionRow, error) {
	working, err := c.h.Runs().List(c.ctx(), engine.Filter{State: tenon.RunWorking, Top: true, Principal: c.seen(),
		Limit: maxPageSize})
	if err != nil {
		return nil, err
	}
	runs, err := c.rows(working)
	if err != nil {
		return nil, err
	}
	dead := map[string]bool{}
	for _, r := range runs {
		dead[r.Session] = dead[r.Session] || r.Interrupted
	}
	rows := make([]SessionRow, len(list))
	for i, s := range list {
		rows[i] = SessionRow{s, dead[s.ID]}
	}
	return rows, nil
}

// mySessionOfPath returns the session in the request's path. A session of another principal is not found.
func (c *call) mySessionOfPath() (tenon.Session, error) { return c.sessionOf(c.req.PathValue("id")) }

func (c *call) sessionOf(id string) (tenon.Session, error) {
	s, err := c.h.Sessions().Get(c.ctx(), id)
	if err != nil && tenon.ErrorCode(err) != tenon.CodeConflict && tenon.ErrorCode(err) != tenon.CodeNotFound {
		return tenon.Session{}, err
	}
	if s.ID != id || id == "" || !c.mine(s.Principal) || s.Foreign && !c.caller.Any {
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session '%s'", id)
	}
	return s, nil
}

// mySession returns a session of the caller by its id, or the most recently used one for "-1".
func (c *call) mySession(ref string) (tenon.Session, error) {
	if ref != "-1" {
		return c.sessionOf(ref)
	}
	list, err := c.h.Sessions().List(c.ctx(), host.SessionFilter{Principal: c.seen(), Limit: 1})
	if err != nil {
		return tenon.Session{}, err
	}
	if len(list) == 0 {
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session yet")
	}
	return list[0], nil
}

func (c *call) session() error {
	s, err := c.mySessionOfPath()
	if err != nil {
		return err
	}
	runs, err := c.h.Runs().List(c.ctx(), engine.Filter{Session: s.ID, Top: true, Limit: maxPageSize})
	if err != nil {
		return err
	}
	rows, err := c.rows(runs)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, SessionInfo{s, items(rows).Items})
}

func (c *call) rename() error {
	var r RenameRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	s, err := c.mySessionOfPath()
	if err != nil {
		return err
	}
	if s, err = c.h.Sessions().Rename(c.ctx(), s.ID, r.Title); err != nil {
		return err
	}
	return c.answer(http.StatusOK, s)
}

func (c *call) deleteSession() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	s, err := c.mySessionOfPath()
	if err != nil {
		return err
	}
	if err := c.h.Sessions().Delete(c.ctx(), s.ID); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// messages sends all messages of a session, numbered.
func (c *call) messages() error {
	s, err := c.mySessionOfPath()
	if err != nil {
		return err
	}
	said, err := c.h.Sessions().Transcripts().Messages(c.ctx(), s.ID)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(said))
}

// calls sends the audit records of a session's tool calls.
func (c *call) calls() error {
	s, err := c.mySessionOfPath()
	if err != nil {
		return err
	}
	calls, err := c.h.Sessions().Transcripts().Calls(c.ctx(), s.ID)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items[view.Call](calls))
}

// export sends a session as one file: JSON, or Markdown with ?format=markdown.
func (c *call) export() error {
	format, err := c.oneOf("format", "json", "markdown")
	if err != nil {
		return err
	}
	s, err := c.mySessionOfPath()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	switch format {
	case "", "json":
		c.w.Header().Set("Content-Disposition", `attachment; filename="`+s.ID+`.json"`)
		if err = c.h.Sessions().Transcripts().Export(c.ctx(), &b, s.ID, host.FormatJSON); err == nil {
			c.sendBytes(http.StatusOK, "application/json", b.Bytes())
		}
	case "markdown":
		c.w.Header().Set("Content-Disposition", `attachment; filename="`+s.ID+`.md"`)
		if err = c.h.Sessions().Transcripts().Export(c.ctx(), &b, s.ID, host.FormatMarkdown); err == nil {
			c.sendBytes(http.StatusOK, "text/markdown; charset=utf-8", b.Bytes())
		}
	}
	if err != nil {
		c.w.Header().Del("Content-Disposition")
	}
	return err
}

func (c *call) fork() error {
	var r ForkRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	s, err := c.mySessionOfPath()
	if err != nil {
		return err
	}
	if id, _, _ := strings.Cut(r.At, ":"); strings.HasPrefix(id, "run_") {
		if _, err := c.runOf(id); err != nil {
			return err
		}
	}
	fork, at, err := c.h.Sessions().Fork(c.ctx(), host.Fork{Session: s.ID, At: r.At, Title: r.Title})
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", prefix+"/sessions/"+fork.ID)
	return c.answer(http.StatusCreated, ForkResponse{fork, at})
}

// compact starts a run in which a model summarizes the session's conversation. Later questions send the summary instead
// of the messages.
func (c *call) compact() error {
	var r CompactRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	s, err := c.mySessionOfPath()
	if err != nil {
		return err
	}
	if err := c.admitRun(); err != nil {
		return err
	}
	if err := c.mayUse(r.Model); err != nil {
		return err
	}
	run, err := c.h.Sessions().Compact(c.ctx(), s.ID, r.Model)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", prefix+"/runs/"+run.ID)
	return c.answer(http.StatusAccepted, run)
}

// maxQuery is the longest search query, in bytes. The store limits its number of words.
const maxQuery = 1000

// search searches the messages of the caller's sessions.
func (c *call) search() error {
	q := c.req.URL.Query()
	words := q.Get("q")
	switch {
	case strings.TrimSpace(words) == "":
		return tenon.Errorf(tenon.CodeInvalid, "q is missing: the words to look for")
	case len(words) > maxQuery || !utf8.ValidString(words):
		return tenon.Errorf(tenon.CodeInvalid, "q must be UTF-8 of at most %d bytes", maxQuery)
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	s := transcript.Query{Words: words, Limit: limit, Principal: c.seen(), Behind: c.behind}
	if ref := q.Get("session"); ref != "" {
		found, err := c.sessionOf(ref)
		if err != nil {
			return err
		}
		s.Session = found.ID
	}
	found, err := c.h.Sessions().Transcripts().Search(c.ctx(), s)
	if err != nil {
		return overloaded(err)
	}
	return c.answer(http.StatusOK, items(found))
}
