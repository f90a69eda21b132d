package host

import (
	"context"
	"fmt"
	"maps"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// SignInLink says what a link for a sign-in is for.
type SignInLink struct {
	Principal tenon.Principal // who may use it
	Endpoint  string          // the entry of gateway.endpoints at which the call was made, or empty for all tools
	Server    string          // where to sign in
	Origin    string          // of the page, with the path of a proxy, without a slash at its end
}

// PresentToken returns the credentials of a request that was authenticated with an access token: the given ones, and
// the token itself for each server whose caller_credentials.exchange is set. issuer is the verified issuer of the
// token, as in its claim iss. The token is exchanged when the server is called, and never sent to it.
func PresentToken(h *Host, c Credentials, token tenon.Secret, issuer string) Credentials {
	out := c
	for name := range h.connections() {
		if _, there := c[name]; there || !h.config.Servers[name].CallerCredentials.Exchange {
			continue
		}
		if out = maps.Clone(out); out == nil {
			out = Credentials{}
		}
		out[name] = servers.Overlay{Subject: token, SubjectIssuer: issuer}
	}
	return out
}

// SignsInItself returns the server of a tool if the principal has to sign in there for itself, because its
// caller_credentials.sign_in is set. It returns "" for every other tool.
func SignsInItself(ctx context.Context, h *Host, who tenon.Principal, tool string) string {
	snapshot, _, err := h.Tools().Snapshot(ctx)
	if err != nil {
		return ""
	}
	t, ok := snapshot.Lookup(tool)
	if !ok || !h.signsIn(who, t.Server) {
		return ""
	}
	return t.Server
}

const (
	// maxSearchedRuns bounds the runs that SignInNeeded reads, maxSearchedEvents the events of each of them.
	maxSearchedRuns, maxSearchedEvents = 64, 2000
)

// SignInNeeded returns a server where the principal of a run has to sign in for itself, because a call of the run, or
// of a run that it began, failed without a sign-in. It returns "" if there is none.
func SignInNeeded(ctx context.Context, h *Host, run string) string {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return ""
	}
	return signInNeeded(run, func(run string) ([]tenon.Event, error) {
		return h.store.Events(ctx, run, 0, maxSearchedEvents)
	}, func(server string) bool { return h.signsIn(row.Owner(), server) })
}

// signInNeeded returns the server of a call that failed without a sign-in, in a run or in one that it began. The runs
// that it began are searched before the ones that those began. wants reports whether the principal has to sign in to a
// server for itself.
func signInNeeded(run string, events func(run string) ([]tenon.Event, error), wants func(server string) bool) string {
	runs := []string{run}
	for read := 0; read < len(runs); read++ {
		list, err := events(runs[read])
		if err != nil {
			continue // a run that did not begin
		}
		server := map[string]string{} // of the calls, by step
		for _, e := range list {
			switch e.Kind {
			case agent.EventDecided:
				d, err := view.Try[agent.Decision](e)
				if err != nil {
					continue
				}
				server[e.Step] = d.Server
				if d.Delegates() && len(runs) < maxSearchedRuns {
					runs = append(runs, tenon.ChildRun(runs[read], e.Step))
				}
			case agent.EventFailed:
				f, err := view.Try[agent.Failure](e)
				if err != nil || f.Error == nil || f.Error.Code != tenon.CodeAuth {
					continue
				}
				if wants(server[e.Step]) {
					return server[e.Step]
				}
			}
		}
	}
	return ""
}

// SignIn lets a principal sign in to a server, and keeps the tokens for this principal only. visit sends the browser of
// the principal to an address and returns the query with which it came back to redirect. The caller has verified that
// it is the browser of the principal. SignIn returns the authorization server. Errors: not_found, invalid (the server
// wants no sign-in of the principal; a replay), auth_required, unreachable, protocol, store, cancelled.
func SignIn(ctx context.Context, h *Host, who tenon.Principal, server, redirect string, visit servers.Visit) (
	issuer string, err error) {
	s := h.connections()[server]
	switch {
	case s == nil:
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'", tenon.Visible(server))
	case !h.signsIn(who, server):
		return "", tenon.Errorf(tenon.CodeInvalid, "server '%s' wants no sign-in of '%s'; "+
			"servers.%s.caller_credentials.sign_in allows it", server, who, server)
	}
	if err := h.cassette.reaches(server); err != nil {
		return "", err
	}
	return s.LoginAs(ctx, who, redirect, visit)
}

// SignOut revokes and deletes the own sign-in of a principal at a server. had reports whether there was one. untold is
// the error if the tokens could not be revoked at the authorization server; they are deleted anyway. Errors: not_found,
// invalid (the server has no sign-in; a replay), store.
func SignOut(ctx context.Context, h *Host, who tenon.Principal, server string) (had bool, untold, err error) {
	s := h.connections()[server]
	switch {
	case s == nil:
		return false, nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'", tenon.Visible(server))
	case who == "" || who == tenon.PrincipalLocal:
		return false, nil, tenon.Errorf(tenon.CodeInvalid, "'%s' has no separate sign-in at server '%s'; the "+
			"sign-in that all share is deleted with: tenon servers logout %s", tenon.PrincipalLocal, server, server)
	}
	if err := h.cassette.reaches(server); err != nil {
		return false, nil, err
	}
	return s.LogoutAs(ctx, who)
}

// SignsIn reports whether a principal has to sign in to a server for itself, because the server's
// caller_credentials.sign_in is set.
func SignsIn(h *Host, who tenon.Principal, server string) bool { return h.signsIn(who, server) }

// signsIn reports whether a principal has to sign in to a server for itself.
func (h *Host) signsIn(who tenon.Principal, server string) bool {
	return who != "" && who != tenon.PrincipalLocal && h.config.Servers[server].CallerCredentials.SignIn
}

// accountAt returns the overlay with a principal's own sign-in at a server. Errors: auth_required (it has none).
func (h *Host) accountAt(ctx context.Context, who tenon.Principal, server string) (servers.Overlay, error) {
	var none servers.Overlay
	s := h.connections()[server]
	if s == nil {
		return none, nil
	}
	has, err := s.HasAccount(ctx, who)
	if err != nil && tenon.ErrorCode(err) != tenon.CodeAuth { // an unreadable sign-in is replaced by a new one
		return none, fmt.Errorf("the sign-in of '%s' to server '%s': %w", who, server, err)
	}
	if !has || err != nil {
		return none, tenon.Errorf(tenon.CodeAuth, "'%s' has not signed in to server '%s' yet; the first call of an "+
			"MCP client through the gateway shows the address", who, server)
	}
	return servers.Overlay{Owner: string(who), Account: string(who)}, nil
}

// exchanged returns the overlay of a request with its token exchanged. Other overlays are returned as they are.
func (h *Host) exchanged(ctx context.Context, who tenon.Principal, server string, o servers.Overlay) (servers.Overlay,
	error) {
	if s := h.connections()[server]; s != nil && !o.Subject.IsZero() {
		// A reload that changes the audience keeps the connections, so the server itself may have an older one.
		return s.Exchange(ctx, who, o, h.config.Servers[server].CallerCredentials.ExchangeAudience)
	}
	o.Owner = string(who)
	return o, nil
}
