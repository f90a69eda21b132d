package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/host"
)

func newStats(a *app) *cobra.Command {
	cmd := group("stats", "What was used, how often and how long: tools", "stat")
	cmd.AddCommand(newStatsTools(a))
	return cmd
}

func newStatsTools(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "tools",
		Short:   "Count the calls of each tool, the most used first",
		Long:    "Counts the calls of each tool over all runs of the store: those that an equal call's result\nanswered, errors, calls that were denied or whose outcome\nis unknown, and how long the half and 95 of 100 took.",
		Example: "  tenon stats tools\n  tenon stats tools -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.ToolStats(cmd.Context())
			if err != nil {
				return err
			}
			return printList(a, list, []string{"tool", "calls", "cached", "errors", "denied", "unknown", "p50", "p95"}, func(s host.ToolStat) []string {
				name := s.Name
				if s.Server != "" {
					name = s.Server + "." + s.Remote
				}
				return []string{name, strconv.Itoa(s.Calls), strconv.Itoa(s.Cached), strconv.Itoa(s.Errors), strconv.Itoa(s.Denied), strconv.Itoa(s.Unknown),
					fmt.Sprintf("%d ms", s.P50), fmt.Sprintf("%d ms", s.P95)}
			})
		},
	}
}
