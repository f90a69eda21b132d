package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/view"
)

func newRunsShow(a *app) *cobra.Command {
	var bare bool
	var artifact string
	cmd := &cobra.Command{
		Use:   "show [RUN]",
		Short: "Show the steps and the answer of a run",
		Long: "Shows a run, by default the last one. Each step is a line with its start, duration, name and\n" +
			"outcome, the person who decided, and the numbers of attempts and tokens. The answer follows. On a\n" +
			"terminal a bar shows when each step worked, and when it waited for a person. " + refHelp,
		Example: "  tenon runs show\n  tenon runs show -2 -o json\n  tenon runs show -1 --artifact 3f9a2c-1.0-1 > " +
			"picture.png",
		Args: args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), opening{lists: true}, args, func(h desk, run tenon.Run) error {
				if artifact != "" {
					data, _, err := h.Runs().Open(run.ID).Artifact(cmd.Context(), artifact)
					if err != nil {
						return err
					}
					return a.writeFileBytes("artifact "+artifact, data)
				}
				report, err := h.Runs().Open(run.ID).Report(cmd.Context())
				if err != nil {
					return err
				}
				events, err := h.Runs().Open(run.ID).Journal(cmd.Context(), 0, 0)
				if err != nil {
					return err
				}
				steps := view.Of(events).Steps(time.Now())
				dead, err := interruptedRuns(cmd.Context(), h, []tenon.Run{run})
				if err != nil {
					return err
				}
				if a.isJSON() {
					return a.printJSON(httpapi.RunInfo{Report: report, Steps: steps, Interrupted: dead[run.ID]})
				}
				if dead[run.ID] {
					a.hint("the process of this run died; continue it with: %s", a.resuming(run.ID))
				}
				return a.showRun(run, report, steps, dead[run.ID], a.outTTY && !bare)
			})
		},
	}
	cmd.Flags().StringVar(&artifact, "artifact", "", "print only the stored artifact with this `ID`")
	cmd.Flags().BoolVar(&bare, "no-waterfall", false, "draw no bars on a terminal")
	return cmd
}

// showRun prints a run: its properties, a line for each step, and the answer.
func (a *app) showRun(run tenon.Run, r view.Report, steps []view.Step, dead, bars bool) error {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s %s\n", a.outStyle(dim, fmt.Sprintf("%-8s", name)), safeLine(text))
		}
	}
	line("run", run.ID)
	line("session", run.Session)
	line("title", run.Title)
	line("model", run.Model)
	state := string(r.State)
	if dead {
		state = runInterrupted
	}
	if r.Stop != "" {
		state += " (" + string(r.Stop) + ")"
	}
	line("state", state)
	if run.Foreign {
		line("foreign", "somebody else wrote it, so tenon does not run it; see tenon store show")
	}
	line("began", a.when(run.Created))
	if run.Imported != nil {
		line("imported", a.when(run.Imported.At))
	}
	if u := r.Tokens(); u.Input+u.Output > 0 {
		line("tokens", fmt.Sprintf("%d in, %d out", u.Input, u.Output))
		cost := "unknown: no price of this model is known"
		if r.Cost != nil {
			cost = r.Cost.String()
		}
		line("cost", cost)
	}
	b.WriteByte('\n')
	a.steps(&b, steps, r.ToolCalls, bars)
	for _, w := range r.Waiting {
		if !w.Expires.IsZero() && !time.Now().Before(w.Expires) {
			fmt.Fprintf(&b, "%s\n", safeLine("waited for a decision until "+a.when(w.Expires)+"; to continue without "+
				"it: "+a.again("runs resume", run.ID)))
			continue
		}
		fmt.Fprintf(&b, "%s\n", safeLine("waits for a decision: "+a.again("approvals allow", run.ID+"/"+w.Step)))
	}
	if r.Partial != "" {
		fmt.Fprintf(&b, "\n%s\n%s\n", safeText(strings.TrimRight(r.Partial, "\n")), a.outStyle(dim, stoppedHere))
	}
	switch {
	case r.Error != nil:
		fmt.Fprintf(&b, "\n%s\n", a.outStyle(red, safeText(r.Error.Message)))
	case r.Answer != "":
		fmt.Fprintf(&b, "\n%s\n", safeText(strings.TrimRight(r.Answer, "\n")))
		if list := sourceLines(r.Citations); len(list) > 0 {
			fmt.Fprintf(&b, "\n%s\n", strings.Join(list, "\n"))
		}
	}
	for _, m := range r.Media {
		fmt.Fprintf(&b, "%s\n", a.mediaLine(run.ID, m))
	}
	return a.write([]byte(b.String()))
}

