package transcript

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

// Version is the version of the format that [Transcripts.Export] writes:
//
//	{"tenon_export": 1, "tenon": "…", "exported": "…", "session": "ses_…",
//	 "sessions": [Session, …],                         sessions that it continues come first
//	 "runs": [{"run": Run, "events": [Event, …]}, …],  a run follows the runs that it needs
//	 "blobs": [{"digest": "sha256:…", "data": …}, …]}
//
// Imported runs and sessions are written as they were in their file. Events have the bytes of the journal, but hidden
// characters are \u escapes; data_base64 then has the exact bytes. Data that is not JSON has data_base64 only. If the
// session was forked, the file has only those runs and events of the other session that it continues. A blob with a
// masked secret has masked: true, and its digest no longer matches. Tables of more than 64 MiB have no blob: the events
// name their columns and sizes, and their rows are left out.
const Version = 1

// exportPart is a run of an export with its exported events.
type exportPart struct {
	row tenon.Run
	run []tenon.Event
}

// Export writes a session with its runs and blobs as one JSON document. Secrets that the redactor knows are masked.
// Errors: invalid (a secret that cannot be masked), internal (w), store.
func (t *Transcripts) Export(ctx context.Context, w io.Writer, s tenon.Session) error {
	sessions, parts, err := t.collect(ctx, s)
	if err != nil {
		return err
	}
	out := &exporter{w: w, redactor: t.cfg.Redactor}
	text := func(v any) string { return string(tenon.EventData(v)) }
	out.raw(`{"tenon_export":` + text(Version) + `,"tenon":` + text(t.cfg.Version) + `,"exported":` +
		text(t.cfg.Now().UTC().Truncate(time.Second)) + `,"session":` + text(s.ID) + `,` + "\n" + `"sessions":[`)
	for i, v := range sessions {
		out.item(i, tenon.EventData(v))
	}
	out.raw("\n],\n\"runs\":[")
	var digests []string
	for i, p := range parts {
		out.item(i, []byte(`{"run":`))
		out.masked(tenon.EventData(p.row))
		out.raw(`,"events":[`)
		for j, e := range p.run {
			out.item(j, eventJSON(e, t.cfg.Redactor))
		}
		out.raw("\n]}")
		for _, d := range blobsOf(p.run) {
			if !slices.Contains(digests, d) {
				digests = append(digests, d)
			}
		}
	}
	out.raw("\n],\n\"blobs\":[")
	for i, d := range digests {
		data, err := t.cfg.Store.Blob(ctx, d)
		if err != nil {
			return err
		}
		out.item(i, blobJSON(d, data, t.cfg.Redactor))
	}
	out.raw("\n]}\n")
	return out.err
}

// collect returns the sessions and runs of an export. Sessions and runs that others continue come first.
func (t *Transcripts) collect(ctx context.Context, s tenon.Session) ([]tenon.Session, []exportPart, error) {
	var sessions []tenon.Session
	var parts []exportPart
	if s.Head != "" {
		links, err := t.links(ctx, s.Head, s.HeadSeq)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range links {
			row, err := t.cfg.Store.Run(ctx, l.run)
			if err != nil {
				return nil, nil, err
			}
			if row.Session == s.ID {
				continue
			}
			last := len(sessions) - 1
			if last < 0 || sessions[last].ID != row.Session {
				from, err := t.cfg.Store.Session(ctx, row.Session)
				if err != nil {
					return nil, nil, err
				}
				from.Runs, from.Imported = 0, time.Time{}
				sessions, last = append(sessions, from), last+1
			}
			row = asExported(row)
			row.Seq, row.Waiting = uint64(len(l.events)), nil
			from := &sessions[last]
			from.Head, from.HeadSeq, from.Runs = row.ID, row.Seq, from.Runs+1
			parts = append(parts, exportPart{row, l.events})
		}
	}
	runs, err := t.cfg.Store.Runs(ctx, store.RunFilter{Session: s.ID, Limit: maxListed + 1})
	if err != nil {
		return nil, nil, err
	}
	if len(runs) > maxListed {
		return nil, nil, tenon.Errorf(tenon.CodeTooLarge, "session %s has more than %d runs", s.ID, maxListed)
	}
	for _, row := range slices.Backward(runs) { // a called run's id begins with its caller's
		events, err := t.events(ctx, row.ID, 0)
		if err != nil {
			return nil, nil, err
		}
		row = asExported(row)
		row.Seq = uint64(len(events))
		parts = append(parts, exportPart{row, events})
	}
	s.Imported = time.Time{}
	return append(sessions, s), parts, nil
}

