package sqlite

// migration11 adds the approvals of sessions. An approval that a session of an older store has only in its journal does
// not apply any more: its tool asks once more.
const migration11 = `
CREATE TABLE session_grants (
	id        TEXT PRIMARY KEY,
	session   TEXT NOT NULL,
	key       TEXT NOT NULL,
	principal TEXT NOT NULL,
	server    TEXT NOT NULL,
	remote    TEXT NOT NULL,
	by        TEXT NOT NULL,
	created   INTEGER NOT NULL,
	mac       BLOB,
	sum       INTEGER,
	UNIQUE (session, key)
) WITHOUT ROWID;
`
