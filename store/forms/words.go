package forms

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

const (
	maxQuery = 1_000 // bytes
	maxWords = 32
	// snippetLen is the approximate length of a snippet in characters.
	snippetLen = 160
)

// Indexed is the minimum length of an indexed word, in characters.
const Indexed = 3

// MaxLooked bounds the texts that are searched for words that are too short for the index. These texts are the best
// matches of the other words, or the newest texts.
const MaxLooked = 20_000

// QueryWords splits a query into words and phrases. It removes punctuation around words. It keeps phrases in quotes
// unchanged. Errors: invalid.
func QueryWords(query string) ([]string, error) {
	if len(query) > maxQuery {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the search has %d bytes; at most %d can be looked for", len(query),
			maxQuery)
	}
	var words []string
	add := func(w string) {
		if w = CleanText(w); w != "" {
			words = append(words, w)
		}
	}
	for quoted := false; query != ""; quoted = !quoted {
		part := query
		if i := strings.IndexFunc(query, IsQuote); i >= 0 {
			_, n := utf8.DecodeRuneInString(query[i:])
			part, query = query[:i], query[i+n:]
		} else {
			query = ""
		}
		if quoted {
			add(part)
			continue
		}
		for _, w := range strings.Fields(part) {
			w = cmp.Or(strings.TrimFunc(w, unicode.IsPunct), w)
			add(w)
		}
	}
	switch {
	case len(words) == 0:
		return nil, tenon.Errorf(tenon.CodeInvalid, "the search holds no word")
	case len(words) > maxWords:
		return nil, tenon.Errorf(tenon.CodeInvalid, "the search has %d words; at most %d can be looked for", len(words),
			maxWords)
	}
	return words, nil
}

// IsQuote reports whether a character begins or ends a phrase.
func IsQuote(r rune) bool { return strings.ContainsRune("\"“”„", r) }

// Fold converts a text for comparisons that ignore case. It keeps the number of characters.
func Fold(s string) string { return strings.Map(unicode.ToLower, s) }

// CleanText converts a text to one line of at most [store.MaxText] bytes.
func CleanText(text string) string {
	if len(text) > store.MaxText {
		end := store.MaxText
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", " ")
	return strings.Join(strings.Fields(text), " ")
}

// CleanTexts returns the texts of runs in the form in which they are stored. It omits empty texts, and texts after the
// last event.
func CleanTexts(list []store.RunTexts) []store.RunTexts {
	clean := make([]store.RunTexts, len(list))
	for i, r := range list {
		clean[i] = store.RunTexts{Run: r.Run, UpTo: r.UpTo}
		for _, t := range r.Texts {
			t.Text = CleanText(t.Text)
			if t.Text != "" && t.Seq <= r.UpTo {
				clean[i].Texts = append(clean[i].Texts, t)
			}
		}
	}
	return clean
}

// Snippet returns the part of a text around the first match of the first word that occurs. folded and words are folded;
// see [Fold].
func Snippet(text, folded string, words []string) string {
	at := 0
	for _, w := range words {
		if i := strings.Index(folded, w); i >= 0 {
			at = utf8.RuneCountInString(folded[:i])
			break
		}
	}
	runes := []rune(text)
	begin := max(0, min(at-snippetLen/3, len(runes)-snippetLen))
	end := min(len(runes), begin+snippetLen)
	s := strings.TrimSpace(string(runes[begin:end]))
	if begin > 0 {
		s = "…" + s
	}
	if end < len(runes) {
		s += "…"
	}
	return s
}
