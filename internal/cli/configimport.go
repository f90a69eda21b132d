package cli

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
	"github.com/tenonhq/tenon/policy"
)

// maxImport bounds the bytes that are read of a file to import. Package config reports a file that is too large.
const maxImport = 5 << 20

func newConfigImport(a *app) *cobra.Command {
	var kind, preferences string
	var extract, write bool
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Import another program's configuration",
		Long: "Reads the MCP servers and other settings of another program's file and prints an equivalent\n" +
			"tenon.yaml. Settings without an equivalent are kept under x-KIND and listed on stderr. tenon usually\n" +
			"recognizes the program by the content of the file. - is stdin.\n\n" +
			"With --write the entries go into the project's tenon.yaml, the nearest one in this folder and above.\n" +
			"If there is none, it is created here; a name that it already contains is an error. tenon then shows\n" +
			"what the project may do and asks whether you trust it; --trust agrees.\n\n" +
			"An Arrow table of tools, from KNIME or tenon tools list --out, becomes servers, tools and secrets to\n" +
			"fill in. With --write its workflows become files in the folder workflows next to tenon.yaml, and tools.",
		Example: "  tenon config import .mcp.json --write\n  tenon config import agent.yaml --from holodeck > " +
			"tenon.yaml\n  tenon config import aidk.json --extract-secrets\n" +
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
	f.Var(&enum{&kind, append(config.Kinds(), config.KindKNIME)}, "from",
		"format of the file, as a `PROGRAM`: "+strings.Join(append(config.Kinds(), config.KindKNIME), ", "))
	f.BoolVar(&extract, "extract-secrets", false, "replace literal tokens by variables, and print the lines that "+
		"set them on stderr")
	f.BoolVar(&write, "write", false, "write the entries into tenon.yaml")
	f.StringVar(&preferences, "preferences", "", "researchai: `FILE` that names the enabled servers")
	return cmd
}

// importFile returns the file that --write writes, by the rule of the other commands that change the project's file.
func (a *app) importFile() string { return config.FileToWrite(a.configOptions()) }

// importDir returns the folder of that file.
func (a *app) importDir() string { return filepath.Dir(a.importFile()) }

// withPacks writes packed workflows next to the configuration file and then calls do, which adds them to the file. If
// anything fails, it removes the workflows again. It never replaces a different file.
func (a *app) withPacks(packs []importedPack, do func() error) (err error) {
	var made []string
	defer func() {
		for _, file := range slices.Backward(made) {
			if err != nil {
				_ = os.Remove(file) // removes a folder only if it is empty
			}
		}
	}()
	for _, p := range packs {
		if err := a.staysBeside(p.path); err != nil {
			return err
		}
		file := filepath.Join(a.importDir(), filepath.FromSlash(p.path))
		if there, e := os.ReadFile(file); e == nil && bytes.Equal(there, p.zip) {
			continue
		}
		if e := os.Mkdir(filepath.Dir(file), 0o777); e == nil {
			made = append(made, filepath.Dir(file))
		}
		f, e := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(e, fs.ErrExist) {
			return tenon.Errorf(tenon.CodeConflict, "%s already exists and differs; move it and import again", file)
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

// staysBeside refuses a path that leads out of the configuration file's folder through a link.
func (a *app) staysBeside(path string) error {
	dir, err := filepath.Abs(a.importDir())
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the folder of %s is not known: %w", path, err)
	}
	if real, out := config.LeadsOut(dir, filepath.Join(dir, filepath.FromSlash(path))); out {
		return tenon.Errorf(tenon.CodeDenied, "%s is not written: a link leads out of the project, to %s", path, real)
	}
	return nil
}

// researchFiles are where ResearchAI looks for its servers.
var researchFiles = []string{"config/mcp-servers.json", "config/mcp.json"}

// importSource reads the file to import.
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
				return src, tenon.Errorf(tenon.CodeNotFound, "MCP_CONFIG_PATH is not set, and there is neither "+
					"%s nor %s", researchFiles[0], researchFiles[1])
			}
			file = researchFiles[i]
		}
	default:
		return src, tenon.Errorf(tenon.CodeInvalid, "the file to import is missing; see tenon config import --help")
	}
	var err error
	src.Label = file
	if file == "-" {
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
		return a.writeBytes(tenon.EscapeJSON(made.JSON()))
	}
	return a.write(made.YAML())
}

