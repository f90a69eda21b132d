package cli

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestUX2_DetailsOfPictures checks that an unfolded call shows the blocks of its result that are no text, too.
func TestUX2_DetailsOfPictures(t *testing.T) {
	picture := tenon.Content{Type: tenon.ContentImage, MimeType: "image/png", Data: "AAECAwQFBgc="}
	link := tenon.Content{Type: tenon.ContentLink, URI: "test://a", Name: "a"}
	for name, tt := range map[string]struct {
		content []tenon.Content
		want    string
	}{
		"text and a picture": {[]tenon.Content{tenon.Text("here:"), picture}, "here:\n[image, image/png, 8 bytes]"},
		"only a picture":     {[]tenon.Content{picture}, "[image, image/png, 8 bytes]"},
		"a link":             {[]tenon.Content{link}, "[resource_link, a, test://a]"},
		"nothing":            {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, _ := strings.Cut(details([]byte("{}"), &tenon.Result{Content: tt.content}), "→\n")
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
