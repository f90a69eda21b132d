package httpapi

import (
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// maxAttached is the largest number of files and resources of one question.
const maxAttached = 32

// FileInput is a file attached to a question: its name and content, or its address.
type FileInput struct {
	Name string `json:"name,omitempty"`
	Data []byte `json:"data,omitempty"` // in base64
	// URI is an address (https, gs, s3), or "file-id:" followed by the id of a file at the model's provider. If the
	// model does not read an https address itself, tenon reads it.
	URI      string `json:"uri,omitempty"`
	MimeType string `json:"mime_type,omitempty"` // of the file at the URI; if empty, the end of the URI tells it
}

// attached returns files, and resources that it reads from servers, as parts of a question. It does not limit the size
// of the files, because the body of the request is limited.
func (c *call) attached(files []FileInput, resources []ReadRequest) ([]tenon.Part, error) {
	if n := len(files) + len(resources); n > maxAttached {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%d files and resources; %d is the limit of one question", n,
			maxAttached)
	}
	var parts []tenon.Part
	for i, f := range files {
		p, err := f.part()
		if err != nil {
			return nil, fmt.Errorf("files[%d]: %w", i, err)
		}
		parts = append(parts, p)
	}
	for i, r := range resources {
		if r.Server == "" || r.URI == "" {
			return nil, tenon.Errorf(tenon.CodeInvalid, "resources[%d] needs a server and a uri", i)
		}
		ctx, err := c.asCaller(r.Server)
		if err != nil {
			return nil, err
		}
		read, err := c.h.Servers().Context().Attach(ctx, r.Server, r.URI)
		if err != nil {
			return nil, fmt.Errorf("resources[%d]: %w", i, err)
		}
		parts = append(parts, read...)
	}
	return parts, nil
}

// part returns the file as a part of a question.
func (f *FileInput) part() (tenon.Part, error) {
	switch {
	case f.URI != "" && len(f.Data) > 0:
		return tenon.Part{}, tenon.Errorf(tenon.CodeInvalid, "data and uri exclude each other")
	case f.URI != "":
		text := f.URI
		if f.MimeType != "" {
			text = f.MimeType + "=" + f.URI
		}
		p, ok := host.AddressPart(text)
		if !ok {
			return p, tenon.Errorf(tenon.CodeInvalid, "its uri must begin with https://, gs://, s3:// or file-id:, and "+
				"mime_type have the form image/png")
		}
		p.Text = f.Name
		return p, nil
	case f.Name == "" || len(f.Data) == 0:
		return tenon.Part{}, tenon.Errorf(tenon.CodeInvalid, "it needs a name and data, or a uri")
	}
	return host.FilePart(f.Name, f.Data)
}
