package cli

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
	switched              bool // chat: the person chose another model
	maxTurns              int
	toolChoice, mode      string
	outputSchema          string
	output                json.RawMessage
	files                 []string
	parts                 []tenon.Part
	cassette
	groups []string
	state  string
	table  *toolTable // nil for the configured tools
}

func (q *asking) flags(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&q.agent, "agent", "a", "", "`NAME` of the agent (default: the configuration's)")
	f.StringVarP(&q.session, "session", "s", "", "session to continue: `ID`, the beginning of one, or -1 for the "+
		"last (default: a new one)")
	f.BoolVar(&q.fork, "fork", false, "with -s: ask in a new session that continues a copy of that one, even if it is "+
		"busy")
	f.StringVar(&q.model, "model", "", "`MODEL` to use instead of the agent's: an entry of models, provider/name, "+
		"script:FILE (tenon docs scripts), or demo")
	f.BoolVar(&q.noTools, "no-tools", false, "offer no tools to the model")
	f.BoolVar(&q.yes, "yes", false, "allow every tool call that asks for approval")
	waitFlag(a, f)
	f.IntVar(&q.maxTurns, "max-turns", 0, "at most `N` model requests (default: limits.max_turns)")
	f.StringVar(&q.toolChoice, "tool-choice", "", "auto, any, none, or the `NAMES` of tools, separated "+
		"by commas, of which one must be called; auto:NAMES limits the run to these tools")
	f.StringSliceVar(&q.groups, "group", nil, "`GROUP` of tools that the agent sees; may be repeated; '*' means all, "+
		"'' none (default: the agent's)")
	f.StringVar(&q.state, "state", "", "`STATE` in which the agent begins (default: the session's, else the agent's)")
	f.StringVar(&q.mode, "mode", "", "`MODE` of calling tools: native, or react, a text loop for models that cannot "+
		"call tools (default: the agent's)")
	q.cassette.flags(f)
}

// waitFlag adds --wait to a verb that follows a run.
func waitFlag(a *app, f *pflag.FlagSet) {
	f.BoolVar(&a.wait, "wait", false, "without a terminal: wait until tenon approvals has answered the questions")
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
		return usage(cmd, "--fork needs the session to continue from: -s SESSION")
	}
	return q.cassette.check(cmd)
}

func (q *asking) opening(text string) opening {
	return opening{connect: !q.noTools, models: true, asks: text, agent: q.agent, model: q.model, cassette: q.cassette}
}

// asked returns the opening for a question, with the tools of its table if it has one.
func (a *app) asked(ctx context.Context, q *asking, text string) (opening, error) {
	o := q.opening(text)
	if q.table == nil {
		return o, nil
	}
	cfg, err := a.load(ctx, nil)
	if err != nil {
		return o, err
	}
	if err := a.requireTrust(ctx, cfg); err != nil {
		return o, err
	}
	o.loaded = cfg
	o.hidden, err = q.table.apply(ctx, a, cfg)
	return o, err
}

// byYes is the name in the journal of the person who decides if --yes is set.
const byYes = "--yes"

func (q *asking) question(text string) host.Question {
	question := host.Question{Table: q.table.kept(), Text: text, Agent: q.agent, Session: q.session, Fork: q.fork,
		NoTools: q.noTools, Output: q.output, Files: q.parts, ToolChoice: q.toolChoice, Groups: q.groups,
		State: q.state, MaxTurns: q.maxTurns, Mode: q.mode}
	if q.yes {
		question.Grant = byYes
	}
	return question
}

