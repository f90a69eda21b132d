package executor

import (
	"context"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// Some tools are run by the model's provider. They are offered with a request and used while the answer is generated.
// So the rules decide about them before the request, without arguments.

// maskItems masks secrets in the items of a provider, which may repeat the token or address of a connector. Text and
// reasoning stay as they are: signatures cover them, and no model sees these secrets.
func (x *Executor) maskItems(m *tenon.Message) {
	if m == nil {
		return
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if len(p.Raw) > 0 && (p.Type == tenon.PartOpaque || p.Call != nil && p.Call.Connector != nil) {
			p.Raw = x.cfg.Redactor.Bytes(p.Raw)
		}
	}
}

// offer returns the request with those provider's tools that the rules allow for this run, and a warning for each of
// the others. A tool for which the rules demand an approval is not offered, because nobody can be asked about a call
// that the provider makes. Connectors for whose calls the provider asks are an exception: the rules decide about each
// call. Errors: store.
func (x *Executor) offer(ctx context.Context, row tenon.Run, m Model, p *agent.Prompt, req *tenon.Request) (
	*tenon.Request, []string, error) {
	warnings := slices.Clone(m.Notes)
	if len(m.Hosted) == 0 || p.Excluded != "" && p.Excluded != agent.ExcludedByNobody {
		return req, warnings, nil
	}
	r := *req
	layers := x.cfg.Rules.Ruleset().Layers
	for i := range m.Hosted {
		t := &m.Hosted[i]
		f, err := x.cfg.Rules.Facts(ctx, row, p.State, t, nil)
		if err != nil {
			return nil, nil, err
		}
		switch o := layers.Judge(f); {
		case o.Verdict == tenon.Allow, o.Verdict == tenon.Ask && slices.Contains(m.AsksFirst, t.Remote):
			r.Hosted = append(r.Hosted, t.Remote)
		case o.Verdict == tenon.Ask:
			warnings = append(warnings, "the provider's tool "+t.Remote+" was not offered: the rules ask about it, "+
				"and nobody can be asked; allow it by a rule about tool.server == \"provider\"")
		default:
			warnings = append(warnings, "the provider's tool "+t.Remote+" was not offered: "+o.Reason)
		}
	}
	return &r, warnings, nil
}
