package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// maxImport is the most of a file that is read to be imported; config says what is
// too large.
const maxImport = 5 << 20

func newConfigImport(a *app) *cobra.Command {
	var kind, preferences string
	var extract, write bool
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Make a tenon.yaml of another program's configuration",
		Long: "Reads the MCP servers, and what else there is, of another program's file and prints a tenon.yaml that means the\n" +
			"same. What has no place in it is kept under x-KIND and told of on stderr; nothing is lost without a word.\n" +
			"Whose file it is can mostly be told by what is in it. With --write the entries go into the project's tenon.yaml,\n" +
			"which is written where there is none; a name that is there already is an error. - is stdin. An Arrow\n" +
			"table of tools, as KNIME or tenon tools list --out writes it, becomes servers, tools and secrets to be filled in; with\n" +
			"--write its workflows become files of the folder workflows beside tenon.yaml, and tools as well.",
		Example: "  tenon config import .mcp.json --write\n  tenon config import agent.yaml --from holodeck > tenon.yaml\n  tenon config import aidk.json --extract-secrets\n" +
			"  tenon config import tools.arrow --write",
		Args: args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (kind == config.KindKNIME || kind == "" && isTableFile(args[0])) {
				src, packs, err := a.importTable(cmd.Context(), args[0], write)
				if err != nil {
					return err
				}
				return a.withPacks(packs, func() error { return a.importConfig(cmd.Context(), src, write) })
			}
			src, err := a.importSource(args, kind)
			if err != nil {
				return err
			}
			src.Extract = extract
			if preferences != "" {
				if src.Enabled, err = enabledServers(preferences); err != nil {
					return err
				}
			}
			return a.importConfig(cmd.Context(), src, write)
		},
	}
	f := cmd.Flags()
	f.Var(&enum{&kind, append(config.Kinds(), config.KindKNIME)}, "from", "`PROGRAM` whose form the file has: "+strings.Join(append(config.Kinds(), config.KindKNIME), ", "))
	f.BoolVar(&extract, "extract-secrets", false, "put variables in the place of literal tokens, and print the lines that set them on stderr")
	f.BoolVar(&write, "write", false, "write the entries into tenon.yaml")
	f.StringVar(&preferences, "preferences", "", "researchai: `FILE` that names the servers that are switched on")
	return cmd
}

// importDir is the folder of the file that --write writes.
func (a *app) importDir() string { return filepath.Dir(cmp.Or(a.config, "tenon.yaml")) }

// withPacks writes the packed workflows that a configuration is about to name, beside its
// file, and takes them away again where that fails. None takes the place of another file.
func (a *app) withPacks(packs []importedPack, do func() error) (err error) {
	var made []string
	defer func() {
		for _, file := range slices.Backward(made) {
			if err != nil {
				_ = os.Remove(file) // a folder only where it is empty
			}
		}
	}()
	for _, p := range packs {
		file := filepath.Join(a.importDir(), filepath.FromSlash(p.path))
		if there, e := os.ReadFile(file); e == nil && bytes.Equal(there, p.zip) {
			continue
		}
		if e := os.Mkdir(filepath.Dir(file), 0o777); e == nil {
			made = append(made, filepath.Dir(file))
		}
		f, e := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(e, fs.ErrExist) {
			return tenon.Errorf(tenon.CodeConflict, "%s is there already, and is another file; move it, and import again", file)
		}
		if e == nil {
			made = append(made, file)
			_, e = f.Write(p.zip)
			e = errors.Join(e, f.Close())
		}
		if e != nil {
			return tenon.Errorf(tenon.CodeStore, "%s cannot be written: %w", file, e)
		}
	}
	return do()
}

// researchFiles are where ResearchAI looks for its servers.
var researchFiles = []string{"config/mcp-servers.json", "config/mcp.json"}

// importSource reads the file that is to be imported.
func (a *app) importSource(args []string, kind string) (config.Source, error) {
	src := config.Source{Kind: kind}
	file := ""
	switch {
	case len(args) == 1:
		file = args[0]
	case kind == "researchai":
		if file, _ = a.env("MCP_CONFIG_PATH"); file == "" {
			i := slices.IndexFunc(researchFiles, func(f string) bool { _, err := os.Stat(f); return err == nil })
			if i < 0 {
				return src, tenon.Errorf(tenon.CodeNotFound, "MCP_CONFIG_PATH is not set, and there is neither %s nor %s", researchFiles[0], researchFiles[1])
			}
			file = researchFiles[i]
		}
	default:
		return src, tenon.Errorf(tenon.CodeInvalid, "the file to import is missing; see tenon config import --help")
	}
	var err error
	if src.Label = file; file == "-" {
		src.Label = "stdin"
		src.Data, err = io.ReadAll(io.LimitReader(a.lines, maxImport))
	} else {
		src.Path, err = filepath.Abs(file)
		src.Dir = filepath.Dir(src.Path)
		var f *os.File
		if err == nil {
			f, err = os.Open(file)
		}
		if err == nil {
			src.Data, err = io.ReadAll(io.LimitReader(f, maxImport))
			_ = f.Close() // it was only read
		}
	}
	if err != nil {
		return src, tenon.Errorf(tenon.CodeConfig, "%s cannot be read: %w", src.Label, err)
	}
	return src, nil
}

