package sqlite

// migrations are the steps from each schema version to the next. The version of a store is the number of migrations
// that it has seen. A released migration never changes.
//
// Events are in a table with rowid, not in the order of their key, so that the appends of many runs fill the same few
// pages. A run's seq and time of change are taken from its last event, so that most appends only write to the table of
// events.
//
// A row of events contains the events of one append: n events from seq on, the last of them at time last, packed into
// one value (see pack.go), because binding many small values takes longer than storing them. UNIQUE(run, seq) holds for
// all of them, because each append begins right after the last event. Each append checks that the run exists, so the
// row needs no reference to it.
//
// Version 2: runs have a principal and a caller; older runs belong to the person at the terminal. Blobs belong to runs:
// blobs of events are found through events_blob, others are listed in run_blobs. For older runs, run_blobs is filled
// from the digest in their first event. The reserved part of a budget is the sum of its open reservations, which are
// few.
//
// Version 3: runs and sessions are marked if they came from a file; the mark of a run is JSON.
//
// Version 4: results of tools that answer equal calls, the turns of rates, as times of 8 bytes, and the definitions
// that tools had at their first use.
//
// Version 5: journals are divided into chapters (see chapters.go). An event refers to its chapter instead of its run.
// The journal of an older run is its first chapter, with the number of the run.
//
// Version 6: rows that can cause an effect have MACs (package store/signed), and the store has the marks of the users
// who know it. Grants have ids and are bound to a server's identity, a target and a definition. An older grant has none
// of them and never applies.
//
// Version 7: the uses of grants, reservations and the owners of sessions have MACs too.
//
// Version 8: the sessions that continue another one, or one of its runs, are found through an index. Each deletion of a
// session looks for them. The row of probe is written to see whether the store can be written.
//
// Version 9: rows have checksums (migration9.go).
//
// Version 10: runs have summaries for statistics, and a list of what is behind (migration10.go).
//
// Version 11: approvals of sessions have rows, so that they can be listed and withdrawn (migration11.go).
var migrations = []string{`
CREATE TABLE runs (
	n          INTEGER PRIMARY KEY,
	id         TEXT NOT NULL UNIQUE,
	session    TEXT NOT NULL,
	parent     TEXT NOT NULL,
	parent_seq INTEGER NOT NULL,
	core       TEXT NOT NULL,
	agent      TEXT NOT NULL,
	model      TEXT NOT NULL,
	title      TEXT NOT NULL,
	state      TEXT NOT NULL,
	stop       TEXT NOT NULL,
	created    INTEGER NOT NULL,
	updated    INTEGER NOT NULL,
	waiting    BLOB
);
CREATE INDEX runs_state   ON runs(state, id);
CREATE INDEX runs_session ON runs(session, id);
CREATE INDEX runs_parent  ON runs(parent, id) WHERE parent <> '';

CREATE TABLE blobs (
	digest BLOB NOT NULL UNIQUE,
	data   BLOB NOT NULL
);

CREATE TABLE events (
	run    INTEGER NOT NULL,
	seq    INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	last   INTEGER NOT NULL,
	events BLOB NOT NULL,
	blob   BLOB REFERENCES blobs(digest)
);
CREATE UNIQUE INDEX events_run ON events(run, seq);

CREATE TABLE signals (
	n    INTEGER PRIMARY KEY,
	id   TEXT NOT NULL UNIQUE,
	run  TEXT NOT NULL REFERENCES runs(id),
	kind TEXT NOT NULL,
	step TEXT NOT NULL,
	by   TEXT NOT NULL,
	data BLOB,
	time INTEGER NOT NULL,
	seq  INTEGER NOT NULL
);
CREATE INDEX signals_open ON signals(run, n) WHERE seq = 0;
CREATE INDEX signals_step ON signals(run, step, kind, seq);

CREATE TABLE sessions (
	id      TEXT PRIMARY KEY,
	title   TEXT NOT NULL,
	agent   TEXT NOT NULL,
	head    TEXT NOT NULL,
	runs    INTEGER NOT NULL,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_updated ON sessions(updated);
`, `
ALTER TABLE runs ADD COLUMN principal TEXT NOT NULL DEFAULT 'local';
ALTER TABLE runs ADD COLUMN caller TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_caller    ON runs(caller, id) WHERE caller <> '';
CREATE INDEX runs_principal ON runs(principal, id);

ALTER TABLE sessions ADD COLUMN principal TEXT NOT NULL DEFAULT 'local';
ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN head_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_principal ON sessions(principal, updated);

CREATE INDEX events_blob ON events(blob) WHERE blob IS NOT NULL;
CREATE TABLE run_blobs (
	run  INTEGER NOT NULL,
	blob BLOB NOT NULL,
	PRIMARY KEY (run, blob)
) WITHOUT ROWID;
CREATE INDEX run_blobs_blob ON run_blobs(blob);
INSERT INTO run_blobs (run, blob)
	SELECT e.run, b.digest FROM blobs b
	JOIN events e ON e.seq = 1
	LEFT JOIN blobs d ON d.digest = e.blob
	WHERE NOT EXISTS (SELECT 1 FROM events f WHERE f.blob = b.digest)
		AND instr(coalesce(d.data, e.events), CAST('sha256:' || lower(hex(b.digest)) AS BLOB)) > 0;

CREATE TABLE grants (
	principal TEXT NOT NULL,
	server    TEXT NOT NULL,
	remote    TEXT NOT NULL,
	by        TEXT NOT NULL,
	created   INTEGER NOT NULL,
	PRIMARY KEY (principal, server, remote)
) WITHOUT ROWID;

CREATE TABLE budgets (
	key  TEXT PRIMARY KEY,
	used INTEGER NOT NULL,
	most INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE reservations (
	run    TEXT NOT NULL,
	id     TEXT NOT NULL,
	n      INTEGER NOT NULL,
	key    TEXT NOT NULL,
	amount INTEGER NOT NULL,
	open   INTEGER NOT NULL,
	PRIMARY KEY (run, id, n)
) WITHOUT ROWID;
CREATE INDEX reservations_open ON reservations(key) WHERE open = 1;
`, `
ALTER TABLE runs ADD COLUMN imported BLOB;
ALTER TABLE sessions ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
`, `
CREATE TABLE results (
	key     TEXT NOT NULL UNIQUE,
	run     TEXT NOT NULL,
	step    TEXT NOT NULL,
	expires INTEGER NOT NULL,
	bytes   INTEGER NOT NULL,
	data    BLOB NOT NULL
);
CREATE INDEX results_expires ON results(expires, bytes);
CREATE INDEX results_run     ON results(run);

CREATE TABLE rates (
	key   TEXT PRIMARY KEY,
	turns BLOB NOT NULL,
	past  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE pins (
	server     TEXT NOT NULL,
	remote     TEXT NOT NULL,
	raw        TEXT NOT NULL,
	digest     TEXT NOT NULL,
	definition BLOB NOT NULL,
	by         TEXT NOT NULL,
	created    INTEGER NOT NULL,
	PRIMARY KEY (server, remote)
) WITHOUT ROWID;
`, `
CREATE TABLE chapters (
	run   INTEGER NOT NULL,
	first INTEGER NOT NULL,
	n     INTEGER NOT NULL,
	PRIMARY KEY (run, first)
) WITHOUT ROWID;
INSERT INTO chapters (run, first, n) SELECT DISTINCT run, 1, run FROM events;
ALTER TABLE events RENAME COLUMN run TO chapter;
`, `
ALTER TABLE runs    ADD COLUMN mac BLOB;
ALTER TABLE events  ADD COLUMN mac BLOB;
ALTER TABLE signals ADD COLUMN mac BLOB;
ALTER TABLE results ADD COLUMN mac BLOB;
ALTER TABLE pins    ADD COLUMN mac BLOB;

ALTER TABLE grants RENAME TO grants_5;
CREATE TABLE grants (
	id         TEXT PRIMARY KEY,
	principal  TEXT NOT NULL,
	server     TEXT NOT NULL,
	name       TEXT NOT NULL,
	remote     TEXT NOT NULL,
	target     TEXT NOT NULL,
	definition TEXT NOT NULL,
	condition  TEXT NOT NULL,
	uses       INTEGER NOT NULL,
	used       INTEGER NOT NULL,
	expires    INTEGER NOT NULL,
	by         TEXT NOT NULL,
	created    INTEGER NOT NULL,
	mac        BLOB
) WITHOUT ROWID;
CREATE INDEX grants_tool ON grants(principal, server, remote);
INSERT INTO grants (id, principal, server, name, remote, target, definition, condition, uses, used, expires, by,
	created)
	SELECT 'gr_' || lower(hex(randomblob(5))), principal, '', server, remote, '', '', '', 0, 0, 0, by, created
		FROM grants_5;
DROP TABLE grants_5;
CREATE TABLE grant_uses (
	grant_id TEXT NOT NULL,
	run      TEXT NOT NULL,
	step     TEXT NOT NULL,
	PRIMARY KEY (grant_id, run, step)
) WITHOUT ROWID;

CREATE TABLE marks (
	name BLOB NOT NULL UNIQUE,
	mac  BLOB NOT NULL
);
`, `
ALTER TABLE grant_uses   ADD COLUMN mac BLOB;
ALTER TABLE reservations ADD COLUMN mac BLOB;
ALTER TABLE sessions     ADD COLUMN mac BLOB;
`, `
CREATE INDEX sessions_parent ON sessions(parent) WHERE parent <> '';
CREATE INDEX sessions_head   ON sessions(head);
CREATE TABLE probe (
	n    INTEGER PRIMARY KEY,
	time INTEGER NOT NULL,
	data BLOB NOT NULL
);
`, migration9, migration10, migration11}
