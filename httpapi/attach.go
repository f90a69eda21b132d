package httpapi

import (
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// maxAttached is the largest number of files and resources of one question.
const maxAttached = 32

// FileInput is a file attached to a question.
type FileInput struct {
	Name string `json:"name"`
	Data []byte `json:"data"` // in base64
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
		if f.Name == "" || len(f.Data) == 0 {
			return nil, tenon.Errorf(tenon.CodeInvalid, "files[%d] needs a name and data", i)
		}
		p, err := host.FilePart(f.Name, f.Data)
		if err != nil {
			return nil, err
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
