package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
)

func TestTokens(t *testing.T) {
	for in, want := range map[string]string{
		"getUserSubmissions":  "get user submiss",
		"HTTPServer2Go":       "http server2 go",
		"read_multiple-files": "read multipl file",
		"the 天气 of Rome":      "天 气 rome",
		"studies stopped":     "studi stop",
		"":                    "",
	} {
		if got := strings.Join(tokens(in), " "); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	s, _ := Build([]Source{{Server: "files", About: "Works on a disk", Tools: []tenon.Tool{
		tool("read_file", "Reads the content", `{"properties":{"path":{}}}`), tool("remove_file", "", "{}")}},
		{Server: "weather", Tools: []tenon.Tool{tool("current", "当前天气", "{}"), tool("outlook", "The temperature tomorrow", `{"properties":{"city":{}}}`)}}})
	for _, tt := range []struct{ query, want string }{
		{"read", "read_file"},
		{"delete a file", "remove_file read_file"}, // found by a synonym
		{"天气", "current"},
		{"forecast", "outlook current"}, // current: by its server's name
		{"tempera", "outlook"},          // the beginning of a word
		{"city", "outlook"},
		{"", ""},
		{"the of and", ""},
		{"zzz", ""},
	} {
		var got []string
		for _, h := range s.Index().Search(tt.query, 5) {
			got = append(got, h.Tool.Name)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", tt.query, diff)
		}
	}
	if got := s.Index().Search("file", 1); len(got) != 1 {
		t.Errorf("%d hits, want 1", len(got))
	}
	if got := s.Index().Search("file", 0); len(got) != 0 {
		t.Errorf("%d hits, want none", len(got))
	}
	none, _ := Build(nil)
	if got := none.Index().Search("file", 5); len(got) != 0 {
		t.Errorf("%d hits of nothing", len(got))
	}
}

func FuzzSearch(f *testing.F) {
	s, _ := Build([]Source{{Server: "t", Tools: tools("read_file", "getWeather")}})
	f.Add("read the FILE 天气")
	f.Fuzz(func(_ *testing.T, q string) { s.Index().Search(q, 3) })
}
