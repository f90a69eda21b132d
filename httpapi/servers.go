package httpapi

import (
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// LoginResponse is the answer of POST /api/v1/servers/{name}/login. A person signs in at URL, in a browser on the
// machine that tenon runs on.
type LoginResponse struct {
	URL string `json:"url"`
}

// LogoutRequest is the body of POST /api/v1/servers/{name}/logout. Principal is whose own sign-in is deleted.
// Without it that is the caller's, and for the owner the sign-in that all share. Only the owner may name somebody
// else.
type LogoutRequest struct {
	Principal tenon.Principal `json:"principal,omitempty"`
}

// LogoutResponse is its answer. SignedIn reports whether there was a sign-in, and Revoked whether its tokens were
// revoked at the authorization server; they are deleted anyway.
type LogoutResponse struct {
	Server    string          `json:"server"`
	Principal tenon.Principal `json:"principal,omitempty"`
	SignedIn  bool            `json:"signed_in"`
	Revoked   bool            `json:"revoked"`
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

// logout deletes a sign-in.
func (c *call) logout() error {
	var r LogoutRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	who, name := r.Principal, c.req.PathValue("name")
	if who == "" && !c.caller.Owner {
		who = c.caller.Principal
	}
	if !c.caller.Owner && who != c.caller.Principal {
		return tenon.Errorf(tenon.CodeDenied, "only the owner of this tenon may sign out '%s'; '%s' is not",
			tenon.Visible(string(who)), c.caller.Principal)
	}
	var had bool
	var untold, err error
	if who != "" {
		had, untold, err = host.SignOut(c.ctx(), c.h, who, name)
	} else {
		s := c.h.Service().Connections()[name]
		if s == nil {
			return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'", tenon.Visible(name))
		}
		had, untold, err = s.Logout(c.ctx())
	}
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, LogoutResponse{name, who, had, had && untold == nil})
}
