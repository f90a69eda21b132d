package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

func newRuns(a *app) *cobra.Command {
	cmd := group("runs", "Runs: list, show, follow, steer, resume, cancel and more")
	cmd.AddCommand(remotely(newRunsList(a)), remotely(newRunsShow(a)), remotely(newRunsFollow(a)),
		remotely(newRunsEvents(a)), newRunsExport(a), remotely(newRunsSteer(a)),
		remotely(newRunsResume(a)), remotely(newRunsCancel(a)), newRunsReplay(a))
	return cmd
}

const refHelp = "RUN is an id, the beginning of one, or -1 for the last run, -2 for the one before it."

func newRunsList(a *app) *cobra.Command {
	var f engine.Filter
	var state string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Long: "Lists runs. Each question and each tenon tools call makes one run. A run whose process died is\n" +
			"shown as interrupted; tenon runs resume continues it. With -o json its state is working.",
		Example: "  tenon runs list\n  tenon runs list --state input_required -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.Limit < 0 {
				return usage(cmd, "--limit must not be negative")
			}
			h, err := a.desk(cmd.Context(), opening{lists: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			if f.Session != "" {
				s, err := h.Sessions().Get(cmd.Context(), f.Session)
				if err != nil {
					return err
				}
				f.Session = s.ID
			}
			list, dead, err := runsIn(cmd.Context(), h, f, state)
			if err != nil {
				return err
			}
			if state == "" && f.Session == "" {
				defer a.emptyHint(len(list), "tenon run PROMPT makes a run")
			}
			return printList(a, list, []string{"run", "state", "stop", "updated", "title"}, func(r tenon.Run) []string {
				state := string(r.State)
				if dead[r.ID] {
					state = runInterrupted
				}
				if r.Foreign {
					state += " (foreign)"
				}
				return []string{r.ID, state, string(r.Stop), a.when(r.Updated), r.Title}
			})
		},
	}
	states := []string{string(tenon.RunWorking), string(tenon.RunInputRequired), string(tenon.RunCompleted),
		string(tenon.RunFailed), string(tenon.RunCancelled), runInterrupted}
	cmd.Flags().Var(&enum{&state, states}, "state", "only runs in this `STATE`: "+strings.Join(states, ", "))
	cmd.Flags().StringVarP(&f.Session, "session", "s", "", "only runs of this session: `ID`, the beginning of one, "+
		"or -1 for the last")
	cmd.Flags().IntVarP(&f.Limit, "limit", "n", 50, "at most `N` runs")
	return cmd
}

// runInterrupted is shown as the state of a run whose process died. Its stored state is working.
const runInterrupted = "interrupted"