const runHelp = "Asks an agent, which can call the tools of the configured servers, and streams its answer. Each\n" +
	"finished tool call is one line on stderr: server and tool, arguments, duration, outcome.\n\n" +
	"A call that is not marked read-only needs approval. Without a terminal the run waits, the command\n" +
	"exits with status 8, and you decide with tenon approvals. --yes allows every call that no rule\n" +
	"denies.\n\n" +
	"With --detach a running tenon serve answers, and the command returns at once with the run's id.\n\n" +
	"--history begins with a conversation from a file. --conversation writes the whole conversation to\n" +
	"a file when the run has ended or waits. Both use the JSON of tenon sessions show -o json, or an\n" +
	"Arrow table with one message in each row. A history may also have the format of OpenAI's chat.\n" +
	"All formats use the servers' names of tools.\n\n" +
	"With --output-schema the answer is JSON, and only the answer is printed. An answer that does not\n" +
	"match the schema is sent back to the model, at most twice. --file attaches pictures, PDF\n" +
	"documents, sounds, videos and texts. If the model does not accept a file, it receives a\n" +
	"description. FILE can also be an address (https, gs, s3), or file-id:ID for a file that the\n" +
	"provider stores, after its type if its end does not tell it (image/png=file-id:ID). tenon reads\n" +
	"https addresses that the provider does not read.\n\n" +
	"With --table the agent has only the tools of an Arrow table. A server is opened when one of its\n" +
	"tools is called. To resume such a run, use tenon runs resume with the same --table.\n\n" +
	"--data-in gives the agent tables of data (tenon docs data). The agent sees their names and\n" +
	"columns, queries them with the tool query_table, and passes them to workflows by their ids.\n" +
	"--data-out writes tables that the run has made.\n\n" +
	"A resource that the question names as @SERVER:URI is attached (see tenon resources list), except\n" +
	"with --detach.\n\n" +
	"-o jsonl prints one line for each stored event of the run. -o json prints one object at the end,\n" +
	"with answer, state, stop_reason, tool_calls, usage, cost, run and session.\n\n" +
	"With --mode react tools are called in a text loop that any model can follow, and -o jsonl also\n" +
	"prints lines of kind chunk: thought, action, observation, answer. --print-prompt prints the\n" +
	"request to the model."