// writeImport puts the entries into the project's file.
func (a *app) writeImport(ctx context.Context, made *config.Imported) error {
	o := a.configOptions()
	o.File = a.importFile()
	dir, err := filepath.Abs(filepath.Dir(o.File))
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the folder of %s is not known: %w", o.File, err)
	}
	o.LookupEnv = func(name string) (string, bool) { // the person sets extracted variables with the printed lines
		if v, ok := a.lookupEnv(name); ok {
			return v, ok
		}
		v, ok := made.Extracted[name]
		return v, ok
	}
	_, there := os.Stat(o.File)
	changes, left := made.Changes(dir, errors.Is(there, fs.ErrNotExist))
	p, err := a.planEdit(ctx, o, config.Edits{Changes: changes, Create: true, Profile: made.Profile()})
	if err != nil {
		return err
	}
	if err := p.Write(ctx); err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(l string) bool { return p.HasProfile && strings.HasPrefix(l, "profile: ") })
	for _, l := range left {
		a.note("not written into %s, since it affects the whole file: %s", p.Written, l)
	}
	if len(made.CwdOf) > 0 {
		a.note("added cwd: %s to %s, so that they start in the folder of the imported file", made.Cwd,
			strings.Join(made.CwdOf, ", "))
	}
	a.noteAsks(p.Config, changes)
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
	told = slices.Clone(names)
	if tools > 0 {
		told = append(told, plural(tools, "tool"))
	}
	if err := a.did(map[string]any{"file": p.Written, "servers": append([]string{}, names...),
		"not_written": append([]string{}, left...)},
		"Imported into %s: %s", p.Written, cmp.Or(strings.Join(told, ", "), "nothing")); err != nil {
		return err
	}
	return a.agreeToImport(ctx, p.Config)
}

// noteAsks says, once for all imported servers, that the rules ask before calls of tools without annotations. Most
// programs that these files are of never ask.
func (a *app) noteAsks(cfg *config.Config, changes []config.Change) {
	for _, c := range changes {
		s, ok := cfg.Servers[c.Name]
		if c.Section != "servers" || !ok || !s.IsEnabled() {
			continue
		}
		approval := s.Policy.Over(cfg.Policy.Defaults).Approval
		if approval.If == "" && (approval.Mode == "" || approval.Mode == policy.ApprovalDestructive) {
			a.note("calls of tools that are not marked read-only will ask for approval, also of tools without " +
				"annotations; policy.defaults.approval changes it")
			return
		}
	}
}

// agreeToImport asks whether the person trusts the project after an import. The import command itself is no consent,
// because the entries come from another program's file. A running tenon serve applies the change when the person
// agrees. If the person does not agree, or cannot be asked, the next use asks.
func (a *app) agreeToImport(ctx context.Context, cfg *config.Config) error {
	v, err := a.judgeTrust(ctx, cfg)
	if err != nil {
		a.note("%s", err)
		return nil
	}
	if v.Record != nil && v.Diff.Empty() {
		return nil
	}
	if !a.trust && !a.canAsk() {
		a.hint("tenon shows these entries and asks before it uses them; to agree now: tenon trust")
		return nil
	}
	cfg.Found = true // also for a file that the person named
	a.justWritten = true
	if err := a.requireTrust(ctx, cfg); err != nil {
		if tenon.ErrorCode(err) == tenon.CodeDenied {
			a.note("%s; tenon asks again before it uses it", err)
			return nil
		}
		return err
	}
	return nil
}

func newConfigExport(a *app) *cobra.Command {
	var kind string
	var strict bool
	cmd := &cobra.Command{
		Use:   "export --to PROGRAM",
		Short: "Export the configuration to another program's format",
		Long: "Prints the configuration in the format of another program. Variables stay unresolved. Settings\n" +
			"without an equivalent are listed on stderr. With --strict they are an error (status 2), and nothing is\n" +
			"printed.",
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
			o := a.configOptions()
			o.KeepUnset = true
			cfg, err := config.Load(cmd.Context(), o)
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
				return reported{tenon.Errorf(tenon.CodeInvalid, "%s cannot hold %s", kind,
					plural(len(missing), "value"))}
			}
			if json.Valid(data) {
				return a.writeBytes(tenon.EscapeJSON(data))
			}
			return a.write(data)
		},
	}
	cmd.Flags().Var(&enum{&kind, config.Kinds()}, "to",
		"format to write, as a `PROGRAM`: "+strings.Join(config.Kinds(), ", "))
	cmd.Flags().BoolVar(&strict, "strict", false, "fail if a setting has no equivalent")
	return cmd
}