// runsIn lists the runs in a state, and which of them are interrupted. State interrupted is part of the stored state
// working; only the last 1000 runs in that state are looked at.
func runsIn(ctx context.Context, h desk, f engine.Filter, state string) ([]tenon.Run, map[string]bool, error) {
	most := f.Limit
	f.State = tenon.RunState(state)
	if state == runInterrupted {
		f.State, f.Limit = tenon.RunWorking, 1000
	}
	list, err := h.Runs().List(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	dead, err := interruptedRuns(ctx, h, list)
	if err != nil || state != runInterrupted {
		return list, dead, err
	}
	list = slices.DeleteFunc(list, func(r tenon.Run) bool { return !dead[r.ID] })
	if most > 0 && len(list) > most {
		list = list[:most]
	}
	return list, dead, nil
}

// interruptedRuns finds the runs in state working that no process works on.
func interruptedRuns(ctx context.Context, h desk, list []tenon.Run) (map[string]bool, error) {
	dead := map[string]bool{}
	for _, r := range list {
		if r.State != tenon.RunWorking || r.Foreign {
			continue
		}
		owner, err := h.Runs().Open(r.ID).Owner(ctx)
		if err != nil {
			return nil, err
		}
		dead[r.ID] = !owner.Working
	}
	return dead, nil
}

// withRun opens a host and finds a run.
func (a *app) withRun(ctx context.Context, o opening, args []string, do func(desk, tenon.Run) error) (err error) {
	h, err := a.desk(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	run, err := h.Runs().Get(ctx, ref(args))
	if err != nil {
		return err
	}
	return do(h, run)
}

// withOwnRun is withRun for verbs that do not support --remote.
func (a *app) withOwnRun(ctx context.Context, args []string, do func(*host.Host, tenon.Run) error) error {
	// checkRemote has refused --remote, so that the desk is a host.
	return a.withRun(ctx, opening{}, args, func(d desk, run tenon.Run) error { return do(d.(*host.Host), run) })
}

func newRunsEvents(a *app) *cobra.Command {
	var follow bool
	var after uint64
	cmd := &cobra.Command{
		Use:   "events [RUN]",
		Short: "Print the journal of a run",
		Long: "Prints the stored events of a run, by default the last one. -f also prints new events until the run\n" +
			"ends or waits. Live events such as pieces of text are not stored and not printed. " + refHelp,
		Example: "  tenon runs events -o jsonl\n  tenon runs events -f run_06d8k2w5",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), opening{lists: true}, args, func(h desk, run tenon.Run) error {
				if !follow {
					events, err := h.Runs().Open(run.ID).Journal(cmd.Context(), after, 0)
					if err != nil {
						return err
					}
					return printList(a, events, eventHeader, a.eventRow)
				}
				for e, err := range h.Runs().Events(cmd.Context(), run.ID, after) {
					switch {
					case err != nil:
						return err
					case e.Seq == 0:
						continue
					case a.isJSON():
						err = a.printJSON(e)
					default:
						err = a.write([]byte(safeLineTabs(a.eventRow(e)) + "\n"))
					}
					if err != nil {
						return err
					}
				}
				return cmd.Context().Err()
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "also print new events as they happen")
	cmd.Flags().Uint64Var(&after, "after", 0, "only events after number `SEQ`")
	return cmd
}

var eventHeader = []string{"seq", "time", "step", "kind", "data"}

func (a *app) eventRow(e tenon.Event) []string {
	at := e.Time.UTC().Format(time.RFC3339Nano)
	if a.outTTY {
		at = e.Time.Local().Format("15:04:05.000")
	}
	return []string{fmt.Sprint(e.Seq), at, e.Step, e.Kind, shorten(string(e.Data), 300)}
}

func safeLineTabs(cells []string) string {
	for i := range cells {
		cells[i] = safeLine(cells[i])
	}
	return strings.Join(cells, "\t")
}

func newRunsResume(a *app) *cobra.Command {
	var yes bool
	data, made, tools := &dataFiles{}, &ports{}, &toolTable{}
	o := opening{connect: true, cassette: cassette{resumed: true}}
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Resume an interrupted, decided or failed run",
		Long: "Continues a run after a crash, after a decision of tenon approvals, or after a failure. After a\n" +
			"failure, the run's limits start again. Finished tool calls are not repeated. A workflow asks before it\n" +
			"repeats a call with an unknown outcome; --yes allows that too. --out writes the output\n" +
			"tables of a workflow, --data-out the tables that an agent's run has made. Both also work for a\n" +
			"completed run. A run that was started with --table needs the same --table again. " + refHelp,
		Example: "  tenon runs resume -1\n  tenon runs resume run_06d8k2w5 --yes\n  tenon runs resume -1 --out " +
			"totals=totals.arrow",
		Args: args(1, 1, "the run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.cassette.check(cmd); err != nil {
				return err
			}
			if err := data.check(cmd, &detachFlags{}); err != nil {
				return err
			}
			if err := made.checkUnknown(a); err != nil {
				return err
			}
			if err := tools.open(cmd, a, &o); err != nil {
				return err
			}
			return a.withRun(cmd.Context(), o, args, func(h desk, run tenon.Run) error {
				switch flow := run.Core != agent.Version; {
				case flow && len(data.out) > 0:
					return usage(cmd, "run %s is of a workflow: write its tables with --out [PORT=]FILE", run.ID)
				case !flow && len(made.out) > 0:
					return usage(cmd, "run %s is of an agent: write its tables with --data-out FILE", run.ID)
				}
				a.wanted = slices.Concat(flagWords("--out", made.out), flagWords("--data-out", data.out))
				if run.State != tenon.RunCompleted || len(a.wanted) == 0 {
					if err := a.needTable(cmd.Context(), h, run.ID); err != nil {
						return err
					}
					if err := a.resume(cmd.Context(), h, run, yes); err != nil {
						return err
					}
				}
				if err := data.write(cmd.Context(), a, h, run); err != nil {
					return err
				}
				return made.writeResult(cmd.Context(), a, h, run.ID)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "allow every tool call that asks for approval")
	tools.flags(cmd)
	data.outFlag(cmd)
	made.outFlag(cmd.Flags())
	waitFlag(a, cmd.Flags())
	o.cassette.flags(cmd.Flags())
	return cmd
}

func (a *app) resume(ctx context.Context, h desk, run tenon.Run, yes bool) error {
	switch run.State {
	case tenon.RunCompleted, tenon.RunCancelled:
		return tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s); %s", run.ID, run.State, afterEnd(run))
	case tenon.RunInputRequired:
		if yes || a.canAsk() {
			err := a.decide(ctx, h, run.ID, yes)
			if errors.Is(err, errUndecided) && ctx.Err() == nil {
				return a.rests(ctx, h, run)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := h.Runs().Resume(ctx, run.ID); err != nil {
		return err
	}
	if run.State == tenon.RunFailed && run.Session != "" {
		if s, err := h.Sessions().Get(ctx, run.Session); err == nil && s.Head != "" && s.Head != run.ID {
			a.note("session %s has continued since run %s failed, so this answer will not be in it; to continue from "+
				"the answer: %s", s.ID, run.ID, a.again("sessions", "fork", s.ID, "--at", run.ID))
		}
	}
	return a.drive(ctx, h, run, run.Seq, yes)
}

func newRunsCancel(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "cancel RUN",
		Short:   "Cancel a run",
		Long:    "Cancels a run. The process that works on the run stops its current steps.\n" + refHelp,
		Example: "  tenon runs cancel -1 --reason \"wrong question\"",
		Args:    args(1, 1, "the run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), opening{}, args, func(h desk, run tenon.Run) error {
				if run.State.Ended() {
					return tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s)", run.ID, run.State)
				}
				err := withServe(cmd.Context(), h, func(ctx context.Context) error {
					return h.Runs().Cancel(ctx, run.ID, reason)
				})
				if err != nil {
					return err
				}
				return a.did(map[string]string{"run": run.ID, "cancelled": reason}, "run %s is cancelled", run.ID)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for the journal")
	return cmd
}

// did prints the result of a verb: an object for JSON, otherwise a sentence.
func (a *app) did(object any, format string, args ...any) error {
	if a.isJSON() {
		return a.printJSON(object)
	}
	return a.printText(fmt.Sprintf(format, args...))
}
