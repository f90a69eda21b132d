package httpapi

import (
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// TableUpload is the body of POST /api/v1/tables.
type TableUpload struct {
	Name string `json:"name"` // ends with .arrow, .arrows or .tooltable
	Data []byte `json:"data"` // in base64
}

// tables lists the tables in files: in the project's folder, and uploaded ones.
func (c *call) tables() error {
	list, err := c.h.Tables().List(c.ctx())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

// bringTable stores a table that is sent in JSON. A larger one is the body itself: see uploadTable.
func (c *call) bringTable() error {
	var r TableUpload
	if err := c.decode(&r, false); err != nil {
		return err
	}
	t, err := c.h.Tables().Put(c.ctx(), r.Name, r.Data)
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, t)
}

// The content types of an uploaded table. A page of another origin cannot send them without being asked for (CORS).
var tableTypes = []string{"application/vnd.apache.arrow.file", "application/vnd.apache.arrow.stream",
	"application/octet-stream"}

// checkRaw refuses a raw body by its content type.
func (c *call) checkRaw() error {
	kind := c.req.Header.Get("Content-Type")
	if t, _, err := mime.ParseMediaType(kind); err != nil || !slices.Contains(tableTypes, t) {
		return refuse(http.StatusUnsupportedMediaType, tenon.CodeInvalid, "the content type must be one of %s, not "+
			"'%s'", strings.Join(tableTypes, ", "), tenon.Visible(kind))
	}
	return nil
}

// The bounds of what is read and dropped after an upload was refused. A client that is still sending reads the answer
// only then.
const (
	maxRest   = 256 << 20 // bytes
	restTimes = 4         // its time, as a multiple of [Config.BodyTime]
)

// uploadTable stores a table that is the body of the request. It goes to the disk while it arrives.
func (c *call) uploadTable() error {
	body := &slowBody{c: c, control: http.NewResponseController(c.w)}
	t, err := c.h.Tables().PutFrom(c.ctx(), c.req.URL.Query().Get("name"), body)
	switch {
	case err != nil && !body.begun:
		return body.refusedFirst(err)
	case err != nil:
		return body.refused(err)
	}
	return c.answer(http.StatusCreated, t)
}

// slowBody reads a body of any length. Each piece of it has to arrive within the time that bodies have.
type slowBody struct {
	c       *call
	control *http.ResponseController
	begun   bool // a read was tried, which sends "100 Continue" to a client that waits for it
}

// Read implements [io.Reader].
func (b *slowBody) Read(p []byte) (int, error) {
	b.begun = true
	_ = b.control.SetReadDeadline(time.Now().Add(b.c.cfg.BodyTime)) // fails only if the writer has no deadlines
	n, err := b.c.req.Body.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		// From now on net/http itself reads, to notice that the client leaves. A deadline would look like that.
		// net/http clears the deadline when it begins to read, but this may be a second Read at the end.
		_ = b.control.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = refuse(http.StatusRequestTimeout, tenon.CodeTimeout, "nothing of the table arrived within %s",
			b.c.cfg.BodyTime)
	case err != nil:
		err = tenon.Errorf(tenon.CodeInvalid, "the table cannot be read: %w", err)
	}
	return n, err
}

// refusedFirst answers before the body is read, because only the name is the reason. A client that waits for
// "100 Continue" sends nothing then. The body of another client is dropped after the answer, so that a client that only
// reads after it has sent everything gets the answer too.
func (b *slowBody) refusedFirst(err error) error {
	b.c.w.Header().Set("Connection", "close")
	if b.c.req.Header.Get("Expect") != "" || b.control.EnableFullDuplex() != nil {
		return err
	}
	sized := *b.c
	sized.w = &sizedWriter{ResponseWriter: b.c.w}
	sized.fail(err)
	_ = b.control.Flush() // fails only if the client left
	_ = b.refused(err)    // it was answered
	return nil
}

// sizedWriter sends an answer, which is a single write, with its length. So the client sees its end before the handler
// returns.
type sizedWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter]. It keeps the status until the length is known.
func (w *sizedWriter) WriteHeader(status int) { w.status = status }

// Write implements [http.ResponseWriter].
func (w *sizedWriter) Write(b []byte) (int, error) {
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.ResponseWriter.WriteHeader(w.status)
	return w.ResponseWriter.Write(b)
}

// refused reads and drops the rest of a body after an error, and returns the error to answer with.
func (b *slowBody) refused(err error) error {
	if tenon.ErrorCode(err) == tenon.CodeTimeout {
		return err // nothing arrives
	}
	piece := make([]byte, 32<<10)
	end := time.Now().Add(restTimes * b.c.cfg.BodyTime)
	for left := maxRest; left > 0 && time.Now().Before(end); {
		n, rest := b.Read(piece)
		left -= n
		switch {
		case tenon.ErrorCode(rest) == tenon.CodeTimeout: // the context is cancelled, and only this status is answered
			return refuse(http.StatusRequestTimeout, tenon.CodeTimeout, "%w; %w", err, rest)
		case rest != nil:
			return err
		}
	}
	b.c.w.Header().Set("Connection", "close") // the rest is not read
	return err
}

func (c *call) removeTable() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	if err := c.h.Tables().Remove(c.ctx(), c.req.URL.Query().Get("file")); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// tableRows sends a page of rows of a table in a file.
func (c *call) tableRows() error {
	o, err := c.page()
	if err != nil {
		return err
	}
	p, err := c.h.Tables().Page(c.ctx(), c.req.URL.Query().Get("file"), o)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, p)
}

// page parses the query parameters that select rows.
func (c *call) page() (host.PageOptions, error) {
	limit, err := c.limit()
	if err != nil {
		return host.PageOptions{}, err
	}
	skip, err := c.number("skip", 0, 0, math.MaxInt32)
	if err != nil {
		return host.PageOptions{}, err
	}
	whole, err := c.flag("whole")
	if err != nil {
		return host.PageOptions{}, err
	}
	count, err := c.flag("count")
	return host.PageOptions{Skip: int64(skip), Limit: int64(limit), Whole: whole, Count: count}, err
}

// runTables lists the tables of a run.
func (c *call) runTables() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	list, err := c.h.Runs().Open(run.ID).Data().Tables(c.ctx())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

// sendTable streams a table, or the range of it that the request names (RFC 9110, section 14).
func (c *call) sendTable(t *host.TableReader, digest string) {
	h := c.w.Header()
	h.Set("Content-Disposition", `attachment; filename="table.arrow"`)
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Type", "application/vnd.apache.arrow.file")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+digest+`"`)
	http.ServeContent(c.w, c.req, "", time.Time{}, t.SectionReader)
}

// runTable sends a page of rows of a run's table, or with ?download=true the table as an Arrow file or stream.
func (c *call) runTable() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	digest := c.req.PathValue("table")
	download, err := c.flag("download")
	if err != nil {
		return err
	}
	if download {
		t, err := c.h.Runs().Open(run.ID).Data().OpenTable(c.ctx(), digest)
		if err != nil {
			return err
		}
		c.sendTable(t, digest)
		return t.Close()
	}
	o, err := c.page()
	if err != nil {
		return err
	}
	p, err := c.h.Runs().Open(run.ID).Data().Page(c.ctx(), digest, o)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, p)
}
