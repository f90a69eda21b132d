package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

func newServersEnable(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "enable NAME",
		Short: "Enable a server that was disabled",
		Long: "Undoes servers disable, for every tenon that uses this store, and at once in a running\n" +
			"tenon serve. If tenon.yaml sets enabled: false, change it there.",
		Example: "  tenon servers enable github",
		Args:    args(1, 1, "the server's name"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.switchServer(cmd.Context(), args[0], true) },
	}
}

func newServersDisable(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "disable NAME",
		Short: "Disable a server without changing tenon.yaml",
		Long: "The server is no longer started and offers no tools, until servers enable. The choice is stored\n" +
			"next to the store. It applies to every tenon that uses the store, and at once in a running tenon\n" +
			"serve, where calls in progress get a short time to finish.",
		Example: "  tenon servers disable github",
		Args:    args(1, 1, "the server's name"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.switchServer(cmd.Context(), args[0], false) },
	}
}

func newServersRestart(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restart NAME",
		Short: "Reconnect a server of the running tenon serve",
		Long: "Closes the connection that tenon serve has to the server, ends the server's process, and connects\n" +
			"again. Fails if the server cannot be reached, or if no tenon serve works on this store: other\n" +
			"commands connect to servers by themselves.",
		Example: "  tenon servers restart github",
		Args:    args(1, 1, "the server's name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			client, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(client, &err)
			st, err := client.Servers().Restart(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.did(st, "Restarted '%s': %s, %s", args[0], st.State, plural(st.Tools, "tool"))
		},
	}
}

// switchServer enables or disables a server through the process that serves the store. Without such a process it
// changes the store itself.
func (a *app) switchServer(ctx context.Context, name string, on bool) (err error) {
	st, err := a.switchServed(ctx, name, on)
	if a.remote == "" && tenon.ErrorCode(err) == tenon.CodeUnreachable {
		st, err = a.switchHere(ctx, name, on)
	}
	if err != nil {
		return err
	}
	word := "Disabled"
	if on {
		word = "Enabled"
	}
	return a.did(st, "%s '%s'", word, name)
}

// switchServed enables or disables a server through tenon serve. The error is unreachable if none is running.
func (a *app) switchServed(ctx context.Context, name string, on bool) (st servers.Status, err error) {
	client, err := a.client(ctx)
	if err != nil {
		return servers.Status{}, err
	}
	defer closing(client, &err)
	if _, err := client.Health(ctx); err != nil {
		return servers.Status{}, err
	}
	return client.Servers().Switch(ctx, name, on)
}

func (a *app) switchHere(ctx context.Context, name string, on bool) (st servers.Status, err error) {
	h, err := a.open(ctx, opening{})
	if err != nil {
		return st, err
	}
	defer closing(h, &err)
	st, err = h.Servers().Switch(ctx, name, on)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return st, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", name,
			didYouMean(name, h.Service().Info().Config.AllServerNames()))
	}
	return st, err
}

// serversFar lists the servers of the tenon that --remote names. It starts nothing.
func (a *app) serversFar(ctx context.Context) (err error) {
	f, err := a.far(ctx)
	if err != nil {
		return err
	}
	defer closing(f, &err)
	list, err := f.Servers().List(ctx)
	if err != nil {
		return err
	}
	infos := make([]serverInfo, len(list))
	for i, st := range list {
		infos[i].Status = st
	}
	return a.listServers(infos)
}

// listServers prints a line for each server.
func (a *app) listServers(list []serverInfo) error {
	err := printList(a, list, []string{"name", "state", "transport", "protocol", "tools", "listed", "target"},
		func(s serverInfo) []string {
			return []string{s.Name, string(s.State), s.over(), s.Protocol, count(s.Tools), a.when(s.Cached), s.Target}
		})
	if err != nil || a.isJSON() {
		return err
	}
	a.emptyHint(len(list), "tenon servers add NAME … adds a server, tenon init writes a first configuration")
	var problems []host.Problem // printed below the list, because a column would cut them off
	for _, s := range list {
		if s.Error != nil {
			problems = append(problems, host.Problem{Server: s.Name, Err: s.Error})
		}
	}
	a.problems(problems)
	return nil
}
