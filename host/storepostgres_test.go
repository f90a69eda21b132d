package host_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestPostgresRefused opens hosts whose database cannot be used. No error contains the password, and tenon does not use
// a SQLite file instead.
func TestPostgresRefused(t *testing.T) {
	for name, c := range map[string]struct {
		dsn  string
		code tenon.Code
		want string
	}{
		"wrong DSN":   {"postgres://u:geheim-7@host:port/db", tenon.CodeConfig, "the DSN of PostgreSQL is wrong"},
		"no DSN":      {"nonsense", tenon.CodeConfig, "the DSN of PostgreSQL is wrong"},
		"unreachable": {"host=/nonexistent user=u password=geheim-7 dbname=d", tenon.CodeStore, "check that the server runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			cfg := host.Config{Home: t.TempDir(), Config: &config.Config{Store: config.Store{
				Postgres: config.Postgres{DSN: tenon.NewSecret(c.dsn)}}}}
			h, err := host.Open(t.Context(), cfg)
			if err == nil {
				_ = h.Close()
			}
			if tenon.ErrorCode(err) != c.code || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "geheim-7") {
				t.Errorf("error %v, want code %s and %q", err, c.code, c.want)
			}
			if _, err := host.KeepStore(cfg); tenon.ErrorCode(err) != tenon.CodeInvalid ||
				!strings.Contains(err.Error(), "pg_dump") {
				t.Errorf("the keeper of files: %v", err)
			}
		})
	}
}
