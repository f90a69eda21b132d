package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// asking are the flags of run and chat.
type asking struct {
	agent, session, model string
	fork, noTools, yes    bool
	maxTurns              int
	toolChoice, mode      string
	outputSchema          string
	output                json.RawMessage
	files                 []string
	parts                 []tenon.Part
	cassette
	groups []string
	state  string
	table  *toolTable // nil: the tools are those of the configuration
}

func (q *asking) flags(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&q.agent, "agent", "a", "", "`NAME` of the agent (default: the configuration's)")
	f.StringVarP(&q.session, "session", "s", "", "session to continue: `ID`, the beginning of one, or -1 for the last (default: a new one)")
	f.BoolVar(&q.fork, "fork", false, "with -s: ask in a new session that goes on from that one, also where it is at work")
	f.StringVar(&q.model, "model", "", "`MODEL` in place of the agent's: an entry of models, provider/name, script:FILE (docs/reference/scripts.md), or demo")
	f.BoolVar(&q.noTools, "no-tools", false, "offer no tools to the model")
	f.BoolVar(&q.yes, "yes", false, "allow every tool call that would ask")
	waitFlag(a, f)
	f.IntVar(&q.maxTurns, "max-turns", 0, "model requests at most, `N` (default: limits.max_turns)")
	f.StringVar(&q.toolChoice, "tool-choice", "", "auto, any, none, or the `NAME` of the tool that must be called")
	f.StringSliceVar(&q.groups, "group", nil, "`GROUP` of tools that the agent sees; repeat it for several; '*' is all, '' none (default: the agent's)")
	f.StringVar(&q.state, "state", "", "`STATE` in which the agent begins (default: that of the session, else the agent's)")
	f.StringVar(&q.mode, "mode", "", "how tools are called: native, or react, a text loop for models that cannot call them (`MODE`; default: the agent's)")
	q.cassette.flags(f)
}

// waitFlag is of the verbs that follow a run.
func waitFlag(a *app, f *pflag.FlagSet) {
	f.BoolVar(&a.wait, "wait", false, "without a terminal: wait until tenon approvals has answered what is asked")
}

func (q *asking) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("max-turns") && q.maxTurns < 1:
		return usage(cmd, "--max-turns must be at least 1")
	case q.mode != "" && q.mode != agent.ModeNative && q.mode != agent.ModeReact:
		return usage(cmd, "--mode is native or react, not '%s'", q.mode)
	case cmd.Flags().Changed("state") && q.state == "":
		return usage(cmd, "--state is empty")
	case cmd.Flags().Changed("session") && q.session == "":
		return usage(cmd, "--session is empty")
	case q.fork && q.session == "":
		return usage(cmd, "--fork needs the session to go on from: -s SESSION")
	}
	return q.cassette.check(cmd)
}

func (q *asking) opening(text string) opening {
	return opening{connect: !q.noTools, models: true, asks: text, agent: q.agent, model: q.model, cassette: q.cassette}
}

// asked is the opening of a question, with the tools of its table, if it has one.
func (a *app) asked(ctx context.Context, q *asking, text string) (opening, error) {
	o := q.opening(text)
	if q.table == nil {
		return o, nil
	}
	cfg, err := a.load(ctx, nil)
	if err != nil {
		return o, err
	}
	o.loaded = cfg
	o.hidden, err = q.table.apply(ctx, a, cfg)
	return o, err
}

// byYes is who the journal names where --yes allowed a call.
const byYes = "--yes"

func (q *asking) question(text string) host.Question {
	question := host.Question{Text: text, Agent: q.agent, Session: q.session, Fork: q.fork, NoTools: q.noTools, Output: q.output, Files: q.parts, ToolChoice: q.toolChoice, Groups: q.groups, State: q.state, MaxTurns: q.maxTurns, Mode: q.mode}
	if q.yes {
		question.Grant = byYes
	}
	return question
}

