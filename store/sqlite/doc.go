// Package sqlite keeps tenon's store in one SQLite file. It is the store of
// everybody who runs tenon on one machine: nothing to install, any number of
// processes at a time.
//
//	engine/local ─► Append ─► queue ─► writer ─► one transaction ─► fsync
//	                                     ▲ up to 256 waiting writes share it
//
// The file is in WAL mode with synchronous FULL: a write that has returned is on
// disk, but for what goes with the next one (see soon.go). The writes of a process
// come one after another on one connection: one that comes alone is done by its
// caller, several at a time by a goroutine that puts what is waiting into one
// transaction. Reads have connections of their own and never wait for a write.
// Between processes SQLite's lock decides, and UNIQUE(run, seq) is the last fence, in
// the form that chapters.go has it.
//
// Journals hold any bytes: data is stored as BLOB, and what is larger than 32 KiB
// goes into a table of blobs by its digest, so that equal values are kept once.
//
// Leases are locks of the operating system on what lies beside the store under
// its name and "-locks". They end with the process, however it ends.
package sqlite
