package sqlite

// migrations lead from one schema version to the next; the version of a store
// is the number of migrations it has seen. One that was released is never
// changed.
//
// Events lie in a table with rowid and not in the order of their key: the
// appends of many runs then fill the same few pages. A run's seq and time of
// change are those of its last event, so that most appends touch the table of
// events only.
//
// A row of events is what one append wrote together: n events from seq on, the
// last of them at time last, packed into one value (see pack.go), because binding
// many small values takes longer than to store them. UNIQUE(run, seq) holds over
// all of them, since every append begins right after the last event. That the
// run is there is checked by every append, so the row need not refer to it.
//
// Version 2: runs have a principal and a caller; what was there before was asked
// by the person at the terminal. Blobs belong to runs: those of events are found
// with events_blob, the others stand in run_blobs, for older runs where their
// first event names the digest. A budget's reserved part is the sum of its open
// reservations, which are few.
//
// Version 3: runs and sessions say that they came from a file; the mark of a run is
// JSON.
//
// Version 4: results of tools that stand for equal calls, the turns that rates gave
// out, as times of 8 bytes, and the definitions that tools had when they were first
// used.
//
// Version 5: journals are divided into chapters (see chapters.go), and what was the
// run of an event is its chapter. The journal of an older run is its first chapter,
// with the number of the run.
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
`}
