package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// upgradeReport is what tenon upgrade --check found.
type upgradeReport struct {
	Version build              `json:"version"`          // of this program
	Config  string             `json:"config,omitempty"` // file
	Notes   []config.Error     `json:"notes"`            // what this version says about the configuration
	Kind    string             `json:"kind"`             // of the store: file or postgres
	Store   *host.StoreUpgrade `json:"store,omitempty"`  // of a store in a file
	// Ledger says that the ledger's rows get checksums. An older version can still use it.
	Ledger bool `json:"ledger,omitempty"`
	Ready  bool `json:"ready"` // nothing is in the way
}

// The kinds of stores in an upgradeReport.
const (
	storeInFile     = "file"
	storeInPostgres = "postgres"
)

func newUpgrade(a *app) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Say what an upgrade to this version will migrate",
		Long: "Says what this version of tenon will migrate before it uses the configuration and the store of an\n" +
			"older one, and how to go back. It changes nothing: unpack the new binary into another folder and run\n" +
			"it there, before you install it. The exit status is 1 if something is in the way, such as a process\n" +
			"that uses the store, or a full disk. tenon does not replace itself: use the package manager that\n" +
			"installed it.",
		Example: "  tenon upgrade --check\n" +
			"  tenon upgrade --check -c /etc/tenon/tenon.yaml --home /var/lib/tenon/store",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !check {
				return usage(cmd, "tenon does not replace itself; --check says what this version would migrate")
			}
			r, err := a.planUpgrade(cmd.Context())
			if err != nil {
				return err
			}
			if a.isJSON() {
				err = a.printJSON(r)
			} else {
				err = a.write([]byte(r.text()))
			}
			if err != nil || r.Ready {
				return err
			}
			return reported{tenon.Errorf(tenon.CodeStore, "store %s cannot be migrated now", r.Store.Path)}
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "say what this version would migrate; change nothing")
	return cmd
}

// planUpgrade reads the configuration and looks at the store. Errors: config (this version does not accept the
// configuration), store, waiting (the project is not trusted).
func (a *app) planUpgrade(ctx context.Context) (*upgradeReport, error) {
	cfg, err := a.hostConfig(ctx, opening{})
	if err != nil {
		return nil, err
	}
	r := &upgradeReport{Version: version(), Notes: []config.Error{}, Kind: storeInPostgres, Ready: true}
	if cfg.Config != nil {
		r.Config, r.Notes = cfg.Config.Path, append(r.Notes, cfg.Config.Warnings...)
		if cfg.Config.HasPostgres() {
			return r, nil
		}
	}
	keeper, err := host.KeepStore(cfg)
	if err != nil {
		return nil, err
	}
	r.Kind = storeInFile
	if r.Store, err = keeper.PlanUpgrade(ctx); err != nil {
		return nil, err
	}
	if r.Ledger, err = keeper.PlanLedger(ctx); err != nil {
		return nil, err
	}
	r.Ready = len(r.Store.Problems) == 0
	return r, nil
}

// text returns the report as text. The notes about the configuration are on stderr.
func (r *upgradeReport) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", r.Version)
	switch {
	case r.Config == "":
		line("There is no configuration.")
	case len(r.Notes) == 0:
		line("configuration %s: every key is still valid, none is deprecated", safeLine(r.Config))
	default:
		line("configuration %s: %s to read", safeLine(r.Config), plural(len(r.Notes), "warning"))
	}
	if r.Kind == storeInPostgres {
		line("The store is in PostgreSQL. The first process of this version that opens it migrates its schema.")
		line("The way back: stop all processes, make a copy with pg_dump, and restore it with pg_restore.")
		return b.String()
	}
	if r.Ledger {
		line("ledger: its rows get checksums at its first use. An older version can use it as it is, so it is not " +
			"copied.")
	}
	storeUpgradeText(line, r.Store)
	return b.String()
}

// storeUpgradeText writes what an upgrade does to a store in a file, and the way back.
func storeUpgradeText(line func(string, ...any), p *host.StoreUpgrade) {
	path := safeLine(p.Path)
	switch {
	case !p.Exists:
		line("There is no store %s: nothing is migrated.", path)
		return
	case p.Schema > p.Known:
		line("store %s: schema %d, and this version knows %d", path, p.Schema, p.Known)
	case len(p.Steps) == 0:
		line("store %s: schema %d, which this version has too: nothing is migrated", path, p.Schema)
		line("The way back: an older version with schema %d uses the store as it is.", p.Schema)
	default:
		line("store %s: schema %d, will be migrated to %d by the first command that opens it", path, p.Schema, p.Known)
	}
	for _, s := range p.Steps {
		line("  %d  %s", s.Schema, s.Text)
	}
	if p.Copy != "" {
		line("The way back: the migration first copies the store (%s) to %s.", megabytes(p.Bytes),
			safeLine(filepath.Base(p.Copy)))
		line("An older version can use the copy; it has no runs of the newer one. See: tenon docs guide/upgrading")
	}
	for _, c := range p.Copies {
		switch {
		case c == p.Copy:
			line("  %s exists already and will be replaced", safeLine(filepath.Base(c)))
		default:
			line("  %s is a copy from an earlier migration", safeLine(filepath.Base(c)))
		}
	}
	for _, problem := range p.Problems {
		line("In the way: %s", safeLine(problem))
	}
}

// megabytes returns a size for persons.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
