package main

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
	"github.com/tenonhq/tenon/workflow"
)

func newWorkflows(a *app) *cobra.Command {
	cmd := group("workflows", "Workflows: files of steps that run as tools, without a model", "workflow")
	cmd.AddCommand(newWorkflowsRun(a), newWorkflowsValidate(a), newWorkflowsGraph(a), newWorkflowsPack(a), newWorkflowsUnpack(a),
		newWorkflowsList(a), newWorkflowsNodes(a))
	return cmd
}

const workflowHelp = "A workflow is a YAML file, a folder with a workflow.yaml, or a packed workflow (a zip). docs/reference/workflow.md\ntells of its keys."

// findWorkflow reads a workflow by its path, or by the name of a tool of kind workflow. Its
// queries are checked, too: one that is wrong should not show after steps that did something.
func (a *app) findWorkflow(ctx context.Context, ref string) (host.Workflow, error) {
	path, err := a.workflowPath(ctx, ref)
	if err != nil {
		return host.Workflow{}, err
	}
	w, pack, err := config.ValidateWorkflow(path)
	return host.Workflow{Workflow: w, Pack: pack}, err
}

// workflowPath is the path of a workflow that is named by it, or as a tool of the
// configuration.
func (a *app) workflowPath(ctx context.Context, ref string) (string, error) {
	if _, err := os.Stat(ref); err == nil || strings.ContainsAny(ref, `/\`) {
		return ref, nil
	}
	cfg, err := a.load(ctx, nil)
	if err != nil && filepath.Ext(ref) == "" {
		return "", err // it can be the name of a tool
	}
	if err != nil {
		return ref, nil // reading says that there is no such file
	}
	if t, ok := cfg.Tools[ref]; ok && t.Kind == tenon.KindWorkflow {
		return t.Path, nil
	}
	if names := workflowNames(cfg); len(names) > 0 {
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no file and no workflow '%s'%s", ref, didYouMean(ref, names))
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
		Long: "Checks workflows without running anything: keys, types, expressions, what steps refer to, and that they do not wait\n" +
			"for one another; queries are compiled against the columns that inputs declare, that files have and that other queries\n" +
			"give. Each mistake has its file, line and column. Whether the tools are there is seen when it runs.\n\n" + workflowHelp,
		Example: "  tenon workflows validate report.yaml",
		Args:    args(1, -1, "the workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []workflowLine
			var wrong, of config.Errors // of all files
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

// workflowLine is a workflow as list and validate print it.
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
	l := workflowLine{Path: path, Name: w.Name, Description: w.Description, Parameters: w.Schema(), Inputs: w.Inputs, Outputs: w.Outputs}
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
			return printList(a, list, []string{"tool", "parameters", "inputs", "outputs", "steps", "path"}, func(l workflowLine) []string {
				var in, out []string
				for _, p := range l.Inputs {
					in = append(in, p.Name)
				}
				for _, p := range l.Outputs {
					out = append(out, p.Name)
				}
				return []string{l.Tool, strings.Join(parameterNames(l.Parameters), " "), strings.Join(in, " "), strings.Join(out, " "), fmt.Sprint(len(l.Steps)), l.Path}
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
		Use:     "nodes",
		Short:   "List the kinds of steps",
		Long:    "Lists the kinds of steps, with the keys that each takes, the tables that go in and out, and the keys of its result in\nexpressions.",
		Example: "  tenon workflows nodes\n  tenon workflows nodes -o json",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if a.outTTY && a.format == formatText {
				return a.showNodes()
			}
			return printList(a, workflow.Nodes(), []string{"step", "does", "keys", "tables in", "tables out", "result"}, func(n workflow.Node) []string {
				return []string{n.Kind, n.About, strings.Join(n.Keys, " "), n.In, n.Out, strings.Join(n.Result, " ")}
			})
		},
	}
}

// showNodes shows the kinds of steps at a terminal, which has no room for them in lines.
func (a *app) showNodes() error {
	var b strings.Builder
	for _, n := range workflow.Nodes() {
		fmt.Fprintf(&b, "%s  %s\n  keys    %s\n  tables  in: %s, out: %s\n  result  %s\n", a.outStyle(bold, n.Kind), n.About,
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
		Long: "Draws what waits for what: as text, a line for each step with what it waits for, or with --svg as a picture. With\n" +
			"-o json the steps and arrows are printed.\n\n" + workflowHelp,
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
			return writeFile(out, text)
		},
	}
	cmd.Flags().BoolVar(&svg, "svg", false, "draw a picture (SVG)")
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE`")
	return cmd
}

func newWorkflowsUnpack(a *app) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "unpack FILE --out FOLDER",
		Short:   "Unpack a packed workflow",
		Long:    "Writes the files of a packed workflow into a new folder. Names that lead out of it, links and packs that come to too much\nare refused, and nothing is left of them.",
		Example: "  tenon workflows unpack report.zip --out report",
		Args:    args(1, 1, "the packed workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage(cmd, "--out is missing: the folder to make")
			}
			if _, err := os.Lstat(out); err == nil {
				return tenon.Errorf(tenon.CodeConflict, "%s is there already; name a new folder", out)
			}
			data, err := readUpTo(args[0], workflow.MaxPack)
			if tenon.ErrorCode(err) == tenon.CodeTooLarge {
				return err
			}
			if err != nil {
				return tenon.Errorf(tenon.CodeNotFound, "%w", err)
			}
			_, pack, err := config.UnpackWorkflow(args[0], data)
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
	cmd.Flags().StringVar(&out, "out", "", "`FOLDER` to make")
	return cmd
}
