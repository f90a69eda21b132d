package gateway

import (
	"cmp"
	"context"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// maxKept bounds how long clients may keep an answer, because the rules can change with the configuration, and clients
// without subscriptions do not learn of it.
const maxKept = 5 * time.Minute

// isShared reports whether all principals see the same at the endpoint: no rule reads the principal, and no scope of
// a token is needed.
func (d *door) isShared(h *host.Host) bool {
	name := cmp.Or(d.key.endpoint, "all")
	oauth := h.Service().Info().Config.Serve.Auth.OAuth
	return len(oauth.Endpoints[name].Scopes) == 0 && !h.Approvals().Rules().ReadsPrincipal()
}

// hint returns the hint of a list that contains the items of servers: the least of theirs. A server that cannot be
// reached has no hint, because it may be back at any time.
func (d *door) hint(h *host.Host, list string, of []*servers.Server) mcp.Hint {
	least := mcp.Hint{TTL: maxKept, Public: d.isShared(h)}
	for _, s := range of {
		least = least.Least(s.Hint(list))
	}
	return least
}

// Hint implements [mcp.HintedSource]. Tools of other kinds, such as workflows, have no hints: they change only with the
// configuration.
func (d searching) Hint(context.Context) mcp.Hint {
	h := d.g.current()
	var of []*servers.Server
	for _, s := range connections(h) {
		if state, _ := s.State(); state != servers.StateDisabled {
			of = append(of, s)
		}
	}
	return d.hint(h, "tools", of)
}

// offersHint returns the hint of a list of prompts or resources.
func (d *door) offersHint(h *host.Host, o *offered, list string) []byte {
	var of []*servers.Server
	for _, one := range o.of {
		of = append(of, one.server)
	}
	return d.hint(h, list, of).Append(nil)
}

// readHint returns the hint of a resource: the least of told, which the server gave, and the one of the rules. A
// resource that was read with a principal's own credentials is private.
func (d *door) readHint(ctx context.Context, h *host.Host, t *tenon.Tool, uri string, told mcp.Hint) []byte {
	least := told.Least(mcp.Hint{TTL: maxKept, Public: d.isShared(h) && !servers.HasOverlay(ctx)})
	if o := h.Approvals().Rules().JudgeTool(t, d.key.who, uriArguments(uri)); o.Cache > 0 {
		least.TTL = min(least.TTL, o.Cache)
	}
	return least.Append(nil)
}

var _ mcp.HintedSource = searching{}
