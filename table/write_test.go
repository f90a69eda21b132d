package table

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
)

// TestBatchTooLarge checks that a batch that is too large to be read again is not written.
func TestBatchTooLarge(t *testing.T) {
	longtest.Skip(t)
	b := array.NewBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary).(*array.BinaryBuilder)
	b.Append(make([]byte, 32<<20))
	cell := b.NewArray()
	for name, test := range map[string]struct {
		columns, rows int // of cells of 32 MiB that share their memory
		batch         int
		want          string
	}{
		"rows":         {1, 8, 1024, "8 rows take 2684"},
		"what to do":   {1, 9, 1024, "tables.batch_rows: 3 in tenon.yaml"},
		"a row":        {9, 1, 1, "a row has more than 268435456 bytes"},
		"small ones":   {1, 7, 1024, ""},
		"small cuts":   {1, 9, 3, ""},
		"of many rows": {4, 2, 2, "2 rows take 2684"},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []arrow.Field
			var columns []arrow.Array
			for i := range test.columns {
				fields, columns = append(fields, col(string(rune('a'+i)), cell.DataType())), append(columns, cell)
			}
			s := arrow.NewSchema(fields, nil)
			w, err := create(context.Background(), "-", s, nil, WriteOptions{BatchRows: test.batch, Stdout: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			for range test.rows {
				if err = w.write(t.Context(), array.NewRecordBatch(s, columns, 1)); err != nil {
					break
				}
			}
			if err == nil {
				err = w.commit()
			}
			if test.want == "" && err != nil || test.want != "" && (tenon.ErrorCode(err) != tenon.CodeTooLarge || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestStoreGoesWithTable checks that a failed rename keeps the file store of the existing table.
func TestStoreGoesWithTable(t *testing.T) {
	const name = "workflow_a"
	path := filepath.Join(t.TempDir(), "t.arrow")
	put := func(text string, before func()) error {
		s := arrow.NewSchema([]arrow.Field{col("a", arrow.BinaryTypes.String)}, nil)
		o, err := WriteOptions{}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		w, err := create(context.Background(), path, s, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		defer w.abort()
		if err := w.keep.put(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		before()
		return w.commit()
	}
	for _, text := range []string{"first", "second"} {
		if err := put(text, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	inTheWay := func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("third", inTheWay); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("%v", err)
	}
	if got, err := dirStore(path, Options{}).Read(name); string(got) != "second" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if diff := cmp.Diff([]string{"t.arrow", "t.arrow.filestore"}, dirNames(t, filepath.Dir(path))); diff != "" {
		t.Error(diff)
	}
}

// counting counts the opened files.
type counting struct {
	fs.FS
	opened *int
}

func (c counting) Open(name string) (fs.File, error) {
	*c.opened++
	return c.FS.Open(name)
}

// TestFilesAreCopiedOnce checks that a file that many rows name is read only once.
func TestFilesAreCopiedOnce(t *testing.T) {
	opened := 0
	files := counting{fstest.MapFS{"workflow_a": {Data: []byte("a")}, "data_area_a/x": {Data: []byte("x")}}, &opened}
	from, other := newStore("s", files), newStore("o", fstest.MapFS{"workflow_a": {Data: []byte("b")}})
	k := keeper{dir: filepath.Join(t.TempDir(), "store")}
	most := 0
	for range 3 {
		for _, keys := range []string{"v1:x:0:workflow_a:-1;v1:x:1:data_area_a:-1", "workflow_a"} {
			if err := k.add(t.Context(), from, keys); err != nil {
				t.Fatal(err)
			}
		}
		if most == 0 {
			most = opened
		}
	}
	if opened != most {
		t.Errorf("%d files were opened, %d at first", opened, most)
	}
	if diff := cmp.Diff([]string{"data_area_a/x", "workflow_a"}, k.names()); diff != "" {
		t.Error(diff)
	}
	if err := k.add(t.Context(), other, "workflow_a"); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("another file of the name: %v", err)
	}
}

// TestFilesAreReadOnce checks that a changed file is not copied, and is read only for the first row
// that names it.
func TestFilesAreReadOnce(t *testing.T) {
	opened := 0
	sums := strings.Repeat("0", 64) + "  workflow_a\n"
	from := newStore("s", counting{fstest.MapFS{"workflow_a": {Data: []byte("a")}, sumsName: {Data: []byte(sums)}}, &opened})
	k, first := keeper{dir: filepath.Join(t.TempDir(), "store")}, 0
	for range 3 {
		if err := k.add(t.Context(), from, "workflow_a"); err == nil || !strings.Contains(err.Error(), "was changed") {
			t.Fatal(err)
		}
		if first == 0 {
			first = opened
		}
	}
	if opened != first {
		t.Errorf("%d files were opened, %d at first", opened, first)
	}
}
