package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

func newServersEnable(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "enable NAME",
		Short: "Take a server into use again that was switched off",
		Long: "Undoes servers disable, for every tenon that uses this store, and at once in a running tenon serve. A server that\n" +
			"tenon.yaml has with enabled: false is enabled there.",
		Example: "  tenon servers enable github",
		Args:    args(1, 1, "the server's name"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.switchServer(cmd.Context(), args[0], true) },
	}
}

func newServersDisable(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "disable NAME",
		Short: "Take a server out of use without a change of tenon.yaml",
		Long: "The server is not started any more and offers no tools, until servers enable. The choice is kept beside the store:\n" +
			"it holds for every tenon that uses it, and at once in a running tenon serve, where calls under way get a moment to\n" +
			"end.",
		Example: "  tenon servers disable github",
		Args:    args(1, 1, "the server's name"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.switchServer(cmd.Context(), args[0], false) },
	}
}

func newServersRestart(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "restart NAME",
		Short:   "Connect a server of the running tenon serve anew",
		Long:    "Ends the connection that tenon serve has, with the server's process, and makes a new one. It fails where that is\nnot possible, and where no tenon serve works on this store: other verbs connect servers by themselves.",
		Example: "  tenon servers restart github",
		Args:    args(1, 1, "the server's name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			client, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(client, &err)
			st, err := client.RestartServer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.did(st, "Restarted '%s': %s, %d tools", args[0], st.State, st.Tools)
		},
	}
}

// switchServer has the process that serves the store switch a server, or does it itself
// where there is none.
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

// switchServed switches it under a tenon serve; unreachable where there is none.
func (a *app) switchServed(ctx context.Context, name string, on bool) (st servers.Status, err error) {
	client, err := a.client(ctx)
	if err != nil {
		return servers.Status{}, err
	}
	defer closing(client, &err)
	if _, err := client.Health(ctx); err != nil {
		return servers.Status{}, err
	}
	return client.SwitchServer(ctx, name, on)
}

func (a *app) switchHere(ctx context.Context, name string, on bool) (st servers.Status, err error) {
	h, err := a.open(ctx, opening{})
	if err != nil {
		return st, err
	}
	defer closing(h, &err)
	if err := h.SwitchServer(name, on); err != nil {
		if tenon.ErrorCode(err) == tenon.CodeNotFound {
			return st, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", name, didYouMean(name, h.Config().AllServerNames()))
		}
		return st, err
	}
	list := h.Statuses()
	if i := slices.IndexFunc(list, func(st servers.Status) bool { return st.Name == name }); i >= 0 {
		st = list[i]
	}
	return st, nil
}

// serversFar lists the servers of the tenon of --remote; it starts nothing.
func (a *app) serversFar(ctx context.Context) (err error) {
	f, err := a.far(ctx)
	if err != nil {
		return err
	}
	defer closing(f, &err)
	list, err := f.Servers(ctx)
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
	err := printList(a, list, []string{"name", "state", "transport", "protocol", "tools", "target"}, func(s serverInfo) []string {
		return []string{s.Name, string(s.State), s.over(), s.Protocol, count(s.Tools), s.Target}
	})
	if err != nil || a.isJSON() {
		return err
	}
	var problems []host.Problem // a column would cut off why a server is not reached, and what to do
	for _, s := range list {
		if s.Error != nil {
			problems = append(problems, host.Problem{Server: s.Name, Err: s.Error})
		}
	}
	a.problems(problems)
	return nil
}
