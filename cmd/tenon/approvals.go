package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

func newApprovals(a *app) *cobra.Command {
	cmd := group("approvals", "Tool calls that wait for a decision: list, allow, deny", "approval")
	cmd.AddCommand(remotely(newApprovalsList(a)), remotely(newApprovalsDecide(a, tenon.Allow)), remotely(newApprovalsDecide(a, tenon.Deny)),
		remotely(newApprovalsGrants(a)), remotely(newApprovalsRevoke(a)))
	return cmd
}

func newApprovalsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List what waits for a decision, oldest first",
		Long:    "Lists the tool calls that wait for a decision, with the arguments that would be sent, and what servers ask\nin the middle of a call. Until says when one that nobody decides is taken as denied (policy.expires).",
		Example: "  tenon approvals list\n  tenon approvals list -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Approvals(cmd.Context())
			if err != nil {
				return err
			}
			return printList(a, list, []string{"id", "tool", "question", "arguments", "until"}, func(p host.Approval) []string {
				tool, what := p.Server+"."+p.Remote, string(p.Arguments)
				switch p.Kind {
				case agent.AskLimit:
					tool, what = "", p.Reason
				case agent.AskApproval:
				default:
					what = "asks for " + wanted(p.Requests)
				}
				return []string{p.ID, tool, shorten(p.Title, 40), what, a.when(p.Expires)}
			})
		},
	}
}

func newApprovalsDecide(a *app, verdict tenon.Verdict) *cobra.Command {
	r := agent.Ruling{Verdict: verdict, By: string(tenon.PrincipalLocal)}
	var edited string
	const id = "ID is as tenon approvals list shows it, or its beginning, or the run's id where the run waits for one decision."
	cmd := &cobra.Command{
		Use:     "allow ID",
		Short:   "Allow a tool call, as it is or with other arguments",
		Long:    "Allows a tool call. The run goes on with tenon runs resume, or under tenon serve by itself. The first\ndecision counts; whoever comes second is told what it was, with status 1.\n" + id,
		Example: "  tenon approvals allow run_06d8k2w5\n  tenon approvals allow run_06d8k2w5/1.0 --args '{\"path\":\"notes.txt\"}'",
		Args:    args(1, 1, "the approval's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch r.Remember {
			case "", agent.RememberSession, agent.RememberAlways:
			default:
				return tenon.Errorf(tenon.CodeInvalid, "--remember %s: the values are session and always", r.Remember)
			}
			if cmd.Flags().Changed("args") {
				o, err := object(edited)
				if err != nil {
					return err
				}
				r.Arguments = o
			}
			return a.approve(cmd.Context(), args[0], r)
		},
	}
	if verdict == tenon.Deny {
		cmd.Use, cmd.Short = "deny ID", "Deny a tool call; the model is told, with the reason"
		cmd.Long = "Denies a tool call. The model is told so and goes on without it, after tenon runs resume. The first\ndecision counts; whoever comes second is told what it was, with status 1.\n" + id
		cmd.Example = "  tenon approvals deny run_06d8k2w5 --reason \"not on a Friday\""
		cmd.Flags().StringVar(&r.Reason, "reason", "", "`TEXT` for the model and the journal")
		return cmd
	}
	cmd.Flags().StringVar(&r.Remember, "remember", "", "`HOW` long it holds: session allows the tool for the rest of the session, always until it is taken back (default once)")
	cmd.Flags().StringVar(&edited, "args", "", "other arguments to send, or the answer to a server that asks for input, as a `JSON` object")
	return cmd
}

