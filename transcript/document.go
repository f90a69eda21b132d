package transcript

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/store"
)

// document is an export: see [Version].
type document struct {
	Session  string          `json:"session"`
	Sessions []tenon.Session `json:"sessions"`
	Runs     []documentRun   `json:"runs"`
	Blobs    []documentBlob  `json:"blobs"`

	messagesOnly bool // the document was made from messages instead of journals
}

type documentRun struct {
	Run    tenon.Run       `json:"run"`
	Events []documentEvent `json:"events"`

	spec engine.Spec
	uses []string
	kids []*documentRun // runs that continue this run
	seq  int            // the event of the parent run after which this run continues
	seen bool
}

type documentEvent struct {
	tenon.Event
	Base64 []byte `json:"data_base64"`
}

type documentBlob struct {
	Digest string          `json:"digest"`
	Data   json.RawMessage `json:"data"`
	Base64 []byte          `json:"data_base64"`
	Masked bool            `json:"masked"`
}

// The valid forms of ids in a document. Other ids are refused, because ids are used in messages, commands and names.
var (
	sessionShape = lazyregexp.New(`^ses_[0-9a-z]{20}$`)
	runShape     = lazyregexp.New(`^run_[0-9a-z]{20}(/[0-9A-Za-z_]+(\.[0-9]{1,9})?(~[0-9]{1,4})?){0,32}$`)
	digestShape  = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
	// anyName finds ids of sessions, runs, blobs and artifacts in the data of events.
	anyName = lazyregexp.New(`(?:ses|run)_[0-9a-z]{20}|sha256:[0-9a-f]{64}|[0-9a-f]{6}-[0-9]+\.[0-9]+-[0-9]`)
)

// rename replaces the ids of sessions, runs, their artifacts, and blobs everywhere in the document.
func (d *document) rename(ids, blobs map[string]string) {
	names := map[string]string{}
	for from, to := range ids {
		names[from] = to
	}
	for from, to := range blobs {
		names[from] = to
	}
	tags := map[string]string{}
	for _, r := range d.Runs {
		if to := renamed(r.Run.ID, ids); to != r.Run.ID {
			tags[tagOf(r.Run.ID)] = tagOf(to)
		}
	}
	replace := func(m []byte) []byte {
		if to, ok := names[string(m)]; ok {
			return []byte(to)
		}
		if tag, rest, ok := strings.Cut(string(m), "-"); ok && tags[tag] != "" {
			return []byte(tags[tag] + "-" + rest)
		}
		return m
	}
	d.Session = renamed(d.Session, ids)
	for i := range d.Sessions {
		s := &d.Sessions[i]
		s.ID, s.Head = renamed(s.ID, ids), renamed(s.Head, ids)
		if ids != nil {
			s.Parent = ids[s.Parent] // "" if the file does not contain that session
		}
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		for _, id := range []*string{&r.Run.ID, &r.Run.Session, &r.Run.Caller, &r.Run.Parent} {
			*id = renamed(*id, ids)
		}
		for j := range r.Run.Waiting {
			w := &r.Run.Waiting[j]
			w.Data = anyName().ReplaceAllFunc(w.Data, replace)
		}
		for j := range r.Events {
			e := &r.Events[j]
			e.Run, e.Data = renamed(e.Run, ids), anyName().ReplaceAllFunc(e.Data, replace)
		}
	}
	for i := range d.Blobs {
		d.Blobs[i].Digest = cmp.Or(blobs[d.Blobs[i].Digest], d.Blobs[i].Digest)
	}
}

// renamed returns the new id of a session or a run. The id of a called run begins with the id of its caller.
func renamed(id string, ids map[string]string) string {
	top, rest, called := strings.Cut(id, "/")
	if to, ok := ids[top]; ok {
		top = to
	}
	if called {
		top += "/"
	}
	return top + rest
}

// tagOf returns the prefix of the ids of a run's artifacts.
func tagOf(run string) string {
	tag, _, _ := strings.Cut(tenon.ArtifactID(run, "", 0), "-")
	return tag
}

// newIDs returns new ids for all sessions and top-level runs. A new id contains the time of the old id, so that lists
// keep their order.
func (d *document) newIDs() map[string]string {
	ids := map[string]string{}
	for _, s := range d.Sessions {
		ids[s.ID] = tenon.NewID("ses", s.Created)
	}
	for _, r := range d.Runs {
		if r.Run.Caller == "" {
			ids[r.Run.ID] = tenon.NewID("run", r.Run.Created)
		}
	}
	return ids
}

// plan returns the document in the store's form.
func (d *document) plan(now time.Time) store.Import {
	im := store.Import{Sessions: slices.Clone(d.Sessions)}
	for i := range im.Sessions {
		im.Sessions[i].Imported = now
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		x := store.ImportedRun{Run: r.Run, Uses: r.uses, Events: make([]tenon.Event, len(r.Events))}
		mark := &tenon.Imported{At: now}
		if !x.Run.State.Ended() {
			mark.State, mark.Waiting = x.Run.State, x.Run.Waiting
			x.Run.State, x.Run.Stop = tenon.RunCancelled, tenon.StopImported
		}
		x.Run.Imported, x.Run.Waiting = mark, nil
		for j := range r.Events {
			x.Events[j] = r.Events[j].Event
		}
		im.Runs = append(im.Runs, x)
	}
	for _, b := range d.Blobs {
		im.Blobs = append(im.Blobs, b.Data)
	}
	return im
}

// asExported returns the row of a run as it was in the imported file.
func asExported(r tenon.Run) tenon.Run {
	if m := r.Imported; m != nil && m.State != "" {
		r.State, r.Stop, r.Waiting = m.State, "", m.Waiting
	}
	r.Imported = nil
	return r
}

// messagesDocument returns a session with one run that holds the given messages.
func messagesDocument(title string, messages []*tenon.Message, now time.Time) (*document, error) {
	if len(messages) == 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the file has no conversation")
	}
	if title == "" {
		title = tenon.Shorten(messages[0].Text(), shortTitle)
	}
	spec := agent.Spec{Task: agent.TaskImport, History: messages}
	run := tenon.Run{ID: tenon.NewID("run", now), Session: tenon.NewID("ses", now), Principal: tenon.PrincipalLocal,
		Core:  agent.Version,
		Title: title, State: tenon.RunWorking, Created: now, Updated: now}
	first := tenon.Event{Run: run.ID, Seq: 1, Time: now, Kind: tenon.EventRun,
		Data: tenon.EventData(engine.Spec{Run: run, Data: tenon.EventData(spec)})}
	core := agent.New(spec, nil)
	if err := core.Apply(first); err != nil {
		return nil, err
	}
	done := tenon.Event{Run: run.ID, Seq: 2, Time: now, Kind: tenon.EventDone, Data: core.Next()[0].Data}
	run.State, run.Stop, run.Seq = tenon.RunCompleted, tenon.StopEnd, 2
	s := tenon.Session{ID: run.Session, Title: title, Principal: tenon.PrincipalLocal, Head: run.ID, Created: now,
		Updated: now}
	return &document{Session: s.ID, Sessions: []tenon.Session{s}, messagesOnly: true,
		Runs: []documentRun{{Run: run, Events: []documentEvent{{Event: first}, {Event: done}}}}}, nil
}
