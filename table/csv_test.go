package table_test

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/table"
)

// TestCSVThatIsNotUTF8 names where a text is that no table can hold.
func TestCSVThatIsNotUTF8(t *testing.T) {
	for data, want := range map[string]string{
		"a,b\n1,x\n2,\xe9t\xe9\n":       "line 3, column 3 ('b'): not UTF-8; save the file as UTF-8",
		"a,b\n\"two\nlines\",1\n\xff,x": "line 4, column 1 ('a'): not UTF-8; save the file as UTF-8",
		"a,\xff\n1,2\n":                 "line 1, column 3: not UTF-8; save the file as UTF-8",
	} {
		err := table.WriteCSV(t.Context(), t.TempDir()+"/t.arrow", []byte(data), nil, table.WriteOptions{})
		if err == nil || err.Error() != want || tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%q: %v, want %s", data, err, want)
		}
	}
}
