package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

func newToolsCall(a *app) *cobra.Command {
	s, c, from := &adhoc{}, &cassette{}, &callTable{}
	var params string
	cmd := &cobra.Command{
		Use: "call NAME [KEY=VALUE | KEY:=JSON]... [--params JSON] [--table TABLE [--row N]] [--url URL | -- " +
			"COMMAND ARGS...]",
		Short: "Call one tool",
		Long: "Calls a tool and prints the text of its result; progress is shown on stderr. With -o json the\n" +
			"whole result is printed; with -o jsonl progress comes first, one line each. Hidden characters of a\n" +
			"result are replaced by codes such as \\u{feff} when it arrives, in every form of output, so that it\n" +
			"prints what the journal has. Clients of tenon gateway get the originals with\n" +
			"gateway.hidden_characters: keep. --raw writes all others unchanged to a pipe.\n\n" +
			"Parameters are one JSON object (--params, @FILE or - for stdin), or words. KEY=VALUE is read by the\n" +
			"tool's schema: a=2 is a number where the schema wants one. KEY:=JSON is any JSON value. A name that\n" +
			"the schema does not declare is an error in words, unless the schema sets additionalProperties or\n" +
			"patternProperties. The call itself is your permission: tenon does not ask, but a deny rule\n" +
			"still holds (status 7). An error of the tool exits with status 5.\n\n" +
			"With --table the tool is in an Arrow table, and NAME or --row selects it. Its server is the one\n" +
			"that the table names: a URL, a configured server, or a command, which is started only after you\n" +
			"agreed. With --remote the row selects one of the other tenon's tools.\n\n" +
			"--out writes the result as a table: the text in the column Result. Images, audio, files and links\n" +
			"are rows with the columns Type, MimeType, URI, Name and Data. --columns makes columns of structured\n" +
			"values: a list of objects has a row for each, an object is one row.\n\n" +
			adhocHelp,
		Example: "  tenon tools call get_weather location=London\n  tenon tools call add a=2 b=3\n" +
			"  tenon tools call add --params '{\"a\":2,\"b\":3}' -o json\n" +
			"  tenon tools call echo message=hello -- npx -y @modelcontextprotocol/server-everything\n" +
			"  tenon tools call --table tools.arrow --row 0 --params '{\"a\":2,\"b\":3}' --out result.arrow",
		Args: args(0, -1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.split(cmd, args)
			if err != nil {
				return err
			}
			name := ""
			switch {
			case from.path == "" && (from.row != "" || from.column != ""):
				return usage(cmd, "--row and --tool-column need --table")
			case from.path != "" && s.given():
				return usage(cmd, "the table names the server: --table cannot be combined with --url or a command "+
					"behind --")
			case from.row == "" && len(args) == 0:
				return usage(cmd, "the tool's name is missing")
			case from.row == "":
				name, args = args[0], args[1:]
			}
			if err := c.check(cmd); err != nil {
				return err
			}
			if from.path != "" {
				raw, err := a.tableParameters(params, cmd.Flags().Changed("params"), args)
				if err != nil {
					return err
				}
				if a.remote != "" {
					err = from.callFar(cmd.Context(), a, opening{connect: true, cassette: *c}, name, raw)
					return argumentsError(err, name)
				}
				err = from.call(cmd.Context(), a, opening{connect: true, cassette: *c}, name, raw)
				return argumentsError(err, name)
			}
			raw, err := a.parameters(params, cmd.Flags().Changed("params"), args)
			if err != nil {
				return err
			}
			err = a.callTool(cmd.Context(), opening{adhoc: s, connect: true, cassette: *c}, name, raw, &from.ports,
				from.yes)
			return argumentsError(err, name)
		},
	}
	cmd.Flags().StringVar(&params, "params", "", "parameters as a `JSON` object, @FILE, or - for stdin")
	rawFlag(a, cmd.Flags())
	waitFlag(a, cmd.Flags())
	cmd.Flags().StringVar(&from.columns, "columns", "", "write structured values to --out as columns: `PATH` of keys "+
		"such as weather.days; . is the whole result")
	from.flags(cmd)
	s.flags(cmd)
	c.flags(cmd.Flags())
	return cmd
}

