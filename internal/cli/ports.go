package cli

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// ports are the files of the input and output tables of a workflow.
type ports struct {
	in, out []string
	debug   bool
	columns string // path of the values in a result that become columns
}

func (p *ports) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&p.in, "in", nil, "table for an input of a workflow: `[PORT=]FILE`, an Arrow file; - is stdin; "+
		"may be repeated")
	p.outFlag(f)
	f.BoolVar(&p.debug, "debug", false, "keep the folder of a failed workflow, with the inputs of its steps")
}

func (p *ports) outFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&p.out, "out", nil, "`[PORT=]FILE` for an output table; - is stdout, as a stream; may be "+
		"repeated")
}

func (p *ports) given() bool { return len(p.in) > 0 || p.debug }

// open opens the input tables. Done closes them.
func (p *ports) open(a *app, inputs []workflow.Input) (tables map[string]*io.SectionReader, done func(),
	err error) {
	var all closers
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	if err := neverInPlace(portFiles(p.in), portFiles(p.out)); err != nil {
		return nil, nil, err
	}
	tables = map[string]*io.SectionReader{}
	var files []string
	for _, arg := range p.in {
		port, file, named := strings.Cut(arg, "=")
		if !named {
			file = port
			if len(inputs) != 1 {
				return nil, nil, tenon.Errorf(tenon.CodeInvalid, "--in %s: the workflow has %s; write PORT=FILE", arg,
					plural(len(inputs), "input"))
			}
			port = inputs[0].Name
		}
		if !slices.ContainsFunc(inputs, func(in workflow.Input) bool { return in.Name == port }) {
			var names []string
			for _, in := range inputs {
				names = append(names, in.Name)
			}
			return nil, nil, tenon.Errorf(tenon.CodeInvalid, "--in: the workflow has no input '%s'%s", port,
				didYouMean(port, names))
		}
		if _, twice := tables[port]; twice {
			return nil, nil, tenon.Errorf(tenon.CodeInvalid, "--in: there are two tables for '%s'", port)
		}
		files = append(files, file)
		if file == "-" {
			if err := oneStdin("--in", files); err != nil {
				return nil, nil, err
			}
		}
		in, stop, err := a.openData("--in "+arg, file)
		if err != nil {
			return nil, nil, err
		}
		tables[port], all = in, append(all, stop)
	}
	return tables, all.close, nil
}

// check checks --out against the outputs of a workflow before it runs.
func (p *ports) check(a *app, outputs []workflow.Output) error {
	if p.columns != "" {
		return tenon.Errorf(tenon.CodeInvalid, "--columns is for results of tools; the outputs of a workflow are "+
			"tables")
	}
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

// streams records whether a table goes to stdout.
func (p *ports) streams(a *app, files []string) error {
	a.wanted = flagWords("--out", p.out)
	a.streaming = a.streaming || slices.Contains(files, "-")
	if a.streaming && a.isJSON() {
		return tenon.Errorf(tenon.CodeInvalid, "--out - and -o %s both want stdout; name a file for the table",
			a.format)
	}
	return nil
}

// checkUnknown checks --out for a run whose outputs are not known yet.
func (p *ports) checkUnknown(a *app) error {
	var files []string
	for _, arg := range p.out {
		if arg == "" || strings.HasSuffix(arg, "=") {
			return tenon.Errorf(tenon.CodeInvalid, "--out is [PORT=]FILE; '%s' names no file", arg)
		}
		_, file, named := strings.Cut(arg, "=")
		if !named {
			file = arg
		}
		if dir, ok := hasFolder(file); file != "-" && !ok {
			return tenon.Errorf(tenon.CodeInvalid, "--out %s: there is no folder %s", arg, dir)
		}
		files = append(files, file)
	}
	return p.streams(a, files)
}

// flagWords repeats a flag for each of its values, for a command to type next.
func flagWords(flag string, values []string) (words []string) {
	for _, v := range values {
		words = append(words, flag, shellWord(v))
	}
	return words
}

// targets returns the file of each output that --out names: output → file. of names the owner of the outputs in errors.
func (p *ports) targets(of string, names []string) (map[string]string, error) {
	to, files := map[string]string{}, map[string]bool{}
	for _, arg := range p.out {
		port, file, named := strings.Cut(arg, "=")
		if !named {
			file = port
			if len(names) != 1 {
				return nil, tenon.Errorf(tenon.CodeInvalid, "--out %s: %s has %s; write PORT=FILE", arg, of,
					plural(len(names), "output"))
			}
			port = names[0]
		}
		if !slices.Contains(names, port) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "--out: %s has no output '%s'%s", of, port,
				didYouMean(port, names))
		}
		if _, twice := to[port]; twice {
			return nil, tenon.Errorf(tenon.CodeInvalid, "--out: there are two files for '%s'", port)
		}
		if dir, ok := hasFolder(file); file != "-" && !ok {
			return nil, tenon.Errorf(tenon.CodeInvalid, "--out %s: there is no folder %s", arg, dir)
		}
		if files[filepath.Clean(file)] {
			return nil, tenon.Errorf(tenon.CodeInvalid, "--out: two tables go to '%s'; name a separate file for each",
				file)
		}
		to[port], files[filepath.Clean(file)] = file, true
	}
	return to, nil
}

// write writes the output tables.
func (p *ports) write(ctx context.Context, a *app, h desk, run string, outputs []tenon.Table) error {
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
			if err := a.writeData(ctx, h, run, o, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeResult writes the output tables of a workflow's run, or of a run that called a workflow.
func (p *ports) writeResult(ctx context.Context, a *app, h desk, run string) error {
	if len(p.out) == 0 {
		return nil
	}
	row, err := h.Runs().Get(ctx, run)
	if err != nil {
		return err
	}
	role := roleStep
	if row.Core == workflow.Version {
		role = roleOutput
	}
	outputs, err := tablesOf(ctx, h, run, role)
	if err != nil {
		return err
	}
	return p.write(ctx, a, h, run, outputs)
}

// writeData writes one table of a run.
func (a *app) writeData(ctx context.Context, h desk, run string, t tenon.Table, file string) (err error) {
	data, err := h.Runs().Open(run).Data().OpenTable(ctx, t.Digest)
	if err != nil {
		return err
	}
	defer closing(data, &err)
	r, err := table.Open(ctx, "-", table.Options{Stdin: data.SectionReader})
	if err != nil {
		return err
	}
	defer closing(r, &err)
	cfg := &config.Config{} // the configuration of a remote tenon does not apply to local files
	if local, ok := h.(*host.Host); ok {
		cfg = local.Service().Info().Config
	}
	o, err := (&tableOut{out: file}).options(a, cfg)
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