func newRun(a *app) *cobra.Command {
	q, d, f, data, tools, show := &asking{}, &detachFlags{}, &conversationFiles{}, &dataFiles{}, &toolTable{}, false
	cmd := &cobra.Command{
		Use:   "run [flags] QUESTION|-",
		Short: "Ask an agent, which answers with the tools of the configured servers",
		Long: "Asks an agent and prints its answer as it comes. Each tool call is one line on stderr when it ends:\n" +
			"server and tool, arguments, duration, outcome.\n\n" +
			"A call that is not marked read-only asks first. Without a terminal the run waits, the command ends with\n" +
			"status 8, and tenon approvals decides. --yes allows all of them; a deny rule still holds.\n\n" +
			"With --detach a running tenon serve answers, and the command returns with the run's id.\n\n" +
			"--history puts a conversation from a file before the question, --conversation writes the whole of it to a file when\n" +
			"the run has ended or waits: JSON, in the form that tenon sessions show -o json has, or an Arrow table, a message a\n" +
			"row; a history may also have the form of OpenAI's chat. All name tools as their servers do.\n\n" +
			"With --output-schema the answer is JSON and nothing else is printed; one that does not fit the schema is sent back to\n" +
			"the model, twice at most. --file adds pictures, PDF documents, sounds and texts; what a model cannot take is described.\n\n" +
			"With --table the agent has the tools of an Arrow table and no others; their servers are opened when they are called.\n" +
			"A run that waits goes on with tenon runs resume only where tenon.yaml has the servers of its table.\n\n" +
			"--data-in gives the agent tables of data (docs/reference/data.md): it is told their names and columns and passes them to\n" +
			"workflows by their ids; with the tool query_table it looks into them. --data-out writes tables that the run has made.\n\n" +
			"A resource that the question names as @SERVER:URI goes with it (tenon resources list), but not with --detach.\n\n" +
			"With -o jsonl every stored event of the run is one line; with -o json the last thing printed is one object\n" +
			"with answer, state, stop_reason, tool_calls, usage, cost, run and session.\n\n" +
			"With --mode react tools are called in a text loop that any model can follow, and -o jsonl also has lines of\n" +
			"kind chunk: thought, action, observation, answer. --print-prompt shows what the model would be asked.",
		Example: "  tenon run \"What is the weather in London?\"\n" +
			"  tenon run -s -1 \"And in Paris?\"\n" +
			"  tenon run --file invoice.pdf --output-schema invoice.schema.json \"What is to be paid, by when?\"\n" +
			"  git diff | tenon run --no-tools -\n" +
			"  tenon run --detach \"Sort the inbox\"\n" +
			"  tenon run --mode react --print-prompt \"And in Paris?\"\n" +
			"  tenon run --model script:steps.yaml -o json \"add 2 and 3\"\n" +
			"  tenon run --table tools.arrow --conversation talk.arrow \"add 2 and 3\"\n" +
			"  tenon run --data-in sales.arrow --data-out totals.arrow \"Total the sales by city\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(q.check(cmd), d.check(cmd, q), f.check(cmd, q, d), data.check(cmd, d), tools.check(cmd, q, d)); err != nil {
				return err
			}
			if err := a.checkFar(cmd, q, f, tools, show); err != nil {
				return err
			}
			if show && d.detach {
				return usage(cmd, "--print-prompt asks nothing, so there is nothing to detach")
			}
			if tools.path != "" {
				q.table = tools
			}
			if show && len(args) == 0 {
				return a.printPrompt(cmd.Context(), q, f, "")
			}
			if err := q.read(); err != nil {
				return err
			}
			text, err := a.argument(cmd, args, "the question")
			if err != nil {
				return err
			}
			if show {
				return a.printPrompt(cmd.Context(), q, f, text)
			}
			if d.detach {
				return a.detach(cmd.Context(), q, data, d.key, text)
			}
			return a.run(cmd.Context(), q, f, data, text)
		},
	}
	q.flags(a, cmd)
	d.flags(cmd)
	f.flags(cmd)
	data.flags(cmd)
	cmd.Flags().StringArrayVar(&q.files, "file", nil, "picture, PDF document, sound or text that belongs to the question, `FILE`; may be repeated")
	cmd.Flags().StringVar(&q.outputSchema, "output-schema", "", "the answer has to be JSON that fits the JSON Schema in `FILE`; only it is printed")
	tools.flags(cmd)
	cmd.Flags().BoolVar(&show, "print-prompt", false, "print what the model would be asked, and ask nothing; the question may be left out")
	return cmd
}

