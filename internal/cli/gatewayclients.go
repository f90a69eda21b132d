package cli

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

func newGatewayClients(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "clients",
		Short: "List the MCP clients of tenon serve",
		Long: "Lists the MCP clients that have used the gateway of the tenon serve of this project, or of --remote,\n" +
			"since it started: at most 1,024, the latest first. The name is the client's own word. SESSIONS\n" +
			"counts the open sessions of a client of the older era; a client of 2026-07-28 has none. CALLS\n" +
			"counts calls of tools, and then how many of them the rules allowed, asked about and denied.\n" +
			"Clients of a tenon gateway that runs without tenon serve are not listed.",
		Example: "  tenon gateway clients\n  tenon gateway clients -o json\n" +
			"  tenon gateway clients --remote http://127.0.0.1:8420",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []host.GatewayClient
			err := a.atServe(cmd.Context(), func(c *httpapi.Client) (err error) {
				list, err = c.GatewayClients(cmd.Context())
				return err
			})
			if err != nil {
				return err
			}
			return printList(a, list, []string{"client", "protocol", "principal", "endpoint", "sessions", "since",
				"last call", "calls", "allowed", "asked", "denied"}, a.clientColumns)
		},
	})
}

// clientColumns returns the row of a client.
func (a *app) clientColumns(c host.GatewayClient) []string {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	name := strings.TrimSpace(safeLine(c.Name) + " " + safeLine(c.Version))
	return []string{cmp.Or(name, "unnamed"), c.Protocol, safeLine(string(c.Principal)),
		"/" + strings.TrimSuffix("mcp/"+safeLine(c.Endpoint), "/"), strconv.Itoa(c.Sessions),
		a.when(c.Since), a.when(c.LastCall), number(c.Calls), number(c.Allowed), number(c.Asked),
		number(c.Denied)}
}
