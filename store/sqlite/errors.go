package sqlite

import (
	"errors"
	"strings"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/tenonhq/tenon"
)

// storeError returns an error that says what is wrong with the store and what to do.
func storeError(path, what string, err error) error {
	var known *tenon.Error
	if errors.As(err, &known) {
		return err
	}
	remedy := "see the cause"
	if strings.HasSuffix(err.Error(), "database is closed") { // database/sql has no error value for this
		remedy = "it was closed before; open it again"
	}
	switch resultCode(err) & 0xff {
	case lib.SQLITE_FULL:
		remedy = "the disk is full: free some space; nothing of this write was stored"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		remedy = "the file or its directory cannot be written: check owner, mode and mount, or choose another place " +
			"with --home"
	case lib.SQLITE_CANTOPEN:
		remedy = "the file cannot be opened: check that its directory exists and can be written, or choose another " +
			"place with --home"
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		remedy = "the file is damaged or no store; " + remedyDamaged
	case lib.SQLITE_IOERR:
		remedy = "the disk reports an error: check the disk and the free space; nothing of this write is certain"
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		remedy = "another process has kept the store locked: end it, or try again"
	}
	return &tenon.Error{Code: tenon.CodeStore, Message: "store " + path + ": " + what + ": " + err.Error() + "; " +
		remedy, Err: err}
}

// remedyDamaged says what to do about a damaged store.
const remedyDamaged = "find all damage with 'tenon store check', save the rest with 'tenon store repair', or put " +
	"back a backup with 'tenon store restore'"

// resultCode returns SQLite's extended result code of an error, or 0.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func isBusy(err error) bool {
	c := resultCode(err) & 0xff
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// isDamage reports whether SQLite says that a file is damaged.
func isDamage(err error) bool {
	switch resultCode(err) & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT, lib.SQLITE_CANTOPEN, lib.SQLITE_ERROR,
		lib.SQLITE_MISMATCH, lib.SQLITE_TOOBIG, lib.SQLITE_NOMEM, lib.SQLITE_CONSTRAINT:
		return true // a damaged schema or size leads to the other codes
	}
	return false
}

// refused is the error of a write that changed nothing, so that the other writes of its transaction continue.
type refused struct{ err error }

func (r refused) Error() string { return r.err.Error() }
func (r refused) Unwrap() error { return r.err }

func refuse(code tenon.Code, format string, args ...any) error {
	return refused{tenon.Errorf(code, format, args...)}
}
