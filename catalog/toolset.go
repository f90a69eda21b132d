package catalog

import (
	"context"

	"github.com/tenonhq/tenon"
)

// Toolset is a snapshot that can be called: exposed names in, remote names out.
type Toolset struct {
	Snapshot *Snapshot
	Servers  map[string]tenon.Toolset // by server name
}

// Tools returns the tools of the snapshot.
func (t *Toolset) Tools(context.Context) ([]tenon.Tool, error) { return t.Snapshot.Tools(), nil }

// Call routes a call to the server that has the tool, under the name that it
// has there.
func (t *Toolset) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	tool, ok := t.Snapshot.Lookup(c.Tool)
	if !ok {
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s'", c.Tool)
	}
	s, ok := t.Servers[tool.Server]
	if !ok {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' of tool '%s' is not configured any more", tool.Server, c.Tool)
	}
	c.Tool = tool.Remote
	return s.Call(ctx, c)
}

var _ tenon.Toolset = (*Toolset)(nil)
