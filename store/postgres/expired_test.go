package postgres

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// TestExpiredRuns looks for runs with a wait that has expired among thousands that wait for a person. Only these are
// read, by an index.
func TestExpiredRuns(t *testing.T) {
	c := place(t)
	s, ctx := mustOpen(t, c), t.Context()
	now := time.Date(2026, 11, 24, 10, 30, 30, 0, time.UTC)
	for run, expires := range map[string]time.Time{"run_no": {}, "run_past": now.Add(-time.Second), "run_now": now,
		"run_later": now.Add(2 * time.Minute), "run_far": now.AddDate(200, 0, 0)} {
		create(t, s, run)
		err := s.Append(ctx, store.Append{Run: run, Events: []tenon.Event{event(2)}, State: tenon.RunInputRequired,
			Waiting: []tenon.Waiting{{Step: "1", Since: now, Expires: expires,
				Data: json.RawMessage(`{"text":"\"expires\":\"2001-01-01T00:00"}`)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO @runs (id, session, principal, caller, parent, parent_seq, core, agent,
			model, title, state, stop, created, updated, waiting)
		SELECT 'other_' || i, 's' || i, '', '', '', 0, 'c@1', 'a', 'm', 'q', 'input_required', '', 1, 1,
			convert_to('[{"step":"1","since":"2026-01-01T00:00:00Z","expires":"2126-01-01T00:00:00Z"}]', 'UTF8')
		FROM generate_series(1, 3000) AS i`))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Runs(ctx, store.RunFilter{Expired: now})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, []string{"run_past", "run_now"}) {
		t.Errorf("found %q", got)
	}
	if _, err := s.pool.Exec(ctx, s.sql("ANALYZE @runs")); err != nil {
		t.Fatal(err)
	}
	plan := ""
	err = s.each(ctx, "EXPLAIN SELECT id FROM @runs WHERE "+strings.Replace(expired, "?",
		"'"+now.Format(expiryMinute)+"'", 1)+" ORDER BY id DESC LIMIT 100", nil, func(rows pgx.Rows) error {
		var line string
		err := rows.Scan(&line)
		plan += line + "\n"
		return err
	})
	if err != nil || !strings.Contains(plan, "runs_expiry") {
		t.Errorf("%v: the index is not used:\n%s", err, plan)
	}
}
