package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

func newApprovalsShow(a *app) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a pending call with its arguments",
		Long: "Shows a call that waits for a decision: server, tool, reason, and the arguments that would be sent.\n" +
			"Long texts are cut and shown with their size and SHA-256 digest; --full shows them whole. Invisible\n" +
			"characters are escaped, and long runs of one character are counted: 40×\" \". -o json prints the\n" +
			"arguments byte for byte, as approvals list does.\n" +
			"ID is an id from tenon approvals list, or its beginning. If a run waits for only one decision, its id\n" +
			"works too.",
		Example: "  tenon approvals show run_06d8k2w5\n  tenon approvals show run_06d8k2w5/1.0 --full\n" +
			"  tenon approvals show run_06d8k2w5/1.0 -o json | jq -j .arguments.content | sha256sum",
		Args: args(1, 1, "the approval's id"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{lists: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			p, err := findApproval(cmd.Context(), h, args[0])
			if err != nil {
				return err
			}
			if a.isJSON() {
				return a.printJSON(p)
			}
			secret := ""
			if here, ok := h.(*host.Host); ok {
				secret = here.Service().Info().Config.SecretName("servers." + p.Server + ".auth.secret")
			}
			return a.write([]byte(a.approvalText(p, secret, full)))
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "show the arguments whole, however long they are")
	return cmd
}

// approvalText formats a pending approval. secret is the name of the secret that the server gets with the call, or "".
func (a *app) approvalText(p host.Approval, secret string, full bool) string {
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", label, safeLine(text))
		}
	}
	b.WriteString(safeLine(p.ID) + "\n")
	line("session", p.Session)
	line("question", p.Title)
	line("server", p.Server)
	line("tool", p.Remote)
	if p.Connector != nil {
		line("address", connectorAddress(p.Connector))
	}
	line("secret", secret)
	line("reason", p.Reason)
	line("until", a.when(p.Expires))
	switch p.Kind {
	case agent.AskLimit:
		return b.String()
	case agent.AskApproval, agent.AskClient:
		b.WriteString(strings.Join(a.argLines("arguments", p.ID, p.Arguments, full), "\n") + "\n")
	default:
		line("asks for", wanted(p.Requests))
		if asksForSecret(p.Requests) {
			line("warning", "server '"+p.Server+"' asks for a secret: it gets what you send")
		}
		b.WriteString(strings.Join(a.argLines("requests", p.ID, p.Requests, full), "\n") + "\n")
	}
	return b.String()
}

// connectorAddress returns the address of a server that the model's provider calls.
func connectorAddress(c *tenon.Connector) string {
	return cmp.Or(c.URL, "not known: only the model's provider has it")
}
