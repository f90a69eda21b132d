package host

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/workflow"
)

// The bounds of what stands in rows, in bytes.
const (
	maxRowTitle = 4 * maxTitle
	maxRowName  = 512
	maxRowID    = 2048
)

// badImport says what is wrong with a file.
func badImport(format string, args ...any) error {
	return tenon.Errorf(tenon.CodeInvalid, "the file cannot be imported: "+format, args...)
}

// checkIDs holds the names of sessions and runs to their shapes, so that they can be
// told apart and replaced.
func (d *document) checkIDs() error {
	if len(d.Sessions) > maxListed || len(d.Runs) > maxListed {
		return tenon.Errorf(tenon.CodeTooLarge, "the file has %d sessions and %d runs; at most %d of each are taken", len(d.Sessions), len(d.Runs), maxListed)
	}
	seen := map[string]bool{}
	for i, s := range d.Sessions {
		switch {
		case !sessionShape.MatchString(s.ID):
			return badImport("session %d has the id %q, which is none of tenon's", i+1, cut(s.ID, maxTitle))
		case s.Parent != "" && !sessionShape.MatchString(s.Parent):
			return badImport("session %s was forked from %q, which is no id", s.ID, cut(s.Parent, maxTitle))
		case seen[s.ID]:
			return badImport("session %s is there twice", s.ID)
		}
		seen[s.ID] = true
	}
	if !seen[d.Session] {
		return badImport("it names session %q, and its sessions have no such one", cut(d.Session, maxTitle))
	}
	for i, r := range d.Runs {
		switch {
		case len(r.Run.ID) > maxRowID || !runShape.MatchString(r.Run.ID):
			return badImport("run %d has the id %q, which is none of tenon's", i+1, cut(r.Run.ID, maxTitle))
		case seen[r.Run.ID]:
			return badImport("run %s is there twice", r.Run.ID)
		}
		seen[r.Run.ID] = true
	}
	return nil
}

// check holds a document to all that the rest of the program relies on.
func (d *document) check(ctx context.Context) error {
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
				return badImport("run %s needs the blob %q, which is not there", r.Run.ID, cut(digest, maxTitle))
			}
			blobs[digest] = true
			r.uses = append(r.uses, digest)
		}
	}
	for digest, used := range blobs {
		if !used {
			return badImport("blob %s belongs to no run", digest)
		}
	}
	return d.fold(ctx)
}

// checkSessions checks the rows of sessions, and that none was forked from itself.
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
				return badImport("session %s has no run to go on from, and an event of it", s.ID)
			}
			continue
		}
		head := runs[s.Head]
		switch {
		case head == nil || head.Run.Caller != "" || head.Run.Core != agent.Version:
			return badImport("session %s goes on from %q, which is no question of the file", s.ID, cut(s.Head, maxTitle))
		case s.HeadSeq > uint64(len(head.Events)):
			return badImport("session %s goes on from event %d of run %s, which has %d", s.ID, s.HeadSeq, s.Head, len(head.Events))
		}
	}
	seen := map[string]string{} // by which session's way up
	for _, s := range d.Sessions {
		for at := s.ID; at != "" && seen[at] != s.ID; at = parents[at] {
			if seen[at] != "" {
				break // and from there on it is known to end
			}
			if seen[at] = s.ID; parents[at] != "" && seen[parents[at]] == s.ID {
				return badImport("session %s was forked from itself, by way of others", s.ID)
			}
		}
	}
	return nil
}

// checkRow checks what sessions and runs have both.
func checkRow(what string, created, updated time.Time, title string, names ...string) error {
	if len(title) > maxRowTitle {
		return badImport("the title of %s has %d bytes; at most %d are kept", what, len(title), maxRowTitle)
	}
	for _, n := range names {
		if len(n) > maxRowName {
			return badImport("%s has a name of %d bytes", what, len(n))
		}
	}
	return checkTimes(what, created, updated)
}

// checkTimes refuses times that cannot be kept: from 1970 to 2200.
func checkTimes(what string, times ...time.Time) error {
	for _, t := range times {
		if t.Unix() < 0 || t.Year() > 2200 {
			return badImport("%s has the time %s", what, t.Format(time.RFC3339))
		}
	}
	return nil
}

