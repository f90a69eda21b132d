package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

const (
	maxQuery = 1_000 // bytes
	maxWords = 32
	// indexed is the minimum length of an indexed word, in characters.
	indexed = 3
	// maxLooked bounds the texts that are looked through for shorter words: the
	// best matches of the others, or the newest ones.
	maxLooked = 20_000
	// snippetLen is about the length of a snippet in characters.
	snippetLen = 160
)

// Search implements [store.Texts].
func (s *Store) Search(ctx context.Context, f store.SearchFilter) ([]store.Hit, error) {
	words, err := queryWords(f.Query)
	if err != nil {
		return nil, err
	}
	there, err := s.hasTexts(ctx)
	if err != nil || !there {
		return nil, err
	}
	if f.Limit <= 0 {
		f.Limit = 20
	}
	var match, short []string // for the index, and for a look at each text
	for i, w := range words {
		words[i] = fold(w)
		if utf8.RuneCountInString(w) < indexed {
			short = append(short, words[i])
		} else {
			match = append(match, `"`+strings.ReplaceAll(w, `"`, `""`)+`"`)
		}
	}
	query, args := searchQuery(f, strings.Join(match, " AND "))
	var hits []store.Hit
	err = s.each(ctx, query, args, func(rows *sql.Rows) error {
		var h store.Hit
		var text string
		if err := rows.Scan(&h.Session, &h.Run, &h.Seq, &h.Role, &text, &h.Rank); err != nil {
			return s.readError(ctx, err)
		}
		folded := fold(text)
		for _, w := range short {
			if !strings.Contains(folded, w) {
				return nil
			}
		}
		h.Snippet = snippet(text, folded, words)
		if hits = append(hits, h); len(hits) == f.Limit {
			return errEnough
		}
		return nil
	})
	return hits, err
}

// searchQuery returns what reads the texts that an FTS5 expression matches, best
// first, or without one the newest.
func searchQuery(f store.SearchFilter, match string) (query string, args []any) {
	from, rank, where := "texts t", "0", []string{"true"}
	if match != "" {
		from, rank = "texts_index i JOIN texts t ON t.n = i.rowid", "i.rank"
		where, args = append(where, "texts_index MATCH ?"), append(args, match)
	}
	if f.Session != "" {
		where, args = append(where, "r.session = ?"), append(args, f.Session)
	}
	if f.Principal != "" {
		where, args = append(where, "r.principal = ?"), append(args, string(f.Principal))
	}
	query = "SELECT r.session, r.id, t.seq, t.role, t.text, 0 - m.rank FROM (SELECT t.n AS n, " + rank +
		" AS rank FROM " + from +
		" JOIN runs r ON r.n = t.run WHERE " + strings.Join(where, " AND ") +
		" ORDER BY rank, t.n DESC LIMIT ?) m JOIN texts t ON t.n = m.n JOIN runs r ON r.n = t.run ORDER BY m.rank, " +
		"m.n DESC"
	return query, append(args, maxLooked)
}

// queryWords takes a query apart: words without the punctuation around them, and
// phrases in quotes as they are.
func queryWords(query string) ([]string, error) {
	if len(query) > maxQuery {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the search has %d bytes; at most %d can be looked for", len(query),
			maxQuery)
	}
	var words []string
	add := func(w string) {
		if w = cleanText(w); w != "" {
			words = append(words, w)
		}
	}
	for quoted := false; query != ""; quoted = !quoted {
		part := query
		if i := strings.IndexFunc(query, isQuote); i >= 0 {
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
			if bare := strings.TrimFunc(w, unicode.IsPunct); bare != "" {
				w = bare
			}
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

func isQuote(r rune) bool { return strings.ContainsRune("\"“”„", r) }

// fold makes texts comparable whatever their case. It keeps the number of
// characters.
func fold(s string) string { return strings.Map(unicode.ToLower, s) }

// snippet cuts the part around the first match of the first word that is there.
func snippet(text, folded string, words []string) string {
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
