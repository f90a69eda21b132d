package durable

import (
	"bytes"
	"context"
	"database/sql"
	"net/url"
	"runtime"
	"time"
)

// bare is the floor: a table of results in a SQLite file with the same settings, and a goroutine that writes
// all waiting results in one transaction.
type bare struct {
	db    *sql.DB
	conn  *sql.Conn
	stmt  *sql.Stmt
	ops   chan insert
	ended chan struct{}
}

type insert struct {
	run, seq int
	data     []byte
	done     chan error
}

func openBare(path string) (*bare, error) {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "synchronous(FULL)", "wal_autocheckpoint(4000)",
		"journal_mode(WAL)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path,
		RawQuery: q.Encode()}).String()) // the driver of the store
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx,
		"CREATE TABLE results (run INTEGER, seq INTEGER, data BLOB, UNIQUE (run, seq))"); err != nil {
		return nil, err
	}
	stmt, err := conn.PrepareContext(ctx, "INSERT INTO results (run, seq, data) VALUES (?, ?, ?)")
	if err != nil {
		return nil, err
	}
	b := &bare{db: db, conn: conn, stmt: stmt, ops: make(chan insert, 256), ended: make(chan struct{})}
	go b.loop()
	return b, nil
}

func (b *bare) loop() {
	defer close(b.ended)
	ctx := context.Background()
	var batch []insert
	for first := range b.ops {
		batch = append(batch[:0], first)
		for idle := 0; len(batch) < 256 && idle < 2; {
			select {
			case op, ok := <-b.ops:
				if !ok {
					idle = 2
					break
				}
				batch, idle = append(batch, op), 0
			default:
				idle++
				runtime.Gosched()
			}
		}
		_, err := b.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		for _, op := range batch {
			if err == nil {
				_, err = b.stmt.Exec(op.run, op.seq, op.data)
			}
		}
		if err == nil {
			_, err = b.conn.ExecContext(ctx, "COMMIT")
		}
		for _, op := range batch {
			op.done <- err
		}
	}
}

func (b *bare) round(round, writers, steps int) (perSecond float64, err error) {
	began := time.Now()
	// The bytes of a step: its result and its start event.
	data := append(bytes.Clone(result), `{"kind":"call","idempotent":true}`...)
	err = each(writers, writers, func(i int) error {
		done := make(chan error, 1)
		for seq := range steps {
			b.ops <- insert{run: round*writers + i, seq: seq, data: data, done: done}
			if err := <-done; err != nil {
				return err
			}
		}
		return nil
	})
	return float64(writers*steps) / time.Since(began).Seconds(), err
}

func (b *bare) close() error {
	close(b.ops)
	<-b.ended
	err := b.conn.Close()
	derr := b.db.Close()
	if err == nil {
		err = derr
	}
	return err
}
