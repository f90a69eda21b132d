package sqlite

// migration10 adds the summaries of runs, from which statistics are made, and the list of runs that are not summarized
// or not indexed up to their end. A row of pending has the bits todoCount and todoText. All runs of an older store are
// pending, so that no command has to read 20,000 journals at once: they are caught up in the background.
const migration10 = `
CREATE TABLE tallies (
	run  INTEGER PRIMARY KEY,
	id   TEXT NOT NULL,
	seq  INTEGER NOT NULL,
	data BLOB NOT NULL,
	mac  BLOB,
	sum  INTEGER
);
CREATE TABLE pending (
	run  INTEGER PRIMARY KEY,
	todo INTEGER NOT NULL
);
INSERT INTO pending (run, todo) SELECT n, 3 FROM runs;
`
