// Package sqlite keeps tenon's store in one SQLite file. It is the store for
// one machine: nothing to install, any number of processes at a time.
//
//	engine/local ─► Append ─► queue ─► writer ─► one transaction ─► fsync
//	                                     ▲ up to 256 waiting writes share it
//
// The file is in WAL mode with synchronous FULL: a write that has returned is on
// disk, except writes that are delayed until the next one (see soon.go). A process
// writes on one connection. A single write is done by its caller; concurrent writes
// are done by a goroutine in one transaction. Reads use separate connections and
// never wait for a write. Between processes SQLite's lock decides. UNIQUE(run, seq)
// is the last fence, in the form that chapters.go describes.
//
// Journals hold any bytes: data is stored as BLOB, and what is larger than 32 KiB
// goes into a table of blobs by its digest, so that equal values are kept once.
//
// Leases are locks of the operating system on the file "NAME-locks" next to the store.
// They end with the process, however it ends.
package sqlite
