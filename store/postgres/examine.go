package postgres

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tenonhq/tenon/store"
)

// A mark is a random name with its MAC by store.key. The first process with a key writes the mark of the database. If
// the MAC does not match the key of a process, its store.key differs from the key of the first process. The rows of
// other processes are then foreign to it.

// keyText is the warning about a different key.
const keyText = "store.key of this machine differs from the key of the database, so the rows of other machines count " +
	"as written by somebody else"

// keyRemedy is the remedy for a different key.
const keyRemedy = "give all machines the same store.key; to make this one's key the key of the database, adopt its " +
	"rows with tenon store adopt"

// greet compares the key with the mark of the database. It writes a mark if there is none.
func (s *Store) greet(ctx context.Context) error {
	if s.key == nil {
		return nil
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 7430))", s.schema); err != nil {
			return err
		}
		name := s.newMark()
		_, err := tx.Exec(ctx, s.sql("INSERT INTO @marks (name, mac) SELECT $1::bytea, $2::bytea "+
			"WHERE NOT EXISTS (SELECT FROM @marks WHERE NOT "+isMove+")"), name, s.key.Mark(name))
		return err
	})
	if err != nil {
		return s.storeError("compare store.key", err)
	}
	own, err := s.ownKey(ctx)
	if err == nil && !own {
		s.log.Warn(keyText+"; "+keyRemedy, "store", s.name)
	}
	return err
}

func (s *Store) newMark() []byte {
	name := make([]byte, 16)
	_, _ = rand.Read(name) // never fails
	return name
}

// ownKey reports whether the key of this process is the key of the database.
func (s *Store) ownKey(ctx context.Context) (own bool, err error) {
	var name, mac []byte
	err = s.pool.QueryRow(ctx, s.sql("SELECT name, mac FROM @marks WHERE NOT "+isMove+" LIMIT 1")).Scan(&name, &mac)
	if err != nil {
		return false, s.storeError("compare store.key", err)
	}
	return s.key.OwnMark(name, mac), nil
}

// maxSkew is the largest difference between the clocks of this machine and of the database that causes no warning.
const maxSkew = 5 * time.Second

// Examine implements [store.Examiner].
func (s *Store) Examine(ctx context.Context) []store.Finding {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return []store.Finding{{Name: "connection", Err: s.storeError("connect", err)}}
	}
	defer conn.Release()
	list := []store.Finding{s.examineTLS(conn)}
	for _, look := range []func(context.Context, *pgxpool.Conn) (store.Finding, error){s.examineServer,
		s.examinePooler, s.examineRole, s.examineSchema, s.examineClock, s.examineKey} {
		f, err := look(ctx, conn)
		if err != nil {
			f.Err = s.storeError("examine", err)
		}
		list = append(list, f)
	}
	return list
}

func (s *Store) examineTLS(conn *pgxpool.Conn) store.Finding {
	f := store.Finding{Name: "tls"}
	c := conn.Conn().PgConn().Conn()
	secure, isTLS := c.(*tls.Conn)
	addr, isTCP := c.RemoteAddr().(*net.TCPAddr)
	conf := conn.Conn().Config().TLSConfig
	const remedy = "set sslmode=verify-full in the DSN, and sslrootcert for a private authority"
	switch {
	case isTLS && conf != nil && conf.InsecureSkipVerify && conf.VerifyPeerCertificate == nil &&
		conf.VerifyConnection == nil:
		f.Text, f.Remedy = "the connection is encrypted, and the server's certificate is not checked", remedy
	case isTLS:
		f.Text = "the connection is encrypted: " + tls.VersionName(secure.ConnectionState().Version)
	case isTCP && !addr.IP.IsLoopback():
		f.Text, f.Remedy = "the connection to another machine is not encrypted", remedy
	default:
		f.Text = "the connection does not leave this machine"
	}
	return f
}

