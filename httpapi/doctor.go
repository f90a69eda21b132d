package httpapi

import (
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// Check is the result of one check of the doctor, such as whether a server connects.
type Check struct {
	Area   string          `json:"area"` // config, program, store, server, model, tool
	Name   string          `json:"name,omitempty"`
	Status string          `json:"status"` // ok, warn, fail, skip
	Text   string          `json:"text"`
	Code   tenon.Code      `json:"code,omitempty"`   // of the failure
	Remedy string          `json:"remedy,omitempty"` // what to do about it
	Phases []servers.Phase `json:"phases,omitempty"`
	Millis int64           `json:"duration_ms"`
}

// DoctorRequest is the body of POST /api/v1/doctor; it may be missing.
type DoctorRequest struct {
	Servers []string `json:"servers,omitempty"` // checks only these servers; empty: everything
}

// doctor checks everything that a run needs. It connects to servers as a run does. It checks that models are
// reachable, without sending them a prompt.
func (c *call) doctor() error {
	var r DoctorRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	if c.cfg.Doctor == nil {
		return tenon.Errorf(tenon.CodeInvalid, "the setup cannot be checked over HTTP here: run tenon doctor on the "+
			"machine of this tenon")
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
