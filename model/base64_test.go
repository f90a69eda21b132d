package model

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestImageData checks that only valid base64 data reaches a provider, in the variant of base64 that providers accept.
func TestImageData(t *testing.T) {
	for _, tt := range []struct {
		name, data, want string
		ok               bool
	}{
		{"padded", "iVBORw==", "iVBORw==", true},
		{"without padding", "iVBORw", "iVBORw==", true},
		{"line breaks", "iVBO\r\nRw==", "iVBORw==", true},
		{"other alphabet", "iVBO_-==", "", false},
		{"text", "!!!notbase64", "", false},
		{"one character over", "iVBOR", "", false},
		{"padding within", "iV==Rw==", "", false},
		{"too much padding", "iVBO====", "", false},
	} {
		t.Run("HD-FR-018_"+tt.name, func(t *testing.T) {
			c := tenon.Content{Type: tenon.ContentImage, MimeType: "image/png", Data: tt.data}
			_, got, ok := ImageOf(c)
			if got != tt.want || ok != tt.ok {
				t.Errorf("got %q, %v", got, ok)
			}
			if note := Note(c); strings.Contains(note, "not base64") == tt.ok {
				t.Errorf("the note is %q", note)
			}
		})
	}
}