func (s *Store) examineServer(ctx context.Context, conn *pgxpool.Conn) (store.Finding, error) {
	f := store.Finding{Name: "server"}
	var version, encoding, commit string
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('server_encoding'),
		current_setting('synchronous_commit')`).Scan(&version, &encoding, &commit)
	f.Text = fmt.Sprintf("PostgreSQL %s, encoding %s", version, encoding)
	if err == nil && commit == "off" {
		f.Text += ", synchronous_commit is off: a crash of the server loses the last writes"
		f.Remedy = "set synchronous_commit to on for the role: ALTER ROLE … SET synchronous_commit = on"
	}
	return f, err
}

// examinePooler detects a pooler by the process id of the server: the id that a pooler reports to its clients is not
// the id of the server's process.
func (s *Store) examinePooler(ctx context.Context, conn *pgxpool.Conn) (store.Finding, error) {
	f := store.Finding{Name: "pooler", Text: "no pooler is in between"}
	var pid uint32
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	if pid != conn.Conn().PgConn().PID() {
		f.Text = "a pooler is in between; no prepared statements are used"
	}
	if s.watch.hears.Load() {
		f.Text += "; changes by other replicas are announced"
		return f, err
	}
	f.Text += "; changes by other replicas are found by a poll"
	return f, err
}

// examineRole checks the rights of the role that the statements of this package need.
func (s *Store) examineRole(ctx context.Context, conn *pgxpool.Conn) (store.Finding, error) {
	f := store.Finding{Name: "role"}
	var role string
	var super, migrates bool
	err := conn.QueryRow(ctx, `SELECT rolname, rolsuper, has_schema_privilege($1, 'CREATE')
		FROM pg_catalog.pg_roles WHERE rolname = current_user`, s.plainSchema()).Scan(&role, &super, &migrates)
	if err != nil {
		return f, err
	}
	rows, err := conn.Query(ctx, `SELECT c.relname FROM pg_catalog.pg_class c
		WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1) AND NOT CASE c.relkind
			WHEN 'S' THEN has_sequence_privilege(c.oid, 'USAGE')
			WHEN 'r' THEN c.relname = 'version' AND has_table_privilege(c.oid, 'SELECT') OR
				has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND
				has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
			ELSE true END ORDER BY c.relname`, s.plainSchema())
	if err != nil {
		return f, err
	}
	lacks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	switch {
	case err != nil:
	case len(lacks) > 0:
		f.Text = fmt.Sprintf("the role %q has no full rights on %s", role, strings.Join(lacks, ", "))
		f.Err = errors.New(f.Text)
		f.Remedy = rightsRemedy
	case super:
		f.Text = fmt.Sprintf("the role %q is a superuser", role)
		f.Remedy = "use a role that has only USAGE on the schema and SELECT, INSERT, UPDATE and DELETE on its tables"
	case migrates:
		f.Text = fmt.Sprintf("the role %q has the rights that tenon needs, and may migrate the schema", role)
	default:
		f.Text = fmt.Sprintf("the role %q has the rights that tenon needs; another role migrates the schema", role)
	}
	return f, err
}

// plainSchema returns the name of the schema without quotes.
func (s *Store) plainSchema() string { return strings.Trim(s.schema, `"`) }

func (s *Store) examineSchema(ctx context.Context, conn *pgxpool.Conn) (store.Finding, error) {
	f := store.Finding{Name: "schema"}
	var version, readers int
	err := conn.QueryRow(ctx, s.sql("SELECT version, readers FROM @version")).Scan(&version, &readers)
	f.Text = fmt.Sprintf("version %d; this tenon knows version %d", version, len(migrations))
	return f, err
}

func (s *Store) examineClock(ctx context.Context, conn *pgxpool.Conn) (store.Finding, error) {
	f := store.Finding{Name: "clock"}
	var at time.Time
	before := time.Now()
	err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at)
	took := time.Since(before)
	skew := at.Sub(s.now().Add(-took / 2)).Abs()
	f.Text = "the clocks of this machine and of the database agree"
	if err == nil && skew > maxSkew+took {
		f.Text = fmt.Sprintf("the clocks of this machine and of the database differ by %s", skew.Round(time.Second))
		f.Remedy = "synchronize both clocks (NTP): leases use the clock of the database, runs the clock of this machine"
	}
	return f, err
}

func (s *Store) examineKey(ctx context.Context, _ *pgxpool.Conn) (store.Finding, error) {
	f := store.Finding{Name: "key", Text: "rows are not signed: store.key is not used"}
	if s.key == nil {
		return f, nil
	}
	own, err := s.ownKey(ctx)
	f.Text = "store.key is the key of the database"
	if err == nil && !own {
		f.Text, f.Remedy = keyText, keyRemedy
	}
	return f, err
}

var _ store.Examiner = (*Store)(nil)
