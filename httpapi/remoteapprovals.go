package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
)

// Approvals returns the handle of the principal's approvals and grants.
func (c *Client) Approvals() host.Approvals { return remoteApprovals{c} }

type remoteApprovals struct{ *Client }

func (c remoteApprovals) List(ctx context.Context, run string) ([]host.Approval, error) {
	path := at("approvals")
	if run != "" {
		path += "?run=" + url.QueryEscape(run)
	}
	l, err := fetch[list[host.Approval]](ctx, c.Client, http.MethodGet, path, nil, "")
	return l.Items, err
}

func (c remoteApprovals) Decide(ctx context.Context, run, step string, r agent.Ruling) (won tenon.Event, mine bool,
	err error) {
	d, err := fetch[Decided](ctx, c.Client, http.MethodPost, at("runs", run, "decide"),
		DecideRequest{Step: step, Verdict: r.Verdict, Reason: r.Reason, Arguments: r.Arguments, Cancel: r.Cancel,
			Remember: r.Remember, If: r.If, Uses: r.Uses, For: lasting(r.For)}, "")
	if err != nil {
		return won, false, err
	}
	won = tenon.Event{Run: run, Step: step, Kind: d.Kind, Time: d.Time}
	won.Data, err = json.Marshal(d.Won)
	return won, d.Mine, err
}

// lasting formats the duration of a grant. It returns "" for a grant that does not expire.
func lasting(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func (c remoteApprovals) Grants(ctx context.Context, _ tenon.Principal) ([]host.Grant, error) {
	l, err := fetch[list[host.Grant]](ctx, c.Client, http.MethodGet, at("grants"), nil, "")
	return l.Items, err
}

func (c remoteApprovals) Revoke(ctx context.Context, _ tenon.Principal, id string) error {
	return c.done(ctx, http.MethodPost, at("grants", "revoke"), RevokeRequest{ID: id})
}

// Rules returns a handle that has no rules, because there is no route that evaluates rules.
func (c remoteApprovals) Rules() host.Rules { return remoteRules{} }

type remoteRules struct{}

func (remoteRules) Judge(context.Context, host.Proposal) (policy.Opinion, error) {
	return policy.Opinion{}, notOverHTTP("the verdict about a call")
}

func (remoteRules) Verdicts(*tenon.Tool, string) []policy.LayerVerdict { return nil }

func (remoteRules) Forbids(*tenon.Tool, string, tenon.Principal) (string, bool) { return "", false }

// JudgeTool implements [host.Rules]. It returns the verdict ask for every call, because only the remote process can
// evaluate the rules.
func (remoteRules) JudgeTool(*tenon.Tool, tenon.Principal, json.RawMessage) policy.Opinion {
	return policy.Opinion{Verdict: tenon.Ask}
}

// ReadsPrincipal returns true: the API does not tell.
func (remoteRules) ReadsPrincipal() bool { return true }

func (remoteRules) Unused(*tenon.Tool, string) string { return "" }

func (remoteRules) Digest() string { return "" }

var (
	_ host.Approvals = remoteApprovals{}
	_ host.Rules     = remoteRules{}
)
