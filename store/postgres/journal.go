package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// lastRow is the end of a query for the last row of events of a run.
const lastRow = "FROM @events e WHERE e.run = runs.n ORDER BY e.seq DESC LIMIT 1"

// lastEvent is an expression for the number of the last event of a run.
const lastEvent = "coalesce((SELECT e.seq + e.n - 1 " + lastRow + "), 0)"

// Events implements [store.Journal].
func (s *Store) Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	if limit <= 0 {
		limit = math.MaxInt
	}
	r, err := s.calls.events.get(ctx, s, page{run, after, limit, s.key != nil && store.IsOwnOnly(ctx)})
	if err != nil {
		return nil, err
	}
	return r.events, nil
}

// page selects events of a run; see [eventReader].
type page struct {
	run    string
	after  uint64
	limit  int
	strict bool
}

// size returns the part of a statement that a page takes; see [gather]. A statement reads at most eight whole journals.
func (p page) size() int {
	if p.limit > longPage {
		return maxGathered / 8
	}
	return 1
}

// longPage is the number of events from which a page counts like a whole journal.
const longPage = 1000

// eventsOf reads pages of journals. Each subquery of a run reads an index.
func (s *Store) eventsOf(ctx context.Context, pages []page) ([]answer[*eventReader], error) {
	runs, first, most := make([]string, len(pages)), make([]int64, len(pages)), make([]int64, len(pages))
	answers := make([]answer[*eventReader], len(pages))
	for i, p := range pages {
		runs[i], first[i], most[i] = p.run, int64(min(p.after, math.MaxInt64-1))+1, int64(p.limit)
		answers[i] = answer[*eventReader]{value: &eventReader{s: s, run: p.run, after: p.after, limit: p.limit,
			strict: p.strict}, err: tenon.Errorf(tenon.CodeNotFound, "no run %s", p.run)}
	}
	err := s.each(ctx, `SELECT u.i, e.seq, e.n, e.last, e.events, e.blob,
			(SELECT b.data FROM @blobs b WHERE b.digest = e.blob), e.mac
		FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS u (id, first, most, i)
		JOIN @runs r ON r.id = u.id
		LEFT JOIN LATERAL (SELECT * FROM @events e WHERE e.run = r.n AND e.seq >= coalesce(
			(SELECT max(f.seq) FROM @events f WHERE f.run = r.n AND f.seq <= u.first), 0)
			ORDER BY e.seq LIMIT u.most) e ON true`, []any{runs, first, most}, func(rows pgx.Rows) error {
		var row eventRow
		if err := row.scan(rows); err != nil {
			return err
		}
		answers[row.i].err = nil
		if row.seq != nil {
			r := answers[row.i].value
			r.rows = append(r.rows, row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range answers {
		if answers[i].err == nil {
			answers[i].err = answers[i].value.read()
		}
	}
	return answers, nil
}

// eventRow is a row of events of one of several runs. If the run has no events, seq is nil.
type eventRow struct {
	i                         int
	seq, n, last              *int64
	events, digest, blob, mac []byte
}

func (r *eventRow) scan(rows pgx.Rows) error {
	err := rows.Scan(&r.i, &r.seq, &r.n, &r.last, &r.events, &r.digest, &r.blob, &r.mac)
	r.i-- // WITH ORDINALITY counts from 1
	return err
}

// eventReader collects the events of a run after a given event.
type eventReader struct {
	s      *Store
	run    string
	after  uint64
	limit  int
	strict bool // refuse foreign rows and gaps
	end    uint64
	rows   []eventRow
	events []tenon.Event
}

// read turns the rows into events.
func (r *eventReader) read() error {
	slices.SortFunc(r.rows, func(a, b eventRow) int { return cmp.Compare(*a.seq, *b.seq) }) // usually they are
	for i := range r.rows {
		if len(r.events) == r.limit {
			break
		}
		if err := r.add(&r.rows[i]); err != nil {
			return err
		}
	}
	r.rows = nil
	return nil
}

// add adds the events of a row.
func (r *eventReader) add(row *eventRow) error {
	e := signed.Events{Run: r.run, Seq: uint64(*row.seq), N: int(*row.n), Packed: row.events, Blob: row.digest}
	blob, mac := row.blob, row.mac
	e.Last = forms.FromNanos(*row.last)
	if r.strict && (!r.s.key.OwnEvents(&e, mac) || e.Seq > max(r.after, r.end)+1) {
		return store.ErrForeign(r.run)
	}
	r.end = e.Seq + uint64(e.N) - 1
	packed := e.Packed
	for seq := e.Seq; seq <= r.end && len(r.events) < r.limit; seq++ {
		event := tenon.Event{Run: r.run, Seq: seq}
		var err error
		if packed, err = forms.Unpack(packed, &event); err != nil {
			return r.s.damaged(fmt.Sprintf("event %d of run %s", seq, r.run))
		}
		if e.Blob != nil {
			if sum := sha256.Sum256(blob); string(sum[:]) != string(e.Blob) {
				return r.s.damaged(forms.DigestName(e.Blob))
			}
			event.Data = blob
		}
		if seq > r.after {
			r.events = append(r.events, event)
		}
	}
	return nil
}

// selectRuns is the beginning of a query for rows of runs.
const selectRuns = `SELECT n, id, session, principal, caller, parent, parent_seq, core, agent, model, title, state,
	stop, created, greatest(updated, (SELECT e.last ` + lastRow + `)), ` + lastEvent + `, waiting, imported, mac
	FROM @runs AS runs`

// Run implements [store.Journal].
func (s *Store) Run(ctx context.Context, id string) (tenon.Run, error) {
	row, err := s.calls.runs.get(ctx, s, id)
	if err != nil {
		return tenon.Run{}, err
	}
	if row.Foreign && store.IsOwnOnly(ctx) {
		return tenon.Run{}, store.ErrForeign(id)
	}
	return row.Run, nil
}

// runsOf reads the rows of runs.
func (s *Store) runsOf(ctx context.Context, ids []string) ([]answer[*runRow], error) {
	found := map[string]answer[*runRow]{}
	err := s.each(ctx, selectRuns+" WHERE id = ANY ($1::text[])", []any{ids}, func(rows pgx.Rows) error {
		r, err := s.scanRun(rows)
		if r == nil {
			return err
		}
		found[r.ID] = answer[*runRow]{r, err} // a damaged row fails only the calls for it
		return nil
	})
	if err != nil {
		return nil, err
	}
	answers := make([]answer[*runRow], len(ids))
	for i, id := range ids {
		a, ok := found[id]
		if !ok {
			a.err = tenon.Errorf(tenon.CodeNotFound, "no run %s", id)
		}
		answers[i] = a
	}
	return answers, nil
}

// conditions collects the conditions of a query.
type conditions struct {
	where []string
	args  []any
}

// add adds a condition. Each ? in it becomes the parameter for the next argument.
func (c *conditions) add(cond string, args ...any) {
	for _, a := range args {
		c.args = append(c.args, a)
		cond = strings.Replace(cond, "?", fmt.Sprint("$", len(c.args)), 1)
	}
	c.where = append(c.where, cond)
}

func (c *conditions) String() string {
	if len(c.where) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.where, " AND ")
}

// Runs implements [store.Journal].
func (s *Store) Runs(ctx context.Context, f store.RunFilter) ([]tenon.Run, error) {
	var c conditions
	for _, eq := range []struct{ column, value string }{{"session", f.Session}, {"state", string(f.State)},
		{"parent", f.Parent}, {"principal", string(f.Principal)}, {"caller", f.Caller}} {
		if eq.value != "" {
			c.add(eq.column+" = ?", eq.value)
		}
	}
	if f.Top {
		c.add("caller = ''")
	}
	if f.Prefix != "" {
		c.add("id >= ? AND id <= ? AND starts_with(id, ?)", f.Prefix, f.Prefix+string(unicode.MaxRune), f.Prefix)
	}
	if f.Before != "" {
		c.add("id < ?", f.Before)
	}
	if !f.Expired.IsZero() {
		c.add(expired, f.Expired.UTC().Format(expiryMinute))
	}
	if f.Unheld {
		c.add(`NOT EXISTS (SELECT 1 FROM @leases l JOIN @replicas p ON p.id = l.owner
			WHERE l.run = runs.id AND p.expires > clock_timestamp())`)
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	if f.Except != nil {
		return s.runsExcept(ctx, &c, f)
	}
	return s.runs(ctx, selectRuns+c.String()+fmt.Sprint(" ORDER BY id DESC LIMIT ", f.Limit), c.args...)
}

// expired is the condition that a wait of a run may have expired at a minute. The index runs_expiry answers it.
const expired = `state = 'input_required' AND @first_expiry(waiting) COLLATE "C" <= ?`

// expiryMinute is the form of the times that the function first_expiry of the schema returns.
const expiryMinute = "2006-01-02T15:04"

// runsExcept reads the ids of runs first, because reading whole rows takes several times longer.
func (s *Store) runsExcept(ctx context.Context, c *conditions, f store.RunFilter) ([]tenon.Run, error) {
	var ids []string
	query := "SELECT id FROM @runs AS runs" + c.String() + " ORDER BY id DESC"
	err := s.each(ctx, query, c.args, func(rows pgx.Rows) error {
		var id string
		if err := scan(rows, &id); err != nil {
			return err
		}
		if !f.Except(id) {
			ids = append(ids, id)
		}
		if len(ids) == f.Limit {
			return errEnough
		}
		return nil
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	runs, err := s.runs(ctx, selectRuns+" WHERE id = ANY ($1::text[]) ORDER BY id DESC", ids)
	if err != nil || f.State == "" {
		return runs, err
	}
	kept := runs[:0]
	for _, r := range runs {
		if r.State == f.State {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

func (s *Store) runs(ctx context.Context, query string, args ...any) ([]tenon.Run, error) {
	var runs []tenon.Run
	err := s.each(ctx, query, args, func(rows pgx.Rows) error {
		r, err := s.scanRun(rows)
		if err == nil {
			runs = append(runs, r.Run)
		}
		return err
	})
	return runs, err
}

// runRow is the row of a run as it is stored.
type runRow struct {
	tenon.Run
	n                      int64
	waiting, imported, mac []byte
}

// scanRun reads a row of selectRuns. If a value in the row is damaged, it returns the row, too, for its id.
func (s *Store) scanRun(rows pgx.Rows) (*runRow, error) {
	r := &runRow{}
	var created, updated int64
	var state, stop string
	if err := scan(rows, &r.n, &r.ID, &r.Session, &r.Principal, &r.Caller, &r.Parent, &r.ParentSeq, &r.Core, &r.Agent,
		&r.Model, &r.Title, &state, &stop, &created, &updated, &r.Seq, &r.waiting, &r.imported, &r.mac); err != nil {
		return nil, err
	}
	r.State, r.Stop = tenon.RunState(state), tenon.StopReason(stop)
	r.Created, r.Updated = forms.FromNanos(created), forms.FromNanos(updated)
	if len(r.waiting) > 0 {
		if err := json.Unmarshal(r.waiting, &r.Waiting); err != nil {
			return r, s.damaged("the row of run " + r.ID)
		}
	}
	if len(r.imported) > 0 {
		if err := json.Unmarshal(r.imported, &r.Imported); err != nil || r.Imported == nil {
			return r, s.damaged("the row of run " + r.ID)
		}
	}
	r.Foreign = !s.key.OwnRun(&r.Run, r.waiting, r.imported, r.mac)
	return r, nil
}

// last returns the parameter of the last argument.
func (c *conditions) last() string { return fmt.Sprint("$", len(c.args)) }
