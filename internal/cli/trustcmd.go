package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/trust"
)

func newTrust(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Show what this project may do, and trust it",
		Long: "Shows what the project's configuration would do, most dangerous first, and asks whether you trust\n" +
			"it. Until you do, tenon only reads the project: it starts no program, sends nothing, and does not\n" +
			"listen. Your answer holds for the real path of the file and for the bytes of all files of the\n" +
			"project: the configuration file, the .env next to it, the files that it names, and the local\n" +
			"scripts that its commands run. If one of them changes, tenon shows the difference and asks again.\n" +
			"A file that you name with -c or TENON_CONFIG is used without a question, for that command only.\n\n" +
			"In scripts, --trust answers yes for any command. In a container, TENON_TRUST=all in the\n" +
			"environment trusts every project and every owner of its files; no file can set it.",
		Example: "  tenon trust\n  tenon trust --trust\n  tenon trust list\n  tenon trust show -o json\n  tenon " +
			"trust revoke",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noVerb(cmd, args)
			}
			return a.trustProject(cmd.Context())
		},
	}
	cmd.AddCommand(newTrustList(a), newTrustShow(a), newTrustRevoke(a))
	return cmd
}

// projectHere loads the configuration of the project in the working folder, or the one that the command line names.
func (a *app) projectHere(ctx context.Context) (*config.Config, verdict, error) {
	cfg, err := config.Load(ctx, a.configOptions())
	if err != nil {
		return nil, verdict{}, err
	}
	if cfg.Path == "" {
		return nil, verdict{}, tenon.Errorf(tenon.CodeNotFound, "there is no project here: no tenon.yaml in this "+
			"folder or above it")
	}
	cfg.Found = true // judge the project even if the command line names its file
	v, err := a.judgeTrust(ctx, cfg)
	return cfg, v, err
}

// trustProject shows a project and asks about it, unless it is trusted.
func (a *app) trustProject(ctx context.Context) error {
	cfg, v, err := a.projectHere(ctx)
	if err != nil {
		return err
	}
	if v.How == trustRecorded || v.How == trustEnv {
		return a.showTrust(v)
	}
	if err := a.requireTrust(ctx, cfg); err != nil {
		return err
	}
	if a.isJSON() {
		if v, err = a.judgeTrust(ctx, cfg); err != nil {
			return err
		}
		return a.printJSON(trustView(v))
	}
	return a.printText("You trust " + safeLine(v.Project.Path))
}

// showTrust prints a project, its items and its files.
func (a *app) showTrust(v verdict) error {
	if a.isJSON() {
		return a.printJSON(trustView(v))
	}
	width := 0
	if a.outTTY {
		width = a.width()
	}
	head := safeLine(projectName(v.Project, v.cfg)) + " is not trusted. If you trust it, tenon may do this for it:"
	lines := trustList(verdict{Project: v.Project, Items: v.Items}, width)
	switch {
	case v.Trusted():
		head = safeLine(projectName(v.Project, v.cfg)) + " is " + trustText(v) + ". tenon may do this for it:"
	case v.Record != nil:
		head = safeLine(projectName(v.Project, v.cfg)) + " has changed since you trusted it. This is the difference:"
		lines = trustList(v, width)
	}
	return a.printText(head + "\n" + strings.Join(lines, "\n"))
}

func newTrustShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show what a project may do, and what has changed",
		Long: "Shows whether you trust the project here, or the one of -c: what it would do and its files. If it\n" +
			"has changed since you trusted it, shows the difference. Starts nothing and asks nothing.",
		Example: "  tenon trust show\n  tenon trust show -c other/tenon.yaml -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, v, err := a.projectHere(cmd.Context())
			if err != nil {
				return err
			}
			return a.showTrust(v)
		},
	}
}

// trustedView is a trusted project in the list.
type trustedView struct {
	File   string `json:"file"`
	Folder string `json:"folder"`
	Since  string `json:"since"`
	Files  int    `json:"files"`
	Items  int    `json:"items"`

	link string // the link through which the file is used
}

func newTrustList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the projects that you trust",
		Long:    "Lists the projects that you trust, and the tables and workflows that you agreed to, by path.",
		Example: "  tenon trust list\n  tenon trust list -o json",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			records, err := a.trustStore().List()
			if err != nil {
				return err
			}
			list := make([]trustedView, len(records))
			for i, r := range records {
				list[i] = trustedView{File: r.Path, Folder: r.Dir, Since: r.When.Format("2006-01-02T15:04:05Z07:00"),
					Files: len(r.Files), Items: len(r.Items)}
				if r.Dir != filepath.Dir(r.Path) && !strings.HasPrefix(r.Path, tablePrefix) {
					list[i].link = " (used by a link in " + r.Dir + ")"
				}
				for name := range r.Files {
					if strings.HasPrefix(r.Path, tablePrefix) {
						list[i].File = r.Path[:len(tablePrefix)+12] + " (" + name + ")"
					}
				}
			}
			return printList(a, list, []string{"file", "since", "files", "items"}, func(t trustedView) []string {
				return []string{t.File + t.link, t.Since, count(t.Files), count(t.Items)}
			})
		},
	}
}

func newTrustRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke [FILE]",
		Short: "Stop trusting a project",
		Long: "Forgets that you trust a project: the one here, or the one of FILE, a configuration file or a\n" +
			"folder, which may be deleted already. The next command that would start something asks again.\n" +
			"Running processes are not stopped.",
		Example: "  tenon trust revoke\n  tenon trust revoke ~/src/demo/tenon.yaml",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			matches, err := a.revocable(cmd.Context(), args)
			if err != nil {
				return err
			}
			for _, p := range matches {
				if _, err := a.trustStore().Revoke(p); err != nil {
					return err
				}
			}
			return a.did(map[string]any{"file": matches[0].Path, "trusted": false}, "You no longer trust %s",
				safeLine(matches[0].Path))
		},
	}
}

// revocable returns the trusted projects that the argument of trust revoke names. Errors: not_found.
func (a *app) revocable(ctx context.Context, args []string) ([]trust.Project, error) {
	name, records := "", []trust.Record(nil)
	if len(args) == 1 {
		abs, err := filepath.Abs(args[0])
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "%s: %w", args[0], err)
		}
		name = abs
	} else {
		// An invalid or deleted file can be revoked by its path.
		cfg, err := config.Load(ctx, a.configOptions())
		var bad config.Errors
		if errors.As(err, &bad) && a.config != "" {
			return a.revocable(ctx, []string{a.config})
		}
		if err != nil {
			return nil, err
		}
		name = cfg.Path
	}
	real := name
	if r, err := filepath.EvalSymlinks(name); err == nil {
		real = r
	}
	records, err := a.trustStore().List()
	if err != nil {
		return nil, err
	}
	var found []trust.Project
	for _, r := range records {
		if r.Path == real || r.Path == name || r.Path == flowPrefix+real ||
			r.Dir == real || r.Dir == name || len(args) == 1 &&
			strings.HasPrefix(r.Path, tablePrefix) && strings.HasPrefix(r.Path, args[0]) &&
			len(args[0]) >= len(tablePrefix)+8 {
			found = append(found, r.Project)
		}
	}
	// Several folders may link to one file. A name in one of them means only that one.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		here := slices.DeleteFunc(slices.Clone(found), func(p trust.Project) bool { return p.Dir != dir })
		if len(here) > 0 {
			found = here
		}
	}
	if len(found) == 0 {
		return nil, tenon.Errorf(tenon.CodeNotFound, "you do not trust %s; tenon trust list shows the projects that "+
			"you trust", name)
	}
	return found, nil
}