// enabledServers reads ResearchAI's data/mcp-preferences.json.
func enabledServers(file string) ([]string, error) {
	var p struct {
		Enabled []string `json:"enabledServers"`
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s is not a file of preferences: %w", file, err)
	}
	return append([]string{}, p.Enabled...), nil
}

func (a *app) importConfig(ctx context.Context, src config.Source, write bool) error {
	made, err := config.Import(src)
	if err != nil {
		return err
	}
	for _, n := range made.Notes {
		a.note("%s", n.Error())
	}
	for _, l := range made.Export {
		a.note("%s", l)
	}
	switch {
	case write:
		return a.writeImport(ctx, made)
	case a.isJSON():
		return a.write(made.JSON())
	}
	return a.write(made.YAML())
}

// writeImport puts the entries into the project's file.
func (a *app) writeImport(ctx context.Context, made *config.Imported) error {
	file := a.config
	if file == "" {
		file = "tenon.yaml"
	}
	o := a.configOptions()
	if _, err := os.Stat(file); a.config == "" && err == nil {
		o.File = file
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the folder of %s is not known: %w", file, err)
	}
	if o.File == "" {
		o.File = file
	}
	o.LookupEnv = func(name string) (string, bool) { // what was extracted is set with the lines that were printed
		if v, ok := a.lookupEnv(name); ok {
			return v, ok
		}
		v, ok := made.Extracted[name]
		return v, ok
	}
	changes, left := made.Changes(dir)
	cfg, err := config.Edit(ctx, o, config.Edits{Changes: changes, Create: true})
	if err != nil {
		return err
	}
	for _, l := range left {
		a.note("not written into %s, since it is about all of the file: %s", cfg.File, l)
	}
	var names, told []string
	tools := 0
	for _, c := range changes {
		switch c.Section {
		case "servers":
			names = append(names, c.Name)
		case "tools":
			tools++
		}
	}
	if told = slices.Clone(names); tools > 0 {
		told = append(told, plural(tools, "tool"))
	}
	return a.did(map[string]any{"file": cfg.File, "servers": append([]string{}, names...), "not_written": append([]string{}, left...)},
		"Imported into %s: %s", cfg.File, cmp.Or(strings.Join(told, ", "), "nothing"))
}

func newConfigExport(a *app) *cobra.Command {
	var kind string
	var strict bool
	cmd := &cobra.Command{
		Use:   "export --to PROGRAM",
		Short: "Write the configuration in another program's form",
		Long: "Prints the configuration as another program has it: as it is written, variables unresolved. What that form cannot\n" +
			"hold is told of on stderr; with --strict that is an error (status 2), and nothing is printed.",
		Example: "  tenon config export --to claude > .mcp.json\n  tenon config export --to holodeck > agent.yaml",
		Args: func(cmd *cobra.Command, words []string) error {
			if len(words) == 1 && kind == "" && slices.Contains(config.Kinds(), words[0]) {
				return usage(cmd, "the program is named with --to %s", words[0])
			}
			return args(0, 0, "")(cmd, words)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kind == "" {
				return usage(cmd, "--to is missing: %s", strings.Join(config.Kinds(), ", "))
			}
			cfg, err := config.Load(cmd.Context(), a.configOptions())
			if err != nil {
				return err
			}
			data, missing, err := cfg.Export(kind)
			if err != nil {
				return err
			}
			for _, m := range missing {
				a.note("%s", m.Error())
			}
			if strict && len(missing) > 0 {
				return reported{tenon.Errorf(tenon.CodeInvalid, "%s cannot hold %s", kind, plural(len(missing), "value"))}
			}
			return a.write(data)
		},
	}
	cmd.Flags().Var(&enum{&kind, config.Kinds()}, "to", "`PROGRAM` whose form is written: "+strings.Join(config.Kinds(), ", "))
	cmd.Flags().BoolVar(&strict, "strict", false, "fail where something cannot be written")
	return cmd
}
