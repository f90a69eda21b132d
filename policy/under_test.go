package policy

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// folders creates the folder srv with files and links in it, and folders next to it.
func folders(t testing.TB) (srv string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	srv = filepath.Join(top, "srv")
	for _, dir := range []string{"srv/project/deep", "srv2", "etc"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"srv/file", "etc/passwd"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"srv/in": "project", "srv/out": "../etc", "srv/outabs": filepath.Join(top, "etc"), "srv/dangling": "../etc/new", "srv/dangling_in": "project/new",
		"srv/loop": "loop", "srv/self": ".", "srv/file_out": "../etc/passwd", "srv/chain": "out", "srv/project/deep/up": "../..", "into": "srv",
	} {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Skip(err) // Windows, without the right to
		}
	}
	return srv
}

func TestUnder(t *testing.T) {
	srv := folders(t)
	top := filepath.Dir(srv)
	for name, c := range map[string]struct {
		path, root string
		want       bool
		bad        string
	}{
		"the folder itself":            {path: srv, want: true},
		"with a slash at its end":      {path: srv + "/", want: true},
		"root with a slash at its end": {path: srv + "/file", root: srv + "///", want: true},
		"a file":                       {path: srv + "/file", want: true},
		"a new file":                   {path: srv + "/project/new/file", want: true},
		"double slashes":               {path: srv + "//project///x", want: true},
		"dots":                         {path: srv + "/./project/./x", want: true},
		"a neighbour with the prefix":  {path: srv + "2", want: false},
		"a file of that neighbour":     {path: srv + "2/x", want: false},
		"above":                        {path: top, want: false},
		"the top":                      {path: "/", want: false},
		"all is under the top":         {path: srv, root: "/", want: true},
		"up and down again":            {path: srv + "/project/../file", want: true},
		"up and out":                   {path: srv + "/../etc/passwd", want: false},
		"far up":                       {path: srv + "/../../../../../../../../etc/passwd", want: false},
		"up past the top and in":       {path: "/../../.." + srv + "/file", want: true},
		"a link within":                {path: srv + "/in/x", want: true},
		"a link out":                   {path: srv + "/out/passwd", want: false},
		"a link out by its full path":  {path: srv + "/outabs/passwd", want: false},
		"a file that is a link out":    {path: srv + "/file_out", want: false},
		"links in a row":               {path: srv + "/chain/passwd", want: false},
		"a new file by a link out":     {path: srv + "/dangling", want: false},
		"a new file by a link within":  {path: srv + "/dangling_in", want: true},
		"a link to the folder":         {path: top + "/into/file", want: true},
		"root is a link":               {path: srv + "/file", root: top + "/into", want: true},
		"root is missing":              {path: top + "/none/x", root: top + "/none", want: true},
		"below a file":                 {path: srv + "/file/x", want: true},
		"two places, one outside":      {path: srv + "/out/../project/x", bad: "two places"},
		"two places, one inside":       {path: srv + "/project/deep/up/../../etc/passwd", bad: "two places"},
		"two places, both inside":      {path: srv + "/in/../file", want: true},
		"two places, both outside":     {path: top + "/into/../../x", want: false},
		"a link in a circle":           {path: srv + "/loop/x", bad: "links"},
		"relative":                     {path: "srv/file", bad: "relative"},
		"relative, up":                 {path: "../etc/passwd", bad: "relative"},
		"home":                         {path: "~/x", bad: "relative"},
		"a URL":                        {path: "file://" + srv + "/file", bad: "relative"},
		"empty":                        {path: "", bad: "empty"},
		"a dot":                        {path: ".", bad: "relative"},
		"NUL":                          {path: srv + "/file\x00.txt", bad: "NUL"},
		"long":                         {path: srv + strings.Repeat("/x", 3000), bad: "more than"},
		"root is relative":             {path: srv, root: "srv", bad: "relative"},
		"root is empty":                {path: srv, root: " ", bad: "relative"},
		"root has NUL":                 {path: srv, root: srv + "\x00", bad: "NUL"},
		"process files":                {path: "/proc/self/cwd/file", root: "/", bad: "/proc"},
		"process files, up to there":   {path: srv + "/../../../../../../../../../proc/self/root" + srv, bad: "/proc"},
		"another case":                 {path: filepath.Join(top, "SRV", "file"), want: runtime.GOOS == "windows" || runtime.GOOS == "darwin"},
		"characters that look alike":   {path: top + "/ѕrv/file", want: false},
		"a space at the end":           {path: srv + " /file", want: false},
	} {
		t.Run(name, func(t *testing.T) {
			root := cmp.Or(c.root, srv)
			got, err := Under(c.path, root)
			switch {
			case c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)):
				t.Errorf("%v, %v; want an error about %q", got, err, c.bad)
			case c.bad == "" && (err != nil || got != c.want):
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// TestUnderInConditions checks the function under in the conditions of rules and grants.
func TestUnderInConditions(t *testing.T) {
	srv := folders(t)
	rules, err := NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := NewArgumentLanguage()
	if err != nil {
		t.Fatal(err)
	}
	paths := `["` + strings.Repeat(srv+`/file","`, 2000) + srv + `"]`
	for name, c := range map[string]struct {
		text, args string
		want       bool
		bad        string
	}{
		"under":           {text: `under(args.path, "` + srv + `")`, args: `{"path":"` + srv + `/x"}`, want: true},
		"not under":       {text: `!under(args.path, "` + srv + `")`, args: `{"path":"/x"}`, want: true},
		"all of a list":   {text: `args.paths.all(p, under(p, "` + srv + `"))`, args: `{"paths":["` + srv + `/a","` + srv + `2"]}`},
		"a number":        {text: `under(args.path, "` + srv + `")`, args: `{"path":1}`, bad: "not a text"},
		"null":            {text: `under(args.path, "` + srv + `")`, args: `{"path":null}`, bad: "cannot be decided"},
		"a list":          {text: `under(args.path, "` + srv + `")`, args: `{"path":["` + srv + `"]}`, bad: "not a text"},
		"missing":         {text: `under(args.path, "` + srv + `")`, args: `{}`, bad: "no such key"},
		"relative":        {text: `under(args.path, "` + srv + `")`, args: `{"path":"x"}`, bad: "relative"},
		"not of an error": {text: `!under(args.path, "` + srv + `")`, args: `{"path":"x"}`, bad: "relative"},
		"root of a call":  {text: `under(args.path, args.root)`, args: `{"path":"/x","root":"/"}`, want: true},
		"too many":        {text: `args.paths.all(p, under(p, "` + srv + `"))`, args: `{"paths":` + paths + `}`, bad: "cost limit"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, l := range []*Language{rules, arguments} {
				condition, err := l.Condition(c.text)
				if err != nil {
					t.Fatal(err)
				}
				got, err := condition.Holds(&Facts{Arguments: json.RawMessage(c.args)})
				switch {
				case c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)):
					t.Errorf("%v, %v; want an error about %q", got, err, c.bad)
				case c.bad == "" && (err != nil || got != c.want):
					t.Errorf("%v, %v; want %v", got, err, c.want)
				}
			}
		})
	}
	for _, bad := range []string{`under(args.path)`, `under("/x", 1)`, `under(args.path, "/srv") == "x"`, `args.path.under("/srv")`} {
		if _, err := arguments.Condition(bad); err == nil {
			t.Errorf("%s compiles", bad)
		}
	}
	if _, err := arguments.Condition(`tool.name == "x"`); err == nil {
		t.Error("a condition on arguments names a tool")
	}
}