func (a *app) callTool(ctx context.Context, o opening, name string, params callArguments, p *ports,
	yes bool) (err error) {
	h, err := a.desk(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	local, _ := h.(*host.Host) // nil for a remote tenon
	if w, ok := flowOf(ctx, local, name); ok {
		return a.callWorkflow(ctx, local, w.Workflow, host.ToolCall{Name: name, Arguments: params.raw,
			Words: params.words, Server: catalog.WorkflowServer}, p, yes)
	}
	if f, ok := h.(*far); ok && p.given() {
		return a.callFarFlow(ctx, f, name, params, p, yes)
	}
	flow := false
	if local == nil && len(p.out) > 0 {
		if flow, err = p.checkFar(ctx, a, h, name); err != nil {
			return err
		}
	}
	switch {
	case local == nil && yes:
		return noFarYes()
	case p.given():
		return tenon.Errorf(tenon.CodeInvalid, "tool '%s' is not a workflow; only workflows accept --in "+
			"and --debug", name)
	}
	if _, err := p.resultFile(); err != nil && !flow {
		return err
	}
	if f, ok := h.(*far); ok {
		if params, err = f.readWords(ctx, name, params); err != nil {
			return err
		}
	}
	run, err := h.Tools().Start(ctx, host.ToolCall{Name: name, Arguments: params.raw, Words: params.words})
	if errorCode(err) == tenon.CodeNotFound {
		if name, err = a.otherName(ctx, h, o.adhoc, name); err == nil {
			run, err = h.Tools().Start(ctx, host.ToolCall{Name: name, Arguments: params.raw, Words: params.words})
		}
	}
	if err != nil {
		return o.adhoc.connectError(err)
	}
	result, err := a.followCall(ctx, h, name, run.ID)
	if err != nil {
		return direct{o.adhoc.connectError(err)}
	}
	switch {
	case flow && a.streaming && !result.IsError:
		a.hint("%s", result.Text())
		return p.writeResult(ctx, a, h, run.ID)
	case flow:
		if err := a.printResult(name, result); err != nil {
			return err
		}
		return p.writeResult(ctx, a, h, run.ID)
	case local == nil:
		return a.showResult(ctx, &config.Config{}, name, result, p)
	}
	return a.showResult(ctx, local.Service().Info().Config, name, result, p)
}

// checkFar checks --out of a remote call before the call. It reports whether the tool is a workflow, whose outputs are
// known only at its end.
func (p *ports) checkFar(ctx context.Context, a *app, h desk, name string) (flow bool, err error) {
	f, ok := h.(*far)
	if !ok {
		return false, nil
	}
	t, err := f.Tools().Get(ctx, name)
	if err != nil || t.KindName() != tenon.KindWorkflow {
		return false, nil // the call reports the wrong name
	}
	return true, p.checkUnknown(a)
}

// flowOf finds the workflow with this tool name.
func flowOf(ctx context.Context, h *host.Host, name string) (host.Workflow, bool) {
	if h == nil {
		return host.Workflow{}, false
	}
	w, err := h.Workflows().Get(ctx, name)
	return w, err == nil
}

// callWorkflow calls a tool that is a workflow.
func (a *app) callWorkflow(ctx context.Context, h *host.Host, w *workflow.Workflow, c host.ToolCall, p *ports,
	yes bool) (err error) {
	if err := p.check(a, w.Outputs); err != nil {
		return err
	}
	var done func()
	if c.Files, done, err = p.open(a, w.Inputs); err != nil {
		return err
	}
	defer done()
	c.Principal, c.Debug = tenon.PrincipalLocal, p.debug
	if yes {
		c.Grant = byYes
	}
	run, err := h.Tools().Start(ctx, c)
	if err != nil {
		return err
	}
	if _, err := a.followCall(ctx, h, c.Name, run.ID); err != nil {
		return direct{err}
	}
	if err := a.flowEnded(ctx, h, run.ID); err != nil {
		return err
	}
	return p.writeResult(ctx, a, h, run.ID)
}

// followCall shows the progress of a call, asks the questions of the server, and returns the result.
func (a *app) followCall(ctx context.Context, h desk, name, run string) (*tenon.Result, error) {
	f := newFollower(a)
	defer f.clear()
	for {
		var waiting []tenon.Waiting
		f.asks = a.questions(ctx, h, run)
		result, err := host.FollowCall(ctx, h.Runs(), run, f.seq, func(e tenon.Event) {
			f.seq = max(f.seq, e.Seq)
			switch {
			case e.Kind == agent.LiveProgress:
				a.callProgress(f, name, e)
			case e.Kind == engine.EventWaiting:
				waiting = view.As[[]tenon.Waiting](e)
			case tenon.ParseStep(e.Step).IsQuestion():
				f.clear()
				f.asks.see(e)
			case e.Kind == agent.EventAdmitted:
				a.turn(e)
			case e.Kind == agent.EventResult:
				o := view.As[agent.Outcome](e)
				if o.Misfit != "" {
					f.clear()
					a.hint("the result does not fit the output schema: %s", safeLine(o.Misfit))
				}
				if o.Source == agent.SourceCache {
					f.clear()
					a.hint("answered from the cache: the result of %s", o.Of)
				}
			}
		})
		f.asks.end()
		if tenon.ErrorCode(err) != tenon.CodeWaiting || len(waiting) == 0 {
			return result, err
		}
		switch derr := a.decide(ctx, h, run, false); {
		case errors.Is(derr, errUndecided) && a.wait:
			if err := a.awaitDecision(ctx, h, run); err != nil {
				return nil, err
			}
			continue
		case errors.Is(derr, errUndecided):
			if _, terr := a.tellAll(ctx, h, run); terr != nil {
				return nil, terr
			}
			return nil, tenon.Errorf(tenon.CodeWaiting, "the call waits for an answer; then go on with: %s",
				a.resuming(run))
		case derr != nil:
			return nil, derr
		}
		if err := h.Runs().Resume(ctx, run); err != nil {
			return nil, err
		}
	}
}

// turn prints that a call waits because of its tool's rate limit.
func (a *app) turn(e tenon.Event) {
	w := view.As[agent.Admitted](e)
	if w.Wait >= time.Second {
		a.hint("%s waits %s for its turn: the tool has a rate", e.Step, w.Wait.Round(100*time.Millisecond))
	}
}

// callProgress prints a progress notification.
func (a *app) callProgress(f *follower, name string, e tenon.Event) {
	p, err := view.Try[tenon.Progress](e)
	if err != nil {
		return
	}
	switch {
	case a.format == formatJSONL:
		_ = a.printJSON(map[string]any{"kind": "progress", "data": p}) // printing the result reports a closed stdout
	case a.errTTY:
		f.transient("○ " + safeLine(name) + " " + progressText(p))
	default:
		a.hint("%s %s", name, progressText(p))
	}
}

// otherName suggests a tool with a similar name.
func (a *app) otherName(ctx context.Context, d desk, s *adhoc, name string) (string, error) {
	if f, ok := d.(*far); ok {
		return f.farName(ctx, name)
	}
	snapshot, err := a.tools(ctx, d.(*host.Host), s) // not remote, so it is a host
	if err != nil {
		return "", err
	}
	t, err := findTool(snapshot, name)
	if err != nil {
		return "", err
	}
	return t.Name, nil
}
