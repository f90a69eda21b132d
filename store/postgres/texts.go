package postgres

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// Texts are searched without an extension, because not every role may create one. Each search reads all texts of its
// session or principal.
//
// Texts are ranked by BM25 with equal weights for all words. The average length of texts is not computed: it is assumed
// to be middleLength.
const middleLength = 1000 // characters

// Unindexed implements [store.Texts].
func (s *Store) Unindexed(ctx context.Context, f store.GapFilter) (gaps []store.Gap, total int, err error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	c := conditions{}
	c.add("n IN (SELECT run FROM @pending WHERE todo & ?::int <> 0)", todoText)
	if f.Session != "" {
		c.add("session = ?", f.Session)
	}
	if f.Ended {
		c.add(endedRuns)
	}
	err = s.each(ctx, "SELECT count(*) FROM @runs"+c.String(), c.args, func(rows pgx.Rows) error {
		return rows.Scan(&total)
	})
	if err != nil || total == 0 {
		return nil, 0, err
	}
	query := "SELECT id, upto, last FROM (SELECT n, id, state, " +
		"coalesce((SELECT u.seq FROM @texts_upto u WHERE u.run = n), 0) AS upto, " + lastEvent +
		" AS last FROM @runs AS runs" + c.String() + ") r WHERE last > upto OR " + endedRuns +
		fmt.Sprint(" ORDER BY n DESC LIMIT ", f.Limit)
	err = s.each(ctx, query, c.args, func(rows pgx.Rows) error {
		var g store.Gap
		err := scan(rows, &g.Run, &g.After, &g.Last)
		gaps = append(gaps, g)
		return err
	})
	return gaps, total, err
}

// PutTexts implements [store.Texts].
func (s *Store) PutTexts(ctx context.Context, list []store.RunTexts) error {
	if len(list) == 0 {
		return nil
	}
	clean := forms.CleanTexts(list)
	return s.single(ctx, func(t *tx) error {
		for i := range clean {
			if err := t.putText(&clean[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) putText(r *store.RunTexts) error {
	var n int64
	var ended bool
	var last, done uint64
	switch err := t.row(runEnd, []any{r.Run}, &n, &ended, &last); {
	case isNone(err):
		return nil // the run was deleted after its journal was read
	case err != nil:
		return err
	}
	// The row is locked, so that two replicas cannot index a run at the same time.
	t.queue("INSERT INTO @texts_upto (run, seq) VALUES ($1, 0) ON CONFLICT DO NOTHING", n)
	if err := t.row("SELECT seq FROM @texts_upto WHERE run = $1 FOR UPDATE", []any{n}, &done); err != nil {
		return err
	}
	for _, x := range r.Texts {
		if x.Seq > done {
			t.queue("INSERT INTO @texts (run, seq, role, text, folded) VALUES ($1, $2, $3, $4, $5)", n, int64(x.Seq),
				x.Role, x.Text, forms.Fold(x.Text))
		}
	}
	if r.UpTo > done {
		t.queue("UPDATE @texts_upto SET seq = $2 WHERE run = $1", n, int64(r.UpTo))
	}
	if ended && max(r.UpTo, done) >= last {
		t.caughtUp(n, todoText)
	}
	return nil
}

// Search implements [store.Texts].
func (s *Store) Search(ctx context.Context, f store.SearchFilter) ([]store.Hit, error) {
	words, err := forms.QueryWords(f.Query)
	if err != nil {
		return nil, err
	}
	if f.Limit <= 0 {
		f.Limit = 20
	}
	for i, w := range words {
		words[i] = forms.Fold(w)
	}
	query, args := searchQuery(f, words)
	var hits []store.Hit
	err = s.each(ctx, query, args, func(rows pgx.Rows) error {
		var h store.Hit
		var text, folded string
		if err := scan(rows, &h.Session, &h.Run, &h.Seq, &h.Role, &text, &folded, &h.Rank); err != nil {
			return err
		}
		h.Snippet = forms.Snippet(text, folded, words)
		hits = append(hits, h)
		return nil
	})
	return hits, err
}

// searchQuery returns the query for the texts that contain all words, best first. If no word is long enough for
// ranking, the newest texts are first.
func searchQuery(f store.SearchFilter, words []string) (string, []any) {
	var c conditions
	var ranks []string
	for _, w := range words {
		c.add("t.folded LIKE ?", "%"+escapeLike(w)+"%")
		if utf8.RuneCountInString(w) < forms.Indexed {
			continue
		}
		c.args = append(c.args, w)
		count := fmt.Sprintf("(length(t.folded) - length(replace(t.folded, %s::text, '')))::float8 / %d", c.last(),
			utf8.RuneCountInString(w))
		ranks = append(ranks, fmt.Sprintf("2.2 * %s / (%s + 1.2 * (0.25 + 0.75 * length(t.folded)::float8 / %d))",
			count, count, middleLength))
	}
	if f.Session != "" {
		c.add("r.session = ?", f.Session)
	}
	if f.Principal != "" {
		c.add("r.principal = ?", string(f.Principal))
	}
	rank := "0::float8"
	if len(ranks) > 0 {
		rank = strings.Join(ranks, " + ")
	}
	return "SELECT r.session, r.id, t.seq, t.role, t.text, t.folded, " + rank +
		" AS rank FROM @texts t JOIN @runs r ON r.n = t.run" + c.String() +
		fmt.Sprint(" ORDER BY rank DESC, t.n DESC LIMIT ", f.Limit), c.args
}

// escapeLike escapes the special characters of LIKE.
func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(s)
}
