package copying

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// The bounds of one transaction in the target.
const (
	maxRows  = 500
	maxBytes = 4 << 20
)

// Side is one of the two stores of a copy.
type Side struct {
	Name  string // identifies the store in messages and in the mark
	Store store.Movable
}

// Config configures a copy.
type Config struct {
	From, To Side
	// Progress is called after each batch with the number of copied rows of the table and the number of all its rows.
	// It may be nil.
	Progress func(table string, done, of int64)
	Now      func() time.Time // if nil, time.Now
}

// Report describes what was copied.
type Report struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Resumed bool    `json:"resumed"` // an interrupted copy was resumed
	Tables  []Table `json:"tables"`
}

// Table describes a copied table.
type Table struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"` // digest of all rows, independent of their order; equal in both stores
}

// Rows returns the number of rows of a table.
func (r Report) Rows(table string) int64 {
	for _, t := range r.Tables {
		if t.Name == table {
			return t.Rows
		}
	}
	return 0
}

// Copy copies a store, or resumes an interrupted copy. The caller must make sure that no process works on the source.
// Errors: conflict (the target is not empty, one of the stores takes part in another copy, or the copy is already
// complete), store (also if the digests differ), cancelled.
func Copy(ctx context.Context, c Config) (Report, error) {
	r := Report{From: c.From.Name, To: c.To.Name}
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := c.begin(ctx); err != nil {
		return r, err
	}
	for _, t := range forms.Tables() {
		done, resumed, err := c.table(ctx, t)
		if err != nil {
			return r, err
		}
		r.Resumed = r.Resumed || resumed
		r.Tables = append(r.Tables, done)
	}
	for _, t := range r.Tables {
		if err := c.verify(ctx, t); err != nil {
			return r, err
		}
	}
	return r, c.To.Store.SetMove(ctx, store.Move{})
}

// begin checks both stores and marks them. Before the target is marked, nothing is changed in the source.
func (c *Config) begin(ctx context.Context) error {
	from, err := c.From.Store.Move(ctx)
	if err != nil {
		return err
	}
	to, err := c.To.Store.Move(ctx)
	if err != nil {
		return err
	}
	used := false
	for _, t := range forms.Tables() {
		n, err := c.To.Store.Count(ctx, t.Name)
		if err != nil {
			return err
		}
		used = used || n > 0
	}
	switch {
	case from.State == store.Filling:
		return from.Err(c.From.Name)
	case from.State == store.Moved && from.Store != c.To.Name:
		return tenon.Errorf(tenon.CodeConflict, "store %s: it was moved to %s, so it is not copied to %s", c.From.Name,
			tenon.Visible(from.Store), c.To.Name)
	case to.State == store.Moved:
		return to.Err(c.To.Name)
	case to.State == store.Filling && to.Store != c.From.Name:
		return tenon.Errorf(tenon.CodeConflict, "store %s: it is an incomplete copy of %s; copy to another one",
			c.To.Name, tenon.Visible(to.Store))
	case from.State == store.Moved && to.State == "" && used:
		return tenon.Errorf(tenon.CodeConflict, "store %s: it was copied to %s on %s; nothing is left to do",
			c.From.Name, c.To.Name, from.Time.UTC().Format(time.DateTime))
	case to.State == "" && used:
		return tenon.Errorf(tenon.CodeConflict, "store %s: it is not empty, and stores are not merged; copy to an "+
			"empty one: another file, or another store.postgres.schema", c.To.Name)
	}
	now := c.Now().UTC().Truncate(time.Second)
	if to.State == "" {
		if err := c.To.Store.SetMove(ctx, store.Move{State: store.Filling, Store: c.From.Name, Time: now}); err != nil {
			return err
		}
	}
	if from.State == "" {
		return c.From.Store.SetMove(ctx, store.Move{State: store.Moved, Store: c.To.Name, Time: now})
	}
	return nil
}

