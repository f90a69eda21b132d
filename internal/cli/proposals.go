package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

func newProposals(a *app) *cobra.Command {
	cmd := group("proposals", "Pending changes of a server: list, show, accept, reject", "proposal")
	cmd.AddCommand(remotely(newProposalsList(a)), remotely(newProposalsShow(a)), remotely(newProposalsAccept(a)),
		remotely(newProposalsReject(a)))
	return cmd
}

func newProposalsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List changes that need your agreement",
		Long: "Lists the configuration changes that a running tenon serve holds back. They come from requests to\n" +
			"its HTTP API or from edits of the files. A change that only tightens rules takes effect at once\n" +
			"and is not listed.",
		Example: "  tenon proposals list\n  tenon proposals list -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := a.proposals(cmd.Context())
			if err != nil {
				return err
			}
			return printList(a, list, []string{"id", "by", "file", "changes", "accept"},
				func(p httpapi.Proposal) []string {
					by, how := string(p.By), "here or in the workbench"
					if p.Kind == httpapi.ProposalReload {
						by = "changed on disk"
					}
					if p.CommandLine {
						how = "here"
					}
					return []string{p.ID, by, p.File, shorten(changedPaths(p), 60), how}
				})
		},
	}
}

// changedPaths lists the configuration keys that a proposal changes.
func changedPaths(p httpapi.Proposal) string {
	var paths []string
	for _, d := range p.Differences {
		if !slices.Contains(paths, d.Path) {
			paths = append(paths, d.Path)
		}
	}
	return strings.Join(paths, ", ")
}

func newProposalsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show the differences of a change",
		Long: "Shows a change value by value. Values that start a program, call an address, send a secret or open\n" +
			"tenon to others come first. Nothing is cut. ID is an id from tenon proposals list, or its beginning.",
		Example: "  tenon proposals show reload\n  tenon proposals show prp_06d8 -o json",
		Args:    args(1, 1, "the proposal's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.findProposal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.isJSON() {
				return a.printJSON(p)
			}
			return a.printText(strings.Join(proposalLines(p), "\n"))
		},
	}
}

func newProposalsAccept(a *app) *cobra.Command {
	var digest string
	cmd := &cobra.Command{
		Use:   "accept ID",
		Short: "Accept a change, which then takes effect",
		Long: "Shows a change as tenon proposals show does and asks for your agreement. Without a terminal, give\n" +
			"the digest that tenon proposals show ID -o json prints. It ensures that you agree to exactly that\n" +
			"change.",
		Example: "  tenon proposals accept reload\n  tenon proposals accept prp_06d8 --digest sha256:...",
		Args:    args(1, 1, "the proposal's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.acceptProposal(cmd.Context(), args[0], digest)
		},
	}
	cmd.Flags().StringVar(&digest, "digest", "", "accept the change with this `DIGEST` without asking")
	return cmd
}

func newProposalsReject(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reject ID",
		Short: "Reject a change that a request proposed",
		Long: "Rejects a change that a request to the HTTP API proposed. To reject an edit of the files, change the\n" +
			"files back; the edit has no effect until you accept it.",
		Example: "  tenon proposals reject prp_06d8",
		Args:    args(1, 1, "the proposal's id"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p, err := a.findProposal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.atServe(cmd.Context(), func(c *httpapi.Client) error {
				if _, err := c.RejectProposal(cmd.Context(), p.ID); err != nil {
					return err
				}
				return a.did(map[string]string{"id": p.ID, "state": httpapi.ProposalRejected}, "Dropped %s", p.ID)
			})
		},
	}
}

// acceptProposal accepts a change after the person has seen it.
func (a *app) acceptProposal(ctx context.Context, id, digest string) error {
	p, err := a.findProposal(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case digest != "" && digest != p.Digest:
		return tenon.Errorf(tenon.CodeConflict, "%s is another change now; look at it again: %s", p.ID,
			a.again("proposals show", p.ID))
	case p.Digest == "":
		return tenon.Errorf(tenon.CodeConflict, "%s cannot be accepted: %s", p.ID, p.Note)
	case digest == "":
		lines := proposalLines(p)
		if !a.canAsk() {
			return tenon.Errorf(tenon.CodeWaiting, "%s\n\nNobody can be asked here. If you agree, run: %s",
				strings.Join(lines, "\n"), a.again("proposals accept", p.ID, "--digest", p.Digest))
		}
		for _, l := range lines {
			a.note("%s", l)
		}
		ok, err := a.yesOrNo(ctx, "Do you agree? [y]es / [n]o: ")
		if err != nil {
			return err
		}
		if !ok {
			return tenon.Errorf(tenon.CodeDenied, "%s is not accepted, and nothing has changed", p.ID)
		}
	}
	return a.atServe(ctx, func(c *httpapi.Client) error {
		if _, err := c.AcceptProposal(ctx, p.ID, p.Digest); err != nil {
			return err
		}
		return a.did(map[string]string{"id": p.ID, "state": httpapi.ProposalAccepted}, "Accepted %s; it holds now",
			p.ID)
	})
}

