package httpapi

import (
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// Check is one thing that was looked at, of what a run needs.
type Check struct {
	Area   string          `json:"area"` // config, program, store, server, model, tool
	Name   string          `json:"name,omitempty"`
	Status string          `json:"status"` // ok, warn, fail, skip
	Text   string          `json:"text"`
	Code   tenon.Code      `json:"code,omitempty"`   // of the failure
	Remedy string          `json:"remedy,omitempty"` // what to do
	Phases []servers.Phase `json:"phases,omitempty"`
	Millis int64           `json:"duration_ms"`
}

// DoctorRequest is the body of POST /api/v1/doctor; it may be missing.
type DoctorRequest struct {
	Servers []string `json:"servers,omitempty"` // only these, and what they need
}

// doctor looks at everything that a run needs. Servers are connected as a run would
// connect them; models are reached, and not asked anything.
func (c *call) doctor() error {
	var r DoctorRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	if c.cfg.Doctor == nil {
		return tenon.Errorf(tenon.CodeInvalid, "what runs need cannot be looked at from here: run tenon doctor on its machine")
	}
	for _, name := range r.Servers {
		if _, err := c.status(name); err != nil {
			return err
		}
	}
	checks, err := c.cfg.Doctor(c.ctx(), r.Servers)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(checks))
}
