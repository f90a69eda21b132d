package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

func newApprovalsGrants(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "grants",
		Short: "List approvals for later calls",
		Long: "Lists the approvals that cover later calls: permanent ones (--always, or 'a' or 'i' at the " +
			"terminal),\n" +
			"and those for the rest of a session (--remember session, or 's'). A call that one of them covers needs\n" +
			"no approval. It lapses when its server's command or address or the tool's definition changes. 'tenon\n" +
			"approvals revoke ID' revokes it, also during a session.",
		Example: "  tenon approvals grants\n  tenon approvals grants -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{lists: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Approvals().Grants(cmd.Context(), "")
			if err != nil {
				return err
			}
			return printList(a, list, []string{"id", "tool", "principal", "allowed by", "since", "for calls",
				"state"}, func(g host.Grant) []string {
				state := g.State
				if g.Reason != "" {
					state += ": " + g.Reason
				}
				return []string{g.ID, g.Tool(), string(g.Principal), g.By, a.when(g.Created), a.grantLimits(g), state}
			})
		},
	}
}

// grantLimits describes the calls that a grant covers.
func (a *app) grantLimits(g host.Grant) string {
	var parts []string
	if g.Session != "" {
		parts = append(parts, "in session "+g.Session)
	}
	if g.Condition != "" {
		parts = append(parts, "if "+g.Condition)
	}
	if g.Uses > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d left", max(0, g.Uses-g.Used), g.Uses))
	}
	if !g.Expires.IsZero() {
		parts = append(parts, "until "+a.when(g.Expires))
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ", ")
}

func newApprovalsRevoke(a *app) *cobra.Command {
	principal := string(tenon.PrincipalLocal)
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke an approval for later calls",
		Long: "Revokes a permanent approval, or one for a session: the tool asks again. ID is an id from tenon\n" +
			"approvals grants, or its beginning. SERVER.TOOL also works if there is only one grant for that tool.",
		Example: "  tenon approvals revoke gr_4k7w2m9x\n  tenon approvals revoke gs_8m2c5t1h\n" +
			"  tenon approvals revoke filesystem.write_file",
		Args: args(1, 1, "the grant's id"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			of := tenon.Principal(principal)
			if host.IsGrantID(args[0]) && !cmd.Flags().Changed("principal") {
				of = "" // the id of a grant determines its principal
			}
			list, err := h.Approvals().Grants(cmd.Context(), of)
			if err != nil {
				return err
			}
			g, err := host.FindGrant(list, args[0])
			if err != nil {
				return err
			}
			if err := h.Approvals().Revoke(cmd.Context(), g.Principal, g.ID); err != nil {
				return err
			}
			return a.did(map[string]string{"id": g.ID, "server": g.Name, "remote_name": g.Remote},
				"revoked %s: %s asks again", g.ID, safeLine(g.Tool()))
		},
	}
	cmd.Flags().StringVar(&principal, "principal", principal, "`NAME` of the principal that has the grant")
	return cmd
}

// remembering are the flags that set how long an approval is valid.
type remembering struct {
	remember string
	always   bool
	cond     string
	uses     int
	lasts    string
}

func (r *remembering) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.remember, "remember", "", "`SCOPE` of the approval: session allows the tool for the rest of the "+
		"session, always until you revoke it (default: only this call)")
	f.BoolVar(&r.always, "always", false, "also allow later calls of the tool, until you revoke it; the same as "+
		"--remember always")
	f.StringVar(&r.cond, "if", "", "with --always: only calls whose arguments meet a condition in `CEL`, such as "+
		"'under(args.path, \"/srv\")'")
	f.IntVar(&r.uses, "uses", 0, "with --always: only the next `N` calls")
	f.StringVar(&r.lasts, "for", "", "with --always: only for a `TIME` such as 24h or 30d")
}

// apply puts the flags into a ruling.
func (r *remembering) apply(cmd *cobra.Command, to *agent.Ruling) error {
	switch {
	case r.always && r.remember != "" && r.remember != agent.RememberAlways:
		return usage(cmd, "--always and --remember %s exclude each other", r.remember)
	case r.always:
		r.remember = agent.RememberAlways
	}
	switch r.remember {
	case "", agent.RememberSession, agent.RememberAlways:
	default:
		return tenon.Errorf(tenon.CodeInvalid, "--remember %s: the values are session and always", r.remember)
	}
	to.Remember, to.If, to.Uses = r.remember, strings.TrimSpace(r.cond), r.uses
	for _, name := range []string{"if", "uses", "for"} {
		if cmd.Flags().Changed(name) && r.remember != agent.RememberAlways {
			return usage(cmd, "--%s needs --always", name)
		}
	}
	switch {
	case cmd.Flags().Changed("if") && to.If == "":
		return usage(cmd, "--if is empty") // an unset shell variable must not widen the grant
	case cmd.Flags().Changed("uses") && r.uses < 1:
		return usage(cmd, "--uses must be at least 1")
	case !cmd.Flags().Changed("for"):
		return nil
	}
	d, err := config.ParseDuration(r.lasts)
	if err != nil || d <= 0 {
		return usage(cmd, "--for '%s' is not a time such as 24h or 30d", r.lasts)
	}
	to.For = d
	return nil
}
