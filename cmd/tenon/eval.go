package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/eval"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	cassette
	model, junit, keep  string
	cases               []string
	repeat, concurrency int
	yes                 bool
}

func newEval(a *app) *cobra.Command {
	q := &evalFlags{}
	cmd := &cobra.Command{
		Use:   "eval [flags] FILE",
		Short: "Ask the questions of a file and say which were answered as expected",
		Long: "Asks each question of FILE, as often as it says, and holds the tool calls and the answer to what is expected.\n" +
			"docs/reference/eval.md describes the file. Each attempt has a store, and servers, of its own.\n\n" +
			"Tools are called, unless a mock in FILE answers for them. A call that would ask for approval fails the attempt,\n" +
			"unless it is mocked or --yes allows it.\n\n" +
			"Each attempt is a line on stderr when it ends, each case a line of the table. With -o json the last thing printed\n" +
			"is one object, with -o jsonl each attempt is a line. Status 1 says that a case did not pass.",
		Example: "  tenon eval evals/weather.yaml\n" +
			"  tenon eval evals/weather.yaml --model anthropic/claude-sonnet-4-5 --repeat 5 --concurrency 2\n" +
			"  tenon eval evals/weather.yaml --record evals/cassettes\n" +
			"  tenon eval evals/weather.yaml --replay evals/cassettes --junit report.xml",
		Args: args(1, 1, "the file of cases"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.check(cmd); err != nil {
				return err
			}
			return a.eval(cmd.Context(), q, args[0])
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&q.model, "model", "", "`MODEL` in place of those that the file names: an entry of models, provider/name, or script:FILE")
	f.StringArrayVar(&q.cases, "case", nil, "only cases whose name fits the glob `NAME`; may be repeated")
	f.IntVar(&q.repeat, "repeat", 0, "`N` attempts at each case, in place of what the file says")
	f.IntVar(&q.concurrency, "concurrency", 0, "`N` attempts at a time, in place of what the file says")
	f.BoolVar(&q.yes, "yes", false, "allow every tool call that would ask")
	f.StringVar(&q.junit, "junit", "", "also write the result to `FILE` as JUnit's XML")
	f.StringVar(&q.keep, "keep", "", "leave the store of each attempt in `FOLDER`: tenon runs show --home FOLDER/CASE-1 -1")
	q.cassette.flags(f)
	return cmd
}

func (q *evalFlags) check(cmd *cobra.Command) error {
	f := cmd.Flags()
	switch {
	case f.Changed("repeat") && (q.repeat < 1 || q.repeat > 1000):
		return usage(cmd, "--repeat must be within 1 and 1000")
	case f.Changed("concurrency") && (q.concurrency < 1 || q.concurrency > 64):
		return usage(cmd, "--concurrency must be within 1 and 64")
	}
	return q.cassette.check(cmd)
}

func (a *app) eval(ctx context.Context, q *evalFlags, file string) error {
	suite, err := eval.Load(file)
	if err != nil {
		return err
	}
	if a.config == "" {
		a.config = suite.Config
	}
	cfg, err := a.hostConfig(ctx, opening{connect: true, lasting: true})
	if err != nil {
		return err
	}
	if q.junit != "" { // better now than behind all the attempts
		f, err := os.OpenFile(q.junit, os.O_CREATE|os.O_WRONLY, 0o666)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "--junit: %w", err)
		}
	}
	o := eval.Options{Host: cfg, Model: q.model, Repeat: q.repeat, Concurrency: q.concurrency, Cases: q.cases,
		Record: q.record, Replay: q.replay, Yes: q.yes, Keep: q.keep, Each: a.attemptEnded}
	r, err := eval.Run(ctx, suite, o)
	if r == nil {
		return err
	}
	if perr := a.printEval(q, r); err == nil {
		err = perr
	}
	if err == nil && r.Failed > 0 {
		err = reported{errors.New("a case did not pass")}
	}
	return err
}

// attemptEnded tells of one attempt.
func (a *app) attemptEnded(t eval.Attempt) {
	switch {
	case a.format == formatJSONL:
		_ = a.printJSON(t) // an error of stdout is told when the result is printed
	case a.quiet || a.isJSON():
	case t.Passed:
		fmt.Fprintln(a.err, a.errStyle(green, "✓"), safeLine(t.Case), "", a.errStyle(dim, took(t.Millis)))
	default:
		fmt.Fprintln(a.err, a.errStyle(red, "✗"), safeLine(t.Case), "", a.errStyle(dim, took(t.Millis)), "", safeLine(t.Reason()))
	}
}

func (a *app) printEval(q *evalFlags, r *eval.Result) error {
	if q.junit != "" {
		var b bytes.Buffer
		if err := r.WriteJUnit(&b); err != nil {
			return err
		}
		if err := os.WriteFile(q.junit, b.Bytes(), 0o666); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "--junit: %w", err)
		}
	}
	switch a.format {
	case formatJSON:
		return a.printJSON(r)
	case formatJSONL:
		return nil // every attempt has been printed
	}
	rows := make([][]string, len(r.Cases))
	for i, c := range r.Cases {
		rows[i] = caseRow(c)
	}
	err := a.table([]string{"case", "passed", "attempts", "turns", "tokens", "cost", "time", "why not"}, rows)
	a.hint("%d of %d cases passed in %s", r.Passed, len(r.Cases), took(r.Millis))
	return err
}

// caseRow sums up a case; turns, tokens and time are the mean of an attempt.
func caseRow(c eval.CaseResult) []string {
	passed, why := 0, ""
	var turns, tokens int
	var millis int64
	var cost tenon.USD
	priced := false
	for _, t := range c.Attempts {
		if t.Passed {
			passed++
		} else if why == "" {
			why = t.Reason()
		}
		turns += t.Turns
		tokens += t.Usage.Input + t.Usage.Output
		millis += t.Millis
		if t.Cost != nil {
			priced, cost = true, cost+*t.Cost
		}
	}
	n, spent, verdict := len(c.Attempts), "-", "yes"
	if priced {
		spent = cost.String()
	}
	if !c.Passed {
		verdict = "no"
	}
	return []string{c.Name, verdict, fmt.Sprintf("%d/%d", passed, n), strconv.FormatFloat(float64(turns)/float64(n), 'f', -1, 32), strconv.Itoa(tokens / n),
		spent, took((time.Duration(millis) * time.Millisecond / time.Duration(n)).Milliseconds()), why}
}
