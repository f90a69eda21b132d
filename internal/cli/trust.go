package cli

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/trust"
)

// A configuration that tenon finds may be part of a cloned repository. Until a person trusts the project, tenon only
// reads it: it starts no program, sends nothing, does not listen, and opens no store. This file decides; trustask.go
// asks.

// The reasons why a configuration is trusted.
const (
	trustNoProject = "no_project"  // no project file exists
	trustNamed     = "named"       // the person named the file with -c or TENON_CONFIG
	trustRecorded  = "recorded"    // the person agreed before
	trustEnv       = "environment" // TENON_TRUST=all
	trustNot       = ""
)

// trustText describes why a project is trusted.
func trustText(v verdict) string {
	switch v.How {
	case trustNamed:
		return "used because you named it"
	case trustRecorded:
		return "trusted since " + v.Record.When.Local().Format("2006-01-02 15:04")
	case trustEnv:
		return "trusted by TENON_TRUST=all"
	}
	return ""
}

// verdict reports whether a configuration is trusted, and what a person would agree to.
type verdict struct {
	How     string // "" if it is not trusted
	File    string // as the person would name it
	Project trust.Project
	Items   []trust.Item  // what the configuration would do, most dangerous first
	Record  *trust.Record // the person's last agreement; nil if there is none
	Diff    trust.Diff    // the difference from Record; everything if it is nil

	cfg     *config.Config // for the texts of its files
	written bool           // this command has just written the file
}

// Trusted reports whether the configuration may be used.
func (v verdict) Trusted() bool { return v.How != trustNot }

// judgeTrust decides about a loaded configuration, without asking and without writing. Errors: denied (other users can
// write the files, or the records are not valid), too_large and config (from [config.Config.Project]).
func (a *app) judgeTrust(ctx context.Context, cfg *config.Config) (verdict, error) {
	v := verdict{File: cfg.File, cfg: cfg, written: a.justWritten}
	var err error
	if v.Project, err = cfg.Project(); err != nil {
		return v, err
	}
	all := a.trustsAll(cfg)
	if !all {
		if err := trust.Check(a.trustPaths(cfg, v.Project)...); err != nil {
			return v, err
		}
	}
	if cfg.Path == "" {
		v.How = trustNoProject
		return v, nil
	}
	v.Items = a.items(cfg)
	if v.Project.Path == "" { // a pipe can only be named by the person
		v.How = trustNamed
		return v, nil
	}
	if v.Record, err = a.trustStore().Lookup(v.Project); err != nil && !all && cfg.Found {
		return v, err
	}
	if v.Record != nil {
		v.Record = maskedRecord(v.Record)
	}
	v.Diff = trust.Compare(v.Record, v.Project, v.Items)
	switch {
	case v.Record != nil && v.Diff.Empty():
		v.How = trustRecorded
	case !cfg.Found:
		v.How = trustNamed
	case all:
		v.How = trustEnv
	}
	return v, ctx.Err()
}

// gate decides whether a command may use a host. If the project is not trusted, a command that only reads gets a host
// that starts nothing, sends nothing and opens no store.
func (a *app) gate(ctx context.Context, cfg *config.Config, o opening) (untrusted bool, err error) {
	if o.lists && !a.trust { // --trust agrees to the change
		v, err := a.judgeTrust(ctx, cfg)
		if err == nil && !v.Trusted() && v.listable() {
			a.hint("%s has changed since you trusted it, and is not used before you agree again: tenon trust", v.File)
			return false, nil
		}
	}
	if !o.looks {
		return false, a.requireTrust(ctx, cfg)
	}
	v, err := a.judgeTrust(ctx, cfg)
	return o.static || err != nil || !v.Trusted(), nil // the project is only read
}

// startedFiles are the parts of a configuration whose files matter only when something is started or asked: scripts of
// servers, models, workflows, texts of agents, tables of tools. The programs of secrets are not among them, because a
// store may need a secret.
var startedFiles = []string{"servers.", "models.", "tools.", "agents.", "tool_tables"}

// listable reports whether a verb that only shows what the store has may open it, although the project has changed
// since the person trusted it: the configuration is the same, and only files differ that the verb does not use.
func (v verdict) listable() bool {
	if v.Record == nil || len(v.Diff.Added) > 0 {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(v.Diff.New, v.Diff.Changed, v.Diff.Gone), func(name string) bool {
		f, ok := v.Project.Files[name]
		if !ok {
			f = v.Record.Files[name]
		}
		return !slices.ContainsFunc(startedFiles, func(part string) bool { return strings.HasPrefix(f.Why, part) })
	})
}

