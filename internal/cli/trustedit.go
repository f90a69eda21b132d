package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/trust"
)

// A tenon command that writes a configuration file is the person's consent to exactly that text. This file decides
// whether the project stays trusted after such a command.

// ownEdit changes a configuration file for the person at the command line. trusted reports whether tenon may use the
// project afterwards: see ownWrite.
func (a *app) ownEdit(ctx context.Context, o config.Options, e config.Edits) (p *config.Plan, trusted bool, err error) {
	if p, err = a.planEdit(ctx, o, e); err != nil {
		return nil, false, err
	}
	trusted, err = a.ownWrite(ctx, o, p, e)
	return p, trusted, err
}

// planEdit plans a change. If a link leads out of the project, it asks whether the real file may be
// changed.
func (a *app) planEdit(ctx context.Context, o config.Options, e config.Edits) (*config.Plan, error) {
	l, err := config.LinkOf(o, e)
	if err != nil {
		return nil, err
	}
	if l != nil && a.canAsk() {
		if err := a.askLink(ctx, l); err != nil {
			return nil, err
		}
		e.Follow = l.Real
	}
	return config.PlanEdit(ctx, o, e)
}

// askLink asks whether the file behind a link may be changed. Errors: denied, cancelled.
func (a *app) askLink(ctx context.Context, l *config.Link) error {
	where := "outside of this project"
	if l.Own {
		where = "to your own file, which holds for all projects"
	}
	a.note("%s is a link %s:\n  %s", safeLine(l.File), where, safeLine(l.Real)) // the path is not wrapped
	ok, err := a.yesOrNo(ctx, "Change that file? [y]es / [n]o: ")
	switch {
	case err != nil:
		return &tenon.Error{Code: tenon.CodeCancelled, Message: "interrupted", Err: err}
	case !ok:
		return tenon.Errorf(tenon.CodeDenied, "%s is not changed", l.Real)
	}
	return nil
}

// ownWrite writes a planned change for the person who agreed to it. A trusted project stays trusted, and a new file is
// trusted, if the person agreed to everything in the project. tenon asks again about files that it did not write and
// that the change does not name.
func (a *app) ownWrite(ctx context.Context, o config.Options, p *config.Plan, e config.Edits) (trusted bool,
	err error) {
	before := a.trustedBefore(ctx, o)
	if err := a.writePlan(ctx, p); err != nil {
		return false, err
	}
	if e.User {
		return true, nil
	}
	v, err := a.judgeTrust(ctx, p.Config)
	if err != nil { // other users can write files, or records are not valid
		a.note("%s", err)
		return false, nil
	}
	if p.Before == nil {
		return a.trustWritten(p.Config, v), nil
	}
	if !before.covers(p, v, e) && !a.trustFlag(p.Config) {
		return false, nil
	}
	a.keepTrust(v)
	return true, nil
}

// trustFlag reports whether --trust was given and the administrator allows it.
func (a *app) trustFlag(cfg *config.Config) bool { return a.trust && !forbids(cfg, "trust_flag") }

// trustWritten trusts a project whose configuration file tenon has just written, unless the project has files that
// nobody agreed to. The person named all files of the new configuration, so only files that tenon finds by itself, such
// as .env, need an agreement.
func (a *app) trustWritten(cfg *config.Config, v verdict) bool {
	if left := foundBeside(v.Project); len(left) > 0 && !a.trustFlag(cfg) {
		a.hint("%s was here before and belongs to this project: tenon shows it and asks before it uses the project",
			strings.Join(left, ", "))
		return false
	}
	a.keepTrust(v)
	return true
}

// foundBeside returns the project's files that no entry names, except the configuration file.
func foundBeside(p trust.Project) (names []string) {
	for name, f := range p.Files {
		if f.Why == "" && filepath.Join(p.Dir, filepath.FromSlash(name)) != p.Path && f.Link != p.Path {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// priorTrust is a project as the person trusted it before a change.
type priorTrust struct {
	project trust.Project
	main    string // name of its configuration file
}

// trustedBefore returns the project if the person trusts its present state, else nil.
func (a *app) trustedBefore(ctx context.Context, o config.Options) *priorTrust {
	cfg, err := config.Load(ctx, o)
	if err != nil || cfg.Path == "" {
		return nil
	}
	v, err := a.judgeTrust(ctx, cfg)
	if err != nil || v.Record == nil || !v.Diff.Empty() {
		return nil
	}
	main, err := filepath.Rel(cfg.Dir, cfg.Path)
	if err != nil {
		return nil
	}
	return &priorTrust{v.Project, filepath.ToSlash(main)}
}

// covers reports whether the change began with the trusted bytes, the remaining files of the project are unchanged, and
// the changed entries name every new file.
func (b *priorTrust) covers(p *config.Plan, after verdict, e config.Edits) bool {
	if b == nil || b.project.Path != after.Project.Path || b.project.Dir != after.Project.Dir {
		return false
	}
	sum := sha256.Sum256(p.Before)
	if b.project.Files[b.main].Digest != hex.EncodeToString(sum[:]) {
		return false
	}
	for name, now := range after.Project.Files {
		was, there := b.project.Files[name]
		switch {
		case name == b.main, b.wrote(p, name, was, now):
		case there && (now.Digest != was.Digest || now.Link != was.Link):
			return false
		case !there && !e.Names(now.Why):
			return false
		}
	}
	return true
}

// wrote reports whether the plan changed a file of the project, from the bytes that the person trusted.
func (b *priorTrust) wrote(p *config.Plan, name string, was, now trust.File) bool {
	return slices.ContainsFunc(p.Texts, func(t config.PlannedText) bool {
		return t.Path() == filepath.Join(b.project.Dir, filepath.FromSlash(name)) && digestOf(t.After) == now.Digest &&
			(was.Digest == "" && t.Before == nil || was.Digest == digestOf(t.Before)) && was.Link == now.Link
	})
}