func newRun(a *app) *cobra.Command {
	q, d, f, data, tools, show := &asking{}, &detachFlags{}, &conversationFiles{}, &dataFiles{}, &toolTable{}, false
	cmd := &cobra.Command{
		Use:   "run [flags] QUESTION|-",
		Short: "Ask an agent a question",
		Long:  runHelp,
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
			if err := cmp.Or(q.check(cmd), d.check(cmd, q), f.check(cmd, q, d), data.check(cmd, d),
				tools.check(cmd, q, d)); err != nil {
				return err
			}
			if err := a.checkFar(cmd, q, f, show); err != nil {
				return err
			}
			if show && d.detach {
				return usage(cmd, "--print-prompt starts no run, so --detach has no effect")
			}
			if err := neverInPlace([]string{tools.path, f.history}, data.out); err != nil {
				return usage(cmd, "--data-out: %s", err)
			}
			if tools.path != "" {
				q.table = tools
			}
			if show && len(args) == 0 {
				return a.printPrompt(cmd.Context(), q, f, data, "")
			}
			if err := q.read(); err != nil {
				return err
			}
			text, err := a.argument(cmd, args, "the question")
			if err != nil {
				return err
			}
			if len(args) > 0 && args[0] != "-" && len(data.in) == 0 && a.config != "-" && unreadInput(a.in) {
				a.note("warning: stdin has data that the model does not get; - in place of the question sends it as " +
					"the question, and --file attaches files")
			}
			if show {
				return a.printPrompt(cmd.Context(), q, f, data, text)
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
	cmd.Flags().StringArrayVar(&q.files, "file", nil, "attach a picture, PDF document, sound, video or text `FILE` to "+
		"the question; may be repeated")
	cmd.Flags().StringVar(&q.outputSchema, "output-schema", "", "require an answer in JSON that matches the JSON "+
		"Schema in `FILE`, and print only the answer")
	tools.flags(cmd)
	cmd.Flags().BoolVar(&show, "print-prompt", false, "print the request to the model without sending it; the "+
		"question may be left out")
	return cmd
}

// checkFar refuses flags that do not work with --remote.
func (a *app) checkFar(cmd *cobra.Command, q *asking, f *conversationFiles, show bool) error {
	if a.remote == "" {
		return nil
	}
	for flag, given := range map[string]bool{"--history": f.history != "", "--conversation": f.out != "",
		"--print-prompt": show, "--record": q.record != "", "--replay": q.replay != ""} {
		if given {
			return usage(cmd, "%s does not go with --remote", flag)
		}
	}
	return nil
}

// read reads the files of --output-schema and --file.
func (q *asking) read() (err error) {
	if q.outputSchema != "" {
		if q.output, err = config.ReadSchema(q.outputSchema); err != nil {
			return err
		}
	}
	q.parts, err = host.FileParts(q.files)
	return err
}

// ready opens the host for a question, and reads the question's files. done closes the files, after the host is closed.
func (a *app) ready(ctx context.Context, q *asking, f *conversationFiles, data *dataFiles, text string) (h *host.Host,
	question host.Question, done func(), err error) {
	question = q.question(text)
	if question.DataFiles, done, err = data.open(a); err != nil {
		return nil, question, nil, err
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	if question.History, err = f.read(ctx); err != nil {
		return nil, question, done, err
	}
	o, err := a.asked(ctx, q, text)
	if err != nil {
		return nil, question, done, err
	}
	if h, err = a.open(ctx, o); err == nil && a.remote == "" {
		a.noteGroups(h.Service().Info().Config, q.groups)
	}
	return h, question, done, err
}

// noteGroups warns of groups that no tool of the configuration has.
func (a *app) noteGroups(c *config.Config, groups []string) {
	known := c.Groups()
	for _, g := range groups {
		if g != "*" && g != "" && !slices.Contains(known, g) {
			a.note("no tool of the configuration is in the group '%s'%s", g, didYouMean(g, known))
		}
	}
}

func (a *app) run(ctx context.Context, q *asking, f *conversationFiles, data *dataFiles, text string) (err error) {
	if a.remote != "" {
		return a.runFar(ctx, q, data, text)
	}
	h, question, done, err := a.ready(ctx, q, f, data, text)
	if err != nil {
		return err
	}
	defer done()
	defer closing(h, &err)
	if h.Service().Info().Config.File == "" && !q.noTools && q.table == nil {
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

// runFar asks the remote tenon.
func (a *app) runFar(ctx context.Context, q *asking, data *dataFiles, text string) (err error) {
	h, err := a.desk(ctx, q.opening(text))
	if err != nil {
		return err
	}
	defer closing(h, &err)
	question := q.question(text)
	question.Model, question.Files = q.model, nil // extras contains the bytes of the files
	if q.table != nil {
		if question.OnlyTable, err = q.table.send(ctx, a); err != nil {
			return err
		}
	}
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

// question starts a run, follows it to its end and returns it.
func (a *app) question(ctx context.Context, h desk, q host.Question, yes bool) (tenon.Run, error) {
	here, local := h.(*host.Host)
	q.SettlePins = local && a.canAsk()
	run, err := h.Start(ctx, q)
	if q.SettlePins && tenon.ErrorCode(err) == tenon.CodeWaiting {
		if err := a.settlePins(ctx, here, run.Problems); err != nil {
			return run.Run, err
		}
		q.SettlePins = false
		run, err = h.Start(ctx, q)
	}
	a.problems(a.news(run.Problems))
	if err != nil {
		return run.Run, a.busySession(ctx, h, q.Session, err)
	}
	if !q.NoTools && q.OnlyTable == nil {
		a.tellRenamed(ctx, h)
	}
	return run.Run, a.drive(ctx, h, run.Run, 0, yes)
}

// hint prints a note unless --quiet is set.
func (a *app) hint(format string, args ...any) {
	if !a.quiet {
		a.note(format, args...)
	}
}

// attach adds the resources that a person's question names.
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
	mentions, err := here.Servers().Context().Mentions(ctx, q.Text)
	if err != nil {
		return err
	}
	if len(mentions) == 0 {
		return nil
	}
	if q.NoTools {
		return namedWithoutTools(mentions[0])
	}
	parts, err := host.ReadMentions(ctx, here.Servers().Context(), q.Text)
	q.Files = append(slices.Clip(q.Files), parts...)
	return err
}
