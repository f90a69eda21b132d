package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

func newSessions(a *app) *cobra.Command {
	cmd := group("sessions", "Conversations: list, show, search, fork, rename, compact, export, import, delete, prune", "session")
	for _, verb := range []*cobra.Command{newSessionsList(a), newSessionsShow(a), newSessionsSearch(a), newSessionsFork(a), newSessionsRename(a), newSessionsCompact(a),
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
		Short:   "List conversations, the last one used first",
		Long:    "Lists conversations. tenon run -s ID goes on with one. One that was forked names the one that it goes on from.",
		Example: "  tenon sessions list\n  tenon sessions list -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if limit < 0 {
				return usage(cmd, "--limit must not be negative")
			}
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Sessions(cmd.Context(), limit)
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
	Messages any         `json:"messages"` // []host.Said; with --context []*tenon.Message
	RunList  []tenon.Run `json:"run_list"`
}

func newSessionsShow(a *app) *cobra.Command {
	var calls, seen, numbers bool
	cmd := &cobra.Command{
		Use:   "show [SESSION]",
		Short: "Show a conversation, or the tool calls made in it",
		Long: "Shows a conversation, by default the last one: what was asked, what tools were called, what was answered.\n" +
			"With --tools it is the audit record of all its tool calls: server, tool, arguments, who decided, outcome,\n" +
			"duration and a hash of the result. With --numbers each message has the number that tenon sessions fork --at takes.\n" +
			"SESSION is an id, the beginning of one, or -1 for the last.",
		Example: "  tenon sessions show\n  tenon sessions show -1 --tools -o json\n  tenon sessions show -1 --context",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			s, err := h.Session(cmd.Context(), ref(args))
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
	cmd.Flags().BoolVar(&seen, "context", false, "what the model sees, after compactions, in place of all that was said")
	cmd.Flags().BoolVar(&numbers, "numbers", false, "number the messages")
	cmd.MarkFlagsMutuallyExclusive("tools", "context", "numbers")
	return cmd
}

func (a *app) sessionCalls(ctx context.Context, h desk, s tenon.Session) error {
	list, err := h.Calls(ctx, s.ID)
	if err != nil {
		return err
	}
	header := []string{"run", "step", "tool", "decision", "by", "outcome", "duration", "arguments"}
	return printList(a, list, header, func(c agent.CallRecord) []string {
		outcome := c.Outcome
		if c.Outcome == agent.CallDone && !c.Success {
			outcome = "error"
		}
		return []string{c.Run, c.Step, callName(c), string(c.Verdict), c.By, outcome, took(c.Millis), string(c.Args)}
	})
}

func (a *app) showSession(ctx context.Context, h desk, s tenon.Session, numbers bool) error {
	said, err := h.Said(ctx, s.ID)
	switch {
	case err != nil:
		return err
	case a.isJSON() && said == nil:
		return a.showSessionJSON(ctx, h, s, []host.Said{})
	case a.isJSON():
		return a.showSessionJSON(ctx, h, s, said)
	}
	b := a.sessionHead(s)
	for _, m := range said {
		if numbers {
			fmt.Fprintf(b, "\n%s", a.outStyle(dim, fmt.Sprintf("[%d] %s", m.N, m.Role)))
			if m.Role == tenon.RoleTool { // its lines come without a gap
				b.WriteByte('\n')
			}
		}
		a.showMessage(b, m.Message)
	}
	return a.write([]byte(b.String()))
}

// showContext shows what the model sees.
func (a *app) showContext(ctx context.Context, h desk, s tenon.Session) error {
	here, ok := h.(*host.Host)
	if !ok {
		return tenon.Errorf(tenon.CodeInvalid, "--context does not go with --remote")
	}
	messages, err := here.Messages(ctx, s.ID, true)
	switch {
	case err != nil:
		return err
	case a.isJSON() && messages == nil:
		return a.showSessionJSON(ctx, h, s, []*tenon.Message{})
	case a.isJSON():
		return a.showSessionJSON(ctx, h, s, messages)
	}
	b := a.sessionHead(s)
	for _, m := range messages {
		a.showMessage(b, m)
	}
	return a.write([]byte(b.String()))
}

func (a *app) showSessionJSON(ctx context.Context, h desk, s tenon.Session, messages any) error {
	runs, err := h.Runs(ctx, engine.Filter{Session: s.ID, Limit: 1000})
	if err != nil {
		return err
	}
	if runs == nil {
		runs = []tenon.Run{} // a fork that was not asked anything yet
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

// resultShown is how much of a tool's result stands in a conversation.
const resultShown = 400

func (a *app) showMessage(b *strings.Builder, m *tenon.Message) {
	for _, p := range m.Parts {
		switch {
		case p.Type == tenon.PartText && p.Text != "" && m.Role == tenon.RoleUser:
			fmt.Fprintf(b, "\n%s\n", a.outStyle(bold, "> "+safeText(strings.TrimSpace(p.Text))))
		case p.Type == tenon.PartText && p.Text != "":
			fmt.Fprintf(b, "\n%s\n", safeText(strings.TrimSpace(p.Text)))
		case p.Type == tenon.PartThinking && p.Text != "":
			fmt.Fprintf(b, "\n%s\n", a.outStyle(dim, safeText(strings.TrimSpace(p.Text))))
		case p.Call != nil:
			fmt.Fprintf(b, "\n%s %s %s\n", a.outStyle(cyan, "●"), safeLine(p.Call.Name), a.outStyle(dim, safeLine(string(p.Call.Arguments)+p.Call.Malformed)))
		case p.Result != nil:
			mark := green
			if p.Result.IsError {
				mark = red
			}
			var said []string
			for _, c := range p.Result.Content {
				if c.Type == tenon.ContentText {
					said = append(said, c.Text)
				} else {
					said = append(said, contentNote(c))
				}
			}
			fmt.Fprintf(b, "  %s %s\n", a.outStyle(mark, "→"), a.outStyle(dim, shorten(safeLine(strings.Join(said, "\n")), resultShown)))
		}
	}
}

func newSessionsCompact(a *app) *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use:   "compact [SESSION]",
		Short: "Put a summary in the place of a conversation, for the model",
		Long: "Has a model sum up a conversation, by default the last one. From then on the model sees the summary; what was\n" +
			"said stays and is shown by tenon sessions show, what the model sees by tenon sessions show --context.",
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

// compact makes a session's conversation shorter and prints the summary.
func (a *app) compact(ctx context.Context, h desk, session, model string) error {
	run, err := h.Compact(ctx, session, model)
	if err != nil {
		return err
	}
	work, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	stop := context.AfterFunc(ctx, func() { _ = h.Cancel(work, run.ID, "interrupted at the terminal") })
	defer stop()
	for _, err := range h.Events(work, run.ID, 0) {
		if err != nil {
			return err
		}
	}
	report, err := h.Report(work, run.ID)
	if err == nil {
		err = runError(report)
	}
	switch {
	case err != nil:
		return err
	case a.isJSON():
		return a.printJSON(report)
	case report.Answer == "":
		a.note("there is nothing to sum up")
		return nil
	}
	return a.write([]byte(safeText(report.Answer) + "\n"))
}
