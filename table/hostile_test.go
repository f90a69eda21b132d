package table

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

func writeStream(t testing.TB, to io.Writer, s *arrow.Schema, recs ...arrow.RecordBatch) {
	t.Helper()
	w := ipc.NewWriter(to, ipc.WithSchema(s))
	for _, r := range recs {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// readAll reads everything in a table. It must neither panic nor hang.
func readAll(b []byte) error {
	r, err := Open(context.Background(), "-", Options{Stdin: bytes.NewReader(b)})
	if err != nil {
		return err
	}
	for row, err := range r.Rows(context.Background()) {
		if err != nil {
			return err
		}
		for _, raw := range []bool{false, true} {
			if _, err := row.JSON(raw); err != nil {
				return err
			}
		}
		if row.Index > 1<<16 {
			return errors.New("enough")
		}
	}
	return nil
}

// TestCorrupt truncates and changes tables at every byte. Each result is one error or a table.
func TestCorrupt(t *testing.T) {
	step := 11
	if os.Getenv("TENON_HOSTILE") == "all" {
		step = 1
	}
	for _, name := range []string{"mixed", "java10", "lz4"} {
		whole, err := os.ReadFile(filepath.Join(accept, name+".arrow"))
		if err != nil {
			t.Fatal(err)
		}
		if err := readAll(whole); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(whole); n += 1 + step/4 {
			if err := readAll(whole[:n]); err == nil {
				t.Errorf("%s cut off after %d of %d bytes is taken for whole", name, n, len(whole))
			} else if tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Errorf("%s after %d bytes: %v", name, n, err)
			}
		}
		for n := 0; n < len(whole); n += step {
			for _, v := range []byte{0xFF, 0, whole[n] ^ 0x80} {
				b := bytes.Clone(whole)
				b[n] = v
				if err := readAll(b); err != nil && tenon.ErrorCode(err) != tenon.CodeInvalid && tenon.ErrorCode(err) != tenon.CodeTooLarge {
					t.Errorf("%s with byte %d set to %x: %v", name, n, v, err)
				}
			}
		}
	}
}

// TestOwnChild checks a field that is its own child. Following it would recurse until the process
// dies.
func TestOwnChild(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.StructOf(arrow.Field{Name: "c", Type: arrow.Null})})}}, nil)
	var b bytes.Buffer
	writeStream(t, &b, s)
	whole := b.Bytes()
	length := int(binary.LittleEndian.Uint32(whole[4:]))
	tried := 0
	for at := 8; at+4 <= 8+length; at += 4 {
		// Every position may contain an offset. Let it wrap around to each earlier position.
		for back := 4; back < at && back < 200; back += 4 {
			c := bytes.Clone(whole)
			binary.LittleEndian.PutUint32(c[at:], uint32(-back))
			_ = readAll(c) // an error is fine, a crash is not
			tried++
		}
	}
	if tried < 1000 {
		t.Errorf("only %d were tried", tried)
	}
}

// TestClaims checks that false claims about sizes cost no memory.
func TestClaims(t *testing.T) {
	field := func(depth int) arrow.DataType {
		t := arrow.DataType(arrow.Null)
		for range depth {
			t = arrow.ListOf(t)
		}
		return t
	}
	for name, test := range map[string]struct {
		b    func() []byte
		want string
	}{
		"empty":    {func() []byte { return nil }, "not a table: it is empty"},
		"text":     {func() []byte { return []byte("row,tool\n1,add\n") }, "not a table: it begins neither"},
		"magic":    {func() []byte { return []byte("ARROW1\x00\x00") }, "cut off"},
		"metadata": {func() []byte { return []byte("\xff\xff\xff\xff\xff\xff\xff\x7f") }, "claims 2147483647 bytes"},
		"deep": {func() []byte {
			var b bytes.Buffer
			writeStream(t, &b, arrow.NewSchema([]arrow.Field{{Name: "x", Type: field(63)}}, nil))
			return b.Bytes()
		}, ""},
		"too deep": {func() []byte {
			var b bytes.Buffer
			writeStream(t, &b, arrow.NewSchema([]arrow.Field{{Name: "x", Type: field(64)}}, nil))
			return b.Bytes()
		}, "nested more than 64 deep"},
		"many": {func() []byte {
			var b bytes.Buffer
			list := make([]arrow.Field, maxNodes+1)
			for i := range list {
				list[i] = arrow.Field{Name: "x", Type: arrow.Null}
			}
			writeStream(t, &b, arrow.NewSchema(list, nil))
			return b.Bytes()
		}, "more than 65536 fields"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readAll(test.b())
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), test.want) || tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// TestBomb reads a few compressed bytes that expand to gigabytes.
func TestBomb(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	b.Field(0).(*array.StringBuilder).Append(strings.Repeat("a", 1<<16))
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(s), ipc.WithLZ4())
	if err := w.Write(b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	raw := out.Bytes()
	at := bytes.Index(raw, binary.LittleEndian.AppendUint64(nil, 1<<16))
	if at < 0 {
		t.Fatal("the buffer's size is not found")
	}
	for _, size := range []uint64{1 << 40, 1 << 30, 1<<63 + 1} {
		binary.LittleEndian.PutUint64(raw[at:], size)
		if err := readAll(raw); tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%d: %v", size, err)
		}
	}
}

