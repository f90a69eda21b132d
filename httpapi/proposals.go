package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// Editor changes the configuration of a running tenon. API requests only propose changes. A change takes effect when
// the owner has agreed to exactly this change; see docs/decisions/0014-serve-edits.md. All methods are safe for
// concurrent use.
type Editor interface {
	// Plan returns what a change would write, without writing it.
	Plan(ctx context.Context, e config.Edits) (*config.Plan, error)
	// Propose stores a change until the owner agrees. If the configuration allows changes without agreement, Propose
	// makes it at once, and Proposal.State is ProposalAccepted.
	Propose(ctx context.Context, e config.Edits, by tenon.Principal) (Proposal, error)
	// Proposals lists the changes that wait for the owner's agreement, oldest first.
	Proposals(ctx context.Context) ([]Proposal, error)
	// Accept makes a proposed change. digest must be the digest of the change that the owner has seen. commandLine
	// means that the agreement comes from the command line of this machine. Errors: not_found, conflict (the change is
	// different now), denied (only the command line may agree).
	Accept(ctx context.Context, id, digest string, commandLine bool) (Proposal, error)
	// Reject drops a proposal. Errors: not_found, invalid (a change of files on disk).
	Reject(ctx context.Context, id string) (Proposal, error)
	// Version returns a number that changes with the configuration and with the open proposals.
	Version() uint64
}

// The kinds of proposals.
const (
	ProposalEdit   = "edit"   // a request of the API wants to change a file
	ProposalReload = "reload" // files were changed on disk
)

// The states of proposals.
const (
	ProposalOpen     = "open"
	ProposalAccepted = "accepted"
	ProposalRejected = "rejected"
)

// Proposal is a change of the configuration that waits for the owner's agreement.
type Proposal struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind"`         // edit or reload
	State   string          `json:"state"`        // open, accepted or rejected
	By      tenon.Principal `json:"by,omitempty"` // for an edit: the sender of the request
	Created time.Time       `json:"created"`
	Expires *time.Time      `json:"expires,omitempty"` // for an edit: the time at which it is dropped
	File    string          `json:"file"`              // the project's file
	// Digest identifies exactly this change; see [Editor].Accept.
	Digest string `json:"digest"`
	// Differences are the changes of single values, most dangerous first.
	Differences []config.Difference `json:"differences"`
	// Files are the changed files with their complete text before and after.
	Files []config.FileChange `json:"files"`
	// CommandLine means that only the command line may agree, because the change starts a program, calls an address,
	// sends a secret or opens tenon to other users.
	CommandLine bool `json:"command_line"`
	// Command is the command that shows the change and asks for the agreement.
	Command string `json:"command"`
	// Note is a remark for the owner, for example the reason why no part of the change is in effect yet.
	Note string `json:"note,omitempty"`
}

// AcceptRequest is the body of POST /api/v1/config/proposals/{id}/accept.
type AcceptRequest struct {
	Digest string `json:"digest"`
}

// editor returns the editor. Errors: invalid if the file cannot be changed over HTTP.
func (c *call) editor() (Editor, error) {
	if c.cfg.Editor == nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the project's file cannot be changed from here: there is none, "+
			"or this tenon was not started with it")
	}
	return c.cfg.Editor, nil
}

func (c *call) proposals() error {
	var open []Proposal
	if c.cfg.Editor != nil {
		list, err := c.cfg.Editor.Proposals(c.ctx())
		if err != nil {
			return err
		}
		open = list
	}
	return c.answer(http.StatusOK, items(open))
}

// findProposal returns the proposal in the request's path.
func (c *call) findProposal() (Editor, Proposal, error) {
	e, err := c.editor()
	if err != nil {
		return nil, Proposal{}, err
	}
	list, err := e.Proposals(c.ctx())
	if err != nil {
		return nil, Proposal{}, err
	}
	id := c.req.PathValue("id")
	for _, p := range list {
		if p.ID == id {
			return e, p, nil
		}
	}
	return nil, Proposal{}, tenon.Errorf(tenon.CodeNotFound, "there is no proposal '%s'", tenon.Visible(id))
}

func (c *call) proposal() error {
	_, p, err := c.findProposal()
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, p)
}

// acceptProposal agrees to a change. The request must contain the digest of the change that the user has seen. If the
// change is different now, nothing happens. Pages of other origins may propose changes but not accept them.
func (c *call) acceptProposal() error {
	var r AcceptRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	if r.Digest == "" {
		return tenon.Errorf(tenon.CodeInvalid, "the digest is missing: send the digest of the proposal that was shown")
	}
	if o := c.req.Header.Get("Origin"); o != "" && !c.isOwnOrigin(o) {
		return refuse(http.StatusForbidden, tenon.CodeDenied, "only tenon's own pages may accept changes, not pages "+
			"of origin '%s'", o)
	}
	e, p, err := c.findProposal()
	if err != nil {
		return err
	}
	if p, err = e.Accept(c.ctx(), p.ID, r.Digest, c.cfg.CommandLine); err != nil {
		return err
	}
	return c.answer(http.StatusOK, p)
}

func (c *call) rejectProposal() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	e, p, err := c.findProposal()
	if err != nil {
		return err
	}
	if p, err = e.Reject(c.ctx(), p.ID); err != nil {
		return err
	}
	return c.answer(http.StatusOK, p)
}

// propose proposes changes of the project's file. If dry, it only plans them and answers with the result.
func (c *call) propose(edits config.Edits, dry bool) error {
	e, err := c.editor()
	if err != nil {
		return err
	}
	edits.Create = true
	if dry {
		p, err := e.Plan(c.ctx(), edits)
		if err != nil {
			return asRequested(err)
		}
		return c.answer(http.StatusOK, editedOf(p.FileChanges(), false))
	}
	p, err := e.Propose(c.ctx(), edits, c.caller.Principal)
	if err != nil {
		return asRequested(err)
	}
	if p.State == ProposalAccepted {
		return c.answer(http.StatusOK, editedOf(p.Files, true))
	}
	c.w.Header().Set("Location", prefix+"/config/proposals/"+p.ID)
	return c.answer(http.StatusAccepted, p)
}

// asRequested changes the code config of an error to invalid. The request asked for a bad configuration, so the answer
// must be 400; the configuration in use is valid.
func asRequested(err error) error {
	if tenon.ErrorCode(err) == tenon.CodeConfig {
		return &tenon.Error{Code: tenon.CodeInvalid, Message: err.Error(), Err: err}
	}
	return err
}
