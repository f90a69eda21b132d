package httpapi

import (
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// LoginResponse is the answer of POST /api/v1/servers/{name}/login: the address that a
// person visits to sign in, with the browser of the machine that tenon runs on.
type LoginResponse struct {
	URL string `json:"url"`
}

// servers lists the configured servers with their state. Nothing is started.
func (c *call) servers() error { return c.answer(http.StatusOK, items(c.h.Statuses())) }

func (c *call) server() error {
	st, err := c.status(c.req.PathValue("name"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, st)
}

// status finds a server by its name.
func (c *call) status(name string) (servers.Status, error) {
	for _, st := range c.h.Statuses() {
		if st.Name == name {
			return st, nil
		}
	}
	return servers.Status{}, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'", name)
}

func (c *call) enable() error  { return c.switchServer(true) }
func (c *call) disable() error { return c.switchServer(false) }

// switchServer keeps the choice beside the store.
func (c *call) switchServer(on bool) error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	if err := c.h.SwitchServer(c.req.PathValue("name"), on); err != nil {
		return err
	}
	return c.server()
}

// restart answers when the server is connected again, or with why it is not.
func (c *call) restart() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	if err := c.h.RestartServer(c.ctx(), c.req.PathValue("name")); err != nil {
		return err
	}
	return c.server()
}

// maxLogLines bounds what is sent of a log.
const maxLogLines = 5000

func (c *call) logs() error {
	n, err := c.number("lines", 200, 1, maxLogLines)
	if err != nil {
		return err
	}
	name := c.req.PathValue("name")
	if _, err := c.status(name); err != nil {
		return err
	}
	s, ok := c.h.Servers()[name]
	if !ok {
		return c.answer(http.StatusOK, items[servers.LogLine](nil))
	}
	return c.answer(http.StatusOK, items(s.Logs(n)))
}

// framesHidden says why nothing of calls is shown.
const framesHidden = "rules redact fields of tool calls here; see the runs"

// frames sends the last messages that were exchanged with a server, without secrets.
func (c *call) frames() error {
	name := c.req.PathValue("name")
	if _, err := c.status(name); err != nil {
		return err
	}
	s, ok := c.h.Servers()[name]
	if !ok {
		return c.answer(http.StatusOK, items[servers.Frame](nil))
	}
	hide := ""
	if c.h.Redacts() {
		hide = framesHidden
	}
	return c.answer(http.StatusOK, items(s.Frames(c.h.Masked, hide)))
}

// login begins a sign-in and answers with the address to visit. The sign-in goes on
// behind the answer; the state of the server says how it went.
func (c *call) login() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	url, err := c.h.BeginLogin(c.ctx(), c.req.PathValue("name"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, LoginResponse{url})
}