// journal is the run's events as the store has them.
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
	if err := checkRow("run "+row.ID, row.Created, row.Updated, row.Title, row.Agent, row.Model, string(row.Principal), string(row.Stop)); err != nil {
		return err
	}
	switch row.State {
	case tenon.RunCompleted, tenon.RunFailed, tenon.RunCancelled:
		if len(row.Waiting) > 0 {
			return badImport("run %s has ended and waits", row.ID)
		}
	case tenon.RunWorking, tenon.RunInputRequired:
		if row.Stop != "" {
			return badImport("run %s has not ended and says why it did", row.ID)
		}
	default:
		return badImport("run %s has the unknown state %q", row.ID, cut(string(row.State), maxTitle))
	}
	if len(r.Events) == 0 || r.Events[0].Kind != tenon.EventRun {
		return badImport("the journal of run %s does not begin with its spec", row.ID)
	}
	if row.Seq != uint64(len(r.Events)) {
		return badImport("run %s has %d events and says %d", row.ID, len(r.Events), row.Seq)
	}
	for i := range r.Events {
		e := &r.Events[i]
		if len(e.Base64) > 0 {
			e.Data = e.Base64
		}
		switch {
		case e.Run != row.ID || e.Seq != uint64(i+1):
			return badImport("event %d of run %s says that it is event %d of run %q", i+1, row.ID, e.Seq, cut(e.Run, maxTitle))
		case i > 0 && e.Kind == tenon.EventRun:
			return badImport("event %d of run %s is a second beginning", i+1, row.ID)
		case e.Kind == "" || len(e.Kind) > maxRowName || len(e.Step) > maxRowName || e.Attempt < 0:
			return badImport("event %d of run %s has no kind, or a step, kind or attempt that cannot be", i+1, row.ID)
		}
		if err := checkTimes("an event of run "+row.ID, e.Time); err != nil {
			return err
		}
	}
	return nil
}

// checkSpec holds the first event to the row.
func (r *documentRun) checkSpec() error {
	row := &r.Run
	if err := json.Unmarshal(r.Events[0].Data, &r.spec); err != nil {
		return badImport("the spec of run %s cannot be read: %w", row.ID, err)
	}
	s := r.spec.Run
	if s.ID != row.ID || s.Session != row.Session || s.Caller != row.Caller || s.Parent != row.Parent || s.ParentSeq != row.ParentSeq || s.Core != row.Core {
		return badImport("the first event of run %s says otherwise than its row which run it is", row.ID)
	}
	if row.Core != agent.Version && row.Core != agent.DirectVersion && row.Core != workflow.Version {
		return badImport("run %s was written by %q, which this version of tenon does not know", row.ID, cut(row.Core, maxTitle))
	}
	return nil
}

// checkPlace checks what a run belongs to and goes on from.
func (r *documentRun) checkPlace(sessions map[string]bool, runs map[string]*documentRun) error {
	row := &r.Run
	if !sessions[row.Session] {
		return badImport("run %s is of session %q, which is not there", row.ID, cut(row.Session, maxTitle))
	}
	caller := ""
	if i := strings.LastIndexByte(row.ID, '/'); i >= 0 {
		caller = row.ID[:i]
	}
	if row.Caller != caller || caller != "" && (runs[caller] == nil || runs[caller].Run.Session != row.Session) {
		return badImport("run %s says that run %q called it", row.ID, cut(row.Caller, maxTitle))
	}
	if row.Parent == "" {
		if row.ParentSeq != 0 {
			return badImport("run %s goes on from an event of no run", row.ID)
		}
		return nil
	}
	parent := runs[row.Parent]
	switch {
	case parent == nil || parent.Run.Caller != "" || parent.Run.Core != agent.Version || row.Core != agent.Version || caller != "":
		return badImport("run %s goes on from %q, which is no question of the file", row.ID, cut(row.Parent, maxTitle))
	case row.ParentSeq > uint64(len(parent.Events)):
		return badImport("run %s goes on from event %d of run %s, which has %d", row.ID, row.ParentSeq, row.Parent, len(parent.Events))
	}
	if r.seq = int(row.ParentSeq); r.seq == 0 {
		r.seq = len(parent.Events)
	}
	parent.kids = append(parent.kids, r)
	return nil
}