// Undo removes the mark from a source whose copy is not complete. The target remains unusable. Errors: conflict (the
// source was not copied to this target, or the copy is complete and the target may have been used since).
func Undo(ctx context.Context, c Config) error {
	from, err := c.From.Store.Move(ctx)
	if err != nil {
		return err
	}
	to, err := c.To.Store.Move(ctx)
	if err != nil {
		return err
	}
	switch {
	case from.State != store.Moved || from.Store != c.To.Name:
		return tenon.Errorf(tenon.CodeConflict, "store %s: it was not moved to %s, so there is nothing to take back",
			c.From.Name, c.To.Name)
	case to.State != store.Filling || to.Store != c.From.Name:
		return tenon.Errorf(tenon.CodeConflict, "store %s: its copy in %s is complete and may have been used since; "+
			"use that one, or copy it to a new store", c.From.Name, c.To.Name)
	}
	return c.From.Store.SetMove(ctx, store.Move{})
}

// table copies the rows that the target does not have.
func (c *Config) table(ctx context.Context, t forms.Table) (done Table, resumed bool, err error) {
	done.Name = t.Name
	all, err := c.From.Store.Count(ctx, t.Name)
	if err != nil {
		return done, false, err
	}
	there, err := c.To.Store.Count(ctx, t.Name)
	if err != nil {
		return done, false, err
	}
	sum := digest{}
	batch, size := [][]any(nil), 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := c.To.Store.Fill(ctx, t.Name, batch)
		batch, size = nil, 0
		if c.Progress != nil {
			c.Progress(t.Name, done.Rows, all)
		}
		return err
	}
	err = c.From.Store.Rows(ctx, t.Name, 0, func(row []any) error {
		sum.add(row)
		if done.Rows++; done.Rows <= there {
			return nil
		}
		row, n := copyRow(row)
		if batch = append(batch, row); len(batch) == maxRows || size+n > maxBytes {
			return flush()
		}
		size += n
		return nil
	})
	if err == nil {
		err = flush()
	}
	done.Digest = sum.String()
	return done, there > 0, err
}

// verify computes the digest of a table in the target and compares it with the digest of the source.
func (c *Config) verify(ctx context.Context, t Table) error {
	sum, n := digest{}, int64(0)
	err := c.To.Store.Rows(ctx, t.Name, 0, func(row []any) error {
		sum.add(row)
		if n++; n%maxRows == 0 && c.Progress != nil {
			c.Progress("verify "+t.Name, n, t.Rows)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n != t.Rows || sum.String() != t.Digest {
		return tenon.Errorf(tenon.CodeStore, "store %s: its %d rows of %s are not the %d rows of %s; the copy is not "+
			"used: take it back with 'tenon store copy --undo', and copy to an empty store", c.To.Name, n, t.Name,
			t.Rows, c.From.Name)
	}
	return nil
}

// copyRow returns a copy of a row and its size in bytes.
func copyRow(row []any) (kept []any, size int) {
	kept = make([]any, len(row))
	for i, v := range row {
		kept[i] = v
		switch v := v.(type) {
		case []byte:
			kept[i] = append([]byte(nil), v...)
			size += len(v)
		case string:
			size += len(v)
		}
	}
	return kept, size
}

// digest is the sum of the digests of rows. It does not depend on the order of the rows, because databases sort
// differently.
type digest struct{ sum big.Int }

// add adds a row. Empty bytes and nil have the same digest.
func (d *digest) add(row []any) {
	h := sha256.New()
	var n [9]byte
	put := func(kind byte, value uint64, data []byte) {
		n[0] = kind
		binary.BigEndian.PutUint64(n[1:], value)
		_, _ = h.Write(n[:]) // a hash never fails
		_, _ = h.Write(data)
	}
	for _, v := range row {
		switch v := v.(type) {
		case int64:
			put('n', uint64(v), nil)
		case string:
			put('t', uint64(len(v)), []byte(v))
		case []byte:
			put('b', uint64(len(v)), v)
		default:
			put('b', 0, nil)
		}
	}
	var one big.Int
	one.SetBytes(h.Sum(nil))
	d.sum.Add(&d.sum, &one)
}

func (d *digest) String() string {
	sum := sha256.Sum256(d.sum.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}
