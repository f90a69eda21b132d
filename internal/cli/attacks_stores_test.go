package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/tenonhq/tenon/internal/longtest"
)

// raid is a project with one server, which writes a line to the file effects for each call. The server runs in the
// process of the test, because starting another process would be slow.
type raid struct {
	t         *testing.T
	root, dir string
	url       string
}

func newRaid(t *testing.T) *raid {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &raid{t: t, root: root, dir: filepath.Join(root, "work")}
	for k, v := range map[string]string{"XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1", "TENON_TRUST": "", "TENON_CONFIG": "", "TENON_TOKEN": ""} {
		t.Setenv(k, v)
	}
	r.user("owner")
	r.url = r.listen("effects")
	r.write("tenon.yaml", r.config(""))
	r.write("none.yaml", "steps: [{text: done}]\n")
	r.write("add.yaml", raidSteps(`{name: add, arguments: {a: 2, b: 3}}`))
	t.Chdir(r.dir)
	return r
}

// raidSteps returns a script with the calls in one turn.
func raidSteps(calls string) string { return "steps: [{calls: [" + calls + "]}, {text: done}]\n" }

// listen starts a server that records its calls in a file next to the project.
func (r *raid) listen(effects string, args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan int, 1)
	var said spoken
	go func() {
		done <- run(ctx, append([]string{"testserver", "--http", "127.0.0.1:0", "--effects", filepath.Join(r.root, effects)}, args...), stdio{strings.NewReader(""), &said, &said})
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	url, _ := said.await(r.t, 0, `http://127\.0\.0\.1:\d+\S*`)
	return url
}

// config returns a project's file with the server t, whose tool add always needs approval.
func (r *raid) config(more string) string {
	return "version: 1\nservers: {t: {url: \"" + r.url + "\"}}\ntools: {add: {server: t, policy: {approval: always}}}\n" + more
}

// user changes the user who runs tenon: it sets HOME to a separate folder.
func (r *raid) user(name string) {
	r.t.Helper()
	home := filepath.Join(r.root, "home-"+name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.t.Setenv("HOME", home)
}

// write writes a file of the project, or a file with an absolute path.
func (r *raid) write(name, text string) {
	r.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.dir, name)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raid) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// tenon runs a command and returns its status and all of its output.
func (r *raid) tenon(args ...string) (int, string) {
	r.t.Helper()
	status, out, errs := runHere(r.t, append([]string{"-c", "tenon.yaml"}, args...)...)
	return status, out + errs
}

// want runs a command that must end with the status, and returns its output.
func (r *raid) want(status int, args ...string) string {
	r.t.Helper()
	got, text := r.tenon(args...)
	if got != status {
		r.t.Errorf("tenon %s: status %d, want %d:\n%s", strings.Join(args, " "), got, status, text)
	}
	return text
}

// ask runs a script that must end with the status, and returns the id of the run.
func (r *raid) ask(status int, script string, args ...string) string {
	r.t.Helper()
	r.want(status, append([]string{"run", "--model", "script:" + script, "go"}, args...)...)
	return r.last()
}

// last is the last run.
func (r *raid) last() string {
	r.t.Helper()
	_, text := r.tenon("runs", "list", "-o", "json")
	return regexp.MustCompile(`run_\w+`).FindString(text)
}

// allowed runs a call of add, allows it as the owner, and resumes the run to its end. It returns the id of the run.
func (r *raid) allowed(flags ...string) string {
	r.t.Helper()
	id := r.ask(exitWaiting, "add.yaml")
	r.want(exitOK, append([]string{"approvals", "allow", id}, flags...)...)
	r.want(exitOK, "runs", "resume", id)
	return id
}

// sql changes the store directly, without tenon.
func (r *raid) sql(statements ...string) {
	r.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(r.dir, ".tenon", "tenon.db"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.ExecContext(r.t.Context(), s); err != nil {
			r.t.Fatalf("%s: %v", s, err)
		}
	}
}

// calls returns how often the server was called, according to the file effects.
func (r *raid) calls(effects string) int {
	b, err := os.ReadFile(filepath.Join(r.root, effects))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// copyStore copies the store of the project to another folder.
func (r *raid) copyStore(from, to string) {
	r.t.Helper()
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		r.t.Fatal(err)
	}
}

// attempt is one attack: do tries it, and calls is the number of calls to which the owner agreed.
type attempt struct {
	do    func(r *raid)
	calls int
}

