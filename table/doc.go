// Package table reads and writes Arrow tables: tool tables, data tables and conversations.
//
// A tool table has a column whose cells are tools. Workflow tools and MCP tools share the column; a
// number tells them apart. The column has the extension type knime.logical_type over a struct. The
// fields of the struct depend on the program that wrote the table (see [Layout]). The package reads
// all layouts and writes three of them. Copying a table keeps tools of unknown kinds.
//
// A table is an Arrow IPC file, an Arrow IPC stream (between commands), or a bundle: a zip of a
// table and the files that its tools need. A table that is not a bundle keeps these files in a
// folder next to it, the file store.
//
// Tables are untrusted input. The package checks everything that a file claims before the Arrow
// library uses it (guard.go), and bounds the memory that reading takes. It never writes in place: a
// table is written under a temporary name and renamed when it is complete.
//
// [Select] runs an SQL query over tables. The query is untrusted, too. It runs in a temporary
// database (sqlite.go) that contains only the columns that it names (pages.go). It can only read,
// and its time, its result and its temporary files (spill.go) are bounded.
//
// The package is independent of servers and runs. The command line converts tools to rows; package
// config converts rows to servers and tools. The rules for the layouts come from the first seed, a
// specification of KNIME.
package table
