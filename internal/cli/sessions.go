package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

func newSessions(a *app) *cobra.Command {
	cmd := group("sessions", "Conversations: list, show, search, fork, rename, compact, export, import, "+
		"delete, prune", "session")
	for _, verb := range []*cobra.Command{newSessionsList(a), newSessionsShow(a), newSessionsSearch(a),
		newSessionsFork(a), newSessionsRename(a), newSessionsCompact(a),
		newSessionsExport(a), newSessionsDelete(a)} {
		cmd.AddCommand(remotely(verb))
	}
	cmd.AddCommand(newSessionsImport(a), newSessionsPrune(a))
	return cmd
}

func newSessionsList(a *app) *cobra.Command {
	limit := 50
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List conversations, the most recently used first",
		Long:    "Lists conversations. tenon run -s ID continues one. A fork names the session that it continues.",
		Example: "  tenon sessions list\n  tenon sessions list -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if limit < 0 {
				return usage(cmd, "--limit must not be negative")
			}
			h, err := a.desk(cmd.Context(), opening{lists: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Sessions().List(cmd.Context(), host.SessionFilter{Limit: limit})
			if err != nil {
				return err
			}
			return a.listSessions(list)
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", limit, "at most `N` sessions")
	return cmd
}

// sessionInfo is a session as sessions show -o json prints it.
type sessionInfo struct {
	tenon.Session
	Messages any         `json:"messages"` // []transcript.Message; with --context []*tenon.Message
	RunList  []tenon.Run `json:"run_list"`
}

func newSessionsShow(a *app) *cobra.Command {
	var calls, seen, numbers bool
	cmd := &cobra.Command{
		Use:   "show [SESSION]",
		Short: "Show a conversation, or the tool calls made in it",
		Long: "Shows a conversation, by default the last one: questions, tool calls and answers. With --tools it\n" +
			"shows the audit record of all tool calls: server, tool, arguments, who decided, outcome, duration\n" +
			"and a hash of the result. With --numbers each message has the number for tenon sessions fork --at.\n" +
			"SESSION is an id, the beginning of one, or -1 for the last.",
		Example: "  tenon sessions show\n  tenon sessions show -1 --tools -o json\n  tenon sessions show -1 --context",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{lists: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			s, err := h.Sessions().Get(cmd.Context(), ref(args))
			if err != nil {
				return err
			}
			if calls {
				return a.sessionCalls(cmd.Context(), h, s)
			}
			if seen {
				return a.showContext(cmd.Context(), h, s)
			}
			return a.showSession(cmd.Context(), h, s, numbers)
		},
	}
	cmd.Flags().BoolVar(&calls, "tools", false, "the audit record of the tool calls")
	cmd.Flags().BoolVar(&seen, "context", false, "the messages that the model sees after compactions")
	cmd.Flags().BoolVar(&numbers, "numbers", false, "number the messages")
	cmd.MarkFlagsMutuallyExclusive("tools", "context", "numbers")
	return cmd
}

func (a *app) sessionCalls(ctx context.Context, h desk, s tenon.Session) error {
	list, err := h.Sessions().Transcripts().Calls(ctx, s.ID)
	if err != nil {
		return err
	}
	header := []string{"run", "step", "tool", "decision", "by", "outcome", "duration", "arguments"}
	return printList(a, list, header, func(c view.Call) []string {
		outcome := c.Outcome
		if c.Outcome == view.CallDone && !c.Success {
			outcome = "error"
		}
		return []string{c.Run, c.Step, callName(c), string(c.Verdict), c.By, outcome, took(c.Millis), string(c.Args)}
	})
}

func (a *app) showSession(ctx context.Context, h desk, s tenon.Session, numbers bool) error {
	said, err := h.Sessions().Transcripts().Messages(ctx, s.ID)
	if err != nil {
		return err
	}
	open, err := a.openCalls(ctx, h, s.ID, said)
	switch {
	case err != nil:
		return err
	case a.isJSON():
		return a.showSessionJSON(ctx, h, s, said)
	}
	b := a.sessionHead(s)
	if numbers {
		a.showNumbered(b, said)
	} else {
		list := make([]*tenon.Message, len(said))
		for i, m := range said {
			list[i] = m.Message
		}
		a.showMessages(b, list)
	}
	a.showOpen(b, open)
	return a.write([]byte(b.String()))
}

// showContext prints the messages that the model sees.
func (a *app) showContext(ctx context.Context, h desk, s tenon.Session) error {
	here, ok := h.(*host.Host)
	if !ok {
		return tenon.Errorf(tenon.CodeInvalid, "--context does not go with --remote")
	}
	messages, err := here.Sessions().Transcripts().Context(ctx, s.ID, true)
	switch {
	case err != nil:
		return err
	case a.isJSON() && messages == nil:
		return a.showSessionJSON(ctx, h, s, []*tenon.Message{})
	case a.isJSON():
		return a.showSessionJSON(ctx, h, s, messages)
	}
	b := a.sessionHead(s)
	a.showMessages(b, messages)
	return a.write([]byte(b.String()))
}

func (a *app) showSessionJSON(ctx context.Context, h desk, s tenon.Session, messages any) error {
	runs, err := h.Runs().List(ctx, engine.Filter{Session: s.ID, Limit: 1000})
	if err != nil {
		return err
	}
	if runs == nil {
		runs = []tenon.Run{} // a fork without a question
	}
	return a.printJSON(sessionInfo{s, messages, runs})
}

func (a *app) sessionHead(s tenon.Session) *strings.Builder {
	var b strings.Builder
	head := s.ID + "  " + plural(s.Runs, "run") + "  " + a.when(s.Updated)
	if s.Parent != "" {
		head += "  forked from " + s.Parent
	}
	if !s.Imported.IsZero() {
		head += "  imported " + a.when(s.Imported)
	}
	fmt.Fprintf(&b, "%s\n", a.outStyle(dim, safeLine(head)))
	return &b
}

// stoppedHere follows a text that a model was stopped in.
const stoppedHere = "[the answer was stopped here]"

func newSessionsCompact(a *app) *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use:   "compact [SESSION]",
		Short: "Replace a conversation by a summary for the model",
		Long: "Makes a model summarize a conversation, by default the last one. From then on the model sees the\n" +
			"summary. tenon sessions show still shows all messages; tenon sessions show --context shows the\n" +
			"messages that the model sees.",
		Example: "  tenon sessions compact\n  tenon sessions compact -1 --model anthropic/claude-haiku-4-5",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{models: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			return a.compact(cmd.Context(), h, ref(args), model)
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "`MODEL` that writes the summary (default the agent's)")
	return cmd
}

// compact summarizes a session and prints the summary.
func (a *app) compact(ctx context.Context, h desk, session, model string) error {
	run, err := h.Sessions().Compact(ctx, session, model)
	if err != nil {
		return err
	}
	work, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	stop := context.AfterFunc(ctx, func() { _ = h.Runs().Cancel(work, run.ID, "interrupted at the terminal") })
	defer stop()
	for _, err := range h.Runs().Events(work, run.ID, 0) {
		if err != nil {
			return err
		}
	}
	report, err := h.Runs().Open(run.ID).Report(work)
	if err == nil {
		err = runError(report)
	}
	switch {
	case err != nil:
		return err
	case a.isJSON():
		return a.printJSON(report)
	case report.Answer == "":
		a.note("there is nothing to summarize")
		return nil
	}
	return a.write([]byte(safeText(report.Answer) + "\n"))
}
