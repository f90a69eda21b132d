package oauth

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/authserver"
)

// TestOldMetadata signs in at servers without protected resource metadata, as revision 2025-03-26 describes.
func TestOldMetadata(t *testing.T) {
	for _, c := range []struct {
		name   string
		server func(*authserver.Server)
		want   string // part of the error; "" if the sign-in succeeds
	}{
		{"RP-14_root", func(*authserver.Server) {}, ""},
		{"RP-14_base_path", func(s *authserver.Server) { s.Mount("/base") }, ""},
		{"RP-14_base_path_of_two_segments", func(s *authserver.Server) { s.Mount("/team/a") }, ""},
		{"RP-14_metadata_below_the_base_path", func(s *authserver.Server) { s.Mount("/base"); s.Appended = true }, ""},
		{"RP-14_root_is_the_issuer", func(s *authserver.Server) {
			s.Mount("/base")
			s.Metadata = map[string]any{"issuer": strings.TrimSuffix(s.Issuer, "/base")}
		}, ""},
		{"RP-14_no_metadata", func(s *authserver.Server) { s.NoMetadata = true }, ""},
		{"RP-14_no_metadata_and_no_endpoints", func(s *authserver.Server) { s.Mount("/base"); s.NoMetadata = true },
			"it publishes no OAuth metadata, so the endpoints of revision 2025-03-26 at"},
		{"RP-14_another_issuer", func(s *authserver.Server) {
			s.Mount("/base")
			s.Metadata = map[string]any{"issuer": "https://evil.example"}
		}, "evil.example"},
		{"RP-14_sibling_issuer", func(s *authserver.Server) {
			s.Mount("/base")
			s.Metadata = map[string]any{"issuer": strings.TrimSuffix(s.Issuer, "/base") + "/other"}
		}, "/other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, func(s *authserver.Server) { s.NoResource, s.NoPointer = true, true; c.server(s) })
			_, rt := source(t, s, func(c *Config) { c.Sign = &person{} })
			status, err := request(t, rt, s.URL)
			if c.want == "" {
				if err != nil || status != 200 {
					t.Errorf("%d, %v; it saw %q", status, err, s.Seen())
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "'sign in'") {
				t.Errorf("%d, %v", status, err)
			}
			if seen := s.Seen(); len(seen) > 20 || slices.Contains(seen, "POST /token") {
				t.Errorf("it saw %q", seen)
			}
		})
	}
}

func TestBases(t *testing.T) {
	for path, want := range map[string][]string{
		"":           {""},
		"/":          {""},
		"/mcp":       {"", "/mcp"},
		"/a%2Fb/mcp": {"", "/a%2Fb/mcp", "/a%2Fb"},
		"/a/b/c/d/e": {"", "/a/b/c/d/e", "/a/b/c/d", "/a/b/c", "/a/b"},
	} {
		s, err := New(Config{URL: "https://h:1" + path})
		if err != nil {
			t.Fatal(err)
		}
		got := s.bases()
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "https://h:1")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}
