package cli

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

func newSessionsRename(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rename SESSION TITLE",
		Short: "Rename a conversation",
		Long: "Changes the title of a conversation. The first title is the first question. SESSION is an id, the\n" +
			"beginning of one, or -1 for the last.",
		Example: "  tenon sessions rename -1 \"Weather report\"",
		Args:    args(2, 2, "the session or its title"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			s, err := h.Sessions().Rename(cmd.Context(), ref(args), args[1])
			if err != nil {
				return err
			}
			return a.did(s, "session %s is now: %s", s.ID, safeLine(s.Title))
		},
	}
}

func newSessionsDelete(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete SESSION...",
		Short: "Delete conversations completely",
		Long: "Deletes sessions with their runs, events, results and search index. The store's files contain no\n" +
			"trace of them afterwards. Shows the sessions and asks first; without a terminal it needs --yes. A\n" +
			"session with forks cannot be deleted before its forks. SESSION is an id, the beginning of one, or\n" +
			"-1 for the last.",
		Example: "  tenon sessions delete -1\n  tenon sessions delete ses_06gzt2 ses_06gzt3 --yes",
		Args:    args(1, 1000, "the session"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.desk(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			var list []tenon.Session
			for i := range args {
				s, err := h.Sessions().Get(cmd.Context(), ref(args[i:]))
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(list, func(o tenon.Session) bool { return o.ID == s.ID }) {
					list = append(list, s)
				}
			}
			// Forks are deleted before their parents.
			slices.SortStableFunc(list, func(a, b tenon.Session) int { return b.Created.Compare(a.Created) })
			if err := a.agreeToDelete(cmd, list, yes); err != nil {
				return err
			}
			for i, s := range list {
				if err := h.Sessions().Delete(cmd.Context(), s.ID); err != nil {
					if i > 0 {
						a.note("%s deleted before the error", plural(i, "session"))
					}
					return err
				}
			}
			return a.deleted(list)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// agreeToDelete lists the sessions and asks the person.
func (a *app) agreeToDelete(cmd *cobra.Command, list []tenon.Session, yes bool) error {
	switch {
	case yes || len(list) == 0:
		return nil
	case !a.canAsk():
		return usage(cmd, "%s would be deleted permanently; without a terminal this needs --yes",
			plural(len(list), "session"))
	}
	for _, s := range list {
		a.note("%s  %s  %s  %s", s.ID, plural(s.Runs, "run"), a.when(s.Updated), shorten(safeLine(s.Title), 60))
	}
	ok, err := a.yesOrNo(cmd.Context(), "delete "+plural(len(list), "session")+" for good? [y]es / [n]o: ")
	switch {
	case err != nil:
		return tenon.Errorf(tenon.CodeCancelled, "nothing was deleted: nobody answered")
	case !ok:
		return tenon.Errorf(tenon.CodeCancelled, "nothing was deleted")
	}
	return nil
}

func (a *app) deleted(list []tenon.Session) error {
	if a.isJSON() {
		ids := []string{}
		for _, s := range list {
			ids = append(ids, s.ID)
		}
		return a.printJSON(map[string]any{"deleted": ids})
	}
	return a.printText(plural(len(list), "session") + " deleted")
}

func newSessionsPrune(a *app) *cobra.Command {
	var age duration
	var dry, yes bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete conversations that are older than a limit",
		Long: "Deletes sessions whose last change is older than --older-than, or than store.retention of the\n" +
			"configuration, which tenon serve applies every hour. Sessions with a run that has not ended are\n" +
			"kept, as are sessions that a younger session was forked from. Shows the sessions and asks first;\n" +
			"without a terminal it needs --yes.",
		Example: "  tenon sessions prune --older-than 30d --dry-run\n  tenon sessions prune --older-than 90d --yes",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			if age == 0 {
				age = duration(h.Service().Info().Config.Store.Retention)
			}
			if age == 0 {
				return usage(cmd, "an age is missing; give --older-than, such as 30d, or set store.retention")
			}
			return a.prune(cmd, h, time.Duration(age), dry, yes)
		},
	}
	cmd.Flags().Var(&age, "older-than", "`TIME` since the last change, such as 30d or 12h (default: store.retention)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be deleted")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) prune(cmd *cobra.Command, h *host.Host, age time.Duration, dry, yes bool) error {
	list, err := h.Service().Storage().Stale(cmd.Context(), age)
	switch {
	case err != nil:
		return err
	case dry:
		return a.listSessions(list)
	}
	if err := a.agreeToDelete(cmd, list, yes); err != nil {
		return err
	}
	gone, err := h.Service().Storage().Prune(cmd.Context(), list, a.deleting(len(list)))
	if err != nil {
		if len(gone) > 0 {
			a.note("%s deleted before the error", plural(len(gone), "session"))
		}
		return err
	}
	return a.deleted(gone)
}

// deleting prints the progress of a long deletion on a terminal.
func (a *app) deleting(total int) func(deleted int) {
	progress := a.every("deleting: %d of %d sessions")
	if progress == nil {
		return nil
	}
	return func(deleted int) { progress(deleted, total) }
}

// listSessions prints sessions as a list.
func (a *app) listSessions(list []tenon.Session) error {
	return printList(a, list, []string{"session", "agent", "runs", "updated", "parent", "title"},
		func(s tenon.Session) []string {
			return []string{s.ID, s.Agent, strconv.Itoa(s.Runs), a.when(s.Updated), s.Parent, s.Title}
		})
}

// duration is a flag for a time, which may be in days.
type duration time.Duration

// Set implements [pflag.Value].
func (d *duration) Set(s string) error {
	v, err := config.ParseDuration(s)
	if err == nil && v <= 0 {
		err = tenon.Errorf(tenon.CodeInvalid, "it must be positive")
	}
	*d = duration(v)
	return err
}

// String implements [pflag.Value].
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type implements [pflag.Value].
func (d *duration) Type() string { return "duration" }

var _ pflag.Value = (*duration)(nil)