// TestDictionaryBomb checks that a dictionary that many columns share counts for each of their
// rows.
func TestDictionaryBomb(t *testing.T) {
	column := func(typ arrow.DataType, value string) arrow.Array {
		return array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: typ},
			fromJSON(t, arrow.PrimitiveTypes.Int8, `[0,0]`), fromJSON(t, typ, `[`+value+`]`))
	}
	for name, a := range map[string]arrow.Array{"texts": column(arrow.BinaryTypes.String, `"abcd"`), "numbers": column(arrow.PrimitiveTypes.Int64, `7`)} {
		t.Run(name, func(t *testing.T) {
			plainly := a.DataType().(*arrow.DictionaryType).ValueType
			const room = 128 // for the buffers of a column
			p := plainer{bytes: maxMemory - room, mem: allowance{used: maxMemory - room}}
			next := func() error { _, err := p.plain(a, plainly); return err }
			if err := contain(next); err != nil {
				t.Fatalf("the first column: %v", err)
			}
			var err error
			for i := 0; err == nil && i < room; i++ {
				err = contain(next)
			}
			if err == nil || !strings.Contains(err.Error(), strconv.Itoa(maxMemory)) {
				t.Errorf("further columns: %v", err)
			}
		})
	}
}

func TestFileStore(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "w.arrow")
	name := "workflow_66666666-7777-4888-9999-aaaaaaaaaaaa"
	seed9(t, table, &report)
	store := table + ".filestore"
	if err := os.Mkdir(store, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, store, name, "a packed workflow")
	concat := func(from, to string) {
		t.Helper()
		if _, err := Concat(t.Context(), to, []*Reader{read(t, from)}, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	same := func(path string) {
		t.Helper()
		b, err := read(t, path).Files().Read(name)
		if err != nil || string(b) != "a packed workflow" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	bundle, again := filepath.Join(dir, "w.tooltable"), filepath.Join(dir, "again.arrow")
	concat(table, bundle)
	same(bundle)
	concat(bundle, again)
	same(again)
	if diff := cmp.Diff([]string{sumsName, name}, dirNames(t, again+".filestore")); diff != "" {
		t.Error(diff)
	}
	concat(again, bundle) // over the existing bundle
	same(bundle)

	// A changed or missing file is an error when it is read.
	store = again + ".filestore"
	put(t, store, name, "something else")
	if _, err := read(t, again).Files().Read(name); tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(filepath.Join(store, name)); err != nil {
		t.Fatal(err)
	}
	if got := tools(t, again); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if _, err := read(t, again).Files().Read(name); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("%v", err)
	}
	// No name leads out of the store, not even a link.
	if err := os.Symlink("/etc/passwd", filepath.Join(store, "workflow_link")); err == nil {
		if _, err := read(t, again).Files().Read("workflow_link"); err == nil {
			t.Error("a link out of the store was followed")
		}
	}
	for _, bad := range []string{"../w.arrow", "/etc/passwd", "..", ".", "a/../../b"} {
		if _, err := read(t, again).Files().Read(bad); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
	sameNameInTwoStores(t, dir, name, bundle)
	for _, n := range dirNames(t, dir) {
		if strings.HasSuffix(n, ".part") || strings.HasPrefix(n, ".") {
			t.Errorf("%s is left", n)
		}
	}
}

func put(t *testing.T, store, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(store, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sameNameInTwoStores checks that two tables are not joined if different files have the same name.
func sameNameInTwoStores(t *testing.T, dir, name, bundle string) {
	t.Helper()
	other := filepath.Join(dir, "other.arrow")
	seed9(t, other, &report)
	if err := os.Mkdir(other+".filestore", 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, other+".filestore", name, "another workflow")
	if _, err := Concat(t.Context(), filepath.Join(dir, "x.arrow"), []*Reader{read(t, bundle), read(t, other)}, WriteOptions{}); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("%v", err)
	}
}

// TestNotAFile puts something other than a file where a workflow is expected.
func TestNotAFile(t *testing.T) {
	const name = "workflow_66666666-7777-4888-9999-aaaaaaaaaaaa"
	for _, tt := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"folder", func(path string) error { return os.Mkdir(path, 0o700) }, "it is a folder, not a file"},
		{"large file", func(path string) error {
			err := os.WriteFile(path, nil, 0o600)
			return errors.Join(err, os.Truncate(path, maxFile+1))
		}, "it has more than 268435456 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := seed9(t, "w.arrow", &report)
			if err := os.Mkdir(table+".filestore", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(filepath.Join(table+".filestore", name)); err != nil {
				t.Fatal(err)
			}
			noFile(t, table, name, tt.want)
		})
	}
}

// noFile checks that a file of a table's store is not read, and that a warning says so.
func noFile(t *testing.T, table, name, want string) {
	t.Helper()
	list, err := read(t, table).Check(t.Context())
	if err != nil || len(list) != 1 || !strings.Contains(list[0].What, want) {
		t.Errorf("%v %v", list, err)
	}
	if _, err := read(t, table).Files().Read(name); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("%v", err)
	}
}

