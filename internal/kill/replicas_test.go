package kill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

const (
	envPostgresKills = "TENON_PG_KILLS"    // number of kills in TestReplicas_Kill
	envPostgresStops = "TENON_PG_SIGSTOPS" // number of stops in TestReplicas_Stopped
)

// inPostgres moves the store of a field into PostgreSQL, in a schema of the test.
func (f *field) inPostgres(t *testing.T, schema string) {
	t.Helper()
	dsn := os.Getenv("TENON_POSTGRES")
	if dsn == "" {
		t.Skip("TENON_POSTGRES is not set: make postgres starts a server and sets it")
	}
	f.Env = append(f.Env, "TENON_POSTGRES="+dsn)
	f.addStore(t, filepath.Join(f.Dir, "tenon.yaml"), schema)
}

// addStore writes tenon.yaml into the folder of the field. It consists of the given file and the configuration of the
// store.
func (f *field) addStore(t *testing.T, from, schema string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	// Both replicas treat a server as the same one only if it starts in the same folder.
	here := strings.Replace(string(text), "    include:", fmt.Sprintf("    cwd: %q\n    include:", f.Dir), 1)
	f.WriteFile(t, "tenon.yaml", here+fmt.Sprintf(
		"store: {postgres: {dsn: {env: TENON_POSTGRES}, schema: %s, lease: 1s}}\n", schema))
}

// replica returns a field with another folder and the same database, for another tenon serve.
func (f *field) replica(t *testing.T) *field {
	t.Helper()
	shell := *f.Shell
	shell.Dir = t.TempDir()
	r := &field{Shell: &shell, model: f.model, effects: f.effects, known: f.known}
	text, err := os.ReadFile(filepath.Join(f.Dir, "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r.WriteFile(t, "tenon.yaml", string(text))
	return r
}

// TestReplicas starts two processes of tenon serve on one database and kills one of them. The other process takes over
// its run, and a follower in the folder of the other process sees the run to its end.
func TestReplicas(t *testing.T) {
	a := newField(t)
	a.inPostgres(t, fmt.Sprintf("replicas_%d", os.Getpid()))
	b := a.replica(t)
	first := a.serve(t)
	second := b.serve(t)
	o := a.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--yes", "--model", models[0], "go")
	run := strings.TrimSpace(o.Out)

	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	follower := b.Command(ctx, "runs", "follow", run, "-c", "tenon.yaml")
	seen := make(chan error, 1)
	go func() {
		out, err := follower.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		seen <- err
	}()
	time.Sleep(time.Second)
	killGroup(first.cmd)
	first.ended()
	b.killed++
	if err := <-seen; err != nil {
		t.Errorf("the follower at the other replica: %v", err)
	}
	b.check(t, run, nil)
	b.model.check(t)
	if !strings.Contains(second.log(), "is resumed: no process worked on it") {
		t.Errorf("the run ended before the kill, or was not taken over:\n%s", second.log())
	}
	// The killed replica can serve again at once.
	again := a.serve(t)
	if err := again.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	if status, log := again.ended(); status != 0 {
		t.Errorf("tenon serve ended with status %d:\n%s", status, log)
	}
}

// TestReplicas_Kill does the same as TestKill, with the store in PostgreSQL.
func TestReplicas_Kill(t *testing.T) {
	f := newField(t)
	f.inPostgres(t, fmt.Sprintf("kill_%d", os.Getpid()))
	f.killMany(t, count(t, envPostgresKills, 6))
}

// TestReplicasRestart kills a tenon serve whose lease lasts for minutes. Its folder can be served again at once, but
// never by two processes at the same time.
func TestReplicasRestart(t *testing.T) {
	f := newField(t)
	f.inPostgres(t, fmt.Sprintf("restart_%d", os.Getpid()))
	path := filepath.Join(f.Dir, "tenon.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteFile(t, "tenon.yaml", strings.Replace(string(text), "lease: 1s", "lease: 10m", 1))
	first := f.serve(t)
	second := f.Command(t.Context(), "serve", "-c", "tenon.yaml")
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "works on this store") {
		t.Errorf("a second tenon serve in the same folder: %v\n%s", err, out)
	}
	doctor := f.Command(t.Context(), "doctor", "-c", "tenon.yaml")
	out, _ := doctor.CombinedOutput() // returns an error, because the models of the test are not reachable
	for _, name := range []string{"server", "tls", "pooler", "role", "schema", "clock", "key"} {
		if !strings.Contains(string(out), "store PostgreSQL "+name) {
			t.Errorf("tenon doctor has no row about %s:\n%s", name, out)
		}
	}
	killGroup(first.cmd)
	first.ended()
	again := f.serve(t)
	if err := again.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	if status, log := again.ended(); status != 0 {
		t.Errorf("tenon serve ended with status %d:\n%s", status, log)
	}
}

// TestReplicas_Copied begins runs with the store in SQLite, kills the process, copies the store to PostgreSQL and lets
// a replica finish the runs. The journal from SQLite is the beginning of the journal in PostgreSQL, byte for byte, and
// folds to the same result. A copy back to SQLite contains the same journals again.
func TestReplicas_Copied(t *testing.T) {
	f := newField(t)
	plain := filepath.Join(f.Dir, "tenon.yaml")
	text, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("copied_%d", os.Getpid())
	events := func(run string) string { return f.OK(t, "runs", "events", run, "-c", "tenon.yaml", "-o", "jsonl").Out }
	server := f.serve(t)
	var runs []string
	for range 2 {
		o := f.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--yes", "--model", models[0], "go")
		runs = append(runs, strings.TrimSpace(o.Out))
	}
	for end := time.Now().Add(clitest.Patience); strings.Count(events(runs[1]), "\n") < 8; {
		if time.Now().After(end) {
			t.Fatal("the last run does not begin")
		}
	}
	killGroup(server.cmd)
	server.ended()
	before := map[string]string{}
	for _, run := range runs {
		before[run] = events(run)
	}
	f.inPostgres(t, schema)
	o := f.OK(t, "store", "copy", "-c", "tenon.yaml", "--from", "sqlite", "--to", "postgres")
	if !strings.Contains(o.Out, "copied to postgres://") || !strings.Contains(o.Out, "and verified") {
		t.Errorf("store copy says: %s", o.Out)
	}
	for _, run := range runs {
		if after := events(run); after != before[run] {
			t.Errorf("run %s has another journal in the database:\n%s\nbefore:\n%s", run, after, before[run])
		}
	}
	replica := f.serve(t)
	for _, run := range runs {
		f.OK(t, "runs", "follow", run, "-c", "tenon.yaml")
		if !strings.HasPrefix(events(run), before[run]) {
			t.Errorf("run %s does not begin with its journal of the file", run)
		}
		f.killed++
		f.check(t, run, nil)
		f.OK(t, "runs", "replay", run, "-c", "tenon.yaml")
		before[run] = events(run)
	}
	f.model.check(t)
	if err := replica.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	if status, log := replica.ended(); status != 0 {
		t.Errorf("tenon serve ended with status %d:\n%s", status, log)
	}
	f.OK(t, "store", "copy", "-c", "tenon.yaml", "--from", "postgres", "--to", "back.db")
	f.WriteFile(t, "tenon.yaml", string(text)+"store: {path: back.db}\n")
	for _, run := range runs {
		if events(run) != before[run] {
			t.Errorf("run %s has another journal after the way back", run)
		}
		f.OK(t, "runs", "replay", run, "-c", "tenon.yaml")
	}
}
