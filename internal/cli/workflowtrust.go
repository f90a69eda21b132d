package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/trust"
)

// flowPrefix is the prefix of the path in a record about a workflow.
const flowPrefix = "workflow:"

// agreeWorkflow asks about a workflow that is no tool of the configuration and whose requests take secrets of the user
// or the administrator: who wrote the file chose where they are sent. The record binds the file's real path and the
// bytes of all that belongs to the workflow. Errors: denied, waiting if nobody can be asked.
func (a *app) agreeWorkflow(ctx context.Context, cfg *config.Config, ref string, w host.Workflow) error {
	if secrets, err := userSecrets(cfg, w); err != nil || len(secrets) == 0 {
		return err
	}
	zip, err := w.Pack.Zip()
	if err != nil {
		return err
	}
	if isConfigured(cfg, zip) {
		return nil
	}
	b := &itemBuilder{cfg: cfg}
	b.stepRequests(w)
	p, items := flowProject(ref, zip), b.list
	store, all := a.trustStore(), a.trustsAll(cfg)
	before, err := store.Lookup(p)
	if err != nil && !all {
		return err
	}
	switch {
	case all, before != nil && trust.Compare(before, p, items).Empty():
		return nil
	case a.trust && forbids(cfg, "trust_flag"):
		return tenon.Errorf(tenon.CodeDenied, "the workflow %s would send your secrets, and the administrator's file "+
			"forbids --trust; agree on a terminal: tenon workflows run", safeLine(ref))
	case a.trust:
	default:
		if err := a.askWorkflow(ctx, ref, items); err != nil {
			return err
		}
	}
	if _, err := store.Grant(p, items, time.Now()); err != nil {
		a.note("%s; it holds for this command only", err)
	}
	return nil
}

// askWorkflow shows what a workflow would send, and asks.
func (a *app) askWorkflow(ctx context.Context, ref string, items []trust.Item) error {
	lines := append([]string{"The workflow " + shownLine(ref) + " is not part of your configuration, and it would " +
		"send your secrets. Once you agree, tenon may do this for it, until the file changes:"},
		itemLines(items, "", 0)...)
	if !a.canAsk() {
		lines = append(lines, "", "Nobody can be asked here. If you agree: run it on a terminal, or with --trust.")
		return tenon.Errorf(tenon.CodeWaiting, "%s", strings.Join(lines, "\n"))
	}
	var wrapped []string
	for _, line := range lines {
		wrapped = append(wrapped, wrapHard(line, a.pageWidth())...)
	}
	if err := a.page(ctx, wrapped); err != nil {
		return err
	}
	ok, err := a.yesOrNo(ctx, "Run it with these secrets? [y]es / [n]o: ")
	switch {
	case err != nil:
		return tenon.Errorf(tenon.CodeCancelled, "interrupted")
	case !ok:
		return tenon.Errorf(tenon.CodeDenied, "the workflow %s is not run: you did not agree", safeLine(ref))
	}
	return nil
}

// userSecrets returns the secrets of the user and the administrator that the requests of a workflow take.
func userSecrets(cfg *config.Config, w host.Workflow) ([]string, error) {
	templates, err := policy.NewTemplates()
	if err != nil {
		return nil, err
	}
	var names []string
	stepRequests("", w.Workflow, func(_ string, r catalog.Request) {
		for _, header := range r.Headers {
			t, wrong := templates.Compile(header, true)
			if wrong != nil {
				err = wrong
				return
			}
			for _, name := range t.Secrets() {
				if cfg.HasSecret("", name) && cfg.FromUser("secrets."+name) {
					names = append(names, name)
				}
			}
		}
	})
	return names, err
}

// isConfigured reports whether a workflow is a tool of the configuration, byte for byte as the configuration was
// checked with it.
func isConfigured(cfg *config.Config, zip []byte) bool {
	for _, name := range workflowNames(cfg) {
		_, pack, err := cfg.ReadWorkflow(cfg.Tools[name].Path)
		if err != nil {
			continue
		}
		if own, err := pack.Zip(); err == nil && bytes.Equal(own, zip) {
			return true
		}
	}
	return false
}

// flowProject identifies a workflow by its real path and its bytes. A workflow from a pipe has no path, and nothing is
// remembered.
func flowProject(ref string, zip []byte) trust.Project {
	path, err := filepath.EvalSymlinks(ref)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return trust.Project{}
	}
	sum := sha256.Sum256(zip)
	return trust.Project{Path: flowPrefix + path, Files: map[string]trust.File{
		filepath.Base(path): {Digest: hex.EncodeToString(sum[:]), Size: int64(len(zip))}}}
}
