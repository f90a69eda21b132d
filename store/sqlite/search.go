package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// Search implements [store.Texts].
func (s *Store) Search(ctx context.Context, f store.SearchFilter) ([]store.Hit, error) {
	words, err := forms.QueryWords(f.Query)
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
	var match, short []string // words for the index, and words that are searched in each text
	for i, w := range words {
		words[i] = forms.Fold(w)
		if utf8.RuneCountInString(w) < forms.Indexed {
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
		folded := forms.Fold(text)
		for _, w := range short {
			if !strings.Contains(folded, w) {
				return nil
			}
		}
		h.Snippet = forms.Snippet(text, folded, words)
		if hits = append(hits, h); len(hits) == f.Limit {
			return errEnough
		}
		return nil
	})
	return hits, err
}

// searchQuery returns the query for the texts that match an FTS5 expression, best first. If match is empty, it
// returns the query for the newest texts.
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
	return query, append(args, forms.MaxLooked)
}
