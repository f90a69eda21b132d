package postgres

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/storetest"
)

func findings(t *testing.T, s *Store) map[string]store.Finding {
	t.Helper()
	all := map[string]store.Finding{}
	for _, f := range s.Examine(t.Context()) {
		all[f.Name] = f
	}
	return all
}

// TestExamine checks the report about a database without faults.
func TestExamine(t *testing.T) {
	s := mustOpen(t, place(t))
	all := findings(t, s)
	for name, want := range map[string]string{
		"tls":    "does not leave this machine",
		"server": "encoding UTF8",
		"pooler": "no pooler",
		"role":   "superuser",
		"schema": fmt.Sprintf("version %d", len(migrations)),
		"clock":  "agree",
		"key":    "not signed",
	} {
		f, ok := all[name]
		if !ok || !strings.Contains(f.Text, want) || f.Err != nil || (f.Remedy != "") != (name == "role") {
			t.Errorf("%s: %+v, want %q", name, f, want)
		}
	}
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	if f := findings(t, s)["clock"]; !strings.Contains(f.Text, "differ by 1h0m0s") || f.Remedy == "" {
		t.Errorf("a clock that is wrong: %+v", f)
	}
}

// TestDifferentKeys opens a database with another store.key. The report says so, and its rows can be adopted.
func TestDifferentKeys(t *testing.T) {
	c := place(t)
	open := func(key string) (*Store, string) {
		c := c
		var log bytes.Buffer
		c.Key, c.Logger = storetest.Key(t, key), slog.New(slog.NewTextHandler(&log, nil))
		s := mustOpen(t, c)
		return s, log.String()
	}
	a, log := open("a")
	if f := findings(t, a)["key"]; log != "" || f.Remedy != "" {
		t.Errorf("the first key: %s, %+v", log, f)
	}
	create(t, a, "r")
	b, log := open("b")
	if f := findings(t, b)["key"]; !strings.Contains(log, "store.key of this machine differs") || f.Remedy == "" {
		t.Errorf("another key: %q, %+v", log, f)
	}
	if _, log = open("a"); log != "" {
		t.Errorf("the first key again: %s", log)
	}
	found, err := b.Foreign(t.Context())
	if err == nil {
		err = b.Adopt(t.Context(), found.Digest)
	}
	if err != nil {
		t.Fatal(err)
	}
	if f := findings(t, b)["key"]; f.Remedy != "" {
		t.Errorf("the key that adopted the rows: %+v", f)
	}
	if _, log = open("a"); log == "" {
		t.Error("the key of before adopts nothing, and is not warned about")
	}
}

// TestBadDatabases opens databases that cannot be used. Each one causes a single error that says what to do, before any
// run is changed.
func TestBadDatabases(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, c *Config) (want string){
		"password": func(_ *testing.T, c *Config) string { // no password is checked here, so the role does not exist
			c.DSN += " user=nobody_" + c.Schema
			return "check the role and the password of the DSN"
		},
		"database": func(_ *testing.T, c *Config) string {
			c.DSN += " dbname=none_" + c.Schema
			return "create the database"
		},
		"encoding": func(t *testing.T, c *Config) string {
			db := "latin_" + c.Schema
			admin(t, "CREATE DATABASE "+db+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
			t.Cleanup(func() { admin(t, "DROP DATABASE "+db+" WITH (FORCE)") })
			c.DSN += " dbname=" + db
			return "create one with UTF8"
		},
		"rights to create": func(t *testing.T, c *Config) string {
			c.DSN += " user=" + role(t, "none")
			return "open the store once with a role that may CREATE"
		},
		"rights on tables": func(t *testing.T, c *Config) string {
			_ = mustOpen(t, *c).Close()
			name := role(t, "reads")
			admin(t, "GRANT USAGE ON SCHEMA "+c.Schema+" TO "+name)
			admin(t, "GRANT SELECT ON ALL TABLES IN SCHEMA "+c.Schema+" TO "+name)
			c.DSN += " user=" + name
			return "SELECT, INSERT, UPDATE and DELETE on its tables"
		},
		"read-only": func(_ *testing.T, c *Config) string {
			c.DSN += " options='-c default_transaction_read_only=on'"
			return "connect to the primary"
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := place(t)
			want := prepare(t, &c)
			s, err := Open(t.Context(), c)
			if err == nil {
				_ = s.Close()
			}
			if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, want)
			}
		})
	}
}

// role creates a role without rights.
func role(t *testing.T, name string) string {
	t.Helper()
	name = fmt.Sprintf("%s_%d_%d", name, os.Getpid(), schemas.Add(1))
	admin(t, "CREATE ROLE "+name+" LOGIN")
	t.Cleanup(func() {
		admin(t, "DROP OWNED BY "+name)
		admin(t, "DROP ROLE "+name)
	})
	return name
}

// TestLeastPrivilege uses a role that has only the rights that the documentation lists.
func TestLeastPrivilege(t *testing.T) {
	c := place(t)
	_ = mustOpen(t, c).Close()
	name := role(t, "works")
	for _, grant := range []string{"USAGE ON SCHEMA " + c.Schema,
		"SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + c.Schema,
		"USAGE ON ALL SEQUENCES IN SCHEMA " + c.Schema} {
		admin(t, "GRANT "+grant+" TO "+name)
	}
	c.DSN += " user=" + name
	s := mustOpen(t, c)
	create(t, s, "r")
	if _, ok, err := s.Acquire("r"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for seq := range uint64(3) { // the second one calls the function of the schema
		if err := appendTo(t, s, "r", seq+2); err != nil {
			t.Fatal(err)
		}
		wantKnown(t, s, "r", true)
	}
	if f := findings(t, s)["role"]; f.Err != nil || f.Remedy != "" || !strings.Contains(f.Text, "another role migrates") {
		t.Errorf("%+v", f)
	}
	admin(t, "REVOKE DELETE ON "+c.Schema+".leases FROM "+name)
	if f := findings(t, s)["role"]; f.Err == nil || !strings.Contains(f.Text, "leases") || f.Remedy == "" {
		t.Errorf("a right is missing: %+v", f)
	}
	admin(t, "GRANT DELETE ON "+c.Schema+".leases TO "+name) // needed to end the lease
}
