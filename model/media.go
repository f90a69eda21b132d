package model

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// maxMedia bounds the images and audio of an answer, in bytes of base64. Every turn of the session stores them, and
// some providers get them back.
const maxMedia = 48 << 20

// Media collects images and audio that a model generates. The zero value is ready to use.
type Media struct {
	parts    []tenon.Part
	size     int
	Warnings []string
}

// Add returns the part for generated data. It returns nil if the data is not base64, is too large, or was added before.
// mime may be empty. raw is the provider's form of the part without the data, or nil if the part is not sent back.
func (m *Media) Add(mime, data, wire string, raw []byte) *tenon.Part {
	data, ok := base64Of(data)
	switch {
	case !ok || data == "":
		m.Warnings = append(m.Warnings, "generated data that is not base64 is omitted")
		return nil
	case m.size+len(data) > maxMedia:
		m.Warnings = append(m.Warnings, fmt.Sprintf("generated data is omitted: the answer has more than %d MiB",
			maxMedia>>20))
		return nil
	}
	for i := range m.parts {
		if m.parts[i].Data == data {
			return nil
		}
	}
	m.size += len(data)
	if mime = strings.ToLower(mime); mime == "" || !strings.Contains(mime, "/") {
		mime = sniff(data)
	}
	p := tenon.Part{Type: tenon.PartFile, MimeType: mime, Data: data}
	if strings.HasPrefix(mime, "image/") {
		p.Type = tenon.PartImage
	}
	if raw != nil {
		p.Wire, p.Raw = wire, raw
	}
	m.parts = append(m.parts, p)
	return &p
}

// Parts returns the parts in the order in which they were added.
func (m *Media) Parts() []tenon.Part { return m.parts }

// Retype sets the MIME type of data that was added.
func (m *Media) Retype(data, mime string) {
	for i := range m.parts {
		if m.parts[i].Data == data {
			m.parts[i].MimeType = mime
		}
	}
}

// DataURL adds the data of a data: URL. wire and raw are as for Add.
func (m *Media) DataURL(url, wire string, raw []byte) *tenon.Part {
	mime, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		m.Warnings = append(m.Warnings, "a generated image is at an address and is not fetched: "+
			tenon.Shorten(tenon.Visible(url), 300))
		return nil
	}
	return m.Add(mime, data, wire, raw)
}

// sniff returns the MIME type of base64 data from its first bytes.
func sniff(data string) string {
	head := make([]byte, 512)
	n, err := base64.StdEncoding.Decode(head, []byte(data[:min(len(data), 680)/4*4]))
	if err != nil {
		return "application/octet-stream"
	}
	mime, _, _ := strings.Cut(http.DetectContentType(head[:n]), ";")
	return mime
}

// Generated returns a text that replaces generated data for a model that does not accept it.
func Generated(p *tenon.Part) string {
	return fmt.Sprintf("[generated %s, %d bytes]", mimeOf(p.MimeType), Size(p.Data))
}

// SetMember appends a copy of an object with a new value of the member at a path. It does not add a missing member, and
// it keeps the bytes of all other members.
func SetMember(dst, object, value []byte, path ...string) []byte {
	if len(path) == 0 || !rawjson.IsObject(object) {
		return append(dst, object...)
	}
	dst = append(dst, '{')
	first := true
	for k, v := range rawjson.Fields(object) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), k...), `":`...)
		switch {
		case string(k) != path[0]:
			dst = append(dst, v...)
		case len(path) == 1:
			dst = append(dst, value...)
		default:
			dst = SetMember(dst, v, value, path[1:]...)
		}
	}
	return append(dst, '}')
}

// WithData appends the provider's form of a generated part, with the data at a path.
func WithData(dst []byte, p *tenon.Part, path ...string) []byte {
	return SetMember(dst, p.Raw, rawjson.AppendString(nil, p.Data), path...)
}
