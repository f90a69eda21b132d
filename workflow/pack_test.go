package workflow_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/workflow"
)

const small = "kind: workflow\nversion: 1\nname: w\ndescription: d\nsteps: [{id: t, table: {csv: in/a.csv}}]\n" +
	"data: data/\n"

func TestPack(t *testing.T) {
	dir := fstest.MapFS{"w.yaml": {Data: []byte(small)}, "in/a.csv": {Data: []byte("a\n1\n")},
		"data/x/y.txt": {Data: []byte("y")}, "other.txt": {Data: []byte("no")}}
	w, err := compile([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Collect(dir, "w.yaml", w)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"data/x/y.txt", "in/a.csv", "workflow.yaml"}, p.Names()); diff != "" {
		t.Error(diff)
	}
	a, err := p.Zip()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := p.Zip()
	if !bytes.Equal(a, b) {
		t.Error("two packs of the same files differ")
	}
	back, err := readPack("p", a)
	if err != nil || cmp.Diff(p.Names(), back.Names()) != "" {
		t.Errorf("%v %v", back, err)
	}
	if b, err := back.File("data/x/y.txt"); err != nil || string(b) != "y" {
		t.Errorf("%q %v", b, err)
	}
	to := filepath.Join(t.TempDir(), "new", "d")
	if err := back.Extract("data/", to); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "x", "y.txt")); err != nil || string(b) != "y" {
		t.Errorf("%s %v", b, err)
	}
}

