package mcp

import (
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// codeNoResource is the error code for an unknown resource (MCP 2025-06-18, resources). Later versions use invalid
// params.
const codeNoResource = -32002

// resource handles the resources/* requests.
func (s *Server) resource(r *jsonrpc.Request, modern bool) ([]byte, error) {
	b := []byte{'{'}
	if modern { // forbid caching: this server is local
		b = append(b, s.caching()...)
	}
	switch r.Method {
	case "resources/list":
		list := []byte{'['}
		for i, x := range s.cfg.Resources {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(text(text(text(append(list, '{'), "uri", x.URI), "name", x.Name), "mimeType", x.MimeType),
				'}')
		}
		return append(member(b, "resources", append(list, ']')), '}'), nil
	case "resources/templates/list":
		return append(member(b, "resourceTemplates", []byte("[]")), '}'), nil
	}
	uri := rawjson.String(rawjson.Field(r.Params, "uri"))
	for _, x := range s.cfg.Resources {
		if x.URI == uri {
			one := append(text(text(text([]byte("[{"), "uri", x.URI), "mimeType", x.MimeType), "text", x.Text), "}]"...)
			return append(member(b, "contents", one), '}'), nil
		}
	}
	code := codeNoResource
	if modern {
		code = jsonrpc.CodeInvalidParams
	}
	return nil, jsonrpc.Errorf(code, "there is no resource %q", uri)
}