// checkFar refuses what only a tenon here can do.
func (a *app) checkFar(cmd *cobra.Command, q *asking, f *conversationFiles, t *toolTable, show bool) error {
	if a.remote == "" {
		return nil
	}
	for flag, given := range map[string]bool{"--history": f.history != "", "--conversation": f.out != "", "--table": t.path != "",
		"--print-prompt": show, "--record": q.record != "", "--replay": q.replay != ""} {
		if given {
			return usage(cmd, "%s does not go with --remote", flag)
		}
	}
	return nil
}

// read reads the files that flags of run name.
func (q *asking) read() (err error) {
	if q.outputSchema != "" {
		if q.output, err = config.ReadSchema(q.outputSchema); err != nil {
			return err
		}
	}
	q.parts, err = host.FileParts(q.files)
	return err
}

func (a *app) run(ctx context.Context, q *asking, f *conversationFiles, data *dataFiles, text string) (err error) {
	if a.remote != "" {
		return a.runFar(ctx, q, data, text)
	}
	question := q.question(text)
	if question.Data, err = data.read(a); err != nil {
		return err
	}
	if question.History, err = f.read(ctx); err != nil {
		return err
	}
	o, err := a.asked(ctx, q, text)
	if err != nil {
		return err
	}
	h, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	if h.Config().File == "" && !q.noTools && q.table == nil {
		a.hint("there is no tenon.yaml here, so there are no tools; tenon init writes one")
	}
	if err := a.attach(ctx, h, &question); err != nil {
		return err
	}
	a.wanted = flagWords("--data-out", data.out)
	run, err := a.question(ctx, h, question, q.yes)
	if err == nil {
		err = data.write(ctx, a, h, run)
	}
	return f.write(context.WithoutCancel(ctx), a, h, run, q.agent, err)
}

// runFar asks the tenon of --remote.
func (a *app) runFar(ctx context.Context, q *asking, data *dataFiles, text string) (err error) {
	h, err := a.desk(ctx, q.opening(text))
	if err != nil {
		return err
	}
	defer closing(h, &err)
	question := q.question(text)
	question.Model, question.Files = q.model, nil // they are sent as they are
	if there, ok := h.(*far); ok {
		if there.extras, err = a.extras(ctx, there.Client, q, data, text); err != nil {
			return err
		}
	}
	a.wanted = flagWords("--data-out", data.out)
	run, err := a.question(ctx, h, question, q.yes)
	if err != nil {
		return err
	}
	return data.write(ctx, a, h, run)
}

// question asks, follows the run to its end and returns its row.
func (a *app) question(ctx context.Context, h desk, q host.Question, yes bool) (tenon.Run, error) {
	run, problems, err := h.Start(ctx, q)
	if here, ok := h.(*host.Host); ok && tenon.ErrorCode(err) == tenon.CodeWaiting {
		ok, perr := a.settlePins(ctx, here, problems)
		if perr != nil {
			return run, perr
		}
		if ok {
			run, problems, err = h.Start(ctx, q)
		}
	}
	if tenon.ErrorCode(err) == tenon.CodeWaiting {
		return run, err // it says what the problems say
	}
	a.problems(a.news(problems))
	if err != nil {
		return run, err
	}
	return run, a.drive(ctx, h, run, 0, yes)
}

// hint is a note that --quiet leaves out.
func (a *app) hint(format string, args ...any) {
	if !a.quiet {
		a.note(format, args...)
	}
}

// attach adds the resources that a person's own words name to the question.
func (a *app) attach(ctx context.Context, h desk, q *host.Question) error {
	if there, ok := h.(*far); ok {
		list, err := farMentions(ctx, there.Client, q.Text, q.NoTools)
		there.extras = extras{resources: list}
		return err
	}
	here, ok := h.(*host.Host)
	if !ok {
		return nil
	}
	mentions := here.Mentions(q.Text)
	if len(mentions) == 0 {
		return nil
	}
	if q.NoTools {
		return namedWithoutTools(mentions[0])
	}
	parts, err := here.Attached(ctx, q.Text)
	q.Files = append(slices.Clip(q.Files), parts...)
	return err
}
