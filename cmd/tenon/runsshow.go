package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/httpapi"
)

func newRunsShow(a *app) *cobra.Command {
	var bare bool
	var artifact string
	cmd := &cobra.Command{
		Use:   "show [RUN]",
		Short: "Show what a run did and what it came to",
		Long: "Shows a run, by default the last one: a line for each step with when it began, how long it took, what it was,\n" +
			"how it ended, who decided, how many attempts it took and how many tokens; then the answer. On a terminal a\n" +
			"bar shows when each step was at work, and when it waited for a person. " + refHelp,
		Example: "  tenon runs show\n  tenon runs show -2 -o json\n  tenon runs show -1 --artifact 3f9a2c-1.0-1 > picture.png",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), opening{}, args, func(h desk, run tenon.Run) error {
				if artifact != "" {
					data, _, err := h.Artifact(cmd.Context(), run.ID, artifact)
					if err != nil {
						return err
					}
					return a.write(data)
				}
				report, err := h.Report(cmd.Context(), run.ID)
				if err != nil {
					return err
				}
				events, err := h.Journal(cmd.Context(), run.ID, 0)
				if err != nil {
					return err
				}
				steps := agent.Steps(events, time.Now())
				if a.isJSON() {
					return a.printJSON(httpapi.RunInfo{Report: report, Steps: steps})
				}
				return a.showRun(run, report, steps, a.outTTY && !bare)
			})
		},
	}
	cmd.Flags().StringVar(&artifact, "artifact", "", "print a stored part of a result instead, by its `ID`, as it is")
	cmd.Flags().BoolVar(&bare, "no-waterfall", false, "no bars, on a terminal either")
	return cmd
}

// showRun draws a run: what it is, a line for each step, the answer.
func (a *app) showRun(run tenon.Run, r agent.Report, steps []agent.StepRecord, bars bool) error {
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
	if r.Stop != "" {
		state += " (" + string(r.Stop) + ")"
	}
	line("state", state)
	line("began", a.when(run.Created))
	if run.Imported != nil {
		line("imported", a.when(run.Imported.At))
	}
	if r.Usage.Input+r.Usage.Output > 0 {
		line("tokens", fmt.Sprintf("%d in, %d out", r.Usage.Input, r.Usage.Output))
	}
	b.WriteByte('\n')
	a.steps(&b, steps, r.ToolCalls, bars)
	for _, w := range r.Waiting {
		if !w.Expires.IsZero() && !time.Now().Before(w.Expires) {
			fmt.Fprintf(&b, "%s\n", safeLine("waited for a decision until "+a.when(w.Expires)+"; the run goes on without it: "+a.again("runs resume", run.ID)))
			continue
		}
		fmt.Fprintf(&b, "%s\n", safeLine("waits for a decision: "+a.again("approvals allow", run.ID+"/"+w.Step)))
	}
	switch {
	case r.Error != nil:
		fmt.Fprintf(&b, "\n%s\n", a.outStyle(red, safeText(r.Error.Message)))
	case r.Answer != "":
		fmt.Fprintf(&b, "\n%s\n", safeText(strings.TrimRight(r.Answer, "\n")))
	}
	return a.write([]byte(b.String()))
}

// steps writes a line for each step. Bars stand between its times and its name.
func (a *app) steps(b *strings.Builder, steps []agent.StepRecord, calls []agent.CallRecord, bars bool) {
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
		b.WriteString(a.stepText(s, args[s.Step], bars, room) + "\n")
	}
}

// stepText is what a step was and how it ended, in about so many characters.
func (a *app) stepText(s agent.StepRecord, args json.RawMessage, narrow bool, room int) string {
	name := strings.TrimSpace(s.Kind + " " + s.Name)
	switch s.Kind {
	case agent.CommandTool:
		name = s.Name
	case agent.StepMessage:
		name = "» " + s.Name
	}
	outcome, style := s.Outcome, red
	switch s.Outcome {
	case agent.CallOK:
		style = green
	case agent.CallOpen:
		outcome, style = "not ended", yellow
		if n := len(s.Spans); n > 0 && s.Spans[n-1].Wait {
			outcome = "waits"
			if s.Attempts == 0 && s.By != "" && s.By != agent.ByPolicy { // somebody has answered already
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
	if narrow { // the name first, the outcome next, the rest as far as it fits
		name = shorten(safeLine(name), max(room/2, 12))
		for least := min(len([]rune(outcome)), 12); len(more) > 0 && len([]rune(name))+least+len([]rune(detail))+2 > room; detail = joined(more) {
			more = more[:len(more)-1]
		}
		outcome = shorten(safeLine(outcome), max(room-len([]rune(name))-len([]rune(detail))-2, 8))
		room -= len([]rune(name)) + len([]rune(outcome)) + len([]rune(detail)) + 2
	}
	text := safeLine(name)
	if len(args) > 0 && room > 8 {
		text += " " + a.outStyle(dim, shorten(safeLine(string(args)), min(room-1, argsShown)))
	}
	return text + " " + a.outStyle(style, shorten(safeLine(outcome), 120)) + a.outStyle(dim, safeLine(detail))
}

// joined is what stands behind a line.
func joined(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return " · " + strings.Join(parts, " · ")
}

func barStyle(s agent.StepRecord) string {
	switch {
	case s.Outcome == agent.CallOpen:
		return yellow
	case s.Outcome != agent.CallOK:
		return red
	case s.Kind == agent.CommandTool:
		return green
	}
	return cyan
}
