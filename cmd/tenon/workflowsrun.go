package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// ports are the tables that go into a workflow and come out of it.
type ports struct {
	in, out []string
	debug   bool
}

func (p *ports) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&p.in, "in", nil, "table for an input of a workflow: `[PORT=]FILE`, an Arrow file; - is stdin; may be repeated")
	p.outFlag(f)
	f.BoolVar(&p.debug, "debug", false, "keep the folder of a workflow that fails, with what its steps got")
}

func (p *ports) outFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&p.out, "out", nil, "`[PORT=]FILE` for a table that comes out; - is stdout, as a stream; may be repeated")
}

func (p *ports) given() bool { return len(p.in) > 0 || p.debug }

// read reads the tables for the inputs.
func (p *ports) read(a *app, inputs []workflow.Input) (map[string][]byte, error) {
	tables := map[string][]byte{}
	for _, arg := range p.in {
		port, file, named := strings.Cut(arg, "=")
		if !named {
			if file = port; len(inputs) != 1 {
				return nil, tenon.Errorf(tenon.CodeInvalid, "--in %s: the workflow has %s; write PORT=FILE", arg, plural(len(inputs), "input"))
			}
			port = inputs[0].Name
		}
		if !slices.ContainsFunc(inputs, func(in workflow.Input) bool { return in.Name == port }) {
			var names []string
			for _, in := range inputs {
				names = append(names, in.Name)
			}
			return nil, tenon.Errorf(tenon.CodeInvalid, "--in: the workflow has no input '%s'%s", port, didYouMean(port, names))
		}
		if _, twice := tables[port]; twice {
			return nil, tenon.Errorf(tenon.CodeInvalid, "--in: there are two tables for '%s'", port)
		}
		data, err := a.readData("--in "+arg, file)
		if err != nil {
			return nil, err
		}
		tables[port] = data
	}
	return tables, nil
}

// maxInput bounds a table that goes into a workflow or a run.
const maxInput = 64 << 20

// check holds --out to the outputs before anything runs.
func (p *ports) check(a *app, outputs []workflow.Output) error {
	var names []string
	for _, o := range outputs {
		names = append(names, o.Name)
	}
	to, err := p.targets("the workflow", names)
	if err != nil {
		return err
	}
	return p.streams(a, slices.Collect(maps.Values(to)))
}

// streams takes note of a table that goes to stdout.
func (p *ports) streams(a *app, files []string) error {
	a.wanted = flagWords("--out", p.out)
	a.streaming = a.streaming || slices.Contains(files, "-")
	if a.streaming && a.isJSON() {
		return tenon.Errorf(tenon.CodeInvalid, "--out - and -o %s both want stdout; name a file for the table", a.format)
	}
	return nil
}

// checkResumed looks at --out of a run whose outputs are not known yet.
func (p *ports) checkResumed(a *app, cmd *cobra.Command) error {
	var files []string
	for _, arg := range p.out {
		if arg == "" || strings.HasSuffix(arg, "=") {
			return usage(cmd, "--out is [PORT=]FILE; '%s' names no file", arg)
		}
		_, file, named := strings.Cut(arg, "=")
		if !named {
			file = arg
		}
		files = append(files, file)
	}
	if a.remote != "" && len(p.out) > 0 {
		return usage(cmd, "--out does not go with --remote: the tables stay with the tenon that works on the run")
	}
	return p.streams(a, files)
}

// flagWords is a flag with each of its values, for a command to type next.
func flagWords(flag string, values []string) (words []string) {
	for _, v := range values {
		words = append(words, flag, shellWord(v))
	}
	return words
}

// targets says which output goes into which file; of is what has the outputs.
func (p *ports) targets(of string, names []string) (map[string]string, error) {
	to, files := map[string]string{}, map[string]bool{}
	for _, arg := range p.out {
		port, file, named := strings.Cut(arg, "=")
		if !named {
			if file = port; len(names) != 1 {
				return nil, tenon.Errorf(tenon.CodeInvalid, "--out %s: %s has %s; write PORT=FILE", arg, of, plural(len(names), "output"))
			}
			port = names[0]
		}
		if !slices.Contains(names, port) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "--out: %s has no output '%s'%s", of, port, didYouMean(port, names))
		}
		if _, twice := to[port]; twice {
			return nil, tenon.Errorf(tenon.CodeInvalid, "--out: there are two files for '%s'", port)
		}
		if files[filepath.Clean(file)] {
			return nil, tenon.Errorf(tenon.CodeInvalid, "--out: two tables go to '%s'; each needs a file of its own", file)
		}
		to[port], files[filepath.Clean(file)] = file, true
	}
	return to, nil
}