// TestUnderAgreesWithSystem compares Under with the files that the operating system opens.
func TestUnderAgreesWithSystem(t *testing.T) {
	srv := folders(t)
	top := filepath.Dir(srv)
	parts := []string{"srv", "srv2", "etc", "project", "deep", "in", "out", "up", "self", "chain", "into", "file", "passwd", "..", ".", ""}
	r := rand.New(rand.NewPCG(1, 2))
	decided, below := 0, 0
	for range 20_000 {
		path := top
		for range r.IntN(7) {
			path += "/" + parts[r.IntN(len(parts))]
		}
		real, err := filepath.EvalSymlinks(path) // cleans at first
		if err != nil {
			continue
		}
		got, err := Under(path, srv)
		if err != nil {
			continue // two places
		}
		decided++
		want := real == srv || strings.HasPrefix(real, srv+"/")
		if got {
			below++
		}
		if got != want {
			t.Fatalf("Under(%q) is %v; it is %q", path, got, real)
		}
		if f, err := os.Open(path); err == nil && got { // the system resolves links before it opens the file
			st, _ := f.Stat()
			inside := false
			_ = filepath.Walk(srv, func(p string, info os.FileInfo, err error) error {
				inside = inside || err == nil && os.SameFile(info, st)
				return nil
			})
			_ = f.Close()
			if !inside {
				t.Fatalf("the system opens another file than one below the folder: %q", path)
			}
		}
	}
	if decided < 1000 || below < 100 {
		t.Errorf("only %d of the paths were decided, %d below", decided, below)
	}
}

func FuzzUnder(f *testing.F) {
	srv := folders(f)
	for _, seed := range []string{"", "/", "file", "/out/../x", "/in/..", "2", "/\x00", "/loop", "/../srv/x", "/dangling/../.."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tail string) {
		path := srv + tail
		is, err := Under(path, srv)
		if err != nil || !is {
			return
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && real != srv && !strings.HasPrefix(real, srv+"/") {
			t.Errorf("%q is %q, which is not below %q", path, real, srv)
		}
	})
}
