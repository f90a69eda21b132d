package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/workflow"
)

func newWorkflows(a *app) *cobra.Command {
	cmd := group("workflows", "Workflows: list, validate, run, draw and pack", "workflow")
	cmd.AddCommand(newWorkflowsRun(a), newWorkflowsValidate(a), newWorkflowsGraph(a), newWorkflowsPack(a),
		newWorkflowsUnpack(a),
		newWorkflowsList(a), newWorkflowsNodes(a))
	return cmd
}

const workflowHelp = "A workflow is a YAML file, a folder with a workflow.yaml, or a packed workflow (a zip). " +
	"tenon docs workflow\ndescribes its keys."

// findWorkflow reads a workflow by its path, or by the name of a tool of kind workflow. It also checks the queries, so
// that an invalid one is found before any step has an effect.
func (a *app) findWorkflow(ctx context.Context, ref string) (host.Workflow, error) {
	path, err := a.workflowPath(ctx, ref)
	if err != nil {
		return host.Workflow{}, err
	}
	w, pack, err := config.ValidateWorkflow(path)
	return host.Workflow{Workflow: w, Pack: pack}, err
}

// workflowPath returns the path of a workflow. ref is a path, or a tool of the configuration.
func (a *app) workflowPath(ctx context.Context, ref string) (string, error) {
	if _, err := os.Stat(ref); err == nil || strings.ContainsAny(ref, `/\`) {
		return ref, nil
	}
	cfg, err := a.load(ctx, nil)
	if err != nil && filepath.Ext(ref) == "" {
		return "", err // ref may be the name of a tool
	}
	if err != nil {
		return ref, nil // reading it reports the missing file
	}
	if t, ok := cfg.Tools[ref]; ok && t.Kind == tenon.KindWorkflow {
		return t.Path, nil
	}
	if names := workflowNames(cfg); len(names) > 0 {
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no file and no workflow '%s'%s", ref,
			didYouMean(ref, names))
	}
	return ref, nil
}

func workflowNames(cfg *config.Config) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools)) {
		if cfg.Tools[name].Kind == tenon.KindWorkflow {
			names = append(names, name)
		}
	}
	return names
}

func newWorkflowsValidate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check workflow files",
		Long: "Checks workflows without running anything: keys, types, expressions, references between steps, and\n" +
			"cycles. Queries are compiled against the columns that inputs declare, and the columns of files and\n" +
			"of other queries. Each error has its file, line and column. Whether the tools exist is checked\n" +
			"when the workflow runs.\n\n" +
			workflowHelp,
		Example: "  tenon workflows validate report.yaml",
		Args:    args(1, -1, "the workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []workflowLine
			var wrong, of config.Errors // wrong: of all files
			for _, path := range args {
				file, err := a.workflowPath(cmd.Context(), path)
				if err != nil {
					return err
				}
				w, _, err := config.ValidateWorkflow(file)
				switch {
				case errors.As(err, &of):
					wrong = append(wrong, of...)
				case err != nil:
					return err
				default:
					list = append(list, lineOf(path, w))
				}
			}
			if len(wrong) > 0 {
				return wrong
			}
			if a.isJSON() {
				return a.printJSON(list)
			}
			var b strings.Builder
			for _, l := range list {
				fmt.Fprintf(&b, "%s: %s (%s)\n", safeLine(l.Path), a.outStyle(bold, "ok"), plural(len(l.Steps), "step"))
			}
			return a.write([]byte(b.String()))
		},
	}
}

// workflowLine is a workflow in the output of list and validate.
type workflowLine struct {
	Path        string            `json:"path"`
	Tool        string            `json:"tool,omitempty"` // its name in the configuration
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Parameters  json.RawMessage   `json:"parameters"` // JSON Schema
	Inputs      []workflow.Input  `json:"inputs"`
	Outputs     []workflow.Output `json:"outputs"`
	Steps       []string          `json:"steps"`
}

func lineOf(path string, w *workflow.Workflow) workflowLine {
	l := workflowLine{Path: path, Name: w.Name, Description: w.Description, Parameters: w.Schema(), Inputs: w.Inputs,
		Outputs: w.Outputs}
	if l.Inputs == nil {
		l.Inputs = []workflow.Input{}
	}
	if l.Outputs == nil {
		l.Outputs = []workflow.Output{}
	}
	for _, s := range w.Steps {
		l.Steps = append(l.Steps, s.ID)
	}
	return l
}

func newWorkflowsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the workflows of the configuration",
		Long:    "Lists the tools of kind workflow, with their files, parameters and tables.",
		Example: "  tenon workflows list\n  tenon workflows list -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(cmd.Context(), nil)
			if err != nil {
				return err
			}
			list := []workflowLine{}
			for _, name := range workflowNames(cfg) {
				w, _, err := config.ReadWorkflow(cfg.Tools[name].Path)
				if err != nil {
					return err
				}
				l := lineOf(cfg.Tools[name].Path, w)
				l.Tool = name
				list = append(list, l)
			}
			return printList(a, list, []string{"tool", "parameters", "inputs", "outputs", "steps", "path"},
				func(l workflowLine) []string {
					var in, out []string
					for _, p := range l.Inputs {
						in = append(in, p.Name)
					}
					for _, p := range l.Outputs {
						out = append(out, p.Name)
					}
					return []string{l.Tool, strings.Join(parameterNames(l.Parameters), " "), strings.Join(in, " "),
						strings.Join(out, " "), fmt.Sprint(len(l.Steps)), l.Path}
				})
		},
	}
}

func parameterNames(schema json.RawMessage) []string {
	var names []string
	for _, p := range catalog.Parameters(&tenon.Tool{Input: schema}) {
		names = append(names, p.Name)
	}
	return names
}

func newWorkflowsNodes(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "List the kinds of steps",
		Long: "Lists the kinds of steps, with their keys, their input and output tables, and the keys of their\n" +
			"results in expressions.",
		Example: "  tenon workflows nodes\n  tenon workflows nodes -o json",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if a.outTTY && a.format == formatText {
				return a.showNodes()
			}
			return printList(a, workflow.Nodes(), []string{"step", "does", "keys", "tables in", "tables out",
				"result"}, func(n workflow.Node) []string {
				return []string{n.Kind, n.About, strings.Join(n.Keys, " "), n.In, n.Out, strings.Join(n.Result, " ")}
			})
		},
	}
}

// showNodes prints the kinds of steps on a terminal, which is too narrow for a table.
func (a *app) showNodes() error {
	var b strings.Builder
	for _, n := range workflow.Nodes() {
		fmt.Fprintf(&b, "%s  %s\n  keys    %s\n  tables  in: %s, out: %s\n  result  %s\n", a.outStyle(bold, n.Kind),
			n.About,
			strings.Join(n.Keys, " "), n.In, n.Out, strings.Join(n.Result, " "))
	}
	return a.write([]byte(b.String()))
}

func newWorkflowsGraph(a *app) *cobra.Command {
	var svg bool
	var out string
	cmd := &cobra.Command{
		Use:   "graph PATH [--svg] [--out FILE]",
		Short: "Draw a workflow",
		Long: "Draws the dependencies of the steps: as text, a line for each step with the steps that it waits\n" +
			"for, or with --svg as a picture. With -o json it prints the steps and arrows.\n\n" +
			workflowHelp,
		Example: "  tenon workflows graph report.yaml\n  tenon workflows graph report.yaml --svg --out report.svg",
		Args:    args(1, 1, "the workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.workflowPath(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			w, _, err := config.ReadWorkflow(path)
			if err != nil {
				return err
			}
			g := w.Graph()
			text := []byte(g.Text())
			switch {
			case svg:
				text = g.SVG()
			case a.isJSON():
				return a.printJSON(g)
			}
			if out == "" {
				return a.write(text)
			}
			return writeFile(out, []byte(tenon.Visible(string(text))))
		},
	}
	cmd.Flags().BoolVar(&svg, "svg", false, "draw a picture (SVG)")
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE`")
	return cmd
}

func newWorkflowsUnpack(a *app) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "unpack FILE --out FOLDER",
		Short: "Unpack a packed workflow",
		Long: "Writes the files of a packed workflow into a new folder. Names that lead out of the folder, links,\n" +
			"and packs that are too large are refused, and the folder is removed.",
		Example: "  tenon workflows unpack report.zip --out report",
		Args:    args(1, 1, "the packed workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage(cmd, "--out is missing: name the folder to create")
			}
			if _, err := os.Lstat(out); err == nil {
				return tenon.Errorf(tenon.CodeConflict, "%s already exists; name a new folder", out)
			}
			pack, err := openPack(args[0])
			if err != nil {
				return err
			}
			if err := pack.Extract(".", out); err != nil {
				return tenon.Errorf(tenon.CodeStore, "%s cannot be written: %w", out, err)
			}
			if a.isJSON() {
				return a.printJSON(map[string]any{"folder": out, "files": pack.Names()})
			}
			a.hint("%s: %s", out, plural(len(pack.Names()), "file"))
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`FOLDER` to create")
	return cmd
}

// openPack reads a packed workflow from a file or a pipe.
func openPack(file string) (*workflow.Pack, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "%w", err)
	}
	defer f.Close() //nolint:errcheck
	copied, err := safezip.NewSpool(file, workflow.MaxPack, safezip.From(f))
	if tenon.ErrorCode(err) == tenon.CodeTooLarge {
		return nil, err
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "%w", err)
	}
	_, pack, err := config.OpenWorkflow(file, copied, copied.Size())
	return pack, err
}
