package kill

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

const (
	envTemporalServer = "TENON_TEMPORAL_SERVER" // the program of a Temporal server; .ci/temporal.sh sets it
	envTemporalKind   = "TENON_TEMPORAL_KIND"   // "server", or "test" for Temporal's Java test server
	envTemporalKills  = "TENON_TEMPORAL_KILLS"  // number of kills in TestTemporal_Kill
)

// cluster is a Temporal server of a test.
type cluster struct {
	path, db, port string
	cmd            *exec.Cmd
}

// start starts the server and waits until it accepts connections.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	args := []string{c.port} // of the Java test server
	if os.Getenv(envTemporalKind) == "server" {
		args = []string{"-db", c.db, "-port", c.port}
	}
	c.cmd = exec.Command(c.path, args...)
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(clitest.Patience); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", c.port))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func (c *cluster) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // returns an error because of the kill
}

// temporalServer returns the program of the server, and skips the test without one.
func temporalServer(t *testing.T) string {
	t.Helper()
	path := os.Getenv(envTemporalServer)
	if path == "" {
		t.Skip(envTemporalServer + " is not set: make temporal starts what the test needs")
	}
	return path
}

// onTemporal makes Temporal choose the workers of the runs of a field, whose program then is tenon-temporal. The store
// of the field must be in PostgreSQL.
func (f *field) onTemporal(t *testing.T) *cluster {
	t.Helper()
	path := temporalServer(t)
	f.Tenon = clitest.Build(t, filepath.Join("..", "..", "engine", "temporal"), "./cmd/tenon-temporal")
	c := &cluster{path: path, db: filepath.Join(t.TempDir(), "temporal.db"), port: clitest.FreePort(t)}
	c.start(t)
	t.Cleanup(c.kill)
	text, err := os.ReadFile(filepath.Join(f.Dir, "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f.WriteFile(t, "tenon.yaml", string(text)+fmt.Sprintf(
		"engine: {kind: temporal, temporal: {address: %q}}\n", "127.0.0.1:"+c.port))
	return c
}

// worker starts a worker and returns once it takes runs.
func (f *field) worker(t *testing.T) *serving {
	t.Helper()
	return f.background(t, "worker: taking runs", "worker", "-c", "tenon.yaml")
}

// detached begins a run without a process that works on it.
func (f *field) detached(t *testing.T, model string) string {
	t.Helper()
	o := f.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--yes", "--model", model, "go")
	return strings.TrimSpace(o.Out)
}

// TestTemporal_Kill kills workers in the middle of runs. Temporal gives the runs to another worker, with the guarantees
// of TestKill. No person resumes them.
func TestTemporal_Kill(t *testing.T) {
	f := newField(t)
	f.inPostgres(t, fmt.Sprintf("temporal_kill_%d", os.Getpid()))
	f.onTemporal(t)
	f.serve(t)
	workers := []*serving{f.worker(t), f.worker(t)}
	kills := count(t, envTemporalKills, 4)
	for f.killed < kills && !t.Failed() {
		f.runs++
		run := f.detached(t, models[f.runs%len(models)])
		for f.killed < kills && !f.completed(t, run) {
			time.Sleep(time.Duration(300+400*(f.killed%4)) * time.Millisecond)
			w := &workers[f.killed%len(workers)]
			killGroup((*w).cmd)
			(*w).ended()
			f.killed++
			*w = f.worker(t)
		}
		f.OK(t, "runs", "follow", run, "-c", "tenon.yaml")
		f.check(t, run, nil)
	}
	f.model.check(t)
	t.Log(f.tally)
}

// TestTemporal_ServerKilled kills the Temporal server while a worker drives a run. The run ends without the server, and
// further runs begin when it is back.
func TestTemporal_ServerKilled(t *testing.T) {
	f := newField(t)
	f.inPostgres(t, fmt.Sprintf("temporal_server_%d", os.Getpid()))
	c := f.onTemporal(t)
	f.serve(t)
	f.worker(t)
	run := f.detached(t, models[0])
	f.until(t, func() bool { _, err := os.Stat(f.effects); return err == nil })
	c.kill()
	f.OK(t, "runs", "follow", run, "-c", "tenon.yaml")
	f.check(t, run, nil)
	c.start(t)
	next := f.detached(t, models[1])
	f.OK(t, "runs", "follow", next, "-c", "tenon.yaml")
	f.check(t, next, nil)
	f.model.check(t)
}

// TestTemporal_Drivers drives runs by three processes at the same time: a worker, another worker, and tenon runs resume,
// which asks Temporal for the run again. Each call takes effect once.
func TestTemporal_Drivers(t *testing.T) {
	f := newField(t)
	f.inPostgres(t, fmt.Sprintf("temporal_drivers_%d", os.Getpid()))
	f.onTemporal(t)
	f.serve(t)
	f.worker(t)
	f.worker(t)
	run := f.detached(t, models[0])
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	for !f.completed(t, run) {
		out, err := f.Command(ctx, "runs", "resume", "-q", "--no-input", run, "-c", "tenon.yaml").CombinedOutput()
		if ctx.Err() != nil {
			t.Fatalf("runs resume hangs: %v\n%s", err, out)
		}
	}
	f.check(t, run, nil)
	f.model.check(t)
}

// TestTemporal_Moved begins a run under SQLite, moves it to PostgreSQL, lets a replica drive it, and finishes it under
// Temporal. Each process is killed in the middle. The journal before each move is the beginning of the journal after
// it, byte for byte, and the whole replays.
func TestTemporal_Moved(t *testing.T) {
	temporalServer(t)
	f := newField(t)
	events := func(run string) string { return f.OK(t, "runs", "events", run, "-c", "tenon.yaml", "-o", "jsonl").Out }
	reaches := func(run string, n int) {
		t.Helper()
		f.until(t, func() bool { return strings.Count(events(run), "\n") >= n })
	}
	server := f.serve(t)
	run := f.detached(t, models[0])
	reaches(run, 8)
	killGroup(server.cmd)
	server.ended()
	f.killed++
	before := events(run)

	f.inPostgres(t, fmt.Sprintf("temporal_moved_%d", os.Getpid()))
	f.OK(t, "store", "copy", "-c", "tenon.yaml", "--from", "sqlite", "--to", "postgres")
	replica := f.serve(t)
	reaches(run, strings.Count(before, "\n")+20)
	killGroup(replica.cmd)
	replica.ended()
	f.killed++
	if now := events(run); !strings.HasPrefix(now, before) {
		t.Errorf("the journal of the replica does not begin with the journal of the file")
	} else {
		before = now
	}
	if f.completed(t, run) {
		t.Fatal("the replica finished the run before the kill, so the test is not effective")
	}

	f.onTemporal(t)
	f.worker(t)
	f.OK(t, "runs", "resume", "-q", "--no-input", run, "-c", "tenon.yaml")
	if !strings.HasPrefix(events(run), before) {
		t.Errorf("the journal under Temporal does not begin with the journal of the replica")
	}
	f.check(t, run, nil)
	f.OK(t, "runs", "replay", run, "-c", "tenon.yaml")
	f.model.check(t)
}
