package forms

import (
	"bytes"
	"fmt"

	"github.com/tenonhq/tenon"
)

// Column is a column of a [Table].
type Column struct {
	Name string
	Kind byte // one of the constants
}

// The kinds of columns.
const (
	TextColumn     = 't'
	NumberColumn   = 'n'
	BytesColumn    = 'b'
	OptionalColumn = 'o' // bytes, or nil if there are none
)

// Table is a table of a store in the form that all databases share. A row refers to its run by the run's id.
type Table struct {
	Name    string
	Columns []Column
}

// Tables returns the tables of a store in the order in which a copy fills them. It omits the index of texts, which is
// made again from the journals. It also omits the marks, which record the keys that know a store.
func Tables() []Table {
	list := make([]Table, len(tables))
	for i, t := range tables {
		list[i].Name = t.name
		kind := byte(0)
		for _, word := range bytes.Fields([]byte(t.columns)) {
			if bytes.HasSuffix(word, []byte(":")) {
				kind = word[0]
				continue
			}
			list[i].Columns = append(list[i].Columns, Column{string(word), kind})
		}
	}
	return list
}

// TableOf returns a table by its name. Errors: invalid.
func TableOf(name string) (Table, error) {
	for _, t := range Tables() {
		if t.Name == name {
			return t, nil
		}
	}
	return Table{}, tenon.Errorf(tenon.CodeInvalid, "store: there is no table %q", name)
}

// tables contains the columns of [Tables]. The kind of each column precedes its name.
var tables = []struct{ name, columns string }{
	{"runs", "t: id session principal caller parent n: parent_seq t: core agent model title state stop " +
		"n: created updated o: waiting imported mac"},
	{"blobs", "b: digest data"},
	{"run_blobs", "t: run b: blob"},
	{"events", "t: run n: seq n last b: events o: blob mac"},
	{"signals", "t: id run kind step by o: data n: time seq o: mac"},
	{"sessions", "t: id title agent principal parent head n: head_seq runs created updated imported o: mac"},
	{"grants", "t: id principal server name remote target definition condition n: uses used expires t: by " +
		"n: created o: mac"},
	{"grant_uses", "t: grant_id run step o: mac"},
	{"session_grants", "t: id session key principal server remote by n: created o: mac"},
	{"budgets", "t: key n: used most"},
	{"reservations", "t: run id n: n t: key n: amount open o: mac"},
	{"results", "t: key run step n: expires b: data o: mac"},
	{"rates", "t: key b: turns n: past"},
	{"pins", "t: server remote raw digest b: definition t: by n: created o: mac"},
	{"tallies", "t: run n: seq b: data o: mac"},
	{"pending", "t: run n: todo"},
}

// Scanner holds the values of a row of a table while they are read.
type Scanner struct {
	dest []any
	row  []any
}

// NewScanner returns a scanner for a table.
func NewScanner(t Table) *Scanner {
	s := &Scanner{dest: make([]any, len(t.Columns)), row: make([]any, len(t.Columns))}
	for i, c := range t.Columns {
		switch c.Kind {
		case TextColumn:
			s.dest[i] = new(string)
		case NumberColumn:
			s.dest[i] = new(int64)
		default:
			s.dest[i] = new([]byte)
		}
	}
	return s
}

// Dest returns the pointers into which a row is scanned.
func (s *Scanner) Dest() []any { return s.dest }

// Row returns the scanned row. It is valid until the next row is scanned.
func (s *Scanner) Row() []any {
	for i, d := range s.dest {
		switch d := d.(type) {
		case *string:
			s.row[i] = *d
		case *int64:
			s.row[i] = *d
		case *[]byte:
			s.row[i] = *d
		}
	}
	return s.row
}

// Args returns the values of a row as arguments of an INSERT. Errors: invalid (it does not fit the table).
func (t Table) Args(row []any) ([]any, error) {
	if len(row) != len(t.Columns) {
		return nil, tenon.Errorf(tenon.CodeInvalid, "store: a row of %s has %d values", t.Name, len(row))
	}
	args := make([]any, len(row))
	for i, c := range t.Columns {
		ok := false
		args[i] = row[i]
		switch c.Kind {
		case TextColumn:
			_, ok = row[i].(string)
		case NumberColumn:
			_, ok = row[i].(int64)
		default:
			b, bytes := row[i].([]byte)
			ok = bytes || row[i] == nil
			switch {
			case len(b) > 0:
			case c.Kind == OptionalColumn:
				args[i] = nil
			default:
				args[i] = []byte{}
			}
		}
		if !ok {
			return nil, tenon.Errorf(tenon.CodeInvalid, "store: column %s.%s has a value of type %s", t.Name, c.Name,
				fmt.Sprintf("%T", row[i]))
		}
	}
	return args, nil
}
