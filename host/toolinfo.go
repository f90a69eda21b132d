package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// ToolInfo is a tool with the cost of its definition in a prompt, in tokens. The other members are
// parts of the server's definition that the model does not see, byte for byte.
type ToolInfo struct {
	tenon.Tool
	Tokens    int             `json:"tokens"`
	Icons     json.RawMessage `json:"icons,omitempty"`     // pictures to show (MCP 2025-11-25)
	Execution json.RawMessage `json:"execution,omitempty"` // such as taskSupport (MCP 2025-11-25)
	Meta      json.RawMessage `json:"_meta,omitempty"`
}

// NewToolInfo returns a tool with the rest of its definition.
func NewToolInfo(t *tenon.Tool) ToolInfo {
	i := ToolInfo{Tool: *t, Tokens: catalog.Tokens(t)}
	for k, v := range rawjson.Members(t.Raw) {
		switch string(k) {
		case "icons":
			i.Icons = v
		case "execution":
			i.Execution = v
		case "_meta":
			i.Meta = v
		}
	}
	return i
}

// ToolDetail is all that is known of one tool. Steps lists what changed it on the way from the server to the model.
type ToolDetail struct {
	ToolInfo
	Offered   bool                `json:"offered"`          // false: it is left out
	Reason    string              `json:"reason,omitempty"` // why it is left out
	Arguments []catalog.Parameter `json:"arguments"`
	Steps     []catalog.Step      `json:"steps"`
	// Unchecked lists the parts of the schemas that calls and results are not checked against.
	Unchecked []catalog.Unchecked `json:"unchecked,omitempty"`
}

func (h toolsHandle) List(ctx context.Context) ([]ToolInfo, []Problem, error) {
	snapshot, problems, err := h.Snapshot(ctx)
	if err != nil {
		return nil, problems, err
	}
	return ToolInfos(snapshot.Tools()), problems, nil
}

// ToolInfos returns tools with the costs of their definitions.
func ToolInfos(tools []*tenon.Tool) []ToolInfo {
	list := make([]ToolInfo, len(tools))
	for i, t := range tools {
		list[i] = NewToolInfo(t)
	}
	return list
}

func (h toolsHandle) Get(ctx context.Context, name string) (ToolDetail, error) {
	d := ToolDetail{Arguments: []catalog.Parameter{}, Steps: []catalog.Step{}}
	snapshot, _, err := h.Snapshot(ctx)
	if err != nil {
		return d, err
	}
	t, ok := snapshot.Lookup(name)
	if !ok {
		all := snapshot.Tools()
		if i := slices.IndexFunc(all, func(t *tenon.Tool) bool { return t.Server+"."+t.Remote == name }); i >= 0 {
			t, ok = all[i], true
		}
	}
	if ok {
		d.ToolInfo, d.Offered = NewToolInfo(t), true
		d.Arguments = append(d.Arguments, catalog.Parameters(t)...)
		d.Unchecked = snapshot.Unchecked(t)
	} else {
		all := snapshot.Withheld()
		i := slices.IndexFunc(all, func(w catalog.Withheld) bool {
			return w.Remote == name ||
				w.Server+"."+w.Remote == name
		})
		if i < 0 {
			return d, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s'", name)
		}
		d.Server, d.Remote, d.Reason = all[i].Server, all[i].Remote, all[i].Reason
	}
	d.Steps = append(d.Steps, snapshot.Explain(d.Server, d.Remote)...)
	return d, nil
}