// write writes the tables that came out.
func (p *ports) write(ctx context.Context, a *app, h *host.Host, outputs []tenon.Table) error {
	var names []string
	for _, o := range outputs {
		names = append(names, o.Name)
	}
	to, err := p.targets("the workflow", names)
	if err != nil {
		return err
	}
	for _, o := range outputs {
		if file, ok := to[o.Name]; ok {
			if err := a.writeData(ctx, h, o, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeData writes one table.
func (a *app) writeData(ctx context.Context, h *host.Host, t tenon.Table, file string) (err error) {
	data, err := h.TableData(ctx, t)
	if err != nil {
		return err
	}
	r, err := table.Open("-", table.Options{Stdin: bytes.NewReader(data)})
	if err != nil {
		return err
	}
	defer closing(r, &err)
	o, err := (&tableOut{out: file}).options(a, h.Config())
	if err != nil {
		return err
	}
	n, err := table.Concat(ctx, file, []*table.Reader{r}, o)
	if err != nil {
		return err
	}
	a.wroteBeside(file, n)
	return nil
}

func newWorkflowsRun(a *app) *cobra.Command {
	p := &ports{}
	var params string
	var yes bool
	c := &cassette{}
	cmd := &cobra.Command{
		Use:   "run PATH|NAME [KEY=TEXT | KEY:=JSON]... [--params JSON] [--in PORT=FILE]... [--out PORT=FILE]...",
		Short: "Run a workflow",
		Long: "Runs a workflow and prints its message; the tools that it calls are shown on stderr as they end. NAME is a tool of\n" +
			"kind workflow of the configuration. Parameters are one JSON object (--params, @FILE or - for stdin), or words:\n" +
			"KEY=TEXT is a text, KEY:=JSON any other value.\n\n" +
			"No model is needed, except for steps that ask an agent. To run it is allowed by you; its tool calls go through the\n" +
			"same rules as those of a model: what asks waits for you (status 8; tenon approvals), unless --yes. Every step is\n" +
			"recorded: what was killed, or has failed, goes on with tenon runs resume.\n\n" + workflowHelp,
		Example: "  tenon workflows run report.yaml city=London --in sales=sales.arrow --out totals=totals.arrow\n" +
			"  tenon workflows run report.yaml --params '{\"city\":\"London\"}' -o json",
		Args: args(1, -1, "the workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(cmd); err != nil {
				return err
			}
			raw, err := a.tableParameters(params, cmd.Flags().Changed("params"), args[1:])
			if err != nil {
				return err
			}
			return a.runWorkflow(cmd.Context(), args[0], raw, p, yes, *c)
		},
	}
	cmd.Flags().StringVar(&params, "params", "", "parameters as a `JSON` object, @FILE, or - for stdin")
	cmd.Flags().BoolVar(&yes, "yes", false, "allow all that the steps ask for")
	waitFlag(a, cmd.Flags())
	p.flags(cmd.Flags())
	c.flags(cmd.Flags())
	return cmd
}

func (a *app) runWorkflow(ctx context.Context, ref string, params json.RawMessage, p *ports, yes bool, c cassette) (err error) {
	w, err := a.findWorkflow(ctx, ref)
	if err != nil {
		return err
	}
	call := host.WorkflowCall{Workflow: w, Params: params, Debug: p.debug}
	if yes {
		call.Grant = byYes
	}
	if err := p.check(a, w.Outputs); err != nil {
		return err
	}
	if call.Inputs, err = p.read(a, w.Inputs); err != nil {
		return err
	}
	h, err := a.open(ctx, opening{connect: true, cassette: c})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	run, err := h.StartWorkflow(ctx, call)
	if err != nil {
		return err
	}
	if err := a.drive(ctx, h, run, 0, yes); err != nil {
		return err
	}
	return p.writeResult(ctx, a, h, run.ID)
}

// writeResult writes what a run came to.
func (p *ports) writeResult(ctx context.Context, a *app, h *host.Host, run string) error {
	if len(p.out) == 0 {
		return nil
	}
	r, err := h.WorkflowResult(ctx, run)
	if err != nil {
		return err
	}
	return p.write(ctx, a, h, r.Outputs)
}

// workflowJSON is what a workflow came to, for -o json.
type workflowJSON struct {
	Run       string             `json:"run"`
	State     tenon.RunState     `json:"state"`
	Message   string             `json:"message"`
	Outputs   []tenon.Table      `json:"outputs"` // null: it failed
	Folder    string             `json:"folder,omitempty"`
	Error     *tenon.Error       `json:"error,omitempty"`
	ToolCalls []agent.CallRecord `json:"tool_calls"`
	Usage     tenon.Usage        `json:"usage"`
	Cost      *tenon.USD         `json:"cost"`
}

// flowEnded prints what a workflow came to. The error says why it failed.
func (a *app) flowEnded(ctx context.Context, h *host.Host, run string) error {
	r, err := h.WorkflowResult(ctx, run)
	if err != nil {
		return err
	}
	report, err := h.Report(ctx, r.Run.ID)
	if err != nil {
		return err
	}
	failed := runError(report)
	if failed != nil {
		failed = begun{failed}
	}
	if r.Folder != "" {
		a.note("what its steps got is kept in %s", r.Folder)
	}
	if report.State == tenon.RunFailed && r.Run.Caller == "" {
		defer a.hint("resume with: %s", a.resuming(r.Run.ID))
	}
	if a.isJSON() {
		out := workflowJSON{Run: r.Run.ID, State: r.Run.State, Message: r.Message, Outputs: r.Outputs, Folder: r.Folder, Error: r.Err,
			ToolCalls: report.ToolCalls, Usage: report.Usage, Cost: report.Cost}
		if out.Outputs == nil && failed == nil {
			out.Outputs = []tenon.Table{}
		}
		if err := a.printJSON(out); err != nil {
			return err
		}
		if failed == nil {
			return nil
		}
		a.note("tenon: %s", r.Message)
		return reported{failed}
	}
	if failed != nil {
		a.note("tenon: %s", r.Message)
		return reported{failed}
	}
	if a.streaming {
		a.hint("%s", r.Message)
		return nil
	}
	return a.printText(r.Message)
}

func newWorkflowsPack(a *app) *cobra.Command {
	o := &tableOut{}
	var to string
	cmd := &cobra.Command{
		Use:   "pack PATH... (--out FILE.zip | --table TABLE)",
		Short: "Pack workflows: into a zip, or as the tools of a table",
		Long: "Packs a workflow with the files that it needs. --out writes one as a zip. --table makes an Arrow table whose rows are the\n" +
			"workflows as tools (the seed's Workflow to Tool); the packed files lie in TABLE.filestore, or in the table's own zip where\n" +
			"its name ends in .tooltable. Such tables go together with those of tools list --out: tenon tables concat.\n" +
			"Results and credentials are never packed.\n\n" + workflowHelp,
		Example: "  tenon workflows pack report.yaml --out report.zip\n  tenon workflows pack report.yaml --table workflows.arrow",
		Args:    args(1, -1, "the workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.out == "" && to == "":
				return usage(cmd, "--out or --table is missing")
			case o.out != "" && to != "":
				return usage(cmd, "--out and --table exclude each other")
			case o.out != "" && len(args) > 1:
				return usage(cmd, "--out takes one workflow; several go into a --table")
			}
			if o.out == "" {
				return a.packTable(cmd.Context(), args, to, o)
			}
			w, err := a.findWorkflow(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			zip, err := w.Pack.Zip()
			if err != nil {
				return err
			}
			if o.out == "-" {
				return a.write(zip)
			}
			if err := writeFile(o.out, zip); err != nil {
				return err
			}
			a.hint("%s: %s, %s", o.out, plural(len(w.Pack.Names()), "file"), plural(len(zip), "byte"))
			return nil
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "`FILE` for the zip; - is stdout")
	cmd.Flags().StringVar(&to, "table", "", "`TABLE` to make of the workflows: .arrow, or .tooltable")
	cmd.Flags().StringVar(&o.layout, "layout", "", "`LAYOUT` of the table: seed9, java10, legacy6 (default: tables.layout, else seed9)")
	return cmd
}

// packTable makes a table of workflows.
func (a *app) packTable(ctx context.Context, paths []string, to string, o *tableOut) error {
	cfg, err := a.tablesConfig(ctx)
	if err != nil {
		return err
	}
	o.out = to
	options, err := o.options(a, cfg)
	if err != nil {
		return err
	}
	if to == "-" {
		return tenon.Errorf(tenon.CodeInvalid, "the files of workflows do not fit a stream; name a file")
	}
	var rows []table.Row
	for i, path := range paths {
		w, err := a.findWorkflow(ctx, path)
		if err != nil {
			return err
		}
		t, err := workflowRow(w)
		if err != nil {
			return err
		}
		zip, err := w.Pack.Zip()
		if err != nil {
			return err
		}
		rows = append(rows, table.Row{ID: fmt.Sprint("Row", i), Tool: t, Pack: zip})
	}
	if err := table.WriteTools(ctx, to, rows, options); err != nil {
		return err
	}
	return a.wrote(to, int64(len(rows)))
}

// workflowRow is a workflow as the cell of a tool column.
func workflowRow(w host.Workflow) (*table.Tool, error) {
	t := &table.Tool{Kind: table.Workflow, Name: w.Name, Description: cmp.Or(w.Description, w.File.Description), Parameters: string(w.ParameterMap()), Message: -1}
	port := func(name, description string, columns map[string]string) (table.Port, error) {
		spec, err := portSpec(columns)
		return table.Port{Name: name, Description: description, Type: "Table", Spec: spec}, err
	}
	for _, in := range w.Inputs {
		p, err := port(in.Name, in.Description, in.Columns)
		if err != nil {
			return nil, err
		}
		t.Inputs = append(t.Inputs, p)
	}
	for _, out := range w.Outputs {
		p, err := port(out.Name, out.Description, out.Columns)
		if err != nil {
			return nil, err
		}
		t.Outputs = append(t.Outputs, p)
	}
	if w.Message.From != "" {
		p, err := port("message", "The text for the caller", map[string]string{"message": "string"})
		if err != nil {
			return nil, err
		}
		t.Message = int32(len(t.Outputs))
		t.Outputs = append(t.Outputs, p)
	}
	return t, nil
}

// portSpec says which columns a table has, as KNIME writes it; "" for nothing.
func portSpec(columns map[string]string) (string, error) {
	if len(columns) == 0 {
		return "", nil
	}
	type column struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	names := map[string]string{"string": "String", "integer": "Number (Long Integer)", "number": "Number (Float)", "boolean": "Boolean"}
	spec := struct {
		Name    string   `json:"name"`
		Columns []column `json:"columns"`
	}{Name: "default"}
	for _, c := range slices.Sorted(maps.Keys(columns)) {
		typ := names[columns[c]]
		if typ == "" {
			typ = columns[c]
		}
		spec.Columns = append(spec.Columns, column{c, typ})
	}
	b, err := encodeJSON(spec)
	return string(b), err
}

// foreignWorkflow reads the packed workflow of a row.
func foreignWorkflow(r *table.Reader, t *table.Tool) (host.Workflow, error) {
	bad := func(err error) error {
		return tenon.Errorf(tenon.ErrorCode(err), "%s%w", workflow.MessageFailed, err)
	}
	b, err := r.Files().Workflow(t)
	if err != nil {
		return host.Workflow{}, bad(err)
	}
	if table.IsKNIME(b) {
		return host.Workflow{}, tenon.Errorf(tenon.CodeInvalid, "this tool holds a KNIME workflow; tenon cannot run it")
	}
	w, pack, err := config.UnpackWorkflow(t.Name, b)
	if err != nil {
		return host.Workflow{}, bad(err)
	}
	return host.Workflow{Workflow: w, Pack: pack, Description: t.Description, Foreign: true}, nil
}
