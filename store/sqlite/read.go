package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// maxPrepared is the maximum number of prepared statements that are kept for reading.
const maxPrepared = 64

// errEnough ends the reading of rows, without an error.
var errEnough = errors.New("enough")

// each runs a query and calls row for each row until row returns an error. It returns that error, or an error that
// says why the store cannot be read.
func (s *Store) each(ctx context.Context, query string, args []any, row func(*sql.Rows) error) error {
	if err := ctx.Err(); err != nil {
		return s.readError(ctx, err)
	}
	if s.turn != nil {
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-ctx.Done():
			return s.readError(ctx, ctx.Err())
		case <-s.quit:
			return closedError(s)
		}
		s.writeSoon() // the read may need the delayed writes
		// The data is in memory or in one small file. Watching ctx within a row would take two goroutines, and longer
		// than the row itself.
		return s.rows(ctx, context.WithoutCancel(ctx), query, args, row)
	}
	return s.rows(ctx, ctx, query, args, row)
}

// rows runs a query with the context inner.
func (s *Store) rows(ctx, inner context.Context, query string, args []any, row func(*sql.Rows) error) error {
	rows, err := s.query(inner, query, args)
	if err != nil {
		return s.readError(ctx, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err says what went wrong
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return s.readError(ctx, err)
		}
		if err := row(rows); err == errEnough {
			return nil
		} else if err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return s.readError(ctx, err)
	}
	return nil
}

// query starts a query. Statements are prepared once, because compiling a statement takes longer than running it.
func (s *Store) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	s.mu.Lock()
	stmt := s.prepared[query]
	full := len(s.prepared) >= maxPrepared
	s.mu.Unlock()
	if stmt == nil {
		var from interface {
			PrepareContext(context.Context, string) (*sql.Stmt, error)
			QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		} = s.read
		if s.turn != nil {
			from = s.conn
		}
		if full {
			return from.QueryContext(ctx, query, args...)
		}
		made, err := from.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		if stmt = s.prepared[query]; stmt == nil {
			stmt, s.prepared[query] = made, made
		} else {
			_ = made.Close() // another goroutine was faster
		}
		s.mu.Unlock()
	}
	return stmt.QueryContext(ctx, args...)
}
