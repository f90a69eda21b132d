package host

import (
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Some providers call MCP servers by themselves (connectors of models.NAME.tools), and ask before each call. The rules
// decide about such a call, and the journal records it, as with any other call. Only its execution differs: the result
// of the call is the approval, which the next request takes to the provider.

// connectors is the toolset of the calls that a model's provider makes. It lists no tools, because only the provider
// knows them.
type connectors struct{}

// Tools implements [executor.Toolset].
func (connectors) Tools(context.Context) ([]tenon.Tool, error) { return nil, nil }

// Call implements [executor.Toolset]. It records the approval of a call that was allowed.
func (connectors) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("approved; the model's provider makes this call")}}, nil
}

// prepareConnector returns the tool of a call that the provider makes. Its definition names the server's address, so
// that an earlier approval does not cover another server of the same name. Errors: invalid (malformed arguments).
func prepareConnector(c *tenon.ToolCall) (catalog.Prepared, error) {
	t := &tenon.Tool{Server: catalog.ProviderServer, Remote: c.Connector.Name + "/" + c.Connector.Tool, Name: c.Name,
		Title: c.Connector.URL, Description: "a tool of the MCP server '" + c.Connector.Name + "' (" +
			c.Connector.URL + "), which the model's provider calls"}
	p := catalog.Prepared{Tool: t, Arguments: c.Arguments}
	if c.Malformed != "" || !json.Valid(c.Arguments) || !rawjson.IsObject(c.Arguments) {
		return p, tenon.Errorf(tenon.CodeInvalid, "the arguments of this call are not a JSON object; call the tool "+
			"again")
	}
	if key, twice := rawjson.Twice(c.Arguments); twice { // the rules and the server could see different values
		return p, tenon.Errorf(tenon.CodeInvalid, "the arguments of this call have the key '%s' twice; call the tool "+
			"again", tenon.Visible(key))
	}
	return p, nil
}
