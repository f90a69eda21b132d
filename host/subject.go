package host

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/pins"
)

// subject identifies the tool of a call for grants: its server, the server's command or URL, and the tool's definition.
// A grant applies only to the same subject.
func (h *Host) subject(ctx context.Context, run tenon.Run, t *tenon.Tool) (*agent.Subject, error) {
	id, err := h.identifyIn(ctx, run.ID, t.Server, t.Remote)
	return &agent.Subject{Server: id.Server, Target: id.Target, Definition: h.definitionOf(ctx, t)}, err
}

// definitionOf returns the digest of a tool's definition as sent by its server, or "" if it cannot be found.
func (h *Host) definitionOf(ctx context.Context, t *tenon.Tool) string {
	if len(t.Raw) > 0 {
		return pins.Digest(t.Remote, t.Raw)
	}
	set := h.sets()[t.Server]
	if set == nil || h.isStatic(t.Server) != nil { // a workflow step, or a tool that only its entry defines
		return ownDefinition(t)
	}
	// The run began in another process, so its snapshot has no data of the server.
	tools, err := set.Tools(ctx)
	if err != nil {
		h.log.Info("no grant applies to a call: its server did not return the tool's definition", "server",
			t.Server, "tool", t.Remote, "error", err)
		return ""
	}
	return definitionIn(tools, t.Remote)
}

// knownDefinition is definitionOf without starting a server. It returns "" if the definition is unknown.
func (h *Host) knownDefinition(ctx context.Context, server, remote string) string {
	if s := h.connections()[server]; s != nil && h.isStatic(server) == nil {
		tools, _ := s.Remembered()
		return definitionIn(tools, remote)
	}
	set := h.sets()[server]
	if set == nil {
		return ""
	}
	if src := h.isStatic(server); src != nil {
		snapshot, _ := catalog.Build([]catalog.Source{*src})
		for _, t := range snapshot.Tools() {
			if t.Remote == remote {
				return ownDefinition(t)
			}
		}
		return ""
	}
	tools, err := set.Tools(ctx)
	if err != nil {
		return ""
	}
	return definitionIn(tools, remote)
}

// isStatic returns the source of a server whose tools are defined only by its entries, or nil for any other server.
func (h *Host) isStatic(server string) *catalog.Source {
	_, sources := h.offerers()
	if src := sources[server]; src != nil && src.Static {
		return src
	}
	return nil
}

// ownDefinition returns the digest of a tool that no server has described. The digest excludes names, which the
// identity contains.
func ownDefinition(t *tenon.Tool) string {
	own := *t
	own.Server, own.Name, own.Rules, own.Raw = "", "", tenon.ToolRules{}, nil
	return pins.Digest(own.Remote, encode(&own))
}

func definitionIn(tools []tenon.Tool, remote string) string {
	for i := range tools {
		if tools[i].Remote != remote {
			continue
		}
		raw := tools[i].Raw
		if len(raw) == 0 {
			raw = encode(&tools[i])
		}
		return pins.Digest(remote, raw)
	}
	return ""
}