// proposalLines formats a change. It never cuts values.
func proposalLines(p httpapi.Proposal) []string {
	head := "Files were changed on disk, and these changes do not hold yet."
	if p.Kind == httpapi.ProposalEdit {
		head = fmt.Sprintf("A request of '%s' wants to change %s.", safeLine(string(p.By)), safeLine(p.File))
	}
	lines := []string{head}
	groups := []struct {
		heading string
		is      func(config.Difference) bool
	}{
		{"Starts, sends or opens something:", func(d config.Difference) bool { return d.Starts }},
		{"Loosens a rule:", func(d config.Difference) bool { return !d.Starts && d.Effect == config.Loosens }},
		{"Other changes:", func(d config.Difference) bool { return !d.Starts && d.Effect != config.Loosens }},
	}
	for _, g := range groups {
		first := true
		for _, d := range p.Differences {
			if !g.is(d) {
				continue
			}
			if first {
				lines = append(lines, "", g.heading)
				first = false
			}
			lines = append(lines, differenceLines(d)...)
		}
	}
	if p.Note != "" {
		lines = append(lines, "", "Note: "+safeLine(p.Note))
	}
	return lines
}

// differenceLines formats one difference.
func differenceLines(d config.Difference) []string {
	where := "  " + safeLine(d.Path)
	if d.Layer == config.LayerUser {
		where += " (your own file)"
	}
	lines := []string{where}
	if d.Before != "" {
		lines = append(lines, "    - "+safeLine(d.Before))
	}
	if d.After != "" {
		lines = append(lines, "    + "+safeLine(d.After))
	}
	return lines
}

// proposals returns the pending changes of the running tenon serve.
func (a *app) proposals(ctx context.Context) (list []httpapi.Proposal, err error) {
	err = a.atServe(ctx, func(c *httpapi.Client) error {
		list, err = c.Proposals(ctx)
		return err
	})
	return list, err
}

// findProposal finds a proposal by its id or a prefix of its id.
func (a *app) findProposal(ctx context.Context, id string) (httpapi.Proposal, error) {
	list, err := a.proposals(ctx)
	if err != nil {
		return httpapi.Proposal{}, err
	}
	found := byID(list, id, func(p httpapi.Proposal) string { return p.ID })
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return httpapi.Proposal{}, tenon.Errorf(tenon.CodeNotFound, "there is no proposal '%s'; %s lists them",
			tenon.Visible(id), a.again("proposals", "list"))
	}
	return httpapi.Proposal{}, tenon.Errorf(tenon.CodeInvalid, "'%s' is the beginning of %d proposals; write more "+
		"of the id", tenon.Visible(id), len(found))
}

// atServe calls the tenon serve of this project or of --remote. The configuration may have moved the store since tenon
// serve started, so atServe also tries the default socket.
func (a *app) atServe(ctx context.Context, f func(*httpapi.Client) error) error {
	if a.remote != "" {
		c, err := a.client(ctx)
		if err == nil {
			err = f(c)
		}
		return err
	}
	c, err := a.client(ctx)
	if err == nil {
		if err = f(c); tenon.ErrorCode(err) != tenon.CodeUnreachable {
			return err
		}
	}
	if usual := a.usualSocket(); usual != "" {
		if again := f(httpapi.NewClient(usual)); tenon.ErrorCode(again) != tenon.CodeUnreachable {
			return again
		}
	}
	return err
}

// usualSocket returns the default socket, next to the project's file.
func (a *app) usualSocket() string {
	path := config.FileOf(a.configOptions())
	if path == "" || a.home != "" {
		return ""
	}
	return host.Socket(host.Config{Config: &config.Config{Path: path, Dir: filepath.Dir(path)}, LookupEnv: a.lookupEnv})
}
