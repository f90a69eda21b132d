package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/record"
	"github.com/tenonhq/tenon/transport"
)

func newGateway(a *app) *cobra.Command {
	var endpoint string
	c := &cassette{}
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Serve all tools as one MCP server, for other clients",
		Long: "Serves the configured servers to an MCP client that starts programs, over stdin and stdout. The\n" +
			"client sees the tools of all of them as the tools of one server, in either era of the protocol.\n" +
			"The rules hold for its calls: a denied call says why, and a call that needs approval waits for\n" +
			"tenon approvals.\n\n" +
			"If a tenon serve works on the store of the configuration, its connections are used, and the\n" +
			"client stays connected while it restarts. Otherwise the gateway runs in this process.\n\n" +
			"Without --config only your own configuration file is read, not the files of the folder: clients\n" +
			"start programs in folders of strangers. Clients that speak HTTP use /mcp of tenon serve.",
		Example: "  tenon gateway\n  tenon gateway -c /home/me/project/tenon.yaml",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(cmd); err != nil {
				return err
			}
			return a.gateway(cmd.Context(), endpoint, *c)
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "", servedEndpoint)
	cmd.Flags().StringVar(&c.replay, "replay", "", "answer for servers from the cassette in `FOLDER`; nothing is "+
		"started or contacted")
	cmd.AddCommand(newGatewayConnect(a), newGatewayDisconnect(a), newGatewayList(a), newGatewayClients(a),
		newGatewayRecord(a))
	return cmd
}

// servedEndpoint describes the flag --endpoint.
const servedEndpoint = "serve only the tools of the entry `NAME` of gateway.endpoints"

func newGatewayRecord(a *app) *cobra.Command {
	var endpoint string
	cmd := &cobra.Command{
		Use:   "record FOLDER",
		Short: "Serve a client as tenon gateway, and record the traffic",
		Long: "Serves an MCP client over stdin and stdout like tenon gateway, in this process, and records the\n" +
			"requests to the servers and their answers in a cassette in FOLDER. Use it as the command of a\n" +
			"client for a while. An earlier cassette in the folder is replaced.\n\n" +
			"tenon gateway --replay FOLDER answers the same client again, without the servers. The rules hold\n" +
			"there, too, and a request that differs from the recorded ones is refused. Tools, prompts, resources\n" +
			"and completions are recorded, subscriptions are not. Clients over HTTP are not recorded.\n\n" +
			"Secrets of the configuration are masked in a cassette; other private content is not. It has at\n" +
			"most 1 GiB, and only you can read its files.",
		Example: "  tenon gateway record rec\n" +
			"  tenon gateway record rec -c /home/me/project/tenon.yaml --endpoint coding",
		Args: args(1, 1, "the folder of the cassette"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return usage(cmd, "the name of the folder is empty")
			}
			return a.gateway(cmd.Context(), endpoint, cassette{record: args[0]})
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "", servedEndpoint)
	return cmd
}

func newGatewayList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the endpoints",
		Long: "Lists the endpoints of the gateway: /mcp with all tools, and the entries of gateway.endpoints.\n" +
			"tenon serve has them at these paths; tenon gateway --endpoint NAME serves one over stdio.",
		Example: "  tenon gateway list\n  tenon gateway list -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(cmd.Context(), nil)
			if err != nil {
				return err
			}
			return printList(a, cfg.Gateway.Served(), []string{"path", "has", "description"},
				func(e config.ServedEndpoint) []string { return []string{e.Path, hasTools(e), e.Description} })
		},
	}
}

// hasTools describes the tools of an endpoint.
func hasTools(e config.ServedEndpoint) string {
	var parts []string
	for _, p := range []struct {
		name string
		list []string
	}{{"servers", e.Servers}, {"groups", e.Groups}, {"tools", e.Tools}} {
		if len(p.list) > 0 {
			parts = append(parts, p.name+" "+strings.Join(p.list, ", "))
		}
	}
	text := cmp.Or(strings.Join(parts, "; "), "all tools")
	if len(e.Exclude) > 0 {
		text += " without " + strings.Join(e.Exclude, ", ")
	}
	if e.Mode != "" {
		text += "; clients search them"
	}
	return text
}

// gateway serves a client on stdin and stdout. The connections of a tenon serve cannot be recorded or replayed, so the
// gateway then runs in this process.
func (a *app) gateway(ctx context.Context, endpoint string, c cassette) error {
	a.noInput = true // stdin is the client's
	cfg, err := a.gatewayConfig(ctx)
	if err != nil {
		return err
	}
	if err := checkEndpoint(cfg, endpoint); err != nil {
		return err
	}
	if err := checkServersRecorded(c.replay); err != nil {
		return err
	}
	o := opening{connect: true, lasting: true, begins: true, loaded: cfg, cassette: c}
	hc, err := a.hostConfig(ctx, o)
	if err != nil {
		return err
	}
	client := transport.NewLines(readUntil(ctx, a.in), beneath(a.out), 0)
	defer client.Close()
	socket := host.Socket(hc)
	if c == (cassette{}) && socket != "" && httpapi.CheckServed(ctx, socket) == nil {
		network := httpapi.SocketNetwork(socket)
		defer network.CloseIdleConnections()
		at := httpapi.SocketURL + "/mcp"
		if endpoint != "" {
			at += "/" + endpoint
		}
		return gateway.Relay(ctx, client, gateway.RelayConfig{URL: at, Network: network})
	}
	if c.replay == "" && !hc.Untrusted {
		hc.Observe = a.collect(hc.Config, true)
	}
	return a.gatewayHere(ctx, hc, client, endpoint)
}

// checkServersRecorded returns an error if a cassette has no traffic of servers, because its replay would start them.
// Without a folder there is nothing to check.
func checkServersRecorded(folder string) error {
	if folder == "" {
		return nil
	}
	has, err := record.HoldsServers(folder)
	if err == nil && !has {
		err = tenon.Errorf(tenon.CodeConfig, "no traffic of servers is recorded in %s, so tenon gateway cannot answer "+
			"from there; record it with: tenon gateway record FOLDER", tenon.Visible(folder))
	}
	return err
}

// gatewayConfig loads the configuration of --config, or the user's own.
func (a *app) gatewayConfig(ctx context.Context) (*config.Config, error) {
	o := a.configOptions()
	o.NoProject = a.config == ""
	cfg, err := a.loadWith(ctx, o)
	if err == nil && len(cfg.Servers) == 0 && cfg.Path == "" {
		a.note("no servers are configured; write them into your own configuration file, or name a file with --config")
	}
	return cfg, err
}

// gatewayHere serves the client in this process.
func (a *app) gatewayHere(ctx context.Context, hc host.Config, client *transport.Lines, endpoint string) (err error) {
	h, err := host.Open(ctx, hc)
	if err != nil {
		return err
	}
	defer func() { closing(h, &err) }()
	g := gateway.New(h, gateway.Config{})
	a.mcp.Store(g)
	defer func() { closing(g, &err) }()
	return g.Serve(ctx, client, tenon.PrincipalLocal, endpoint)
}
