package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// FuzzSearch stores and searches arbitrary texts. Every query gets an answer, and a text is found by each of its words.
func FuzzSearch(f *testing.F) {
	for _, q := range []string{"weather", `"in London`, `a"b`, `text:x`, "NEAR(a b)", "* ^ - + AND OR NOT", "天气 天气预报", "\x00", "\xff\xfe",
		"'; DROP TABLE texts; --", "{a b}:c", `""`, "“x”", "ı İ ſ K", "e\u0301a"} {
		f.Add(q)
	}
	s, err := Open(f.Context(), Config{Path: filepath.Join(f.TempDir(), "tenon.db")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	n := uint64(0)
	err = s.Append(f.Context(), store.Append{Create: &tenon.Run{ID: "r", Session: "s"}, Run: "r"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query string) {
		ctx := t.Context()
		if _, err := s.Search(ctx, store.SearchFilter{Query: query}); err != nil && tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Fatalf("search %q: %v", query, err)
		}
		words, err := forms.QueryWords(query)
		if err != nil {
			return
		}
		n++
		if err := s.PutTexts(ctx, []store.RunTexts{{Run: "r", UpTo: n, Texts: []store.Text{{Seq: n, Role: "user", Text: query}}}}); err != nil {
			t.Fatal(err)
		}
		hits, err := s.Search(ctx, store.SearchFilter{Query: query, Limit: 1_000_000})
		if err != nil {
			t.Fatalf("search %q: %v", query, err)
		}
		for _, h := range hits {
			if h.Seq == n {
				return
			}
		}
		// A query is only exempt if it contains a quotation mark: it may cut a word that is whole in the text.
		if !strings.ContainsFunc(query, forms.IsQuote) {
			t.Errorf("%q is not found by %q", query, words)
		}
	})
}
