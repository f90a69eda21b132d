package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
)

// SQLite overwrites deleted rows (secure_delete). But when it moves rows to another page, it leaves a copy in the
// unused space of the first page, and this copy remains when the row is deleted later. So a deletion checks all pages
// and wipes their unused space.

// wipeAtOnce is the number of pages that are wiped in one transaction.
const wipeAtOnce = 256

// maxWiped is the number of pages beyond which the first byte of a page no longer shows the page's type. With pages
// of 4 KiB, that is a file of 64 GiB.
const maxWiped = 1 << 24

// wipe overwrites the unused space of all pages.
func (s *Store) wipe(ctx context.Context) error {
	var dirty []int64
	err := s.each(ctx, "SELECT pgno, data FROM sqlite_dbpage", nil, func(rows *sql.Rows) error {
		var n int64
		var page sql.RawBytes
		if err := rows.Scan(&n, &page); err != nil {
			return s.readError(ctx, err)
		}
		if n >= maxWiped {
			return errors.New("the file is too large for it")
		}
		if wipePage(page, n == 1) { // a copy
			dirty = append(dirty, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for len(dirty) > 0 {
		some := dirty[:min(len(dirty), wipeAtOnce)]
		dirty = dirty[len(some):]
		// The pages may have changed since they were read.
		err := s.submit(ctx, func(w *writer) error {
			for _, n := range some {
				var page []byte
				if err := w.row("SELECT data FROM sqlite_dbpage WHERE pgno = ?", []any{n}, &page); err != nil {
					return err
				}
				if !wipePage(page, n == 1) {
					continue
				}
				if _, err := w.exec("UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?", page, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wipePage overwrites the unused parts of a page of a table or index (SQLite file format, section 1.6), and reports
// whether there were any. Pages of other types begin with a page number, whose first byte is 0 below maxWiped; SQLite
// itself overwrites their unused parts.
func wipePage(page []byte, first bool) (changed bool) {
	at := 0
	if first {
		at = 100 // the header of the file comes first
	}
	if len(page) < at+12 {
		return false
	}
	header := 8
	switch page[at] {
	case 2, 5:
		header = 12 // of an inner page
	case 10, 13:
	default:
		return false
	}
	word := func(i int) int { return int(binary.BigEndian.Uint16(page[i:])) }
	zero := func(from, to int) {
		for i := from; i < to && i < len(page); i++ {
			changed = changed || page[i] != 0
			page[i] = 0
		}
	}
	content := word(at + 5)
	if content == 0 {
		content = 1 << 16
	}
	zero(at+header+2*word(at+3), content)
	// The free blocks form a list in the order of their offsets. Each begins with the offset of the next block and
	// its own size.
	for block, last := word(at+1), 0; block > last && block+4 <= len(page); {
		zero(block+4, block+word(block+2))
		block, last = word(block), block
	}
	return changed
}