// TestAttacksOnStores plants and edits stores.
func TestAttacksOnStores(t *testing.T) { raids(t, storeAttempts) }

func raids(t *testing.T, table map[string]attempt) {
	longtest.Skip(t)
	for name, tt := range table {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			r := newRaid(t)
			tt.do(r)
			if n := r.calls("effects"); n != tt.calls {
				t.Errorf("the server was called %d times, the owner agreed to %d", n, tt.calls)
			}
		})
	}
}

var storeAttempts = map[string]attempt{
	"a grant of another user": {calls: 3, do: func(r *raid) {
		r.allowed("--always")
		r.ask(exitOK, "add.yaml") // the control: with the owner's key, the grant counts
		r.user("victim")
		r.ask(exitWaiting, "add.yaml")
		r.user("owner")
		r.ask(exitOK, "add.yaml")
	}},
	"a revoked grant is put back": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.sql("CREATE TABLE kept AS SELECT * FROM grants")
		r.want(exitOK, "approvals", "revoke", "t.add")
		r.sql("DELETE FROM grants", "INSERT INTO grants SELECT * FROM kept", "DROP TABLE kept")
		r.ask(exitWaiting, "add.yaml")
		if text := r.want(exitOK, "approvals", "grants"); strings.Contains(text, "t.add") {
			r.t.Error("a revoked grant is listed: " + text)
		}
	}},
	"a used grant gets its uses back": {calls: 2, do: func(r *raid) {
		r.allowed("--always", "--uses", "1")
		r.ask(exitOK, "add.yaml")
		r.sql("UPDATE grants SET used = 0", "DELETE FROM grant_uses")
		r.ask(exitWaiting, "add.yaml")
	}},
	"a used grant loses its row and gets it back": {calls: 2, do: func(r *raid) {
		r.allowed("--always", "--uses", "1")
		r.sql("CREATE TABLE kept AS SELECT * FROM grants")
		r.ask(exitOK, "add.yaml")
		r.sql("DELETE FROM grants", "DELETE FROM grant_uses", "INSERT INTO grants SELECT * FROM kept", "DROP TABLE kept")
		r.ask(exitWaiting, "add.yaml")
	}},
	// The user, the target and the definition are the same, so the user has allowed this call.
	"the own store beside another project with the same URL": {calls: 2, do: func(r *raid) {
		r.allowed("--always")
		r.write("../other/tenon.yaml", r.config(""))
		r.write("../other/add.yaml", r.read("add.yaml"))
		r.copyStore(".tenon", "../other/.tenon")
		r.t.Chdir("../other")
		r.ask(exitOK, "add.yaml")
	}},
	"a grant of a changed target": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.url = r.listen("effects2")
		r.write("tenon.yaml", r.config("policy: {pins: {changed: \"off\"}}\n"))
		r.ask(exitWaiting, "add.yaml")
		if r.calls("effects2") != 0 {
			r.t.Error("called at another target")
		}
	}},
	"a grant of the entry under another case of its name": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.write("tenon.yaml", strings.ReplaceAll(strings.ReplaceAll(r.config(""), "{t:", "{T:"), "server: t,", "server: T,"))
		r.ask(exitWaiting, "add.yaml")
	}},
	"a grant moved to another tool": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.sql("UPDATE grants SET remote = 'greet'")
		r.write("greet.yaml", raidSteps(`{name: greet, arguments: {name: x}}`))
		r.write("tenon.yaml", r.config("policy: {defaults: {approval: always}}\n"))
		r.ask(exitWaiting, "greet.yaml")
		r.ask(exitWaiting, "add.yaml")
	}},
	"a grant of an expired time": {calls: 1, do: func(r *raid) {
		r.allowed("--always", "--for", "1ns")
		r.sql("UPDATE grants SET created = created + 1000000000000000000, expires = 0")
		r.ask(exitWaiting, "add.yaml")
	}},
	"a session allows, and its fork asks": {calls: 1, do: func(r *raid) {
		r.allowed("--remember", "session")
		r.ask(exitWaiting, "add.yaml", "-s", "-1", "--fork")
	}},
	"a session allows, and a copy asks": {calls: 1, do: func(r *raid) {
		r.allowed("--remember", "session")
		r.want(exitOK, "sessions", "export", "-1", "--out", "x.json")
		id := regexp.MustCompile(`ses_\w+`).FindString(r.want(exitOK, "sessions", "import", "--copy", "x.json"))
		r.ask(exitWaiting, "add.yaml", "-s", id)
	}},
	"a session allows, and goes on": {calls: 2, do: func(r *raid) {
		r.allowed("--remember", "session")
		r.ask(exitOK, "add.yaml", "-s", "-1")
	}},
	"a run is moved to a session that allows": {calls: 1, do: func(r *raid) {
		a := r.allowed("--remember", "session")
		b := r.ask(exitWaiting, "add.yaml")
		r.sql("UPDATE runs SET session = (SELECT session FROM runs WHERE id = '" + a + "') WHERE id = '" + b + "'")
		r.tenon("runs", "resume", b)
	}},
	"a session's head is moved to one that allows": {calls: 1, do: func(r *raid) {
		a := r.allowed("--remember", "session")
		b := r.ask(exitOK, "none.yaml", "--no-tools")
		r.sql("UPDATE sessions SET head = '" + a + "', runs = 1 WHERE id = (SELECT session FROM runs WHERE id = '" + b + "')")
		r.tenon("run", "--model", "script:add.yaml", "-s", "-1", "go")
	}},
	"a session of bob becomes local's": {calls: 1, do: func(r *raid) {
		r.allowed("--remember", "session")
		r.sql("UPDATE sessions SET principal = 'bob'", "UPDATE runs SET principal = 'bob'")
		r.tenon("run", "--model", "script:add.yaml", "-s", "-1", "go")
	}},
	"an import that had not ended": {do: func(r *raid) {
		first := r.ask(exitWaiting, "add.yaml")
		r.want(exitOK, "sessions", "export", "-1", "--out", "x.json")
		r.want(exitOK, "sessions", "import", "--copy", "x.json")
		_, text := r.tenon("runs", "list", "-o", "json")
		for _, id := range regexp.MustCompile(`run_\w+`).FindAllString(text, -1) {
			if id != first {
				r.tenon("approvals", "allow", id)
				r.tenon("runs", "resume", id)
			}
		}
	}},
	"an import with a decision written into it": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.want(exitOK, "approvals", "revoke", "t.add")
		r.want(exitOK, "sessions", "export", "-1", "--out", "x.json")
		r.want(exitOK, "sessions", "delete", "--yes", "-1")
		r.want(exitOK, "sessions", "import", "x.json")
		if text := r.want(exitOK, "approvals", "grants"); strings.Contains(text, "t.add") {
			r.t.Error("an import made a grant: " + text)
		}
		r.ask(exitWaiting, "add.yaml", "-s", "-1")
	}},
	"an import that claims another principal": {calls: 1, do: func(r *raid) {
		r.allowed()
		r.want(exitOK, "sessions", "export", "-1", "--out", "x.json")
		r.write("y.json", strings.ReplaceAll(r.read("x.json"), `"principal":"local"`, `"principal":"bob"`))
		r.tenon("sessions", "import", "--copy", "y.json")
		r.ask(exitWaiting, "add.yaml", "-s", "-1")
	}},
	"an import with a run twice": {calls: 1, do: func(r *raid) {
		r.allowed()
		r.want(exitOK, "sessions", "export", "-1", "--out", "x.json")
		var whole map[string]json.RawMessage
		var runs []json.RawMessage
		text := r.read("x.json")
		if err := errors.Join(json.Unmarshal([]byte(text), &whole), json.Unmarshal(whole["runs"], &runs)); err != nil || len(runs) != 1 {
			r.t.Fatalf("%d runs, %v", len(runs), err)
		}
		r.want(exitOK, "sessions", "import", "--copy", "x.json") // the control
		member := regexp.MustCompile(`"runs":\s*\[`)
		sessions := func() int { return strings.Count(r.want(exitOK, "sessions", "list", "-o", "json"), `"ses_`) }
		before := sessions()
		for i, again := range []string{
			member.ReplaceAllString(text, `"runs":[],${0}`),
			member.ReplaceAllLiteralString(text, `"runs":[`+string(runs[0])+`,`),
		} {
			r.write("y.json", again)
			if again == text {
				r.t.Error("the export is unchanged")
			}
			if status, out := r.tenon("sessions", "import", "--copy", "y.json"); status == exitOK {
				r.t.Errorf("import %d: %s", i, out)
			}
		}
		if n := sessions(); n != before {
			r.t.Errorf("%d sessions, before %d", n, before)
		}
	}},
	"an import with paths as ids": {calls: 1, do: func(r *raid) {
		id := r.allowed()
		r.want(exitOK, "sessions", "export", "-1", "--out", "x.json")
		r.write("y.json", strings.ReplaceAll(r.read("x.json"), id, "../../../../"+id))
		r.tenon("sessions", "import", "y.json")
		r.absent(filepath.Join(r.root, id))
	}},
	"an import with hidden text": {calls: 1, do: func(r *raid) {
		r.allowed()
		r.want(exitOK, "sessions", "export", "-1", "--out", "x.json")
		r.write("y.json", strings.ReplaceAll(r.read("x.json"), `"go"`, "\"g\u202eo\\u001b[2J\""))
		r.want(exitOK, "sessions", "import", "--copy", "y.json")
		for _, verb := range [][]string{{"sessions", "show", "-1"}, {"sessions", "list"}, {"runs", "list"}, {"runs", "show", "-1"}, {"sessions", "export", "-1", "--format", "markdown"}} {
			if text := r.want(exitOK, verb...); strings.ContainsAny(text, "\u202e\x1b") {
				r.t.Errorf("%v: %q", verb, text)
			}
		}
	}},
	"pins are deleted and the tool changed": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.sql("DELETE FROM pins")
		r.url = r.listen("effects2")
		r.write("tenon.yaml", r.config(""))
		r.ask(exitWaiting, "add.yaml")
	}},
	"a waiting run of another user": {do: func(r *raid) {
		r.user("stranger")
		id := r.ask(exitWaiting, "add.yaml")
		r.want(exitOK, "approvals", "allow", id)
		r.user("victim")
		r.want(exitWaiting, "runs", "resume", id)
	}},
	"a decision about a run of another user": {do: func(r *raid) {
		r.user("stranger")
		id := r.ask(exitWaiting, "add.yaml")
		r.user("victim")
		r.want(exitWaiting, "approvals", "allow", id)
	}},
	"a fork of a session of another user with a grant": {calls: 1, do: func(r *raid) {
		r.user("stranger")
		r.allowed("--remember", "session")
		r.user("victim")
		r.tenon("sessions", "fork", "-1")
		r.tenon("run", "--model", "script:add.yaml", "-s", "-1", "go")
		r.tenon("run", "--model", "script:add.yaml", "-s", "-1", "--fork", "go")
	}},
	"a trigger that grants": {calls: 1, do: func(r *raid) {
		r.allowed("--always", "--uses", "1")
		r.sql("CREATE TRIGGER t AFTER UPDATE ON grants BEGIN DELETE FROM grant_uses; UPDATE grants SET used = 0; END",
			"CREATE TRIGGER u AFTER INSERT ON grant_uses BEGIN DELETE FROM grant_uses; UPDATE grants SET used = 0; END")
		r.tenon("run", "--model", "script:add.yaml", "go")
		n := r.calls("effects")
		r.tenon("run", "--model", "script:add.yaml", "go")
		if m := r.calls("effects"); m > 2 {
			r.t.Errorf("%d and %d calls by a grant of one", n, m)
		}
		r.write("../effects", "one\n")
	}},
	"a view in place of grants": {calls: 1, do: func(r *raid) {
		r.allowed("--always", "--uses", "1")
		r.sql("ALTER TABLE grants RENAME TO g", "CREATE VIEW grants AS SELECT id, principal, server, name, remote, target, definition, condition, 0 AS uses, 0 AS used, expires, by, created, mac FROM g")
		r.tenon("run", "--model", "script:add.yaml", "go")
	}},
	"a store that is a link to another": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.copyStore(".tenon", "../elsewhere")
		r.user("victim")
		if err := errors.Join(os.RemoveAll(".tenon"), os.Symlink("../elsewhere", ".tenon")); err != nil {
			r.t.Fatal(err)
		}
		r.tenon("run", "--model", "script:add.yaml", "go")
	}},
	"budgets are set back": {calls: 1, do: func(r *raid) {
		r.write("tenon.yaml", r.allows("approval: never")+"budgets: {day: {tool_calls: 1}}\n")
		r.ask(exitOK, "add.yaml")
		r.tenon("run", "--model", "script:add.yaml", "go") // the control: the budget is used up
		for _, reset := range []string{
			"UPDATE budgets SET used = 0", "UPDATE budgets SET used = -9", "DELETE FROM budgets", "DELETE FROM reservations",
		} {
			r.sql(reset)
			r.tenon("run", "--model", "script:add.yaml", "go")
		}
	}},
	"rates are set back": {calls: 1, do: func(r *raid) {
		r.write("tenon.yaml", r.allows("approval: never, rate: 1/h"))
		r.ask(exitOK, "add.yaml")
		r.tenon("run", "--model", "script:add.yaml", "go") // the control: the rate limit is reached
		for _, reset := range []string{"UPDATE rates SET turns = x''", "DELETE FROM rates"} {
			r.sql(reset)
			r.tenon("run", "--model", "script:add.yaml", "go")
		}
	}},
	"the whole store is put back, with a grant that was revoked since": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.copyStore(".tenon", "../old")
		r.want(exitOK, "approvals", "revoke", "t.add")
		r.copyStore("../old", ".tenon")
		r.ask(exitWaiting, "add.yaml")
	}},
	"the whole store is put back, with a use that was taken since": {calls: 2, do: func(r *raid) {
		r.allowed("--always", "--uses", "1")
		r.copyStore(".tenon", "../old")
		r.ask(exitOK, "add.yaml")
		r.copyStore("../old", ".tenon")
		r.ask(exitWaiting, "add.yaml")
	}},
	"two copies of a store share the uses": {calls: 2, do: func(r *raid) {
		r.allowed("--always", "--uses", "1")
		r.write("../other/tenon.yaml", r.config(""))
		r.write("../other/add.yaml", r.read("add.yaml"))
		r.copyStore(".tenon", "../other/.tenon")
		r.ask(exitOK, "add.yaml")
		r.t.Chdir("../other")
		r.ask(exitWaiting, "add.yaml")
	}},
	"the whole store is put back, with a call that was made since": {calls: 1, do: func(r *raid) {
		id := r.ask(exitWaiting, "add.yaml")
		r.want(exitOK, "approvals", "allow", id)
		r.copyStore(".tenon", "../old")
		r.want(exitOK, "runs", "resume", id)
		r.copyStore("../old", ".tenon")
		r.tenon("runs", "resume", id)
		r.copyStore("../old", ".tenon")
		r.tenon("runs", "resume", id)
	}},
	"a decision is put back before it was taken": {calls: 1, do: func(r *raid) {
		id := r.ask(exitWaiting, "add.yaml")
		r.copyStore(".tenon", "../old")
		r.want(exitOK, "approvals", "allow", id)
		r.want(exitOK, "runs", "resume", id)
		r.sql("ATTACH '"+r.root+"/old/tenon.db' AS old",
			"DELETE FROM events WHERE rowid NOT IN (SELECT rowid FROM old.events)",
			"UPDATE runs SET state = o.state, stop = o.stop, waiting = o.waiting, mac = o.mac FROM old.runs o "+
				"WHERE o.id = runs.id", "UPDATE signals SET seq = 0")
		r.tenon("runs", "resume", id)
	}},
	"a denied call is asked about again from an older store, and stays one call": {calls: 0, do: func(r *raid) {
		id := r.ask(exitWaiting, "add.yaml")
		r.copyStore(".tenon", "../old")
		r.want(exitOK, "approvals", "deny", id)
		r.tenon("runs", "resume", id)
		r.copyStore("../old", ".tenon")
		r.want(exitWaiting, "runs", "resume", id)
	}},
	"a replaced grant is put back": {calls: 1, do: func(r *raid) {
		r.allowed("--always")
		r.sql("CREATE TABLE kept AS SELECT * FROM grants")
		r.want(exitOK, "approvals", "revoke", "t.add")
		id := r.ask(exitWaiting, "add.yaml")
		r.want(exitOK, "approvals", "allow", id, "--always", "--uses", "1")
		r.sql("DELETE FROM grants", "INSERT INTO grants SELECT * FROM kept", "DROP TABLE kept")
		r.ask(exitWaiting, "add.yaml")
	}},
	"a store that was adopted, with a grant that was revoked since": {calls: 1, do: func(r *raid) {
		r.user("stranger")
		r.allowed("--always")
		r.user("victim")
		r.want(exitOK, "store", "adopt", "--yes")
		r.copyStore(".tenon", "../old")
		r.want(exitOK, "approvals", "revoke", "t.add")
		r.copyStore("../old", ".tenon")
		r.want(exitOK, "store", "adopt", "--yes")
		r.ask(exitWaiting, "add.yaml")
	}},
}
