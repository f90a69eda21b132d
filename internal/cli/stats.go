package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

func newStats(a *app) *cobra.Command {
	cmd := group("stats", "Statistics of calls, tokens, cost and time", "stat")
	for _, v := range []struct{ by, short, long string }{
		{host.StatsTools, "Count the calls of each tool, the most used first", "each tool"},
		{host.StatsServers, "Count the tool calls of each server", "the tools of each server"},
		{host.StatsModels, "Count the calls, tokens and cost of each model", "each model"},
		{host.StatsAgents, "Count the runs of each agent", "each agent, by runs"},
		{host.StatsSessions, "Count the runs of each session", "each session, by runs"},
		{host.StatsPrincipals, "Count the runs of each principal", "each principal, by runs"},
		{host.StatsDays, "Count the runs of each day (UTC)", "each day, by runs"},
	} {
		cmd.AddCommand(remotely(newStatsBy(a, v.by, v.short, v.long)))
	}
	return cmd
}

func newStatsBy(a *app, by, short, what string) *cobra.Command {
	since := ""
	cmd := &cobra.Command{
		Use:   by,
		Short: short,
		Long: "Counts the calls of " + what + " over the runs of the store:\n" +
			"cached results, errors, denied calls, unknown outcomes, the 50th and 95th percentile of the duration,\n" +
			"tokens, and the cost if the price is known. -o json adds the bytes of results and the 99th percentile.\n" +
			"For models, cache read and cache write count input tokens of a provider's cache, and saved is what\n" +
			"it saved at today's prices. Tokens are unknown if the provider reports none; unmetered_calls in\n" +
			"-o json counts such model calls.",
		Example: "  tenon stats " + by + "\n  tenon stats " + by + " --since 7d -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			q := host.StatsQuery{By: by, Behind: a.behind("the counts leave out %s, which tenon has not read yet; " +
				"ask again")}
			if q.Since, err = config.ParseSince(since, time.Now()); err != nil {
				return usage(cmd, "--since: %s", err)
			}
			h, err := a.desk(cmd.Context(), opening{lists: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Stats(cmd.Context(), q)
			if err != nil {
				return err
			}
			heads := []string{by[:len(by)-1], "calls", "cached", "errors", "denied", "unknown", "p50", "p95",
				"tokens", "cost"}
			if by == host.StatsModels {
				heads = append(heads, "cache read", "cache write", "saved")
			}
			return printList(a, list, heads, func(s host.Stat) []string {
				name := s.Name
				if s.Server != "" {
					name = s.Server + "." + s.Remote
				}
				cost := ""
				if s.Cost != 0 {
					cost = s.Cost.String()
				}
				tokens := strconv.Itoa(s.Input + s.Output)
				if s.Unmetered > 0 && s.Input+s.Output == 0 {
					tokens = "unknown"
				}
				row := []string{name, strconv.Itoa(s.Calls), strconv.Itoa(s.Cached), strconv.Itoa(s.Errors),
					strconv.Itoa(s.Denied), strconv.Itoa(s.Unknown),
					took(s.P50), took(s.P95), tokens, cost}
				if by == host.StatsModels {
					saved := ""
					if s.Saved != 0 {
						saved = s.Saved.String()
					}
					row = append(row, strconv.Itoa(s.CacheRead), strconv.Itoa(s.CacheWrite), saved)
				}
				return row
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only runs that began then or later: a `TIME` (RFC 3339 or a date), "+
		"or an age such as 7d")
	return cmd
}
