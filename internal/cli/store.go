package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

func newStore(a *app) *cobra.Command {
	cmd := group("store", "Store: check, back up, repair, compact, copy; adopt data that others wrote")
	cmd.AddCommand(newStoreCheck(a), newStoreBackup(a), newStoreRestore(a), newStoreRepair(a), newStoreCompact(a),
		newStoreCopy(a), newStoreShow(a), newStoreAdopt(a))
	return cmd
}

func newStoreShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show data in the store that others wrote",
		Long: "Shows the data in the store without your signature: runs, permanent approvals, pending decisions,\n" +
			"pins and kept results that another user or an older tenon wrote. They have no effect until you\n" +
			"adopt them.",
		Example: "  tenon store show\n  tenon store show -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			f, err := h.Service().Storage().Foreign(cmd.Context())
			if err != nil {
				return err
			}
			v := viewForeign(host.StorePath(a.storeConfig(h)), &f)
			if a.isJSON() {
				return a.printJSON(v)
			}
			return a.write([]byte(v.text(a)))
		},
	}
}

func newStoreAdopt(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Trust data in the store that others wrote",
		Long: "Makes everything in the store yours: permanent approvals and pins take effect, and runs that have\n" +
			"not ended can resume. Shows the data and asks first; without a terminal it needs --yes.",
		Example: "  tenon store adopt",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			f, err := h.Service().Storage().Foreign(cmd.Context())
			if err != nil {
				return err
			}
			v := viewForeign(host.StorePath(a.storeConfig(h)), &f)
			if f.IsEmpty() {
				return a.did(v, "nothing to adopt: everything in %s is yours", safeLine(v.Path))
			}
			if err := a.agreeToAdopt(cmd, h, v, yes); err != nil {
				return err
			}
			if err := h.Service().Storage().Adopt(cmd.Context(), f.Digest); err != nil {
				return err
			}
			return a.did(v, "adopted: everything in %s is yours", safeLine(v.Path))
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// storeConfig returns the settings that determine the place of a host's store.
func (a *app) storeConfig(h *host.Host) host.Config {
	return host.Config{Config: h.Service().Info().Config, Home: a.home, LookupEnv: a.lookupEnv}
}

// agreeToAdopt shows the data that would take effect and asks the person. Errors: waiting if there is no terminal,
// cancelled.
func (a *app) agreeToAdopt(cmd *cobra.Command, h *host.Host, v foreignView, yes bool) error {
	if yes && !forbids(h.Service().Info().Config, "yes") {
		return nil
	}
	a.note("%s", strings.TrimRight(v.text(a), "\n"))
	if !a.canAsk() {
		return tenon.Errorf(tenon.CodeWaiting, "nobody has agreed to adopt %s; agree on a terminal, or with --yes",
			safeLine(v.Path))
	}
	ok, err := a.yesOrNo(cmd.Context(), "Trust all of this as your own? [y]es / [n]o: ")
	switch {
	case err != nil:
		return tenon.Errorf(tenon.CodeCancelled, "nothing was adopted: nobody answered")
	case !ok:
		return tenon.Errorf(tenon.CodeCancelled, "nothing was adopted")
	}
	return nil
}

// foreignView is the output of tenon store show.
type foreignView struct {
	Path    string         `json:"path"`
	Digest  string         `json:"digest,omitempty"` // of all unsigned data
	Counts  foreignCounts  `json:"foreign"`
	Grants  []foreignGrant `json:"grants"`  // that would take effect
	Runs    []foreignRun   `json:"runs"`    // that would resume
	Signals []foreignSign  `json:"signals"` // that would reach a run
	Pins    map[string]int `json:"pins"`    // server → number of definitions
}

type foreignCounts struct {
	Runs    int `json:"runs"`
	Events  int `json:"journal_rows"`
	Signals int `json:"signals"`
	Results int `json:"kept_results"`
	Pins    int `json:"pins"`
	Grants  int `json:"grants"`
	// Sessions is the number of sessions whose owner has no valid signature.
	Sessions int `json:"sessions"`
}

type foreignGrant struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Server    string    `json:"server"`
	ServerID  string    `json:"server_id,omitempty"`
	Remote    string    `json:"remote_name"`
	If        string    `json:"if,omitempty"`
	Uses      int       `json:"uses,omitempty"`
	Used      int       `json:"used,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	By        string    `json:"by,omitempty"`
}

type foreignRun struct {
	ID      string         `json:"id"`
	Title   string         `json:"title,omitempty"`
	State   string         `json:"state"`
	Waiting []agent.Asking `json:"waiting,omitempty"`
}

type foreignSign struct {
	Run  string          `json:"run"`
	Step string          `json:"step,omitempty"`
	Kind string          `json:"kind"`
	By   string          `json:"by,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

func viewForeign(path string, f *host.Foreign) foreignView {
	v := foreignView{Path: path, Digest: f.Digest, Grants: []foreignGrant{}, Runs: []foreignRun{},
		Signals: []foreignSign{}, Pins: f.Pinned,
		Counts: foreignCounts{f.Runs, f.Events, f.Signals, f.Results, f.Pins, f.Grants, f.Sessions}}
	for i := range f.Granted {
		g := &f.Granted[i]
		v.Grants = append(v.Grants, foreignGrant{ID: g.ID, Principal: string(g.Principal), Server: g.Name,
			ServerID: g.Server, Remote: g.Remote,
			If: g.Condition, Uses: g.Uses, Used: g.Used, Expires: g.Expires, By: g.By})
	}
	for _, r := range f.Unended {
		run := foreignRun{ID: r.ID, Title: r.Title, State: string(r.State)}
		for _, w := range r.Waiting {
			if asked, ok := view.Asking(w); ok {
				run.Waiting = append(run.Waiting, asked)
			}
		}
		v.Runs = append(v.Runs, run)
	}
	for _, g := range f.Open {
		v.Signals = append(v.Signals, foreignSign{g.Run, g.Step, g.Kind, g.By, g.Data})
	}
	return v
}

// text returns all unsigned data as text.
func (v foreignView) text(a *app) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	c := v.Counts
	line("store  %s", safeLine(v.Path))
	if c == (foreignCounts{}) {
		line("Everything in it is yours.")
		return b.String()
	}
	line("Somebody else wrote %s, %s, %s, %s, %s and %s into it, or an older tenon did.",
		plural(c.Runs, "run"), plural(c.Grants, "permanent approval"), plural(c.Signals, "signal"),
		plural(c.Pins, "pin"), plural(c.Results, "kept result"), plural(c.Sessions, "session"))
	line("They count for nothing until you adopt the store: tenon store adopt")
	if len(v.Grants) > 0 {
		line("\nThese calls would not ask any more:")
	}
	for _, g := range v.Grants {
		kept := host.Grant{}
		kept.Condition, kept.Uses, kept.Used, kept.Expires = g.If, g.Uses, g.Used, g.Expires
		limits := a.grantLimits(kept)
		if g.ServerID == "" {
			limits = "none: an older tenon kept it, and the tool asks again"
		}
		line("  %s  %s.%s for %s: %s", safeLine(g.ID), safeLine(g.Server), safeLine(g.Remote), safeLine(g.Principal),
			safeLine(limits))
	}
	if len(v.Runs) > 0 {
		line("\nThese runs would go on:")
	}
	for _, r := range v.Runs {
		line("  %s  %s  %s", safeLine(r.ID), safeLine(r.State), safeLine(r.Title))
		for _, w := range r.Waiting {
			line("      waits: %s.%s %s", safeLine(w.Server), safeLine(w.Remote), safeLine(string(w.Arguments)))
		}
	}
	if len(v.Signals) > 0 {
		line("\nThese signals would be taken:")
	}
	for _, g := range v.Signals {
		line("  %s %s by %s: %s %s", safeLine(g.Run), safeLine(g.Step), safeLine(g.By), safeLine(g.Kind),
			safeLine(string(g.Data)))
	}
	if len(v.Pins) > 0 {
		line("\nThe tools of these servers would be taken as accepted:")
	}
	for _, server := range slices.Sorted(maps.Keys(v.Pins)) {
		line("  %s  %s", safeLine(server), plural(v.Pins[server], "definition"))
	}
	return b.String()
}
