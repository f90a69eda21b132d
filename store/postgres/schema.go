package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
)

// migrations are the steps from each schema version to the next. A released migration never changes. In all statements
// of this package, the name of a table begins with @ for the schema: no statement relies on a setting of its session.
//
// A step may only add to the schema. A step that removes something comes one release later, and raises readers, the
// oldest version whose program may still use the store.
//
// Texts compare by their bytes (COLLATE "C"), as they do in Go. Values that contain arbitrary bytes are bytea: text
// takes no NUL. Times are nanoseconds since 1970. Rows have no checksums: PostgreSQL has checksums of pages.
//
// The events of an append are rows with n events from seq on. UNIQUE(run, seq) holds for all of them, because each
// append begins right after the last event.
var migrations = []string{`
CREATE TABLE @replicas (
	id      text COLLATE "C" PRIMARY KEY,
	name    text NOT NULL,
	began   timestamptz NOT NULL,
	expires timestamptz NOT NULL
);
CREATE TABLE @writers (
	replica text COLLATE "C" NOT NULL,
	slot    int NOT NULL,
	n       bigint NOT NULL,
	PRIMARY KEY (replica, slot)
) WITH (fillfactor = 50);
CREATE SEQUENCE @epochs;
CREATE TABLE @leases (
	run   text COLLATE "C" PRIMARY KEY,
	owner text COLLATE "C" NOT NULL,
	epoch bigint NOT NULL
);
CREATE INDEX leases_owner ON @leases (owner);

CREATE TABLE @runs (
	n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id         text COLLATE "C" NOT NULL UNIQUE,
	session    text COLLATE "C" NOT NULL,
	principal  text COLLATE "C" NOT NULL,
	caller     text COLLATE "C" NOT NULL,
	parent     text COLLATE "C" NOT NULL,
	parent_seq bigint NOT NULL,
	core       text COLLATE "C" NOT NULL,
	agent      text COLLATE "C" NOT NULL,
	model      text COLLATE "C" NOT NULL,
	title      text COLLATE "C" NOT NULL,
	state      text COLLATE "C" NOT NULL,
	stop       text COLLATE "C" NOT NULL,
	created    bigint NOT NULL,
	updated    bigint NOT NULL,
	waiting    bytea,
	imported   bytea,
	mac        bytea
);
CREATE INDEX runs_state     ON @runs (state, id);
CREATE INDEX runs_session   ON @runs (session, id);
CREATE INDEX runs_principal ON @runs (principal, id);
CREATE INDEX runs_parent    ON @runs (parent, id) WHERE parent <> '';
CREATE INDEX runs_caller    ON @runs (caller, id) WHERE caller <> '';

CREATE TABLE @blobs (
	digest bytea PRIMARY KEY,
	data   bytea NOT NULL
);
CREATE TABLE @run_blobs (
	run  bigint NOT NULL,
	blob bytea NOT NULL,
	PRIMARY KEY (run, blob)
);
CREATE INDEX run_blobs_blob ON @run_blobs (blob);
CREATE TABLE @events (
	run    bigint NOT NULL,
	seq    bigint NOT NULL,
	n      int NOT NULL,
	last   bigint NOT NULL,
	events bytea NOT NULL,
	blob   bytea,
	mac    bytea,
	PRIMARY KEY (run, seq)
);
CREATE INDEX events_blob ON @events (blob) WHERE blob IS NOT NULL;

CREATE TABLE @signals (
	n    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id   text COLLATE "C" NOT NULL UNIQUE,
	run  text COLLATE "C" NOT NULL,
	kind text COLLATE "C" NOT NULL,
	step text COLLATE "C" NOT NULL,
	by   text COLLATE "C" NOT NULL,
	data bytea,
	time bigint NOT NULL,
	seq  bigint NOT NULL,
	mac  bytea
);
CREATE INDEX signals_open ON @signals (run, n) WHERE seq = 0;
CREATE INDEX signals_step ON @signals (run, step, kind, seq);

CREATE TABLE @sessions (
	id        text COLLATE "C" PRIMARY KEY,
	title     text COLLATE "C" NOT NULL,
	agent     text COLLATE "C" NOT NULL,
	principal text COLLATE "C" NOT NULL,
	parent    text COLLATE "C" NOT NULL,
	head      text COLLATE "C" NOT NULL,
	head_seq  bigint NOT NULL,
	runs      bigint NOT NULL,
	created   bigint NOT NULL,
	updated   bigint NOT NULL,
	imported  bigint NOT NULL,
	mac       bytea
);
CREATE INDEX sessions_updated   ON @sessions (updated, id);
CREATE INDEX sessions_principal ON @sessions (principal, updated);
CREATE INDEX sessions_parent    ON @sessions (parent) WHERE parent <> '';
CREATE INDEX sessions_head      ON @sessions (head);

CREATE TABLE @grants (
	id         text COLLATE "C" PRIMARY KEY,
	principal  text COLLATE "C" NOT NULL,
	server     text COLLATE "C" NOT NULL,
	name       text COLLATE "C" NOT NULL,
	remote     text COLLATE "C" NOT NULL,
	target     text COLLATE "C" NOT NULL,
	definition text COLLATE "C" NOT NULL,
	condition  text COLLATE "C" NOT NULL,
	uses       bigint NOT NULL,
	used       bigint NOT NULL,
	expires    bigint NOT NULL,
	expired    boolean NOT NULL DEFAULT false,
	by         text COLLATE "C" NOT NULL,
	created    bigint NOT NULL,
	mac        bytea
);
CREATE INDEX grants_tool ON @grants (principal, server, remote);
CREATE TABLE @grant_uses (
	grant_id text COLLATE "C" NOT NULL,
	run      text COLLATE "C" NOT NULL,
	step     text COLLATE "C" NOT NULL,
	mac      bytea,
	PRIMARY KEY (grant_id, run, step)
);

CREATE TABLE @budgets (
	key  text COLLATE "C" PRIMARY KEY,
	used bigint NOT NULL,
	most bigint NOT NULL
);
CREATE TABLE @reservations (
	run    text COLLATE "C" NOT NULL,
	id     text COLLATE "C" NOT NULL,
	n      int NOT NULL,
	key    text COLLATE "C" NOT NULL,
	amount bigint NOT NULL,
	open   boolean NOT NULL,
	mac    bytea,
	PRIMARY KEY (run, id, n)
);
CREATE INDEX reservations_open ON @reservations (key) WHERE open;

CREATE TABLE @results (
	key     text COLLATE "C" PRIMARY KEY,
	run     text COLLATE "C" NOT NULL,
	step    text COLLATE "C" NOT NULL,
	expires bigint NOT NULL,
	data    bytea NOT NULL,
	mac     bytea
);
CREATE INDEX results_expires ON @results (expires);
CREATE INDEX results_run     ON @results (run);
CREATE TABLE @rates (
	key   text COLLATE "C" PRIMARY KEY,
	turns bytea NOT NULL,
	past  bigint NOT NULL
);
CREATE TABLE @pins (
	server     text COLLATE "C" NOT NULL,
	remote     text COLLATE "C" NOT NULL,
	raw        text COLLATE "C" NOT NULL,
	digest     text COLLATE "C" NOT NULL,
	definition bytea NOT NULL,
	by         text COLLATE "C" NOT NULL,
	created    bigint NOT NULL,
	mac        bytea,
	PRIMARY KEY (server, remote)
);

CREATE TABLE @tallies (
	run  bigint PRIMARY KEY,
	id   text COLLATE "C" NOT NULL,
	seq  bigint NOT NULL,
	data bytea NOT NULL,
	mac  bytea
);
CREATE TABLE @pending (
	run  bigint PRIMARY KEY,
	todo int NOT NULL
);
CREATE TABLE @texts (
	n      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run    bigint NOT NULL,
	seq    bigint NOT NULL,
	role   text COLLATE "C" NOT NULL,
	text   text COLLATE "C" NOT NULL,
	folded text COLLATE "C" NOT NULL
);
CREATE INDEX texts_run ON @texts (run);
CREATE TABLE @texts_upto (
	run bigint PRIMARY KEY,
	seq bigint NOT NULL
);
`, `
CREATE TABLE @marks (
	name bytea PRIMARY KEY,
	mac  bytea NOT NULL
);
`, `
CREATE UNLOGGED TABLE @follows (
	run     text COLLATE "C" NOT NULL,
	replica text COLLATE "C" NOT NULL,
	n       bigint NOT NULL,
	expires timestamptz NOT NULL,
	PRIMARY KEY (run, replica)
);
CREATE UNLOGGED TABLE @live (
	n      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	target text COLLATE "C" NOT NULL,
	at     timestamptz NOT NULL,
	run    text COLLATE "C" NOT NULL,
	events bytea NOT NULL,
	mac    bytea
);
CREATE INDEX live_target ON @live (target, n);
`, `
CREATE TABLE @session_grants (
	id        text COLLATE "C" PRIMARY KEY,
	session   text COLLATE "C" NOT NULL,
	key       text COLLATE "C" NOT NULL,
	principal text COLLATE "C" NOT NULL,
	server    text COLLATE "C" NOT NULL,
	remote    text COLLATE "C" NOT NULL,
	by        text COLLATE "C" NOT NULL,
	created   bigint NOT NULL,
	mac       bytea,
	UNIQUE (session, key)
);
`, `
ALTER TABLE @replicas ADD COLUMN address text NOT NULL DEFAULT '';
ALTER TABLE @replicas ADD COLUMN address_mac bytea;
`, `
CREATE FUNCTION @first_expiry(waiting bytea) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT min(m[1] COLLATE "C") FROM regexp_matches(encode(waiting, 'escape'),
		'"since":"[^"]*","expires":"(\d\d\d\d-\d\d-\d\dT\d\d:\d\d)', 'g') AS m
$$;
CREATE INDEX runs_expiry ON @runs (@first_expiry(waiting) COLLATE "C") WHERE state = 'input_required';
`, `
ALTER TABLE @replicas ADD COLUMN searches boolean NOT NULL DEFAULT true;
`, addEras, addStarts}