// blobRefs are the members of specs that name blobs.
type blobRefs struct {
	Tools, Workflow string
	Inputs          map[string]tenon.Table
}

// blobsOf returns the digests of a run's blobs: snapshots of tools, large results, a workflow and its tables.
func blobsOf(events []tenon.Event) []string {
	var list []string
	for i, e := range events {
		var spec blobRefs
		if i == 0 {
			_, spec, _ = view.Spec[blobRefs](e) // an unknown spec names no tools
		}
		switch e.Kind {
		case agent.EventHandoff:
			spec.Tools = view.As[agent.Handoff](e).Tools
		case agent.EventTools:
			spec.Tools = view.As[agent.ToolsChanged](e).Tools
		case agent.EventResult:
			o := view.As[agent.Outcome](e)
			if o.Whole != nil {
				spec.Tools = o.Whole.Digest
			}
			spec.Inputs = map[string]tenon.Table{}
			for _, t := range o.Outputs {
				spec.Inputs[t.Name] = t
			}
		}
		digests := []string{spec.Tools, spec.Workflow}
		for _, name := range slices.Sorted(maps.Keys(spec.Inputs)) {
			if t := spec.Inputs[name]; t.Pieces == "" { // the rows of a table in pieces are left out
				digests = append(digests, t.Digest)
			}
		}
		for _, d := range digests {
			if d != "" && !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	return list
}

// eventJSON writes an event with its data.
func eventJSON(e tenon.Event, r *tenon.Redactor) []byte {
	data := e.Data
	e.Data = nil
	b := tenon.EventData(e)
	if len(data) == 0 {
		return b
	}
	return append(appendData(b[:len(b)-1], data, r), '}')
}

func blobJSON(digest string, data []byte, r *tenon.Redactor) []byte {
	masked := ""
	if clean := r.Bytes(data); !bytes.Equal(clean, data) {
		data, masked = clean, `,"masked":true`
	}
	return append(appendData([]byte(`{"digest":"`+digest+`"`+masked), data, r), '}')
}

// appendData appends the members data and data_base64. If the data are JSON, data contains them with hidden characters
// escaped. data_base64 contains the exact bytes if they differ from data, or if the data are not JSON. It is omitted
// for JSON with a secret, because the secret is masked later.
func appendData(b, data []byte, r *tenon.Redactor) []byte {
	bytesToo := true
	if json.Valid(data) {
		shown := tenon.EscapeJSON(data)
		b = append(append(b, `,"data":`...), shown...)
		bytesToo = !bytes.Equal(shown, data) && bytes.Equal(r.Bytes(data), data)
	}
	if bytesToo {
		b = append(b, `,"data_base64":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, data), '"')
	}
	return b
}

// exporter writes JSON with masked secrets, one value per line. It keeps the first error.
type exporter struct {
	w        io.Writer
	redactor *tenon.Redactor
	err      error
}

func (x *exporter) raw(s string) {
	if x.err == nil {
		if _, err := io.WriteString(x.w, s); err != nil {
			x.err = tenon.Errorf(tenon.CodeInternal, "the export cannot be written: %w", err)
		}
	}
}

// item writes the i-th element of a list on its own line.
func (x *exporter) item(i int, b []byte) {
	x.raw(strings.Repeat(",", min(i, 1)) + "\n")
	x.masked(b)
}

func (x *exporter) masked(b []byte) {
	clean := x.redactor.Bytes(b)
	if x.err == nil && !bytes.Equal(clean, b) && json.Valid(b) && !json.Valid(clean) {
		x.err = tenon.Errorf(tenon.CodeInvalid, "the session contains a configured secret in a place where it "+
			"cannot be masked")
	}
	x.raw(string(tenon.EscapeJSON(clean)))
}
