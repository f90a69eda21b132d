package transcript

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/store"
)

// The formats that [Transcripts.Import] reads.
const (
	FormatJSON     = "json"     // written by [Transcripts.Export], or messages: see [Read]
	FormatMarkdown = "markdown" // written by [Transcripts.ExportMarkdown]
)

// maxImport bounds an imported file, in bytes.
const maxImport = 256 << 20

// Import describes an import. Only From is required.
type Import struct {
	From   io.Reader
	Format string // FormatJSON or FormatMarkdown; if empty, it is detected
	// Copy gives new ids to all sessions and runs, so that a session can be imported again. Messages and Markdown
	// always get new ids.
	Copy  bool
	Title string // title of the session; if empty, the title in the file
}

// ImportReport describes what was imported.
type ImportReport struct {
	Session  tenon.Session `json:"session"`
	Sessions int           `json:"sessions"` // including sessions that Session was forked from
	Runs     int           `json:"runs"`     // including called runs
	Unended  int           `json:"unended"`  // runs that had not ended; they cannot be resumed
	Masked   int           `json:"masked"`   // blobs with masked secrets; they have new digests
	SaidOnly bool          `json:"said_only,omitempty"`
}

// Import stores the session in a file, all or nothing. The session can be shown, searched, forked and continued. Its
// runs are marked (see [tenon.Imported]): they get no more events, their grants are ignored, and unended runs are not
// resumed.
//
// The file is not trusted. Import checks ids, numbers and order of events, references between runs, digests, that
// each journal can be folded, and that every call in a conversation has one result. Errors: invalid, too_large,
// conflict (the session is already in the store), store.
func (t *Transcripts) Import(ctx context.Context, im Import) (ImportReport, error) {
	d, r, err := t.read(ctx, im)
	if err != nil {
		return r, err
	}
	plan := d.plan(t.cfg.Now().UTC())
	if err := t.cfg.Store.ImportSession(ctx, plan); err != nil {
		if tenon.ErrorCode(err) == tenon.CodeConflict {
			err = tenon.Errorf(tenon.CodeConflict,
				"%w in this store already; --copy imports it under new ids", err)
		}
		return r, err
	}
	r.Sessions, r.Runs = len(plan.Sessions), len(plan.Runs)
	for _, x := range plan.Runs {
		if x.Run.Imported.State != "" {
			r.Unended++
		}
	}
	r.Session, err = t.cfg.Store.Session(ctx, d.Session)
	return r, err
}

// Check reads and checks a file as Import does, without storing anything. Errors: invalid, too_large.
func (t *Transcripts) Check(ctx context.Context, im Import) error {
	_, _, err := t.read(ctx, im)
	return err
}

// read reads and checks a file.
func (t *Transcripts) read(ctx context.Context, im Import) (*document, ImportReport, error) {
	var r ImportReport
	data, err := io.ReadAll(io.LimitReader(im.From, maxImport+1))
	switch {
	case err != nil:
		return nil, r, tenon.Errorf(tenon.CodeInvalid, "the file cannot be read: %w", err)
	case len(data) > maxImport:
		return nil, r, tenon.Errorf(tenon.CodeTooLarge, "the file has more than %d bytes", maxImport)
	}
	d, err := t.readImport(data, im)
	if err != nil {
		return nil, r, err
	}
	r.SaidOnly = d.messagesOnly
	if title := tenon.Shorten(strings.ToValidUTF8(im.Title, "\uFFFD"), maxTitle); title != "" {
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
		d.rename(d.newIDs(), names)
	} else if r.Masked > 0 {
		d.rename(nil, names)
	}
	return d, r, d.check(ctx, t.cfg.Unpack)
}