func (a *app) approve(ctx context.Context, id string, r agent.Ruling) (err error) {
	h, err := a.desk(ctx, opening{})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	p, err := findApproval(ctx, h, id)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		if won, ok := decidedBefore(ctx, h, id); ok {
			return tenon.Errorf(tenon.CodeConflict, "%s", a.winner(won))
		}
	}
	if err != nil {
		return err
	}
	if local, ok := h.(*host.Host); ok && r.Verdict == tenon.Allow && asksModel(p) {
		if err := a.consentToModels(ctx, local.Config()); err != nil {
			return err
		}
	}
	won, mine, err := h.Settle(ctx, p.Run, p.Step, r)
	if err != nil {
		return err
	}
	if !mine {
		return tenon.Errorf(tenon.CodeConflict, "%s", a.winner(won))
	}
	top, _, _ := strings.Cut(p.Run, "/") // it goes on with those that it has called
	next := "go on with: " + a.again("runs resume", top)
	if served, err := h.Claimed(serveClaim); err == nil && served {
		next = "tenon serve goes on with run " + top
	}
	if len(r.Arguments) > 0 {
		p.Arguments = r.Arguments
	}
	said := map[tenon.Verdict]string{tenon.Allow: "allowed", tenon.Deny: "denied"}[r.Verdict]
	if p.Live {
		return a.did(map[string]string{"id": p.ID, "run": p.Run, "step": p.Step, "decision": string(r.Verdict)},
			"%s: what %s.%s asked; the call goes on by itself", said, safeLine(p.Server), safeLine(p.Remote))
	}
	what := safeLine(p.Server+"."+p.Remote) + " " + shorten(safeLine(string(p.Arguments)), argsShown)
	if p.Kind == agent.AskLimit {
		what = safeLine(p.Reason)
	}
	return a.did(map[string]string{"id": p.ID, "run": p.Run, "step": p.Step, "decision": string(r.Verdict)}, "%s: %s\n%s", said, what, next)
}

// asksModel reports whether a model is asked right here once something is allowed.
func asksModel(p host.Approval) bool {
	var requests map[string]struct{ Method string }
	if p.Live || json.Unmarshal(p.Requests, &requests) != nil {
		return false // the process that works on the call asks it
	}
	for _, r := range requests {
		if r.Method == agent.MethodSample {
			return true
		}
	}
	return false
}

// decidedBefore finds what became of the question that an id, RUN/STEP or RUN, has
// waited for. Runs that others called, and questions, have slashes in their ids.
func decidedBefore(ctx context.Context, h desk, id string) (tenon.Event, bool) {
	for end := len(id); end > 0; end = strings.LastIndexByte(id[:end], '/') {
		run, step := id[:end], strings.TrimPrefix(id[end:], "/")
		row, err := h.RunRow(ctx, run)
		if err != nil || row.ID != run {
			continue
		}
		events, err := h.Journal(ctx, run, 0)
		if err != nil {
			return tenon.Event{}, false
		}
		for _, w := range row.Waiting { // whose time is up, which nobody has noted yet
			if !w.Expires.IsZero() && !time.Now().Before(w.Expires) {
				events = append(events, tenon.Event{Step: w.Step, Kind: tenon.EventExpired, Time: w.Expires})
			}
		}
		for _, e := range slices.Backward(events) {
			if (e.Kind == agent.EventDecision || e.Kind == agent.EventAnswer || e.Kind == tenon.EventExpired) && (step == "" || e.Step == step) {
				return e, true
			}
		}
		return tenon.Event{}, false
	}
	return tenon.Event{}, false
}

// findApproval finds what waits by its id, the beginning of it, or its run.
func findApproval(ctx context.Context, h desk, id string) (host.Approval, error) {
	list, err := h.Approvals(ctx)
	if err != nil {
		return host.Approval{}, err
	}
	var found []host.Approval
	for _, p := range list {
		if p.ID == id {
			return p, nil
		}
		if id != "" && strings.HasPrefix(p.ID, id) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return host.Approval{}, tenon.Errorf(tenon.CodeNotFound, "nothing with the id '%s' waits for a decision; tenon approvals list shows what does", id)
	}
	var ids []string
	for _, p := range found {
		ids = append(ids, p.ID)
	}
	return host.Approval{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of %d approvals: %s", id, len(found), strings.Join(ids, ", "))
}
