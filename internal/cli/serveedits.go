package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/httpapi"
)

// The limits of proposals. Proposals are only in memory: neither a file of the project nor an earlier process can offer
// one to the owner.
const (
	maxProposals  = 32
	maxProposed   = 64 << 10 // bytes that a proposed change may add to the file
	proposalTime  = 24 * time.Hour
	reloadID      = "reload" // the one proposal for files that were changed on disk
	proposalBytes = 8        // random bytes of an id
)

// proposed is a change that an API request proposed.
type proposed struct {
	id      string
	edits   config.Edits
	by      tenon.Principal
	created time.Time
	unused  string // the file has the change, and this is why the process does not use it; "" otherwise
}

// Plan implements [httpapi.Editor].
func (s *server) Plan(ctx context.Context, e config.Edits) (*config.Plan, error) {
	e.Known = &s.spellings
	return config.PlanEdit(ctx, s.a.configOptions(), e)
}

// Propose implements [httpapi.Editor].
func (s *server) Propose(ctx context.Context, e config.Edits, by tenon.Principal) (httpapi.Proposal, error) {
	p := proposed{id: "prp_" + randomHex(), edits: e, by: by, created: time.Now()}
	plan, view, err := s.view(ctx, p)
	if err != nil {
		return view, err
	}
	for _, f := range view.Files {
		if len(f.After)-len(f.Before) > maxProposed {
			return view, tenon.Errorf(tenon.CodeTooLarge, "the change adds more than %d bytes to %s; edit the file",
				maxProposed, f.File)
		}
	}
	if s.allowsEdits() {
		return s.enact(ctx, p, view.Digest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropOld()
	if len(s.open) >= maxProposals {
		return view, tenon.Errorf(tenon.CodeLimit, "%d proposed changes wait already; accept or reject some: tenon "+
			"proposals", maxProposals)
	}
	s.open = append(s.open, p)
	s.version.Add(1)
	s.log().Info("a change of the configuration is proposed; look at it with: "+view.Command, "by", string(by),
		"file", plan.File)
	return view, nil
}

// randomHex returns a random id.
func randomHex() string {
	var b [proposalBytes]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// allowsEdits reports whether the user's file allows edits without the owner's agreement.
func (s *server) allowsEdits() bool {
	cfg := s.current()
	l := cfg.Layer("serve.allow_server_edit")
	return cfg.Serve.AllowServerEdit && (l == config.LayerUser || l == config.LayerAdmin)
}

// current returns the configuration that is in use.
func (s *server) current() *config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// dropOld drops expired proposals. The caller holds the lock.
func (s *server) dropOld() {
	s.open = slices.DeleteFunc(s.open, func(p proposed) bool { return time.Since(p.created) > proposalTime })
}

// view plans a change and describes it.
func (s *server) view(ctx context.Context, p proposed) (*config.Plan, httpapi.Proposal, error) {
	expires := p.created.Add(proposalTime).UTC()
	v := httpapi.Proposal{ID: p.id, Kind: httpapi.ProposalEdit, State: httpapi.ProposalOpen, By: p.by,
		Created: p.created.UTC(), Expires: &expires,
		Command: s.a.again("proposals accept", p.id), Differences: []config.Difference{}, Files: []config.FileChange{}}
	plan, err := s.Plan(ctx, p.edits)
	if err != nil {
		v.File = filepath.Base(config.FileToWrite(s.a.configOptions()))
		return nil, v, err
	}
	s.mu.Lock()
	before, held := s.running, s.held
	s.mu.Unlock()
	if held != nil {
		before = held.Whole
		v.Note = "the files have changes that are held back; accept or undo them first"
	}
	if _, err := plan.Config.Project(); err != nil { // reads the scripts of new commands
		return nil, v, err
	}
	v.File = plan.File
	v.Differences = byDanger(config.Compare(before, plan.Config))
	v.Files = plan.FileChanges()
	v.CommandLine = !s.allowsEdits() && slices.ContainsFunc(v.Differences,
		func(d config.Difference) bool { return d.Starts })
	b, err := json.Marshal([]any{p.id, v.File, v.Files, v.Differences})
	if err != nil {
		return nil, v, tenon.Errorf(tenon.CodeInternal, "the change cannot be described: %w", err)
	}
	sum := sha256.Sum256(b)
	v.Digest = "sha256:" + hex.EncodeToString(sum[:])
	v.Files = config.MaskedFiles(v.Files) // the digest is about the real texts
	return plan, v, nil
}

// byDanger sorts the differences: changes that start something first, then changes that loosen something.
func byDanger(list []config.Difference) []config.Difference {
	rank := func(d config.Difference) int {
		switch {
		case d.Starts:
			return 0
		case d.Effect == config.Loosens:
			return 1
		}
		return 2
	}
	out := append([]config.Difference{}, list...)
	slices.SortStableFunc(out, func(a, b config.Difference) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// reloadView describes the changes on disk that are held back.
func (s *server) reloadView(u *config.Update, since time.Time) httpapi.Proposal {
	v := httpapi.Proposal{ID: reloadID, Kind: httpapi.ProposalReload, State: httpapi.ProposalOpen,
		Created: since.UTC(), File: u.Whole.File, Digest: u.Digest,
		Differences: byDanger(u.Held), Files: config.MaskedFiles(u.Files),
		Command: s.a.again("proposals accept", reloadID)}
	v.CommandLine = !s.allowsEdits() && slices.ContainsFunc(u.Held, func(d config.Difference) bool { return d.Starts })
	if u.Left != "" {
		v.Note = "the other changes cannot take effect alone: " + u.Left
	}
	return v
}

// Proposals implements [httpapi.Editor].
func (s *server) Proposals(ctx context.Context) ([]httpapi.Proposal, error) {
	s.mu.Lock()
	s.dropOld()
	held, since, open := s.held, s.heldSince, slices.Clone(s.open)
	s.mu.Unlock()
	var out []httpapi.Proposal
	if held != nil {
		out = append(out, s.reloadView(held, since))
	}
	for _, p := range open {
		_, v, err := s.view(ctx, p)
		if p.unused != "" {
			v.Digest, v.CommandLine, v.Note = "", false, p.unused
		} else if err != nil {
			v.Note = "it can no longer be made: " + err.Error()
		}
		out = append(out, v)
	}
	return out, ctx.Err()
}

// Accept implements [httpapi.Editor].
func (s *server) Accept(ctx context.Context, id, digest string, commandLine bool) (httpapi.Proposal, error) {
	list, err := s.Proposals(ctx)
	if err != nil {
		return httpapi.Proposal{}, err
	}
	i := slices.IndexFunc(list, func(p httpapi.Proposal) bool { return p.ID == id })
	switch {
	case i < 0:
		return httpapi.Proposal{}, noProposal(id)
	case list[i].Digest == "":
		return list[i], tenon.Errorf(tenon.CodeConflict, "the change cannot be made any more: %s", list[i].Note)
	case list[i].Digest != digest:
		return list[i], tenon.Errorf(tenon.CodeConflict, "the change is another one than you have seen; look at it "+
			"again: %s", list[i].Command)
	case list[i].CommandLine && !commandLine:
		return list[i], tenon.Errorf(tenon.CodeDenied, "this change starts a program, sends data or opens tenon to "+
			"others, and only the command line agrees to that; run: %s", list[i].Command)
	}
	if id == reloadID {
		err = s.ask(ctx, digest)
		list[i].State = httpapi.ProposalAccepted
		s.tell(list[i], commandLine, err)
		return list[i], err
	}
	s.mu.Lock()
	at := slices.IndexFunc(s.open, func(p proposed) bool { return p.id == id })
	if at < 0 {
		s.mu.Unlock()
		return httpapi.Proposal{}, noProposal(id)
	}
	p := s.open[at]
	s.mu.Unlock()
	v, err := s.enact(ctx, p, digest)
	s.tell(v, commandLine, err)
	if err != nil {
		return v, err
	}
	s.forget(id)
	return v, nil
}

// tell logs that the owner agreed to a change.
func (s *server) tell(p httpapi.Proposal, commandLine bool, err error) {
	if err != nil {
		return // the caller gets the error
	}
	where := "workbench or HTTP API"
	if commandLine {
		where = "command line"
	}
	s.log().Info("the owner agreed to a change of the configuration", "id", p.ID, "by", string(p.By), "file", p.File,
		"from", where)
}

// log returns the logger of the current host.
func (s *server) log() *slog.Logger { return s.logger.Load() }

func noProposal(id string) error {
	return tenon.Errorf(tenon.CodeNotFound, "there is no proposal '%s'; tenon proposals lists them", tenon.Visible(id))
}

// forget drops a proposal and reports whether it existed.
func (s *server) forget(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.open)
	s.version.Add(1)
	s.open = slices.DeleteFunc(s.open, func(p proposed) bool { return p.id == id })
	return len(s.open) < n
}

// Reject implements [httpapi.Editor].
func (s *server) Reject(ctx context.Context, id string) (httpapi.Proposal, error) {
	list, err := s.Proposals(ctx)
	if err != nil {
		return httpapi.Proposal{}, err
	}
	for _, p := range list {
		switch {
		case p.ID != id:
		case id == reloadID:
			return p, tenon.Errorf(tenon.CodeInvalid, "these changes are in the files already, and none of them "+
				"holds; change %s back to be rid of them", p.File)
		case s.forget(id):
			p.State = httpapi.ProposalRejected
			return p, nil
		}
	}
	return httpapi.Proposal{}, noProposal(id)
}

// written notes why a change that the file has is not used. The change stays in the list until a reload uses the file.
func (s *server) written(id, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version.Add(1)
	for i := range s.open {
		if s.open[i].id == id {
			s.open[i].unused = why
		}
	}
}

// enact writes a change that the owner agreed to, and loads it. It reads the files again before it writes them, so that
// the change is based on the configuration in use.
func (s *server) enact(ctx context.Context, p proposed, digest string) (httpapi.Proposal, error) {
	s.editing.Lock()
	defer s.editing.Unlock()
	if err := s.ask(ctx, ""); err != nil {
		return httpapi.Proposal{}, err
	}
	plan, v, err := s.view(ctx, p)
	if err != nil {
		return v, err
	}
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	switch {
	case held != nil:
		return v, tenon.Errorf(tenon.CodeConflict, "%s has changes that are held back; agree to those first: %s",
			plan.File, s.a.again("proposals accept", reloadID))
	case v.Digest != digest:
		return v, tenon.Errorf(tenon.CodeConflict, "%s was changed meanwhile; look at the change again: %s",
			plan.File, v.Command)
	}
	if _, err := s.a.ownWrite(ctx, s.a.configOptions(), plan, p.edits); err != nil {
		return v, err
	}
	if err := s.ask(ctx, ""); err != nil {
		err = tenon.Errorf(tenon.ErrorCode(err), "%s is written, but tenon serve does not use it yet: %w", plan.File,
			err)
		s.written(p.id, err.Error())
		return v, err
	}
	v.State = httpapi.ProposalAccepted
	return v, nil
}

// SetKey implements [httpapi.Keys]. The configuration is opened again, so that questions use the key.
func (s *server) SetKey(ctx context.Context, provider string, key tenon.Secret) error {
	if err := s.a.modelKeys().Set(provider, key); err != nil {
		return err
	}
	s.log().Info("the kept key of a provider has changed", "provider", provider, "removed", key.IsZero())
	return s.order(ctx, order{again: true, done: make(chan error, 1)})
}

// HasKey implements [httpapi.Keys].
func (s *server) HasKey(provider string) bool { return s.a.modelKeys().Has(provider) }

// Version implements [httpapi.Editor].
func (s *server) Version() uint64 { return s.version.Load() }

// ask makes the main loop load the configuration again and accept the changes with this digest. If digest is "", no
// changes are accepted.
func (s *server) ask(ctx context.Context, digest string) error {
	return s.order(ctx, order{accept: digest, done: make(chan error, 1)})
}

// order makes the main loop load the configuration again, and waits until it has done so.
func (s *server) order(ctx context.Context, o order) error {
	select {
	case s.again <- o:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// order asks the main loop for a reload.
type order struct {
	accept string // digest of the changes that the owner agrees to
	again  bool   // even without changes, because secrets have changed
	done   chan error
}

// heldText describes the changes that are held back, for the log.
func heldText(u *config.Update) string {
	starts := 0
	for _, d := range u.Held {
		if d.Starts {
			starts++
		}
	}
	text := fmt.Sprintf("%d changes of the configuration are held back until you agree", len(u.Held))
	if len(u.Held) == 1 {
		text = "1 change of the configuration is held back until you agree"
	}
	if starts > 0 {
		text += fmt.Sprintf(" (%d would start, send or open something)", starts)
	}
	return text
}

var _ httpapi.Editor = (*server)(nil)
