package host

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/model"
)

// A file of a question can be at an address, or at the model's provider. Providers read some addresses themselves, and
// the request then names only the address. tenon reads the other https addresses when the question is asked, so that
// the journal contains what the model saw.

// Bounds for reading the addresses of a question.
const (
	maxFetched = 8 // addresses
	fetchTime  = 10 * time.Second
)

// AddressPart returns the part of a question for a file at an address (https, gs, s3), or for a file that the provider
// stores ("file-id:ID"). The end of the address tells the type of the file. An address may follow its type instead:
// image/png=https://example.com/x. ok is false if the text is none of these.
func AddressPart(text string) (p tenon.Part, ok bool) {
	kind, address, typed := strings.Cut(text, "=")
	if !typed || strings.Count(kind, "/") != 1 || strings.ContainsAny(kind, ":. ") || !isAddress(address) {
		if !isAddress(text) {
			return p, false
		}
		kind, address = kindOfAddress(text), text
	}
	p = tenon.Part{Type: tenon.PartFile, MimeType: strings.ToLower(kind), URI: address}
	if strings.HasPrefix(p.MimeType, "image/") {
		p.Type = tenon.PartImage
	}
	return p, true
}

// isAddress reports whether a text is an address of a file, and not the name of a file.
func isAddress(text string) bool {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || !slices.Contains([]string{"https", "http", "gs", "s3", "file-id"}, scheme) {
		return false
	}
	return scheme == "file-id" && rest != "" || strings.HasPrefix(rest, "//") && len(rest) > 2
}

// kindOfAddress returns the MIME type of the file at an address by the end of its path, or "".
func kindOfAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "file-id" {
		return ""
	}
	switch strings.TrimPrefix(u.Hostname(), "www.") {
	case "youtube.com", "m.youtube.com", "youtu.be":
		return "video/mp4"
	}
	return kindOfName(path.Base(u.Path))
}

// reach returns the parts of messages with the bytes of those addresses that the model does not read itself. It does
// not modify the parts. Errors: invalid (an address that nobody reads), too_large.
func (h *Host) reach(ctx context.Context, name string, parts []tenon.Part, left *int) ([]tenon.Part, error) {
	if !slices.ContainsFunc(parts, func(p tenon.Part) bool { return p.URI != "" }) {
		return parts, nil
	}
	out := slices.Clone(parts)
	for i := range out {
		p := &out[i]
		if p.URI == "" || h.models.takes(name, p) {
			continue
		}
		if *left--; *left < 0 {
			return nil, tenon.Errorf(tenon.CodeInvalid, "more than %d files of a question are addresses that tenon "+
				"has to read; send their bytes", maxFetched)
		}
		read, err := h.readAddress(ctx, name, p)
		if err != nil {
			return nil, err
		}
		*p = read
	}
	return out, nil
}

// reachAll is reach for a question and its history.
func (h *Host) reachAll(ctx context.Context, q *Question, spec *agent.Spec) (err error) {
	left := maxFetched
	if spec.Files, err = h.reach(ctx, spec.Model, q.Files, &left); err != nil {
		return err
	}
	spec.History = slices.Clone(q.History)
	for i, m := range spec.History {
		if m.Role != tenon.RoleUser {
			continue
		}
		parts, err := h.reach(ctx, spec.Model, m.Parts, &left)
		if err != nil {
			return err
		}
		if len(parts) > 0 && &parts[0] != &m.Parts[0] {
			spec.History[i] = &tenon.Message{Role: m.Role, By: m.By, Partial: m.Partial, Parts: parts}
		}
	}
	return nil
}

// takes reports whether requests to a model name the address or file id of a part. Models of the program get those
// that tenon cannot read.
func (m *models) takes(name string, p *tenon.Part) bool {
	r, ok := model.RemoteOf(model.ContentOf(p))
	if m.isDemo(name) {
		return false
	}
	c, err := m.settings(name)
	if err != nil || c.Wire() == model.WireScript {
		return ok && !r.Web()
	}
	if r.Web() && r.Kind == model.RemoteDocument && r.MIME != "application/pdf" {
		return false // a text is sent as a part of the question, and of others the content tells the type
	}
	return ok && c.Takes(r)
}

// readAddress returns a part with the bytes at its address.
func (h *Host) readAddress(ctx context.Context, name string, p *tenon.Part) (tenon.Part, error) {
	scheme, rest, _ := strings.Cut(p.URI, ":")
	shown := tenon.Shorten(tenon.Visible(p.URI), 300)
	switch {
	case scheme == "file-id":
		return *p, tenon.Errorf(tenon.CodeInvalid, "model '%s' takes no file with the id %s: it takes no files of its "+
			"provider, or none of this type; send the bytes of the file", name, tenon.Visible(rest))
	case scheme != "https":
		return *p, tenon.Errorf(tenon.CodeInvalid, "model '%s' does not read %s, and tenon reads only https "+
			"addresses; send the bytes of the file", name, shown)
	case h.cassette.player != nil:
		return *p, tenon.Errorf(tenon.CodeInvalid, "a replay reads no address; send the bytes of %s", shown)
	}
	data, err := h.fetch(ctx, p.URI)
	var read tenon.Part
	if err == nil {
		u, _ := url.Parse(p.URI)
		read, err = FilePart(path.Base(u.Path), data)
	}
	if err == nil && p.Type == tenon.PartImage && read.Type != tenon.PartImage {
		err = tenon.Errorf(tenon.CodeInvalid, "it is no picture of type png, jpeg, gif or webp, but %s",
			tenon.Visible(http.DetectContentType(data)))
	}
	if err != nil {
		code := tenon.ErrorCode(err)
		if code != tenon.CodeTooLarge && code != tenon.CodeCancelled { // an address that fails makes the question wrong
			code = tenon.CodeInvalid
		}
		return *p, tenon.Errorf(code, "%s, which model '%s' does not read itself: %w", shown, name, err)
	}
	return read, nil
}

// fetchPublic reads an https address of the public Internet. It never connects to a private address, even if a public
// name resolves to it. It does not follow redirects to http.
func fetchPublic(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "it is not an https URL")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	client := outbound.New()
	defer client.Close()
	r, err := client.Do(ctx, outbound.Request{Method: http.MethodGet, URL: address, Public: true, Max: maxFile,
		Why:    "only public addresses are read for a message",
		Header: http.Header{"Accept": {"image/png, image/jpeg, image/gif, image/webp, application/pdf, */*;q=0.5"}}})
	if err != nil {
		return nil, err
	}
	if r.Status != http.StatusOK {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s://%s answers %s", u.Scheme, tenon.Visible(u.Host),
			tenon.Visible(r.Text))
	}
	if kind, _, err := mime.ParseMediaType(r.Type); err == nil && kind == "text/html" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s://%s answers with a web page", u.Scheme, tenon.Visible(u.Host))
	}
	return r.Body, nil
}
