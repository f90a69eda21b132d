package transcript

import (
	"context"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// The bounds of values in rows, in bytes.
const (
	maxRowTitle = 4 * maxTitle
	maxRowName  = 512
	maxRowID    = 2048
)

// badImport returns the error for an invalid file.
func badImport(format string, args ...any) error {
	return tenon.Errorf(tenon.CodeInvalid, "the file cannot be imported: "+format, args...)
}

// checkIDs checks that the ids of sessions and runs are well-formed and unique.
func (d *document) checkIDs() error {
	if len(d.Sessions) > maxListed || len(d.Runs) > maxListed {
		return tenon.Errorf(tenon.CodeTooLarge, "the file has %d sessions and %d runs; %d is the limit for each",
			len(d.Sessions), len(d.Runs), maxListed)
	}
	seen := map[string]bool{}
	for i, s := range d.Sessions {
		switch {
		case !sessionShape().MatchString(s.ID):
			return badImport("session %d has the invalid id %q", i+1, tenon.Truncate(s.ID, maxTitle))
		case s.Parent != "" && !sessionShape().MatchString(s.Parent):
			return badImport("session %s was forked from %q, which is not an id", s.ID,
				tenon.Truncate(s.Parent, maxTitle))
		case seen[s.ID]:
			return badImport("session %s occurs twice", s.ID)
		}
		seen[s.ID] = true
	}
	if !seen[d.Session] {
		return badImport("it names session %q, which it does not contain", tenon.Truncate(d.Session, maxTitle))
	}
	for i, r := range d.Runs {
		switch {
		case len(r.Run.ID) > maxRowID || !runShape().MatchString(r.Run.ID):
			return badImport("run %d has the invalid id %q", i+1, tenon.Truncate(r.Run.ID, maxTitle))
		case seen[r.Run.ID]:
			return badImport("run %s occurs twice", r.Run.ID)
		}
		seen[r.Run.ID] = true
	}
	return nil
}

// unpack reads the file of a workflow; see [Config.Unpack].
type unpack = func(name string, data []byte) (*workflow.Workflow, error)

// check validates the whole document.
func (d *document) check(ctx context.Context, u unpack) error {
	runs := make(map[string]*documentRun, len(d.Runs))
	for i := range d.Runs {
		runs[d.Runs[i].Run.ID] = &d.Runs[i]
	}
	if err := d.checkSessions(runs); err != nil {
		return err
	}
	blobs, sessions := map[string]bool{}, map[string]bool{}
	for _, s := range d.Sessions {
		sessions[s.ID] = true
	}
	for _, b := range d.Blobs {
		blobs[b.Digest] = false
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		if err := r.checkJournal(); err != nil {
			return err
		}
		if err := r.checkSpec(); err != nil {
			return err
		}
		if err := r.checkPlace(sessions, runs); err != nil {
			return err
		}
		for _, digest := range blobsOf(r.journal()) {
			if _, ok := blobs[digest]; !ok {
				return badImport("run %s needs the blob %q, which the file does not contain", r.Run.ID,
					tenon.Truncate(digest, maxTitle))
			}
			blobs[digest] = true
			r.uses = append(r.uses, digest)
		}
	}
	for digest, used := range blobs {
		if !used {
			return badImport("no run uses blob %s", digest)
		}
	}
	return d.fold(ctx, u)
}

// checkSessions checks the rows of sessions, and that forks form no cycle.
func (d *document) checkSessions(runs map[string]*documentRun) error {
	parents := map[string]string{}
	for i := range d.Sessions {
		s := &d.Sessions[i]
		if err := checkRow("session "+s.ID, s.Created, s.Updated, s.Title, s.Agent, string(s.Principal)); err != nil {
			return err
		}
		parents[s.ID] = s.Parent
		if s.Head == "" {
			if s.HeadSeq != 0 {
				return badImport("session %s continues an event, but no run", s.ID)
			}
			continue
		}
		head := runs[s.Head]
		switch {
		case head == nil || head.Run.Caller != "" || head.Run.Core != agent.Version:
			return badImport("session %s continues %q, which is not a question in the file", s.ID,
				tenon.Truncate(s.Head, maxTitle))
		case s.HeadSeq > uint64(len(head.Events)):
			return badImport("session %s continues event %d of run %s, which has %d events", s.ID, s.HeadSeq, s.Head,
				len(head.Events))
		}
	}
	seen := map[string]string{} // session → the session whose ancestors were followed when it was reached
	for _, s := range d.Sessions {
		for at := s.ID; at != "" && seen[at] != s.ID; at = parents[at] {
			if seen[at] != "" {
				break // its ancestors are already checked
			}
			seen[at] = s.ID
			if parents[at] != "" && seen[parents[at]] == s.ID {
				return badImport("session %s was forked from itself, through other sessions", s.ID)
			}
		}
	}
	return nil
}

// checkRow checks the fields that sessions and runs share.
func checkRow(what string, created, updated time.Time, title string, names ...string) error {
	if len(title) > maxRowTitle {
		return badImport("the title of %s has %d bytes; %d is the limit", what, len(title), maxRowTitle)
	}
	for _, n := range names {
		if len(n) > maxRowName {
			return badImport("%s has a name of %d bytes", what, len(n))
		}
	}
	return checkTimes(what, created, updated)
}

// checkTimes reports times outside 1970 to 2200, which the store cannot hold.
func checkTimes(what string, times ...time.Time) error {
	for _, t := range times {
		if t.Unix() < 0 || t.Year() > 2200 {
			return badImport("%s has the time %s, which is outside 1970 to 2200", what, t.Format(time.RFC3339))
		}
	}
	return nil
}

// journal returns the run's events in the store's form.
func (r *documentRun) journal() []tenon.Event {
	list := make([]tenon.Event, len(r.Events))
	for i := range r.Events {
		list[i] = r.Events[i].Event
	}
	return list
}

// checkJournal checks the row and the numbers and order of the events.
func (r *documentRun) checkJournal() error {
	row := &r.Run
	err := checkRow("run "+row.ID, row.Created, row.Updated, row.Title, row.Agent, row.Model, string(row.Principal),
		string(row.Stop))
	if err != nil {
		return err
	}
	switch row.State {
	case tenon.RunCompleted, tenon.RunFailed, tenon.RunCancelled:
		if len(row.Waiting) > 0 {
			return badImport("run %s has ended, but waits", row.ID)
		}
	case tenon.RunWorking, tenon.RunInputRequired:
		if row.Stop != "" {
			return badImport("run %s has not ended, but has a stop reason", row.ID)
		}
	default:
		return badImport("run %s has the unknown state %q", row.ID, tenon.Truncate(string(row.State), maxTitle))
	}
	if len(r.Events) == 0 || r.Events[0].Kind != tenon.EventRun {
		return badImport("the journal of run %s does not begin with its spec", row.ID)
	}
	if row.Seq != uint64(len(r.Events)) {
		return badImport("run %s has %d events, but its row says %d", row.ID, len(r.Events), row.Seq)
	}
	for i := range r.Events {
		e := &r.Events[i]
		switch {
		case e.Run != row.ID || e.Seq != uint64(i+1):
			return badImport("event %d of run %s says that it is event %d of run %q", i+1, row.ID, e.Seq,
				tenon.Truncate(e.Run, maxTitle))
		case i > 0 && e.Kind == tenon.EventRun:
			return badImport("event %d of run %s begins the run again", i+1, row.ID)
		case e.Kind == "" || len(e.Kind) > maxRowName || len(e.Step) > maxRowName || e.Attempt < 0:
			return badImport("event %d of run %s has no kind, or an invalid step, kind or attempt", i+1, row.ID)
		}
		if err := checkTimes("an event of run "+row.ID, e.Time); err != nil {
			return err
		}
	}
	return nil
}

// checkSpec checks that the first event agrees with the row.
func (r *documentRun) checkSpec() error {
	row := &r.Run
	var err error
	if r.spec, err = view.Try[engine.Spec](r.Events[0].Event); err != nil {
		return badImport("the spec of run %s cannot be read: %w", row.ID, err)
	}
	s := r.spec.Run
	if s.ID != row.ID || s.Session != row.Session || s.Caller != row.Caller || s.Parent != row.Parent ||
		s.ParentSeq != row.ParentSeq || s.Core != row.Core {
		return badImport("the first event of run %s contradicts the row of the run", row.ID)
	}
	if row.Core != agent.Version && row.Core != agent.DirectVersion && row.Core != workflow.Version {
		return badImport("run %s was written by %q, which this version of tenon does not know", row.ID,
			tenon.Truncate(row.Core, maxTitle))
	}
	return nil
}

// checkPlace checks a run's references to its session, caller and parent.
func (r *documentRun) checkPlace(sessions map[string]bool, runs map[string]*documentRun) error {
	row := &r.Run
	if !sessions[row.Session] {
		return badImport("run %s belongs to session %q, which the file does not contain", row.ID,
			tenon.Truncate(row.Session, maxTitle))
	}
	caller := ""
	if i := strings.LastIndexByte(row.ID, '/'); i >= 0 {
		caller = row.ID[:i]
	}
	if row.Caller != caller || caller != "" && (runs[caller] == nil || runs[caller].Run.Session != row.Session) {
		return badImport("run %s cannot be called by run %q", row.ID, tenon.Truncate(row.Caller, maxTitle))
	}
	if row.Parent == "" {
		if row.ParentSeq != 0 {
			return badImport("run %s continues an event, but no run", row.ID)
		}
		return nil
	}
	parent := runs[row.Parent]
	switch {
	case parent == nil || parent.Run.Caller != "" || parent.Run.Core != agent.Version || row.Core != agent.Version ||
		caller != "":
		return badImport("run %s continues %q, which is not a question in the file", row.ID,
			tenon.Truncate(row.Parent, maxTitle))
	case row.ParentSeq > uint64(len(parent.Events)):
		return badImport("run %s continues event %d of run %s, which has %d events", row.ID, row.ParentSeq, row.Parent,
			len(parent.Events))
	}
	if r.seq = int(row.ParentSeq); r.seq == 0 {
		r.seq = len(parent.Events)
	}
	parent.kids = append(parent.kids, r)
	return nil
}