// The column searches is whether a replica searches for runs that nobody works on. Programs before do not write it, and
// most of their replicas search.

// The function first_expiry returns the first time, to the minute, at which a wait of a run expires, so that a search
// for such runs need not read all runs that wait for a person. It reads the JSON of tenon.Waiting as a text: times
// are in UTC, and a text in the data of a wait that looks the same is found, too. It never fails, because then the
// run could not be stored. An index does what a column would do, and covers the rows of programs before.

// readers is the oldest schema version whose programs can use a store with the last schema version.
const readers = 1

// minServer is the oldest version of PostgreSQL with which the tests are run.
const minServer = 150000

// migrate brings the schema to the last version. Only one replica migrates at a time. The others wait and then find the
// new version. If the schema is up to date, migrate writes nothing, so it works for a role without rights to change the
// schema.
func (s *Store) migrate(ctx context.Context) error {
	if err := s.checkServer(ctx); err != nil {
		return err
	}
	there, err := s.version(ctx, s.pool)
	if err != nil || there == len(migrations) {
		return err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 7428))", s.schema); err != nil {
			return err
		}
		there, err := s.version(ctx, tx) // another replica may have migrated meanwhile
		if err != nil || there == len(migrations) {
			return err
		}
		steps := migrations[there:]
		if there == 0 {
			steps = append([]string{makeVersion}, steps...)
		}
		for _, step := range steps {
			for _, q := range statements(step) {
				if _, err := tx.Exec(ctx, s.sql(q)); err != nil {
					return err
				}
			}
		}
		_, err = tx.Exec(ctx, s.sql("UPDATE @version SET version = $1, readers = $2"), len(migrations), readers)
		return err
	})
	if err != nil {
		return s.storeError("migrate to version "+fmt.Sprint(len(migrations)), err)
	}
	return nil
}