// TestChecksumLines reads SHA256SUMS files of other programs, and checks the reasons why files are
// not copied.
func TestChecksumLines(t *testing.T) {
	const name = "workflow_66666666-7777-4888-9999-aaaaaaaaaaaa"
	sum := sha256.Sum256([]byte("w"))
	right := hex.EncodeToString(sum[:])
	for line, want := range map[string]string{
		right + "  " + name:                   "",
		right + " *" + name + "\r":            "",
		strings.ToUpper(right) + "  " + name:  "",
		right + " " + name:                    "is not a line of a checksum file",
		right:                                 "is not a line of a checksum file",
		strings.Repeat("0", 64) + "  " + name: "was changed",
		right + "  other":                     "has no checksum in",
	} {
		table := seed9(t, "w.arrow", &report)
		if err := os.Mkdir(table+".filestore", 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{name: "w", sumsName: line + "\n"} {
			if err := os.WriteFile(filepath.Join(table+".filestore", file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var told []string
		o := WriteOptions{Warn: func(text string) { told = append(told, text) }}
		if _, err := Concat(t.Context(), filepath.Join(t.TempDir(), "copy.arrow"), []*Reader{read(t, table)}, o); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(told, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestKeyNames(t *testing.T) {
	for keys, want := range map[string]string{
		"v1:u:0:workflow_a:-1":                           "workflow_a",
		"v1:u:0:workflow_a:-1:2:3;v1:u:1:data_area_b:-1": "workflow_a data_area_b",
		"workflow_a":                    "workflow_a",
		"u_0_workflow_11111111-2222_-1": "workflow_11111111-2222",
		"":                              "",
		"v1:u:0:../x:-1":                "error",
		"v1:u:0:a/b:-1":                 "error",
		`v1:u:0:a\b:-1`:                 "error",
		"v1:u:0:SHA256SUMS:-1":          "error",
		"v1:u:0:..:-1":                  "error",
		"v1:u":                          "error",
		"/etc/passwd":                   "error",
		"v1:u:0:" + strings.Repeat("x", 300) + ":-1": "error",
	} {
		names, err := keyNames(keys)
		if got := strings.Join(names, " "); err == nil && got != want || err != nil && want != "error" {
			t.Errorf("%s: %s, %v; want %s", keys, got, err, want)
		}
	}
}

func TestHostileBundle(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(accept, "mixed.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	type entry struct{ name, text string }
	good := entry{bundleTable, string(table)}
	for name, test := range map[string]struct {
		files []entry
		want  string
	}{
		"whole":     {[]entry{good}, ""},
		"no table":  {[]entry{{"x", "y"}}, "without table.arrow"},
		"out of it": {[]entry{good, {"../x", "y"}}, "leads out of it"},
		"absolute":  {[]entry{good, {"/etc/x", "y"}}, "leads out of it"},
		"inside":    {[]entry{good, {"filestore/../../x", "y"}}, "leads out of it"},
		"windows":   {[]entry{good, {`filestore\..\x`, "y"}}, "leads out of it"},
		"twice":     {[]entry{good, good}, "twice"},
		"no arrow":  {[]entry{{bundleTable, "text"}}, "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "b.tooltable")
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			for _, e := range test.files {
				w, err := z.Create(e.name)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(w, e.text); err != nil {
					t.Fatal(err)
				}
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Open(context.Background(), path, Options{})
			if err == nil {
				err = r.Close()
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	// The compressed table expands to more than the limit.
	path := filepath.Join(t.TempDir(), "bomb.tooltable")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.CreateRaw(&zip.FileHeader{Name: bundleTable, Method: zip.Deflate, CompressedSize64: 4, UncompressedSize64: maxPiped + 1})
	if err == nil {
		_, err = io.WriteString(w, "bomb")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), path, Options{}); tenon.ErrorCode(err) != tenon.CodeTooLarge {
		t.Errorf("%v", err)
	}
}

// FuzzRead reads arbitrary bytes as a table.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"mixed", "java9", "java10", "legacy6", "lz4", "nulls"} {
		b, err := os.ReadFile(filepath.Join(accept, name+".arrow"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	var b bytes.Buffer
	writeStream(f, &b, arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}}, nil))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readAll(b); err != nil && tenon.ErrorCode(err) == tenon.CodeInternal && err.Error() != "enough" {
			t.Errorf("%v", err)
		}
	})
}
