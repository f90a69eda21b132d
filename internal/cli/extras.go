package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/servers"
)

// maxSent bounds the bytes of the files and tables that are sent with a question over HTTP. In base64 they must fit
// into a request.
const maxSent = 11 << 20

// extras are the attachments of a question to another process: the bytes of files and tables, and the names of
// resources.
type extras struct {
	files     []httpapi.FileInput
	resources []httpapi.ReadRequest
	data      [][]byte
}

// extras reads the files and tables of the flags, and finds the resources of remote servers that the question names.
func (a *app) extras(ctx context.Context, c *httpapi.Client, q *asking, d *dataFiles, text string) (e extras,
	err error) {
	size := 0
	for _, path := range q.files { // read has checked that a model accepts them
		if p, ok := host.AddressPart(path); ok {
			e.files = append(e.files, httpapi.FileInput{URI: p.URI, MimeType: p.MimeType})
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return e, tenon.Errorf(tenon.CodeNotFound, "file %w", err)
		}
		size += len(b)
		e.files = append(e.files, httpapi.FileInput{Name: path, Data: b})
	}
	tables, done, err := d.open(a)
	if err != nil {
		return e, err
	}
	defer done()
	for _, t := range tables {
		size += int(t.Size())
	}
	if size > maxSent {
		return e, tenon.Errorf(tenon.CodeTooLarge, "files and tables have %d bytes together; a question to another "+
			"process takes at most %d MiB", size, maxSent>>20)
	}
	for i, t := range tables {
		b, err := io.ReadAll(t)
		if err != nil {
			return e, tenon.Errorf(tenon.CodeStore, "--data-in %s: %w", d.in[i], err)
		}
		e.data = append(e.data, b)
	}
	e.resources, err = farMentions(ctx, c, text, q.noTools)
	return e, err
}

// farMentions finds the resources of remote servers that a text names.
func farMentions(ctx context.Context, c *httpapi.Client, text string, noTools bool) (list []httpapi.ReadRequest,
	err error) {
	if len(host.MentionsIn(text, func(string) bool { return true })) == 0 {
		return nil, nil
	}
	all, err := c.Servers().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range host.MentionsIn(text, func(name string) bool {
		return slices.ContainsFunc(all, func(s servers.Status) bool { return s.Name == name })
	}) {
		if noTools {
			return nil, namedWithoutTools(m)
		}
		list = append(list, httpapi.ReadRequest{Server: m.Server, URI: strings.TrimSpace(m.URI)})
	}
	return list, nil
}

func namedWithoutTools(m host.Mention) error {
	return tenon.Errorf(tenon.CodeInvalid, "the question names @%s:%s, and with --no-tools no server is used",
		m.Server, tenon.Visible(m.URI))
}
