package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// The forms that [Host.Import] reads.
const (
	FormJSON     = "json"     // what [Host.Export] writes, or messages: see [ReadConversation]
	FormMarkdown = "markdown" // what [Host.ExportMarkdown] writes
)

// maxImport bounds a file with conversations, in bytes.
const maxImport = 256 << 20

// Import says what is to be taken into the store. Only From is required.
type Import struct {
	From io.Reader
	Form string // FormJSON or FormMarkdown; empty: by how it begins
	// Copy gives new ids to all sessions and runs, so that what is there already can be
	// taken in once more. Messages and Markdown get new ids in any case.
	Copy  bool
	Title string // of the session; empty: that of the file
}

// ImportReport says what an import brought.
type ImportReport struct {
	Session  tenon.Session `json:"session"`
	Sessions int           `json:"sessions"` // with those that it was forked from
	Runs     int           `json:"runs"`     // with those that were called
	Unended  int           `json:"unended"`  // runs that had not ended: they never go on
	Masked   int           `json:"masked"`   // large values in which secrets were masked; they have new digests
	SaidOnly bool          `json:"said_only,omitempty"`
}

// Import takes a session out of a file into the store, whole or not at all. The
// session can be shown, searched, forked and gone on with, as one that was begun
// here; its runs are marked (see [tenon.Imported]): nothing is added to them, what
// was granted in them counts for nothing, and one that had not ended never goes on.
//
// The file is somebody else's word. Everything that the rest of the program relies on
// is checked: ids, numbers and order of events, that runs go on from runs of the file
// and not from each other in a circle, digests, that each journal can be folded, and
// that every call in what was said has one result. Errors: invalid (where and why),
// too_large, conflict (it is in the store already), store.
func (h *Host) Import(ctx context.Context, im Import) (ImportReport, error) {
	data, err := io.ReadAll(io.LimitReader(im.From, maxImport+1))
	switch {
	case err != nil:
		return ImportReport{}, tenon.Errorf(tenon.CodeInvalid, "the file cannot be read: %w", err)
	case len(data) > maxImport:
		return ImportReport{}, tenon.Errorf(tenon.CodeTooLarge, "the file has more than %d bytes", maxImport)
	}
	d, r, err := h.prepareImport(ctx, data, im)
	if err != nil {
		return r, err
	}
	plan := d.plan(h.now().UTC())
	if err := h.store.ImportSession(ctx, plan); err != nil {
		if tenon.ErrorCode(err) == tenon.CodeConflict {
			err = tenon.Errorf(tenon.CodeConflict, "%w in this store already; --copy imports it under new ids, beside what is there", err)
		}
		return r, err
	}
	r.Sessions, r.Runs = len(plan.Sessions), len(plan.Runs)
	for _, x := range plan.Runs {
		if x.Run.Imported.State != "" {
			r.Unended++
		}
	}
	r.Session, err = h.store.Session(ctx, d.Session)
	return r, err
}

// prepareImport reads a file and checks it.
func (h *Host) prepareImport(ctx context.Context, data []byte, im Import) (*document, ImportReport, error) {
	var r ImportReport
	d, err := h.readImport(data, im)
	if err != nil {
		return nil, r, err
	}
	r.SaidOnly = d.said
	if title := shorten(strings.ToValidUTF8(im.Title, "\uFFFD"), maxTitle); title != "" {
		for i := range d.Sessions {
			if d.Sessions[i].ID == d.Session {
				d.Sessions[i].Title = title
			}
		}
	}
	if err := d.checkIDs(); err != nil {
		return nil, r, err
	}
	names, err := d.blobNames()
	if err != nil {
		return nil, r, err
	}
	for from, to := range names {
		if from != to {
			r.Masked++
		}
	}
	if im.Copy {
		d.rename(h.newIDs(d), names)
	} else if r.Masked > 0 {
		d.rename(nil, names)
	}
	return d, r, d.check(ctx)
}

// readImport makes a document of a file of any form.
func (h *Host) readImport(data []byte, im Import) (*document, error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	isJSON := len(text) > 0 && (text[0] == '{' || text[0] == '[')
	switch form := cmp.Or(im.Form, map[bool]string{true: FormJSON, false: FormMarkdown}[isJSON]); {
	case len(text) == 0:
		return nil, tenon.Errorf(tenon.CodeInvalid, "the file is empty")
	case form == FormMarkdown:
		if !utf8.Valid(text) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the file is neither JSON nor text in UTF-8")
		}
		title, messages, err := readMarkdown(string(text))
		if err != nil {
			return nil, err
		}
		return saidDocument(title, messages, h.now().UTC())
	case form != FormJSON:
		return nil, tenon.Errorf(tenon.CodeInvalid, "there is no form '%s'; %s and %s can be imported", form, FormJSON, FormMarkdown)
	}
	var probe struct {
		Version *int `json:"tenon_export"`
	}
	if err := json.Unmarshal(text, &probe); text[0] == '{' && err != nil {
		return nil, jsonError(err)
	}
	if probe.Version == nil {
		messages, err := ReadConversation(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		return saidDocument("", messages, h.now().UTC())
	}
	if v := *probe.Version; v != ExportVersion {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the file has version %d of the form of exports, and this tenon reads version %d; use the tenon that wrote it, or a newer one", v, ExportVersion)
	}
	d := &document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, jsonError(err)
	}
	return d, nil
}

// jsonError says where a file is no JSON, or not of the form.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return tenon.Errorf(tenon.CodeInvalid, "the file is no JSON: byte %d: %w", syntax.Offset, err)
	case errors.As(err, &kind):
		return tenon.Errorf(tenon.CodeInvalid, "the file is not of the form of an export: byte %d: '%s' is a %s", kind.Offset, kind.Field, kind.Value)
	}
	return tenon.Errorf(tenon.CodeInvalid, "the file is not of the form of an export: %w", err)
}

// blobNames holds the large values against their digests. Where something was masked
// in one, its digest is another now: from → to, equal for all others.
func (d *document) blobNames() (map[string]string, error) {
	names := make(map[string]string, len(d.Blobs))
	for i := range d.Blobs {
		b := &d.Blobs[i]
		if len(b.Data) == 0 {
			b.Data = json.RawMessage(b.Base64)
		}
		is := digestOf(b.Data)
		switch {
		case !digestShape.MatchString(b.Digest):
			return nil, tenon.Errorf(tenon.CodeInvalid, "blob %d has no digest: sha256: and 64 hex digits", i+1)
		case names[b.Digest] != "":
			return nil, tenon.Errorf(tenon.CodeInvalid, "blob %s is there twice", b.Digest)
		case is != b.Digest && !b.Masked:
			return nil, tenon.Errorf(tenon.CodeInvalid, "blob %s has been changed, if only in its white space: its digest is %s", b.Digest, is)
		}
		names[b.Digest] = is
	}
	return names, nil
}
