package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

func newApprovals(a *app) *cobra.Command {
	cmd := group("approvals", "Tool calls that wait for a decision: list, show, allow, deny", "approval")
	cmd.AddCommand(remotely(newApprovalsList(a)), remotely(newApprovalsShow(a)),
		remotely(newApprovalsDecide(a, tenon.Allow)), remotely(newApprovalsDecide(a, tenon.Deny)),
		remotely(newApprovalsGrants(a)), remotely(newApprovalsRevoke(a)))
	return cmd
}

func newApprovalsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List pending decisions, oldest first",
		Long: "Lists the tool calls that wait for a decision, with the arguments that would be sent, and the\n" +
			"requests that servers make during a call. The column until shows when an undecided call is denied\n" +
			"(policy.expires).",
		Example: "  tenon approvals list\n  tenon approvals list -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{lists: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Approvals().List(cmd.Context(), "")
			if err != nil {
				return err
			}
			cut := ""
			defer func() {
				if err == nil && cut != "" && !a.isJSON() {
					a.hint("arguments that are too long are shown by their size; all of them: %s",
						a.again("approvals show", cut, "--full"))
				}
			}()
			return printList(a, list, []string{"id", "tool", "question", "arguments", "until"},
				func(p host.Approval) []string {
					tool := p.Server + "." + p.Remote
					what, whole := argLine(p.Arguments, argsListed)
					if !whole && p.Kind == agent.AskApproval {
						cut = p.ID
					}
					switch p.Kind {
					case agent.AskLimit:
						tool, what = "", p.Reason
					case agent.AskApproval, agent.AskClient:
					default:
						what = "asks for " + wanted(p.Requests)
						if asksForSecret(p.Requests) {
							what = "asks for a secret, which it gets: " + wanted(p.Requests)
						}
					}
					if p.Foreign {
						what = "(foreign, see tenon store show) " + what
					}
					return []string{p.ID, tool, shorten(p.Title, 40), what, a.when(p.Expires)}
				})
		},
	}
}

func newApprovalsDecide(a *app, verdict tenon.Verdict) *cobra.Command {
	r := agent.Ruling{Verdict: verdict, By: string(tenon.PrincipalLocal)}
	var edited string
	var keep remembering
	const id = "ID is an id from tenon approvals list, or its beginning. If a run waits for only one decision,\n" +
		"its id works too."
	const first = "The first decision counts. A later one reports the first and exits with status 1.\n"
	cmd := &cobra.Command{
		Use:   "allow ID",
		Short: "Allow a tool call, as it is or with other arguments",
		Long:  "Allows a tool call. tenon serve resumes the run; without it, use tenon runs resume.\n" + first + id,
		Example: "  tenon approvals allow run_06d8k2w5\n  tenon approvals allow run_06d8k2w5/1.0 --args " +
			"'{\"path\":\"notes.txt\"}'\n" +
			"  tenon approvals allow run_06d8k2w5 --always --if 'under(args.path, \"/srv/project\")' --for 30d",
		Args: args(1, 1, "the approval's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := keep.apply(cmd, &r); err != nil {
				return err
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
		cmd.Use, cmd.Short = "deny ID", "Deny a tool call and give the model the reason"
		cmd.Long = "Denies a tool call. When the run resumes, the model receives the denial and continues without\n" +
			"the call. tenon serve resumes the run; without it, use tenon runs resume.\n" + first + id
		cmd.Example = "  tenon approvals deny run_06d8k2w5 --reason \"not on a Friday\""
		cmd.Flags().StringVar(&r.Reason, "reason", "", "`TEXT` for the model and the journal")
		return cmd
	}
	keep.flags(cmd)
	cmd.Flags().StringVar(&edited, "args", "", "other arguments to send, or the answer to a server that asks for "+
		"input, as a `JSON` object")
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
	var won tenon.Event
	var mine bool
	err = withServe(ctx, h, func(ctx context.Context) (err error) {
		won, mine, err = h.Approvals().Decide(ctx, p.Run, p.Step, r)
		return err
	})
	if err != nil {
		return err
	}
	if !mine {
		return tenon.Errorf(tenon.CodeConflict, "%s", a.winner(won))
	}
	top, _, _ := strings.Cut(p.Run, "/") // resuming a run also resumes the runs that it called
	next := "go on with: " + a.resumingRun(ctx, h, top)
	if o, err := h.Runs().Open(top).Owner(ctx); err == nil && o.Served {
		next = "tenon serve resumes run " + top
	}
	if len(r.Arguments) > 0 {
		p.Arguments = r.Arguments
	}
	said := map[tenon.Verdict]string{tenon.Allow: "allowed", tenon.Deny: "denied"}[r.Verdict]
	if p.Live {
		return a.did(map[string]string{"id": p.ID, "run": p.Run, "step": p.Step, "decision": string(r.Verdict)},
			"%s: the request of %s.%s; the call continues", said, safeLine(p.Server), safeLine(p.Remote))
	}
	args, _ := argLine(p.Arguments, argsShown)
	what := safeLine(p.Server+"."+p.Remote) + " " + args
	if p.Kind == agent.AskLimit {
		what = safeLine(p.Reason)
	}
	return a.did(map[string]string{"id": p.ID, "run": p.Run, "step": p.Step, "decision": string(r.Verdict)},
		"%s: %s\n%s", said, what, next)
}

// decidedBefore returns the event that decided a question. id is RUN/STEP or RUN. It tries each slash as the separator
// because the ids of called runs and of questions contain slashes.
func decidedBefore(ctx context.Context, h desk, id string) (tenon.Event, bool) {
	for end := len(id); end > 0; end = strings.LastIndexByte(id[:end], '/') {
		run, step := id[:end], strings.TrimPrefix(id[end:], "/")
		row, err := h.Runs().Get(ctx, run)
		if err != nil || row.ID != run {
			continue
		}
		events, err := h.Runs().Open(run).Journal(ctx, 0, 0)
		if err != nil {
			return tenon.Event{}, false
		}
		for _, w := range row.Waiting { // a question may have expired without an event in the journal yet
			if !w.Expires.IsZero() && !time.Now().Before(w.Expires) {
				events = append(events, tenon.Event{Step: w.Step, Kind: tenon.EventExpired, Time: w.Expires})
			}
		}
		for _, e := range slices.Backward(events) {
			if (e.Kind == agent.EventDecision || e.Kind == agent.EventAnswer || e.Kind == tenon.EventExpired) &&
				(step == "" || e.Step == step) {
				return e, true
			}
		}
		return tenon.Event{}, false
	}
	return tenon.Event{}, false
}

// byID returns the element with an id. If there is none, it returns the elements with a longer id that begins with it.
func byID[T any](list []T, id string, of func(T) string) (found []T) {
	for _, e := range list {
		if of(e) == id {
			return []T{e}
		}
		if id != "" && strings.HasPrefix(of(e), id) {
			found = append(found, e)
		}
	}
	return found
}

// findApproval finds a pending approval by its id, a prefix of its id, or the id of its run.
func findApproval(ctx context.Context, h desk, id string) (host.Approval, error) {
	list, err := h.Approvals().List(ctx, "")
	if err != nil {
		return host.Approval{}, err
	}
	found := byID(list, id, func(p host.Approval) string { return p.ID })
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return host.Approval{}, tenon.Errorf(tenon.CodeNotFound, "nothing with the id '%s' waits for a decision; "+
			"see tenon approvals list", id)
	}
	var ids []string
	for _, p := range found {
		ids = append(ids, p.ID)
	}
	return host.Approval{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of %d approvals: %s", id,
		len(found), strings.Join(ids, ", "))
}
