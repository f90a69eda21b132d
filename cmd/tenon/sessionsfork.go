package main

import (
	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// forkInfo is what sessions fork -o json prints.
type forkInfo struct {
	tenon.Session
	At int `json:"at"` // the last message that both sessions have; 0: none
}

func newSessionsFork(a *app) *cobra.Command {
	var f host.Fork
	cmd := &cobra.Command{
		Use:   "fork [SESSION]",
		Short: "Begin a session that goes on from any message of another one",
		Long: "Begins a new session that shares what was said in SESSION, by default the last one, up to and with a message;\n" +
			"what was said after it stays in SESSION alone. Prints the new session's id, for tenon run -s.\n\n" +
			"--at names the message: by its number, as tenon sessions show --numbers has it, or by a run of the session and\n" +
			"one of its events, RUN:SEQ; RUN alone is all that the run said. A call of a tool and its result stay together:\n" +
			"the fork comes after the results. Without --at all is shared; of a run that is still at work what comes before\n" +
			"calls that have no result yet.",
		Example: "  tenon sessions show --numbers\n  tenon sessions fork -1 --at 4 --title \"The other way\"\n  tenon run -s \"$(tenon sessions fork)\" \"And in Paris?\"",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cmd.Flags().Changed("at") && f.At == "" {
				return usage(cmd, "--at is empty")
			}
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			if len(args) > 0 {
				f.Session = ref(args)
			}
			s, at, err := h.Fork(cmd.Context(), f)
			if err != nil {
				return err
			}
			if a.isJSON() {
				return a.printJSON(forkInfo{s, at})
			}
			a.hint("it goes on from message %d of %s", at, s.Parent)
			return a.printText(s.ID)
		},
	}
	cmd.Flags().StringVar(&f.At, "at", "", "the last message to share: `N`, its number, or RUN[:SEQ]")
	cmd.Flags().StringVar(&f.Title, "title", "", "`TITLE` of the new session (default: that of SESSION)")
	return cmd
}
