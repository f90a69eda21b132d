// Package postgres keeps tenon's store in a PostgreSQL database, which any number of processes on any number of
// machines share. A process with an open store is called a replica.
//
//	engine/local ─► Append ─► queue ─► writer ─► one transaction ─► COMMIT
//	                                     ▲ up to 256 waiting appends share it
//
// Appends of concurrent runs share transactions. The store remembers the positions of the runs whose leases it has, so
// a transaction is one round trip, and most of them are one call of a function of the schema (known.go, era.go). Each
// other write is a transaction by itself. Reads take connections of a pool. Reads and leases of many runs at the same
// time share statements (gather.go).
//
// No statement needs the state of a session, so that a pooler may be in between that gives each transaction another
// connection. Without a pooler, one statement is prepared (prepared.go).
//
// A lease is a row: a run, its owner and a unique number, the epoch. A lease is live until the owner's row in the table
// of replicas expires by the clock of the database. One statement renews all leases of a replica. A write to a run
// locks the row of its lease, with the epoch that the process got, and requires that the lease is live. A process that
// was stopped beyond its lease finds another epoch there and stores nothing. If nobody took the lease, its write waits
// for a heartbeat. Later writes lock one row for all leases, which whoever takes one of them has to change.
//
// A COMMIT without an answer is looked up: each transaction writes its number into the row of its connection,
// and the look-up locks this row, so that it waits for a transaction in flight. A transaction that was not committed is
// made again.
//
// Other replicas learn of a write by NOTIFY, which is sent after the commit, and without it by a poll.
package postgres
