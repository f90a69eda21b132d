package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/eval"
	"github.com/tenonhq/tenon/internal/wholefile"
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
		Short: "Run an evaluation file",
		Long: "Asks each question of FILE, as often as FILE says, and compares the tool calls and the answer\n" +
			"with the expected ones. tenon docs eval describes the file. Each attempt has a separate\n" +
			"store and starts separate servers. FILE may be HoloDeck's agent.yaml: its test_cases are the\n" +
			"questions, and their expected_tools must be called.\n\n" +
			"Tools are called, unless FILE contains a mock for them. A call that asks for approval fails the\n" +
			"attempt, unless it is mocked or --yes allows it.\n\n" +
			"Each finished attempt is a line on stderr, and each case a row of the table. -o json prints one\n" +
			"object at the end, -o jsonl one line for each attempt. The exit status is 1 if a case does not\n" +
			"pass. A case that expects nothing is not judged: it neither passes nor fails.",
		Example: "  tenon eval evals/weather.yaml\n" +
			"  tenon eval evals/weather.yaml --model anthropic/claude-sonnet-4-5 --repeat 5 --concurrency 2\n" +
			"  tenon eval evals/weather.yaml --record evals/cassettes\n" +
			"  tenon eval evals/weather.yaml --replay evals/cassettes --junit report.xml\n" +
			"  tenon eval agent.yaml",
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
	f.StringVar(&q.model, "model", "", "`MODEL` that replaces the models of the file: an entry of models, "+
		"provider/name, or script:FILE")
	f.StringArrayVar(&q.cases, "case", nil, "only cases whose name matches the glob `NAME`; may be repeated")
	f.IntVar(&q.repeat, "repeat", 0, "`N` attempts at each case, instead of the number in the file")
	f.IntVar(&q.concurrency, "concurrency", 0, "`N` attempts at a time, instead of the number in the file")
	f.BoolVar(&q.yes, "yes", false, "allow every tool call that asks for approval")
	f.StringVar(&q.junit, "junit", "", "also write the result to `FILE` as JUnit's XML")
	f.StringVar(&q.keep, "keep", "", "keep the store of each attempt in `FOLDER`; read it with tenon runs show "+
		"--home FOLDER/CASE-1 -1")
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
	if a.config == "" && suite.IsAgent() { // the person named the configuration
		a.config = suite.Config
	}
	if a.config == "" && suite.Config != "" { // the person did not name this file, so it needs trust
		a.config, a.configFound = suite.Config, true
	}
	cfg, err := a.hostConfig(ctx, opening{connect: true, lasting: true})
	if err != nil {
		return err
	}
	if q.junit != "" { // find a mistake in the path before the attempts are made
		if err := writeReport(q.junit, nil); err != nil {
			return err
		}
	}
	o := eval.Options{Host: cfg, Model: q.model, Repeat: q.repeat, Concurrency: q.concurrency, Cases: q.cases,
		Record: q.record, Replay: q.replay, Yes: q.yes, Keep: q.keep, Each: a.attemptEnded}
	r, err := eval.Run(ctx, suite, o)
	if r == nil {
		return err
	}
	printed := a.printEval(q, r)
	a.noteUnused(r)
	err = cmp.Or(err, printed)
	if err == nil && r.Failed > 0 {
		err = reported{errors.New("a case did not pass")}
	}
	return err
}

// writeReport replaces the report at a path. Other programs may read a new report. Without data it only creates the
// file if it does not exist.
func writeReport(path string, data []byte) error {
	mode := os.FileMode(0o644)
	st, err := os.Stat(path)
	if err == nil && st.Mode().IsRegular() {
		mode = st.Mode().Perm()
	}
	if data == nil && err == nil && !st.IsDir() {
		return nil
	}
	if err := wholefile.Write(path, data, mode); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "--junit: %s cannot be written: %w", path, err)
	}
	return nil
}

// attemptEnded prints the result of one attempt, and servers whose tools were missing, each problem once.
func (a *app) attemptEnded(t eval.Attempt) {
	for _, p := range t.Problems {
		if !slices.Contains(a.told, p) {
			a.told = append(a.told, p)
			a.note("%s", p)
		}
	}
	switch {
	case a.format == formatJSONL:
		_ = a.printJSON(t) // printing the result reports an error of stdout
	case a.quiet || a.isJSON():
	case t.Passed:
		fmt.Fprintln(a.err, a.errStyle(green, "✓"), safeLine(t.Case), "", a.errStyle(dim, took(t.Millis)))
	case !t.Judged && t.Whole():
		fmt.Fprintln(a.err, a.errStyle(dim, "-"), safeLine(t.Case), "", a.errStyle(dim, took(t.Millis)), "",
			"not judged")
	default:
		fmt.Fprintln(a.err, a.errStyle(red, "✗"), safeLine(t.Case), "", a.errStyle(dim, took(t.Millis)), "",
			safeLine(t.Reason()))
	}
}

func (a *app) printEval(q *evalFlags, r *eval.Result) error {
	if q.junit != "" {
		var b bytes.Buffer
		if err := r.WriteJUnit(&b); err != nil {
			return err
		}
		if err := writeReport(q.junit, b.Bytes()); err != nil {
			return err
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
	notJudged := ""
	if r.NotJudged > 0 {
		notJudged = fmt.Sprintf(", %d not judged", r.NotJudged)
	}
	a.hint("%d of %d cases passed%s in %s", r.Passed, len(r.Cases), notJudged, took(r.Millis))
	return err
}

// noteUnused reports what a HoloDeck agent expects and nothing checked. With -q it only reports that no case was
// judged, because the exit status is 0.
func (a *app) noteUnused(r *eval.Result) {
	var keys []string
	for _, c := range r.Cases {
		keys = append(keys, c.Unused...)
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) > 0 && !a.quiet {
		a.note("not used: %s: tenon has no model that judges answers; expected_tools and the cases of an evaluation "+
			"file (tenon docs eval) are checked", strings.Join(keys, ", "))
	}
	if r.NotJudged == len(r.Cases) {
		a.note("no case was judged: nothing is expected of a tool call or an answer")
	}
}

// caseRow summarizes a case. Turns, tokens and time are means of its attempts.
func caseRow(c eval.CaseResult) []string {
	passed, why := 0, ""
	var turns, tokens int
	var millis int64
	var cost tenon.USD
	priced := false
	for _, t := range c.Attempts {
		if t.Passed {
			passed++
		} else if why == "" && !t.Whole() {
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
	switch c.State {
	case eval.CaseNotJudged:
		verdict, why = "not judged", cmp.Or(why, c.WhyNotJudged())
	case eval.CaseFailed:
		verdict = "no"
	}
	return []string{c.Name, verdict, fmt.Sprintf("%d/%d", passed, n), strconv.FormatFloat(float64(turns)/float64(n),
		'f', -1, 32), strconv.Itoa(tokens / n),
		spent, took((time.Duration(millis) * time.Millisecond / time.Duration(n)).Milliseconds()), why}
}
