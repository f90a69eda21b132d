package httpapi

import (
	"math"
	"net/http"

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

// bringTable stores an uploaded table. Its size is limited only by the size of a request's body.
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
		b, err := c.h.Runs().Open(run.ID).Data().Table(c.ctx(), digest)
		if err != nil {
			return err
		}
		c.w.Header().Set("Content-Disposition", `attachment; filename="table.arrow"`)
		c.w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
		c.sendBytes(http.StatusOK, "application/vnd.apache.arrow.file", b)
		return nil
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
