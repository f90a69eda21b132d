package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newResources(a *app) *cobra.Command {
	cmd := group("resources", "Resources that servers offer: list, read, watch", "resource")
	cmd.AddCommand(newResourcesList(a), newResourcesRead(a), newResourcesWatch(a))
	return cmd
}

func newResourcesList(a *app) *cobra.Command {
	return offerList[host.ServerResource]{
		cmd: cobra.Command{
			Short: "List the resources of the servers",
			Long: "Lists the resources and resource templates of all servers, or of one: the name for use in a\n" +
				"question (@SERVER:URI), the type, and the description.\n\n",
			Example: "  tenon resources list\n  tenon resources list -- npx -y @modelcontextprotocol/server-everything",
		},
		known:  host.KnownContext.Resources,
		header: []string{"resource", "server", "type", "name"},
		row: func(r host.ServerResource) []string {
			return []string{"@" + r.Server + ":" + r.URI + r.Template, r.Server, r.MimeType,
				firstLine(strings.TrimSpace(r.Name + "  " + r.Description))}
		},
	}.command(a)
}

func newResourcesWatch(a *app) *cobra.Command {
	s := &adhoc{}
	count := 0
	cmd := &cobra.Command{
		Use:   "watch SERVER URI [--count N] [--url URL | -- COMMAND ARGS...]",
		Short: "Print a line for each change of a resource",
		Long: "Subscribes to a resource and prints a line for each change that its server reports: the time, and\n" +
			"the URI, which may be a part of the resource. Ctrl-C ends it, and so does --count. -o json prints\n" +
			"an object for each line. One with began: true says that the resource is watched from now on: at\n" +
			"first, and after the connection was made again; read the resource then, since changes before that\n" +
			"are not reported. Leave out SERVER with --url or a command. You can also write both as @SERVER:URI,\n" +
			"as tenon resources list prints it.\n\n" + adhocHelp,
		Example: "  tenon resources watch docs file:///README.md\n  tenon resources watch docs file:///a.log " +
			"--count 1 && make",
		Args: args(1, 2, "the resource's URI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 0 {
				return usage(cmd, "--count is a number of changes; 0 is no limit")
			}
			return a.offers(cmd, s, args, func(ctx context.Context, h *host.Host, rest []string) error {
				server, uri, rest, err := a.ofServer(cmd, h, s, rest, "the resource's URI")
				if err != nil {
					return err
				}
				if len(rest) > 0 {
					return usage(cmd, "unexpected argument '%s'", rest[0])
				}
				return a.watchResource(ctx, h, server, uri, count)
			})
		},
	}
	cmd.Flags().IntVar(&count, "count", 0, "end after this `number` of changes; 0 is no limit")
	s.flags(cmd)
	return cmd
}

// watchResource prints the changes of a resource. It returns after most changes. If most is 0, there is no limit.
func (a *app) watchResource(ctx context.Context, h *host.Host, server, uri string, most int) error {
	n, began := 0, false
	for u, err := range h.Servers().Context().Watch(ctx, server, uri) {
		switch {
		case err != nil:
			return err
		case a.isJSON():
			if err := a.printJSON(u); err != nil {
				return err
			}
		case u.Began && began:
			a.note("the connection was made again; changes may have been missed")
		case u.Began:
			a.note("watching '%s' of server '%s'", tenon.Visible(uri), server)
		default:
			if err := a.printText(time.Now().Format(time.TimeOnly) + "  " + tenon.Visible(u.URI) + "\n"); err != nil {
				return err
			}
		}
		began = began || u.Began
		if !u.Began {
			n++
		}
		if most > 0 && n >= most {
			return nil
		}
	}
	return ctx.Err()
}