// statements returns the statements of a migration. The body of a function is between $$.
func statements(step string) (list []string) {
	text := ""
	for part := range strings.SplitSeq(step, ";\n") {
		text += part
		if strings.Count(text, "$$")%2 != 0 {
			text += ";\n"
			continue
		}
		if text = strings.TrimSpace(text); text != "" {
			list = append(list, text)
		}
		text = ""
	}
	return list
}

const makeVersion = `
CREATE SCHEMA IF NOT EXISTS @@;
CREATE TABLE @version (version int NOT NULL, readers int NOT NULL);
INSERT INTO @version VALUES (0, 0);
`

// checkServer checks the properties of a database that tenon relies on.
func (s *Store) checkServer(ctx context.Context) error {
	var number int
	var encoding string
	var standby bool
	err := s.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int,
		current_setting('server_encoding'), pg_is_in_recovery()`).Scan(&number, &encoding, &standby)
	switch {
	case err != nil:
		return s.storeError("connect", err)
	case number < minServer:
		return tenon.Errorf(tenon.CodeStore, "store %s: the server is PostgreSQL %d; tenon needs version %d or newer",
			s.name, number/10000, minServer/10000)
	case encoding != "UTF8":
		return tenon.Errorf(tenon.CodeStore,
			"store %s: the database has the encoding %s; create one with UTF8: CREATE DATABASE tenon ENCODING 'UTF8' "+
				"TEMPLATE template0", s.name, encoding)
	case standby:
		return tenon.Errorf(tenon.CodeStore,
			"store %s: the server is a read-only standby; connect to the primary, for example with "+
				"target_session_attrs=read-write and all hosts in the DSN", s.name)
	}
	return nil
}

// version returns the version of the schema, or 0 if there is none. Errors: store (it is too new).
func (s *Store) version(ctx context.Context, q interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (int, error) {
	var there bool
	var version, readers int
	// to_regclass would answer from a cache, which does not know of a table that was created while this transaction
	// waited for its lock.
	err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = 'version' AND format('"%s"', n.nspname) = $1)`, s.schema).Scan(&there)
	if err == nil && !there {
		return 0, nil
	}
	if err == nil {
		err = q.QueryRow(ctx, s.sql("SELECT version, readers FROM @version")).Scan(&version, &readers)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, tenon.Errorf(tenon.CodeStore, "store %s: its table 'version' is empty; restore it from a backup",
			s.name)
	case err != nil:
		return 0, s.storeError("read the version", err)
	case readers > len(migrations):
		return 0, tenon.Errorf(tenon.CodeStore,
			"store %s: its schema has version %d and needs a tenon that knows version %d; this one knows versions up "+
				"to %d: use a newer tenon", s.name, version, readers, len(migrations))
	}
	return min(version, len(migrations)), nil
}