// requireTrust is called before anything starts a program, sends data, listens, or opens a store. It asks the person if
// the project is not trusted. Errors: denied, waiting if nobody can be asked, and the errors of judgeTrust.
func (a *app) requireTrust(ctx context.Context, cfg *config.Config) error {
	if a.trusted == cfg {
		return nil // decided before the command line changed it
	}
	v, err := a.judgeTrust(ctx, cfg)
	if err != nil {
		return err
	}
	switch {
	case v.How == trustNamed && !a.trust && !a.trustsAll(cfg): // agreeTables asks about each table
		a.trusted = cfg
		return nil
	case v.Trusted():
	case a.trust && forbids(cfg, "trust_flag"):
		return tenon.Errorf(tenon.CodeDenied, "%s is not trusted: the administrator's file forbids --trust; agree "+
			"on a terminal: tenon trust", v.File)
	case a.trust:
		a.keepTrust(v)
	default:
		if err := a.askTrust(ctx, cfg, v); err != nil {
			return err
		}
		if err := a.unchanged(ctx, cfg, v); err != nil {
			return err
		}
		a.keepTrust(v)
	}
	a.trusted = cfg
	if v.How != trustNoProject { // without a project, nobody was shown a list
		a.agreed = map[string]bool{}
		for server, item := range tableItems(cfg) {
			a.agreed[cfg.TableOf(server)+" "+item.Text] = true
		}
	}
	return nil
}

// tableItems returns what the servers of the configuration's tables need an agreement for: the command of a server, or
// the secret that its address gets. Servers that need none are left out.
func tableItems(cfg *config.Config) map[string]trust.Item {
	found := map[string]trust.Item{}
	for server, command := range cfg.TableCommands() {
		found[server] = trust.Item{Kind: itemCommand, Text: "start " + shellLine(command)}
	}
	for server, secret := range cfg.TableSecrets() {
		found[server] = trust.Item{Kind: itemURL, Text: "send " + namedSecrets(cfg, []string{secret}) + ", to " +
			cfg.Servers[server].URL}
	}
	return found
}

// agreeTables asks about commands and secrets in tables that are not part of a trusted project. A table is data, even
// if a trusted file names it.
func (a *app) agreeTables(ctx context.Context, cfg *config.Config) error {
	items := tableItems(cfg)
	for _, server := range slices.Sorted(maps.Keys(items)) {
		path, item := cfg.TableOf(server), items[server]
		if a.agreed[path+" "+item.Text] {
			continue
		}
		if err := a.agreeItem(ctx, path, item, false); err != nil {
			return err
		}
	}
	return nil
}

// unchanged refuses a project whose scripts changed while the person read the list. All other files are used with the
// bytes that were read.
func (a *app) unchanged(_ context.Context, cfg *config.Config, _ verdict) error {
	return cfg.CheckCommands()
}

// keepTrust records that the person trusts a project. If it cannot be recorded, the person is asked again next time.
func (a *app) keepTrust(v verdict) {
	v.Project.Texts = keptTexts(v.cfg, v.Project)
	kept, err := a.trustStore().Grant(v.Project, v.Items, time.Now())
	switch {
	case err != nil:
		a.note("%s; it holds for this command only", err)
	case !kept:
		a.hint("there is no place to remember this: set HOME or XDG_STATE_HOME; it holds for this command only")
	}
}

// items lists what a configuration would do. The store in the list is the one that the project names. --home does not
// change it, because a store of --home is the person's own choice.
func (a *app) items(cfg *config.Config) []trust.Item {
	return trustItems(cfg, host.StorePath(host.Config{Config: cfg, LookupEnv: a.lookupEnv}))
}

// trustStore is the store of trust records, in the user's state folder outside of any project.
func (a *app) trustStore() *trust.Store {
	if dir, ok := a.env("XDG_STATE_HOME"); ok && filepath.IsAbs(dir) {
		return trust.NewStore(filepath.Join(dir, "tenon", "trust"))
	}
	if dir, ok := a.env("HOME"); ok && filepath.IsAbs(dir) {
		return trust.NewStore(filepath.Join(dir, ".local", "state", "tenon", "trust"))
	}
	return trust.NewStore("")
}

// trustsAll reports whether TENON_TRUST=all is set in the environment of the process. No file can set it: .env files
// only provide values for the configuration.
func (a *app) trustsAll(cfg *config.Config) bool {
	v, _ := a.env("TENON_TRUST")
	return v == "all" && !forbids(cfg, "trust_env")
}

// forbids reports whether the administrator's file forbids a way to trust projects.
func forbids(cfg *config.Config, what string) bool { return cfg.Forbids(what) }

// storePath is the path of a configuration's store, or "" if it has no file.
func (a *app) storePath(cfg *config.Config) string {
	return host.StorePath(a.storeOf(cfg))
}

// storeOf is the part of a host's configuration that says where its store is.
func (a *app) storeOf(cfg *config.Config) host.Config {
	return host.Config{Config: cfg, Home: a.home, LookupEnv: a.lookupEnv}
}

// trustPaths returns the files and folders that other users must not be able to write: the files of the project, the
// files of the user, and the store.
func (a *app) trustPaths(cfg *config.Config, p trust.Project) []string {
	paths := cfg.UserFiles()
	if cfg.Path != "" {
		paths = append(paths, cfg.Dir)
	}
	if p.Path != "" {
		paths = append(paths, p.Path, cfg.Path)
	}
	for name := range p.Files {
		if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
			name = filepath.Join(cfg.Dir, name)
		}
		paths = append(paths, name)
	}
	if store := a.storePath(cfg); store != "" && cfg.Path != "" {
		paths = append(paths, store, filepath.Dir(store))
	}
	return paths
}