// readImport converts a file of any format to a document.
func (t *Transcripts) readImport(data []byte, im Import) (*document, error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	isJSON := len(text) > 0 && (text[0] == '{' || text[0] == '[')
	switch form := cmp.Or(im.Format, map[bool]string{true: FormatJSON, false: FormatMarkdown}[isJSON]); {
	case len(text) == 0:
		return nil, tenon.Errorf(tenon.CodeInvalid, "the file is empty")
	case form == FormatMarkdown:
		if !utf8.Valid(text) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the file is neither JSON nor text in UTF-8")
		}
		title, messages, err := readMarkdown(string(text))
		if err != nil {
			return nil, err
		}
		return messagesDocument(title, messages, t.cfg.Now().UTC())
	case form != FormatJSON:
		return nil, tenon.Errorf(tenon.CodeInvalid, "there is no format '%s'; %s and %s can be imported", form,
			FormatJSON, FormatMarkdown)
	}
	var probe struct {
		Version *int `json:"tenon_export"`
	}
	if text[0] == '{' {
		if err := exactjson.DecodeOpen(text, &probe); err != nil {
			return nil, jsonError(err)
		}
	}
	if probe.Version == nil {
		messages, err := Read(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		return messagesDocument("", messages, t.cfg.Now().UTC())
	}
	if v := *probe.Version; v != Version {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the file has version %d of the export format, "+
			"and this tenon reads version %d; use the tenon that wrote it, or a newer one", v, Version)
	}
	d := &document{}
	if err := exactjson.DecodeOpen(text, d); err != nil {
		return nil, jsonError(err)
	}
	return d, d.takeBytes()
}

// takeBytes replaces data by its exact bytes if the file contains them. Both must have the same value, because a person
// who reads the file reads only the data.
func (d *document) takeBytes() error {
	take := func(what string, data *json.RawMessage, exact []byte) error {
		switch {
		case len(exact) == 0:
			return nil
		case len(*data) > 0 && !sameValue(*data, exact):
			return badImport("%s has different values in data and data_base64", what)
		}
		*data = exact
		return nil
	}
	for i := range d.Runs {
		for j := range d.Runs[i].Events {
			e := &d.Runs[i].Events[j]
			if err := take(fmt.Sprintf("event %d of run %s", j+1, tenon.Truncate(d.Runs[i].Run.ID, maxTitle)),
				&e.Data, e.Base64); err != nil {
				return err
			}
		}
	}
	for i := range d.Blobs {
		if err := take(fmt.Sprintf("blob %d", i+1), &d.Blobs[i].Data, d.Blobs[i].Base64); err != nil {
			return err
		}
	}
	return nil
}

// sameValue reports whether two JSON texts have the same value. Numbers are compared as text.
func sameValue(a, b []byte) bool {
	var x, y any
	return decodeNumbers(a, &x) == nil && decodeNumbers(b, &y) == nil && reflect.DeepEqual(x, y)
}

// decodeNumbers decodes JSON and keeps numbers as they are written.
func decodeNumbers(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// jsonError returns the error for a file that is not JSON, or not an export. It contains the position.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return tenon.Errorf(tenon.CodeInvalid, "the file is not JSON: byte %d: %w", syntax.Offset, err)
	case errors.As(err, &kind):
		return tenon.Errorf(tenon.CodeInvalid, "the file is not an export: byte %d: '%s' is a %s",
			kind.Offset, kind.Field, kind.Value)
	}
	return tenon.Errorf(tenon.CodeInvalid, "the file is not an export: %w", err)
}

// blobNames checks the digests of blobs. It maps the digests in the file to the actual digests. The two differ if a
// secret was masked.
func (d *document) blobNames() (map[string]string, error) {
	names := make(map[string]string, len(d.Blobs))
	for i := range d.Blobs {
		b := &d.Blobs[i]
		is := store.Digest(b.Data)
		switch {
		case !digestShape().MatchString(b.Digest):
			return nil, tenon.Errorf(tenon.CodeInvalid, "blob %d has no digest: sha256: and 64 hex digits", i+1)
		case names[b.Digest] != "":
			return nil, tenon.Errorf(tenon.CodeInvalid, "blob %s occurs twice", b.Digest)
		case is != b.Digest && !b.Masked:
			return nil, tenon.Errorf(tenon.CodeInvalid,
				"blob %s has been changed, if only in its white space: its digest is %s", b.Digest, is)
		}
		names[b.Digest] = is
	}
	return names, nil
}