// steps writes a line for each step. If bars is set, a bar separates the times and the name.
func (a *app) steps(b *strings.Builder, steps []view.Step, calls []view.Call, bars bool) {
	args := map[string]json.RawMessage{}
	for _, c := range calls {
		args[c.Step] = c.Args
	}
	w := newWaterfall(steps, min(max(a.width()/4, 12), 40), a.unicode())
	room := argsShown
	for _, s := range steps {
		fmt.Fprintf(b, "%8s %8s  %-5s ", "+"+took(s.Start), took(s.Millis), s.Step)
		if bars {
			b.WriteString(a.outStyle(barStyle(s), w.bar(s)) + " ")
			room = max(a.width()-26-w.cells-1, 20)
		}
		line := a.stepText(s, args[s.Step], bars, room)
		b.WriteString(line + "\n")
		if reason := safeLine(s.Error); s.Outcome == view.CallDenied && !strings.Contains(line, reason) {
			b.WriteString(strings.Repeat(" ", stepIndent) + a.outStyle(dim, shorten(reason, reasonShown)) + "\n")
		}
	}
}

// stepIndent is the column at which a line continues below its step.
const stepIndent = 25

// stepText describes a step and its outcome in about room characters.
func (a *app) stepText(s view.Step, args json.RawMessage, narrow bool, room int) string {
	name := strings.TrimSpace(s.Kind + " " + s.Name)
	switch s.Kind {
	case agent.CommandTool:
		name = s.Name
	case view.StepMessage:
		name = "» " + s.Name
	}
	outcome, style := s.Outcome, red
	switch s.Outcome {
	case view.CallOK:
		style = green
	case view.CallOpen:
		outcome, style = "not ended", yellow
		if n := len(s.Spans); n > 0 && s.Spans[n-1].Wait {
			outcome = "waits"
			if s.Attempts == 0 && s.By != "" && s.By != agent.ByPolicy { // a person has allowed the call
				outcome = "allowed, not begun"
			}
		}
	}
	if s.Error != "" {
		outcome += ": " + s.Error
	}
	var more []string
	if s.By != "" && s.By != agent.ByPolicy {
		more = append(more, "by "+s.By)
	}
	if s.Attempts > 1 {
		more = append(more, plural(s.Attempts, "attempt"))
	}
	if s.Usage != nil && s.Usage.Input+s.Usage.Output > 0 {
		more = append(more, fmt.Sprintf("%d+%d tokens", s.Usage.Input, s.Usage.Output))
	}
	detail := joined(more)
	if narrow { // the name has priority, then the outcome, then the details
		name = shorten(safeLine(name), max(room/2, 12))
		for least := min(len([]rune(outcome)), 12); len(more) > 0 &&
			len([]rune(name))+least+len([]rune(detail))+2 > room; detail = joined(more) {
			more = more[:len(more)-1]
		}
		outcome = shorten(safeLine(outcome), max(room-len([]rune(name))-len([]rune(detail))-2, 8))
		room -= len([]rune(name)) + len([]rune(outcome)) + len([]rune(detail)) + 2
	}
	text := safeLine(name)
	if len(args) > 0 && room > 8 {
		text += " " + a.outStyle(dim, argShort(args, min(room-1, argsShown)))
	}
	return text + " " + a.outStyle(style, shorten(safeLine(outcome), 120)) + a.outStyle(dim, safeLine(detail))
}

// joined formats the details at the end of a line.
func joined(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return " · " + strings.Join(parts, " · ")
}

func barStyle(s view.Step) string {
	switch {
	case s.Outcome == view.CallOpen:
		return yellow
	case s.Outcome != view.CallOK:
		return red
	case s.Kind == agent.CommandTool:
		return green
	}
	return cyan
}
