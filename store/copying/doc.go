// Package copying copies all rows of one store into a store of another database, as `tenon store copy` does.
//
//	source (SQLite or PostgreSQL) ─► rows of forms.Tables ─► target (the other one)
//
// Rows are copied as they are, with their MACs. A row of the user's own stays the user's own, and a foreign row stays
// foreign. Journals are equal byte for byte.
//
// The source is marked first. From then on nobody writes to it, so that its rows do not change while they are copied.
// The target is marked until it is complete, and nobody else opens it. A copy that was interrupted is resumed: a target
// contains the first rows of each table, in the order in which the source returns them. In the end both stores are
// compared by one digest for each table.
package copying
