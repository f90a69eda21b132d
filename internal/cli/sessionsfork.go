package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// forkInfo is the output of sessions fork -o json.
type forkInfo struct {
	tenon.Session
	At int `json:"at"` // the last message that both sessions have; 0: none
}

func newSessionsFork(a *app) *cobra.Command {
	var f host.Fork
	cmd := &cobra.Command{
		Use:   "fork [SESSION]",
		Short: "Fork a session at any message",
		Long: "Begins a new session that shares the messages of SESSION, by default the last one, up to and\n" +
			"including one message. Later messages stay only in SESSION. Prints the new session's id, for tenon\n" +
			"run -s.\n\n" +
			"--at names the last shared message: by its number, which tenon sessions show --numbers prints, or\n" +
			"by a run of the session and one of its events, RUN:SEQ; RUN without SEQ shares the whole run. A\n" +
			"tool call and its result stay together: the fork begins after the results. Without --at all\n" +
			"messages are shared; if a run is still working, the messages before its unfinished calls are\n" +
			"shared.",
		Example: "  tenon sessions show --numbers\n  tenon sessions fork -1 --at 4 --title \"The other way\"\n  " +
			"tenon run -s \"$(tenon sessions fork)\" \"And in Paris?\"",
		Args: args(0, 1, ""),
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
			s, at, err := h.Sessions().Fork(cmd.Context(), f)
			if err != nil {
				return err
			}
			if a.isJSON() {
				return a.printJSON(forkInfo{s, at})
			}
			a.hint("it continues after message %d of %s", at, s.Parent)
			return a.printText(s.ID)
		},
	}
	cmd.Flags().StringVar(&f.At, "at", "", "the last message to share: `N`, its number, or RUN[:SEQ]")
	cmd.Flags().StringVar(&f.Title, "title", "", "`TITLE` of the new session (default: the title of SESSION)")
	return cmd
}
