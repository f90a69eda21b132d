package tenon

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// A mask within base64 leaves a text that is no base64, and a mask within the bytes of a picture leaves no picture. So
// the data of pictures, sounds and files is looked at before it is masked as text: a text stays a text, with the mask
// in it, and anything else is withheld.

// maxDataDepth bounds the depth of JSON that is searched for data.
const maxDataDepth = 32

// JSON returns a message of MCP with every secret masked. It is [Redactor.Bytes], except that the base64 of pictures,
// sounds and resources stays base64, or is replaced by a text that says why.
func (r *Redactor) JSON(raw []byte) []byte {
	if r.IsEmpty() {
		return raw
	}
	return r.Bytes(r.data(raw))
}

// data returns JSON in which no base64 of a content block or a resource contains a secret. If nothing changes, it
// returns raw itself.
func (r *Redactor) data(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`"data"`)) && !bytes.Contains(raw, []byte(`"blob"`)) {
		return raw
	}
	if !json.Valid(raw) {
		return raw
	}
	if out, changed := r.dataIn(raw, 0); changed {
		return out
	}
	return raw
}

func (r *Redactor) dataIn(raw []byte, depth int) (out []byte, changed bool) {
	switch {
	case depth > maxDataDepth:
		return raw, false
	case rawjson.IsArray(raw):
		out = append(out, '[')
		for e := range rawjson.Elements(raw) {
			v, other := r.dataIn(e, depth+1)
			changed = changed || other
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, v...)
		}
		return append(out, ']'), changed
	case !rawjson.IsObject(raw):
		return raw, false
	}
	b := blockOf(raw)
	text, withheld := "", false
	if b.data != "" {
		text, withheld = r.dataText(b.data)
	}
	if withheld && b.key == "data" {
		return []byte(`{"type":"text","text":` + string(rawjson.AppendString(nil, b.notice())) + `}`), true
	}
	out = append(out, '{')
	put := func(key string, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendString(out, key), ':'), v...)
	}
	for key, v := range rawjson.Members(raw) {
		switch k := string(key); {
		case withheld && k == b.key:
			put("text", rawjson.AppendString(nil, b.notice()))
			changed = true
		case withheld && k == "mimeType":
			put(k, []byte(`"text/plain"`))
		case text != "" && k == b.key:
			put(k, rawjson.AppendString(nil, text))
			changed = true
		default:
			value, other := r.dataIn(v, depth+1)
			changed = changed || other
			put(k, value)
		}
	}
	return append(out, '}'), changed
}

// dataBlock is the part of a content block, or of the contents of a resource, that has data.
type dataBlock struct{ key, data, mime string }

// blockOf reads the data of an object. Its data is "" if the object is neither a block with data nor a resource.
func blockOf(raw []byte) (b dataBlock) {
	kind, uri := "", false
	for key, v := range rawjson.Members(raw) {
		switch k := string(key); k {
		case "type":
			kind = rawjson.String(v)
		case "mimeType":
			b.mime = rawjson.String(v)
		case "uri":
			uri = true
		case "data", "blob":
			b.key, b.data = k, rawjson.String(v)
		}
	}
	if b.key == "data" && kind != ContentImage && kind != ContentAudio || b.key == "blob" && !uri {
		b.data = ""
	}
	return b
}

// notice is the text that replaces data with a secret.
func (b dataBlock) notice() string {
	kind := cmp.Or(Visible(b.mime), "data")
	return fmt.Sprintf("[%s of %d bytes in base64 is withheld: it holds a configured secret, and a part of it cannot "+
		"be masked]", kind, len(b.data))
}

// dataText returns base64 with masked secrets, if the data is a text that has some. If it is no text, or if the base64
// itself has a secret, withheld is set. For data without a secret it returns "".
func (r *Redactor) dataText(data string) (text string, withheld bool) {
	plain, ok := decodedData(data)
	if !ok {
		return "", false // masked as any other text
	}
	masked := r.Bytes(plain)
	found := len(masked) != len(plain) || len(plain) > 0 && &masked[0] != &plain[0]
	if !found {
		return "", r.Text(data) != data
	}
	if !utf8.Valid(plain) || bytes.IndexByte(plain, 0) >= 0 {
		return "", true
	}
	text = base64.StdEncoding.EncodeToString(masked)
	return text, r.Text(text) != text
}

// decodedData decodes base64 with either alphabet, with or without padding and line breaks.
func decodedData(data string) ([]byte, bool) {
	data = strings.TrimRight(strings.NewReplacer("\n", "", "\r", "", " ", "", "-", "+", "_", "/").Replace(data), "=")
	b, err := base64.RawStdEncoding.DecodeString(data)
	return b, err == nil
}
