package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newApprovalsGrants(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "grants",
		Short:   "List the tools that were allowed for good",
		Long:    "Lists the tools that were allowed for good, with --remember always or by 'a' at the terminal. They ask no more.",
		Example: "  tenon approvals grants",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Grants(cmd.Context(), "")
			if err != nil {
				return err
			}
			return printList(a, list, []string{"tool", "principal", "allowed by", "since"}, func(g host.Grant) []string {
				return []string{g.Server + "." + g.Remote, string(g.Principal), g.By, a.when(g.Created)}
			})
		},
	}
}

func newApprovalsRevoke(a *app) *cobra.Command {
	principal := string(tenon.PrincipalLocal)
	cmd := &cobra.Command{
		Use:     "revoke SERVER.TOOL",
		Short:   "Have a tool ask again that was allowed for good",
		Long:    "Takes back that a tool was allowed for good. SERVER.TOOL is as tenon approvals grants shows it.",
		Example: "  tenon approvals revoke filesystem.write_file",
		Args:    args(1, 1, "the tool, as SERVER.TOOL"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			server, remote, ok := strings.Cut(args[0], ".")
			if !ok {
				return tenon.Errorf(tenon.CodeInvalid, "'%s' is not SERVER.TOOL; tenon approvals grants shows them", args[0])
			}
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			if err := h.Revoke(cmd.Context(), host.Grant{Principal: tenon.Principal(principal), Server: server, Remote: remote}); err != nil {
				return err
			}
			return a.did(map[string]string{"server": server, "remote_name": remote}, "revoked: %s.%s asks again", safeLine(server), safeLine(remote))
		},
	}
	cmd.Flags().StringVar(&principal, "principal", principal, "whose grant it is, as `NAME`")
	return cmd
}
