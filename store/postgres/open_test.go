package postgres

import (
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestOpenErrors opens stores that cannot be opened. No error contains the password.
func TestOpenErrors(t *testing.T) {
	for name, c := range map[string]struct {
		dsn  string
		code tenon.Code
		want string
	}{
		"none":        {"", tenon.CodeInvalid, "is missing"},
		"words":       {"nonsense", tenon.CodeInvalid, "is wrong"},
		"url":         {"postgres://u:geheim@host:port/db", tenon.CodeInvalid, "is wrong"},
		"unreachable": {"host=/nonexistent user=u password=geheim dbname=d", tenon.CodeStore, "check that the server runs"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), Config{DSN: c.dsn})
			if tenon.ErrorCode(err) != c.code || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "geheim") {
				t.Errorf("error %v, want code %s and %q", err, c.code, c.want)
			}
		})
	}
}

// TestOpenAtOnce opens an empty database with ten replicas at the same time.
func TestOpenAtOnce(t *testing.T) {
	c := place(t)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			s, err := Open(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	group.Wait()
}

// TestOpenNewer opens a store that only newer programs may open, and one with a newer version that this program may
// still open.
func TestOpenNewer(t *testing.T) {
	c := place(t)
	_ = mustOpen(t, c).Close()
	admin(t, "UPDATE "+c.Schema+".version SET version = 99")
	_ = mustOpen(t, c).Close()
	admin(t, "UPDATE "+c.Schema+".version SET readers = 99")
	if _, err := Open(t.Context(), c); tenon.ErrorCode(err) != tenon.CodeStore ||
		!strings.Contains(err.Error(), "use a newer tenon") {
		t.Errorf("error %v", err)
	}
}