// TestKN_PackFolders checks that the empty folders of the data are in a pack, in its zip and in what is extracted, and
// that entries of other folders in a zip change nothing.
func TestKN_PackFolders(t *testing.T) {
	dir := fstest.MapFS{"w.yaml": {Data: []byte(small)}, "in/a.csv": {Data: []byte("a\n1\n")},
		"data/x/y.txt": {Data: []byte("y")}, "data/out/deep": {Mode: fs.ModeDir | 0o700},
		"in/no": {Mode: fs.ModeDir | 0o700}}
	w, err := compile([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Collect(dir, "w.yaml", w)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := p.Zip()
	if err != nil {
		t.Fatal(err)
	}
	back, err := readPack("p", raw)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := back.Zip(); err != nil || !bytes.Equal(raw, again) {
		t.Errorf("KN-9: the zip of a pack that was read differs, %v", err)
	}
	for name, p := range map[string]*workflow.Pack{"collected": p, "read": back} {
		to := filepath.Join(t.TempDir(), "d")
		if err := p.Extract("data", to); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(filepath.Join(to, "out", "deep")); err != nil || !st.IsDir() {
			t.Errorf("KN-9: the empty folder of the %s pack is not there: %v", name, err)
		}
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"workflow.yaml", "in/", "in/a.csv", "data/", "data/x/", "data/x/y.txt"} {
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := readPack("other", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = other.Zip(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || len(r.File) != 3 {
		t.Errorf("KN-9: the zip has %d entries, want 3, %v", len(r.File), err)
	}
}

func TestCollectRefuses(t *testing.T) {
	w, err := compile([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir  fstest.MapFS
		want string
	}{
		"no table file": {fstest.MapFS{"w.yaml": {Data: []byte(small)}}, "in/a.csv cannot be read"},
		"no data": {fstest.MapFS{"w.yaml": {Data: []byte(small)}, "in/a.csv": {}},
			"data folder 'data/' does not exist"},
		"a link": {fstest.MapFS{"w.yaml": {Data: []byte(small)}, "in/a.csv": {},
			"data/l": {Mode: fs.ModeSymlink}}, "data/l is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := workflow.Collect(c.dir, "w.yaml", w); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// TestCollectNames checks that a data file must not replace the workflow file in the pack.
func TestCollectNames(t *testing.T) {
	doc := strings.Replace(small, "data: data/", "data: .", 1)
	w, err := compile([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{"w.yaml": {Data: []byte(doc)}, "in/a.csv": {}, "Workflow.yaml": {Data: []byte("another")}}
	const want = "Workflow.yaml: the name is reserved for the workflow file w.yaml in a pack"
	if _, err := workflow.Collect(dir, "w.yaml", w); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestCollectItself packs a workflow whose own file is in its data folder. The pack must contain it once, whatever
// the case of its name, because a pack with two such files is refused.
func TestCollectItself(t *testing.T) {
	doc := strings.Replace(small, "data: data/", "data: .", 1)
	w, err := compile([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"workflow.yaml", "Workflow.yaml"} {
		p, err := workflow.Collect(fstest.MapFS{name: {Data: []byte(doc)}, "in/a.csv": {}}, name, w)
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.Zip()
		if err != nil {
			t.Fatal(err)
		}
		back, err := readPack("p", b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{"in/a.csv", "workflow.yaml"}, back.Names()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// zipOf returns a zip of pairs of name and content. A name that ends in @ is a link.
func zipOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := &zip.FileHeader{Name: strings.TrimSuffix(files[i], "@"), Method: zip.Deflate}
		if h.Name != files[i] {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		f, err := z.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadPackRefuses(t *testing.T) {
	bomb := zipOf(t, workflow.FileName, small, "a", strings.Repeat("\x00", 300<<20))
	for name, c := range map[string]struct {
		data []byte
		want string
		code tenon.Code
	}{
		"no zip":      {[]byte("PK nothing"), "this is not a packed workflow", tenon.CodeInvalid},
		"no workflow": {zipOf(t, "a", "b"), "contains no workflow.yaml", tenon.CodeInvalid},
		"parent folder": {zipOf(t, workflow.FileName, small, "../x", ""), "'../x' has a name outside the pack",
			tenon.CodeInvalid},
		"parent folder, deep": {zipOf(t, workflow.FileName, small, "a/../../x", ""), "outside the pack",
			tenon.CodeInvalid},
		"other case": {zipOf(t, workflow.FileName, small, "WORKFLOW.yaml", small),
			"'WORKFLOW.yaml' and workflow.yaml are the same file if case is ignored", tenon.CodeInvalid},
		"absolute":  {zipOf(t, workflow.FileName, small, "/etc/x", ""), "outside the pack", tenon.CodeInvalid},
		"backslash": {zipOf(t, workflow.FileName, small, `..\x`, ""), "outside the pack", tenon.CodeInvalid},
		"a drive":   {zipOf(t, workflow.FileName, small, "C:x", ""), "outside the pack", tenon.CodeInvalid},
		"a link": {zipOf(t, workflow.FileName, small, "data/l@", "/etc/passwd"), "links are not unpacked",
			tenon.CodeInvalid},
		"twice": {zipOf(t, workflow.FileName, small, "a", "1", "a", "2"), "the file 'a' occurs twice",
			tenon.CodeInvalid},
		"file and folder": {zipOf(t, workflow.FileName, small, "a/b", "1", "a", "2"), "'a' is both a file and a folder",
			tenon.CodeInvalid},
		"a bomb": {bomb, "the unpacked files exceed 256 MiB", tenon.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readPack("p.zip", c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) || tenon.ErrorCode(err) != c.code {
				t.Errorf("error %v (%s), want %s", err, tenon.ErrorCode(err), c.want)
			}
		})
	}
}

func FuzzReadPack(f *testing.F) {
	f.Add(zipOf(f, workflow.FileName, small, "in/a.csv", "a\n1\n"))
	f.Add(zipOf(f, "../x", "y"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := readPack("p", data)
		if err != nil {
			return
		}
		for _, name := range p.Names() {
			if !fs.ValidPath(name) {
				t.Errorf("the name %q", name)
			}
		}
		if _, err := p.Zip(); err != nil {
			t.Error(err)
		}
	})
}

// readPack opens a pack in memory.
func readPack(name string, data []byte) (*workflow.Pack, error) {
	return workflow.OpenPack(name, bytes.NewReader(data), int64(len(data)))
}
