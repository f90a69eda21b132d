package servers

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
)

// reader is a connection that can only read resources.
type reader struct{ *fakeConn }

func (reader) Read(_ context.Context, uri string) ([]tenon.Content, error) {
	if uri != "test://a" {
		return nil, errors.New("gone")
	}
	return []tenon.Content{{Type: tenon.ContentResource, URI: uri, Text: "abc", MimeType: "text/plain"}}, nil
}

// TestShape checks how resource_links and result_format change a result.
func TestShape(t *testing.T) {
	const links = `{"content":[{"type":"text","text":"x"},{"type":"resource_link","uri":"test://a","name":"a"},{"type":"resource_link","uri":"test://b","name":"b"}]}`
	const mixed = `{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"b"}],"x":1}`
	const record = `{"content":[{"type":"text","text":"one"}],"structuredContent":{"id":9007199254740993}}`
	for name, tt := range map[string]struct {
		cfg      Config
		in, want string
	}{
		"links kept":         {Config{}, links, links},
		"links fetched":      {Config{ResourceLinks: LinksFetch}, links, `{"content":[{"type":"text","text":"x"},{"type":"resource","resource":{"uri":"test://a","mimeType":"text/plain","text":"abc"}},{"type":"resource_link","uri":"test://b","name":"b"}]}`},
		"no links to fetch":  {Config{ResourceLinks: LinksFetch}, mixed, mixed},
		"native":             {Config{}, mixed, mixed},
		"text":               {Config{ResultFormat: FormatText}, mixed, `{"content":[{"type":"text","text":"a\nb"},{"type":"image","data":"AA==","mimeType":"image/png"}]}`},
		"text of nothing":    {Config{ResultFormat: FormatText}, `{"content":[]}`, `{"content":[{"type":"text","text":""}]}`},
		"structured":         {Config{ResultFormat: FormatStructured}, record, `{"content":[{"type":"text","text":"{\"id\":9007199254740993}"}]}`},
		"structured without": {Config{ResultFormat: FormatStructured}, mixed, `{"content":[{"type":"text","text":"ab"},{"type":"image","data":"AA==","mimeType":"image/png"}]}`},
		"a failure":          {Config{ResultFormat: FormatText}, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			var in tenon.Result
			if err := json.Unmarshal([]byte(tt.in), &in); err != nil {
				t.Fatal(err)
			}
			s := New("t", tt.cfg, Options{})
			got, err := json.Marshal(s.shape(t.Context(), &link{connection: reader{newFake()}}, &in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
			_ = s.Close()
		})
	}
}
