package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// ExportVersion is the version of the form that [Host.Export] writes:
//
//	{"tenon_export": 1, "tenon": "…", "exported": "…", "session": "ses_…",
//	 "sessions": [Session, …],                         those that it goes on from first
//	 "runs": [{"run": Run, "events": [Event, …]}, …],  what a run needs stands before it
//	 "blobs": [{"digest": "sha256:…", "data": …}, …]}
//
// Runs and sessions that were imported stand there as they were in their file. Events
// are byte for byte those of the journal; data that is no JSON is base64 under
// data_base64. Of a session that this one was forked from there are only the runs, and
// of those only the events, that this one goes on from. A blob that held a configured
// secret has masked: true, and its digest does not fit it any more.
const ExportVersion = 1

// exportPart is a run of an export, with its events as far as they belong to it.
type exportPart struct {
	row tenon.Run
	run []tenon.Event
}

// Export writes a session with all that belongs to it as one JSON document. No
// configured secret is part of it: their values are read and masked, and those that
// cannot be read are an error. Errors: not_found, auth_required (a secret), store.
func (h *Host) Export(ctx context.Context, w io.Writer, session string) error {
	s, err := h.Session(ctx, session)
	if err != nil {
		return err
	}
	if err := h.learnSecrets(ctx); err != nil {
		return err
	}
	sessions, parts, err := h.collect(ctx, s)
	if err != nil {
		return err
	}
	out := &exporter{w: w, redactor: h.redactor}
	out.raw(`{"tenon_export":` + string(encode(ExportVersion)) + `,"tenon":` + string(encode(h.Version())) +
		`,"exported":` + string(encode(h.now().UTC().Truncate(time.Second))) + `,"session":` + string(encode(s.ID)) + `,` + "\n" + `"sessions":[`)
	for i, v := range sessions {
		out.item(i, encode(v))
	}
	out.raw("\n],\n\"runs\":[")
	var digests []string
	for i, p := range parts {
		out.item(i, []byte(`{"run":`))
		out.masked(encode(p.row))
		out.raw(`,"events":[`)
		for j, e := range p.run {
			out.item(j, eventJSON(e))
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
		data, err := h.store.Blob(ctx, d)
		if err != nil {
			return err
		}
		out.item(i, blobJSON(d, data, h.redactor))
	}
	out.raw("\n]}\n")
	return out.err
}

// collect gathers what belongs to a session: the sessions, what it goes on from
// first, and the runs in the order in which they need each other.
func (h *Host) collect(ctx context.Context, s tenon.Session) ([]tenon.Session, []exportPart, error) {
	var sessions []tenon.Session
	var parts []exportPart
	if s.Head != "" {
		links, err := h.links(ctx, s.Head, s.HeadSeq)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range links {
			row, err := h.store.Run(ctx, l.run)
			if err != nil {
				return nil, nil, err
			}
			if row.Session == s.ID {
				continue
			}
			last := len(sessions) - 1
			if last < 0 || sessions[last].ID != row.Session {
				from, err := h.store.Session(ctx, row.Session)
				if err != nil {
					return nil, nil, err
				}
				from.Runs, from.Imported = 0, time.Time{}
				sessions, last = append(sessions, from), last+1
			}
			row = asExported(row)
			row.Seq, row.Waiting = uint64(len(l.events)), nil
			sessions[last].Head, sessions[last].HeadSeq, sessions[last].Runs = row.ID, row.Seq, sessions[last].Runs+1
			parts = append(parts, exportPart{row, l.events})
		}
	}
	runs, err := h.store.Runs(ctx, store.RunFilter{Session: s.ID, Limit: maxListed + 1})
	if err != nil {
		return nil, nil, err
	}
	if len(runs) > maxListed {
		return nil, nil, tenon.Errorf(tenon.CodeTooLarge, "session %s has more than %d runs", s.ID, maxListed)
	}
	for _, row := range slices.Backward(runs) { // a called run's id begins with its caller's
		events, err := h.Journal(ctx, row.ID, 0)
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

// learnSecrets reads the values of all configured secrets, so that they can be masked.
func (h *Host) learnSecrets(ctx context.Context) error {
	var errs []error
	for name := range h.config.Secrets {
		v, err := h.config.Resolve(ctx, name)
		h.redactor.Add(v)
		errs = append(errs, err)
	}
	for name, s := range h.config.Servers {
		if !s.IsEnabled() {
			continue
		}
		c, err := h.config.Server(ctx, name)
		for _, v := range c.SecretValues() {
			h.redactor.Add(v)
		}
		errs = append(errs, err)
		for who := range s.Principals {
			_, used, err := h.config.Own(ctx, name, tenon.Principal(who))
			for _, v := range used {
				h.redactor.Add(v)
			}
			errs = append(errs, err)
		}
	}
	for _, name := range h.config.ModelNames() {
		c, err := h.models.config(ctx, name)
		h.redactor.Add(c.APIKey)
		errs = append(errs, err)
	}
	registry, err := h.config.RegistryToken(ctx)
	own, oerr := h.config.ServeSecret(ctx)
	tokens, terr := h.config.ServeTokens(ctx)
	h.redactor.Add(registry)
	h.redactor.Add(own)
	for _, v := range tokens {
		h.redactor.Add(v)
	}
	if err := errors.Join(append(errs, err, oerr, terr)...); err != nil {
		remedy := "; set it, or take it out of the configuration"
		if strings.HasSuffix(err.Error(), "; set it") {
			remedy = ", or take it out of the configuration"
		}
		return tenon.Errorf(tenon.CodeAuth, "a secret cannot be read, so that it could not be masked: %w%s", err, remedy)
	}
	return nil
}

// blobsOf are the digests of what a run keeps beside its events: the tools on
// offer, also to an agent that took over, results that were too large, a workflow and its
// tables.
func blobsOf(events []tenon.Event) []string {
	var list []string
	for i, e := range events {
		var spec struct {
			Tools, Workflow string
			Inputs          map[string]tenon.Table
		}
		var o agent.Outcome
		var whole engine.Spec
		switch {
		case i == 0 && json.Unmarshal(e.Data, &whole) == nil:
			_ = json.Unmarshal(whole.Data, &spec) // no spec of ours: it names no tools
		case e.Kind == agent.EventHandoff:
			_ = json.Unmarshal(e.Data, &spec)
		case e.Kind == agent.EventResult && json.Unmarshal(e.Data, &o) == nil:
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
			digests = append(digests, spec.Inputs[name].Digest)
		}
		for _, d := range digests {
			if d != "" && !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	return list
}

// eventJSON writes an event with its data as it is.
func eventJSON(e tenon.Event) []byte {
	data := e.Data
	e.Data = nil
	b := encode(e)
	switch {
	case len(data) == 0:
		return b
	case json.Valid(data):
		b = append(b[:len(b)-1], `,"data":`...)
		b = append(b, data...)
	default:
		b = append(b[:len(b)-1], `,"data_base64":"`...)
		b = append(b, base64.StdEncoding.EncodeToString(data)+`"`...)
	}
	return append(b, '}')
}

func blobJSON(digest string, data []byte, r *tenon.Redactor) []byte {
	masked := ""
	if clean := r.Bytes(data); !bytes.Equal(clean, data) {
		data, masked = clean, `,"masked":true`
	}
	b := []byte(`{"digest":"` + digest + `"` + masked)
	if json.Valid(data) {
		return append(append(append(b, `,"data":`...), data...), '}')
	}
	return append(b, `,"data_base64":"`+base64.StdEncoding.EncodeToString(data)+`"}`...)
}

// exporter writes JSON, a value a line, without secrets. The first error stays.
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

// item writes the i-th element of a list, on a line of its own.
func (x *exporter) item(i int, b []byte) {
	x.raw(strings.Repeat(",", min(i, 1)) + "\n")
	x.masked(b)
}

func (x *exporter) masked(b []byte) {
	clean := x.redactor.Bytes(b)
	if x.err == nil && !bytes.Equal(clean, b) && json.Valid(b) && !json.Valid(clean) {
		x.err = tenon.Errorf(tenon.CodeInvalid, "the session holds a configured secret where it cannot be masked")
	}
	x.raw(string(clean))
}
