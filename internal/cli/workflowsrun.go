package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

func newWorkflowsRun(a *app) *cobra.Command {
	p := &ports{}
	var params string
	var yes bool
	c := &cassette{}
	cmd := &cobra.Command{
		Use:   "run PATH|NAME [KEY=VALUE | KEY:=JSON]... [--params JSON] [--in PORT=FILE]... [--out PORT=FILE]...",
		Short: "Run a workflow",
		Long: "Runs a workflow and prints its message; finished tool calls are shown on stderr. NAME is a tool of\n" +
			"kind workflow in the configuration. Parameters are one JSON object (--params, @FILE or - for\n" +
			"stdin), or words: KEY=VALUE is read by the parameter's schema, KEY:=JSON is any JSON value.\n\n" +
			"Only steps that ask an agent need a model. The command itself is your permission to run the\n" +
			"workflow; its tool calls obey the same rules as the calls of a model: a call that asks waits for\n" +
			"you (status 8; tenon approvals), unless --yes. A file that is no tool of the configuration and whose\n" +
			"requests take your own secrets asks once (status 8 without a terminal; --trust agrees).\n" +
			"Every step is recorded: tenon runs resume continues\n" +
			"a workflow that was killed or has failed.\n\n" +
			workflowHelp,
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
			return missingError(a.runWorkflow(cmd.Context(), args[0], raw, p, yes, *c))
		},
	}
	cmd.Flags().StringVar(&params, "params", "", "parameters as a `JSON` object, @FILE, or - for stdin")
	cmd.Flags().BoolVar(&yes, "yes", false, "allow all calls that ask")
	waitFlag(a, cmd.Flags())
	p.flags(cmd.Flags())
	c.flags(cmd.Flags())
	return cmd
}

func (a *app) runWorkflow(ctx context.Context, ref string, params callArguments, p *ports, yes bool,
	c cassette) (err error) {
	w, err := a.findWorkflow(ctx, ref)
	if err != nil {
		return err
	}
	call := host.WorkflowCall{Workflow: w, Params: params.raw, Debug: p.debug}
	if len(params.words) > 0 {
		call.Params = catalog.TypedWords(w.Schema(), params.words)
	}
	if yes {
		call.Grant = byYes
	}
	if err := p.check(a, w.Outputs); err != nil {
		return err
	}
	var done func()
	if call.Files, done, err = p.open(a, w.Inputs); err != nil {
		return err
	}
	defer done()
	cfg, err := a.load(ctx, nil)
	if err != nil {
		return err
	}
	o := opening{connect: true, cassette: c, loaded: cfg}
	if _, err := a.gate(ctx, cfg, o); err != nil {
		return err
	}
	if err := a.agreeWorkflow(ctx, cfg, ref, w); err != nil {
		return err
	}
	h, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	run, err := h.Workflows().Start(ctx, call)
	if err != nil {
		return err
	}
	if err := a.drive(ctx, h, run, 0, yes); err != nil {
		return err
	}
	return p.writeResult(ctx, a, h, run.ID)
}

// workflowJSON is the result of a workflow in the output of -o json.
type workflowJSON struct {
	Run       string         `json:"run"`
	State     tenon.RunState `json:"state"`
	Message   string         `json:"message"`
	Outputs   []tenon.Table  `json:"outputs"` // null if it failed
	Folder    string         `json:"folder,omitempty"`
	Error     *tenon.Error   `json:"error,omitempty"`
	ToolCalls []view.Call    `json:"tool_calls"`
	Usage     *tenon.Usage   `json:"usage"` // null if no model reported its tokens
	Cost      *tenon.USD     `json:"cost"`
}

// flowEnded prints the result of a workflow. The error is the reason of a failure.
func (a *app) flowEnded(ctx context.Context, h *host.Host, run string) error {
	r, err := h.Runs().Open(run).Data().Result(ctx)
	if err != nil {
		return err
	}
	report, err := h.Runs().Open(r.Run.ID).Report(ctx)
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
		out := workflowJSON{Run: r.Run.ID, State: r.Run.State, Message: r.Message, Outputs: r.Outputs,
			Folder: r.Folder, Error: r.Err,
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
		Short: "Pack workflows into a zip or a table",
		Long: "Packs a workflow with the files that it needs. --out writes one workflow as a zip. --table writes\n" +
			"an Arrow table whose rows are the workflows as tools; the packed\n" +
			"files are in TABLE.filestore, or in the table's own zip if its name ends in .tooltable. tenon\n" +
			"tables concat joins such a table with a table of tools list --out. Results and credentials are\n" +
			"never packed.\n\n" +
			workflowHelp,
		Example: "  tenon workflows pack report.yaml --out report.zip\n  tenon workflows pack report.yaml --table " +
			"workflows.arrow",
		Args: args(1, -1, "the workflow"),
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
			zip, err := zipPack(args[0], w.Pack)
			if err != nil {
				return err
			}
			if o.out == "-" {
				return a.writeBytes(zip)
			}
			if err := writeFile(o.out, zip); err != nil {
				return err
			}
			a.hint("%s: %s, %s", o.out, plural(len(w.Pack.Names()), "file"), plural(len(zip), "byte"))
			return nil
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "`FILE` for the zip; - is stdout")
	cmd.Flags().StringVar(&to, "table", "", "`TABLE` of the workflows to write: .arrow, or .tooltable")
	cmd.Flags().StringVar(&o.layout, "layout", "", "`LAYOUT` of the table: seed9, java10, legacy6 (default: "+
		"tables.layout, else seed9)")
	return cmd
}

// packTable writes a table of workflows.
func (a *app) packTable(ctx context.Context, paths []string, to string, o *tableOut) error {
	if err := a.mayWrite("--table", to, writtenFile); err != nil { // the flag of other commands names a table to read
		return err
	}
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
		zip, err := zipPack(path, w.Pack)
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

// zipPack returns a pack as a zip that tenon opens elsewhere. Name is the workflow's name in errors.
func zipPack(name string, p *workflow.Pack) ([]byte, error) {
	zip, err := p.Zip()
	if err != nil {
		return nil, err
	}
	if _, _, err := config.OpenWorkflow(name, bytes.NewReader(zip), int64(len(zip))); err != nil {
		return nil, err
	}
	return zip, nil
}

// workflowRow returns a workflow as the cell of a tool column.
func workflowRow(w host.Workflow) (*table.Tool, error) {
	t := &table.Tool{Kind: table.Workflow, Name: w.Name, Description: cmp.Or(w.Description, w.File.Description),
		Parameters: string(w.ParameterMap()), Message: -1}
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

// portSpec returns the columns of a table in KNIME's format, or "" if there are none.
func portSpec(columns map[string]string) (string, error) {
	if len(columns) == 0 {
		return "", nil
	}
	type column struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	names := map[string]string{"string": "String", "integer": "Number (Long Integer)", "number": "Number (Float)",
		"boolean": "Boolean"}
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
	w, err := config.RowWorkflow(r, t)
	return host.Workflow{Workflow: w.Workflow, Pack: w.Pack, Description: w.Description, Foreign: true}, err
}
