package httpapi

import (
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// LoginResponse is the answer of POST /api/v1/servers/{name}/login. A person signs in at URL, in a browser on the
// machine that tenon runs on.
type LoginResponse struct {
	URL string `json:"url"`
}

// servers lists the configured servers with their states. It starts none.
func (c *call) servers() error {
	list, err := c.h.Servers().List(c.ctx())
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Error = c.advised(list[i].Error)
	}
	return c.answer(http.StatusOK, items(list))
}

func (c *call) server() error {
	st, err := c.status(c.req.PathValue("name"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, st)
}

// status returns the status of a server by its name.
func (c *call) status(name string) (servers.Status, error) {
	list, err := c.h.Servers().List(c.ctx())
	if err != nil {
		return servers.Status{}, err
	}
	for _, st := range list {
		if st.Name == name {
			st.Error = c.advised(st.Error)
			return st, nil
		}
	}
	return servers.Status{}, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'", name)
}

func (c *call) enable() error  { return c.switchServer(true) }
func (c *call) disable() error { return c.switchServer(false) }

// switchServer enables or disables a server. The choice is stored next to the store and survives a restart.
func (c *call) switchServer(on bool) error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	if _, err := c.h.Servers().Switch(c.ctx(), c.req.PathValue("name"), on); err != nil {
		return err
	}
	return c.server()
}

// restart reconnects a server. It answers when the server is connected again, or with the error.
func (c *call) restart() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	if _, err := c.h.Servers().Restart(c.ctx(), c.req.PathValue("name")); err != nil {
		return err
	}
	return c.server()
}

// maxLogLines is the largest value of ?lines=.
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
	s, ok := c.h.Service().Connections()[name]
	if !ok {
		return c.answer(http.StatusOK, items[servers.LogLine](nil))
	}
	return c.answer(http.StatusOK, items(s.Logs(n)))
}

// framesHidden replaces the content of tool calls in frames if rules redact fields of calls, because frames contain the
// raw messages.
const framesHidden = "rules redact fields of tool calls here; see the runs"

// frames sends the last messages exchanged with a server, with secrets masked.
func (c *call) frames() error {
	name := c.req.PathValue("name")
	if _, err := c.status(name); err != nil {
		return err
	}
	s, ok := c.h.Service().Connections()[name]
	if !ok {
		return c.answer(http.StatusOK, items[servers.Frame](nil))
	}
	hide := ""
	if c.h.Service().Info().Redacts {
		hide = framesHidden
	}
	return c.answer(http.StatusOK, items(s.Frames(c.h.Service().Callers().Mask, hide)))
}

// login begins a sign-in and answers with the URL to visit. The sign-in continues after the answer. Its result appears
// in the server's state.
func (c *call) login() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	url, err := c.h.Servers().Login(c.ctx(), c.req.PathValue("name"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, LoginResponse{url})
}
