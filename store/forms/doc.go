// Package forms contains the code that stores of different databases share: the forms of stored values, and the rules
// that do not depend on a database.
//
//	Append ─► forms.RowsOf ─► rows of packed events ─► store/sqlite or store/postgres
//
// A journal has the same bytes in every database: Pack writes an event, and package signed computes its MAC over these
// bytes. A run that is moved from one database to another therefore stays the user's own.
//
// The rules of budgets, of rates and of the words of a query are here too, so that a budget or a search has the same
// result in every database. Package storetest checks that.
package forms
