// Package table reads and writes Arrow tables: tables of tools, tables of data,
// and conversations.
//
// A tool table has a column whose cells are tools: workflow tools and tools of MCP
// servers beside each other, told apart by a number. The column is an extension
// type, knime.logical_type, over a struct; which struct depends on who wrote the
// table (see [Layout]). All layouts are read, three are written, and what a cell
// holds that tenon does not know is kept when tables are copied.
//
// Tables are Arrow IPC files, Arrow IPC streams (between commands), or bundles: a
// zip of a table with the files that its tools need. Beside a file these lie in a
// folder, its file store.
//
// A table is data from somewhere. Whatever a file says of itself is checked before
// the Arrow library follows it (guard.go), what it asks for is bounded, and nothing
// is written in place: a table is made under another name and moved when it is whole.
//
// [Select] asks tables in SQL. The query may be anybody's: it runs in a database of its
// own (sqlite.go) that has nothing but the columns it names (pages.go), may read alone,
// and is bounded in time, result and temporary files (spill.go).
//
// The package stands beside the flow: it knows nothing of servers and runs. The
// command line turns tools into rows, and config rows into servers and tools. Rules for
// the layouts come from the first seed, a specification of KNIME's.
package table
