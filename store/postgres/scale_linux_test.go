package postgres

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

const (
	envScale        = "TENON_SCALE"         // set by make figures ID=SCALE, which names the file by TENON_FIGURES
	envScaleReplica = "TENON_SCALE_REPLICA" // "SCHEMA RUNS": set in a process that works as a replica

	scaleWarm   = time.Second     // between the start of the work and the measurement
	scaleWindow = 4 * time.Second // of a measurement
	scaleSteps  = 400             // of each run; then another run begins
	scaleRuns   = 64              // at work in each replica
)

// TestScaleReplica is a replica of TestScale, in a separate process. It works on runs until it is killed. It answers
// each line of its input with the number of its steps so far.
func TestScaleReplica(t *testing.T) {
	schema, runs, ok := strings.Cut(os.Getenv(envScaleReplica), " ")
	if !ok {
		t.Skip("TestScale starts it in a process of its own")
	}
	n, err := strconv.Atoi(runs)
	if err != nil {
		t.Fatal(err)
	}
	var steps atomic.Int64
	e, s := replicaOf(t, Config{DSN: server(t), Schema: schema}, func(ctx context.Context, run string, a engine.Attempt,
		emit func(tenon.Event)) ([]tenon.Event, error) {
		steps.Add(1)
		return stepping(ctx, run, a, emit)
	})
	drive(t, e, s.replica+"-warm-", 1, 2)
	for i := range n {
		go func() {
			for round := 0; ; round++ {
				drive(t, e, fmt.Sprint(s.replica, "-", i, "-", round, "-"), 1, scaleSteps)
			}
		}()
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println("steps", steps.Load())
	}
	select {} // until it is killed
}

// scaled is a replica in a separate process.
type scaled struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startScaled(t *testing.T, schema string, runs int) *scaled {
	t.Helper()
	r := &scaled{cmd: exec.Command(os.Args[0], "-test.run", "^TestScaleReplica$", "-test.timeout", "5m")}
	r.cmd.Env = append(os.Environ(), fmt.Sprint(envScaleReplica, "=", schema, " ", runs))
	r.cmd.Stderr = os.Stderr
	in, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.kill)
	r.in, r.out = in, bufio.NewScanner(out)
	return r
}

func (r *scaled) kill() {
	_ = r.cmd.Process.Kill() // it may have been killed before
	_ = r.cmd.Wait()
}

// wait reads the output up to a line with a prefix, and returns the rest of the line.
func (r *scaled) wait(t *testing.T, prefix string) string {
	t.Helper()
	for r.out.Scan() {
		if rest, ok := strings.CutPrefix(r.out.Text(), prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("the replica ended before it wrote %q", prefix)
	return ""
}

func (r *scaled) steps(t *testing.T) float64 {
	t.Helper()
	if _, err := fmt.Fprintln(r.in, "steps"); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseFloat(r.wait(t, "steps "), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// processTime is the CPU time of a process in seconds.
func processTime(pid int) float64 {
	const cpuClockSched = 2 // of all threads, in nanoseconds; see clock_getcpuclockid(3)
	var ts syscall.Timespec
	clock := int32(^pid)<<3 | cpuClockSched
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0 // it has ended
	}
	return float64(ts.Nano()) / 1e9
}

// statOf returns the fields of proc_pid_stat(5) after the name, the first of which is the state.
func statOf(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, fields, ok := strings.Cut(string(b), ") ")
	if err != nil || !ok {
		return nil
	}
	return strings.Fields(fields)
}

const (
	statParent = 1
	statWaited = 13 // user and system time of processes that have ended, in ticks of 10 ms
)

// serverTime is the CPU time of all processes of the server in seconds.
func serverTime(t *testing.T, postmaster int) (seconds float64) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		stat := statOf(pid)
		if pid == postmaster || len(stat) > statParent && stat[statParent] == fmt.Sprint(postmaster) {
			seconds += processTime(pid)
		}
	}
	if stat := statOf(postmaster); len(stat) > statWaited+1 {
		for _, ticks := range stat[statWaited : statWaited+2] {
			n, _ := strconv.ParseFloat(ticks, 64)
			seconds += n / 100
		}
	}
	return seconds
}

// postmasterOf returns the process id of the server.
func postmasterOf(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	var backend int
	if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		t.Fatal(err)
	}
	stat := statOf(backend)
	if len(stat) <= statParent {
		t.Fatal("the processes of the server are not on this machine")
	}
	pid, err := strconv.Atoi(stat[statParent])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// scale measures for TestScale.
type scale struct {
	conn       *pgx.Conn
	postmaster int
	values     map[string]float64
}

// TestScale measures one round of the figures SCALE.…: the work of one, two and four replicas in separate processes,
// and the costs of what replicas do at regular intervals. internal/capacity predicts larger fleets from them.
func TestScale(t *testing.T) {
	file := os.Getenv(envFigures)
	if os.Getenv(envScale) == "" || file == "" {
		t.Skip(envScale + " is not set: make figures ID=SCALE sets it")
	}
	admin(t, "ALTER SYSTEM SET track_wal_io_timing = on")
	admin(t, "SELECT pg_reload_conf()")
	conn, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // the values are taken
	m := &scale{conn: conn, postmaster: postmasterOf(t, conn), values: map[string]float64{}}
	for _, c := range []struct{ replicas, runs int }{{1, 1}, {1, 16}, {1, scaleRuns}, {2, scaleRuns}, {4, scaleRuns}} {
		m.work(t, c.replicas, c.runs)
	}
	m.duties(t)
	m.listeners(t)
	b, err := json.Marshal(m.values)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sample is what a fleet has done so far.
type sample struct {
	at                                   time.Time
	steps, transactions, replica, server float64
	flushes, flushed                     float64 // number, and seconds
}

func (m *scale) sample(t *testing.T, schema string, replicas []*scaled) (s sample) {
	t.Helper()
	err := m.conn.QueryRow(t.Context(), "SELECT (SELECT sum(n) FROM "+schema+".writers)::float8, wal_sync::float8, "+
		"wal_sync_time / 1000 FROM pg_stat_wal").Scan(&s.transactions, &s.flushes, &s.flushed)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range replicas {
		s.steps += r.steps(t)
		s.replica += processTime(r.cmd.Process.Pid)
	}
	s.server, s.at = serverTime(t, m.postmaster), time.Now()
	return s
}

// work measures a fleet: steps and transactions per second, CPU seconds per step, and seconds per flush.
func (m *scale) work(t *testing.T, replicas, runs int) {
	t.Helper()
	c := place(t)
	mustOpen(t, c) // makes the tables
	var fleet []*scaled
	for range replicas {
		fleet = append(fleet, startScaled(t, c.Schema, runs))
	}
	for _, r := range fleet {
		r.wait(t, "ready")
	}
	time.Sleep(scaleWarm)
	a := m.sample(t, c.Schema, fleet)
	time.Sleep(scaleWindow)
	b := m.sample(t, c.Schema, fleet)
	for _, r := range fleet {
		r.kill()
	}
	name := fmt.Sprintf("%dx%d.", replicas, runs)
	took, steps := b.at.Sub(a.at).Seconds(), b.steps-a.steps
	m.values[name+"steps"] = steps / took
	m.values[name+"batch"] = steps / (b.transactions - a.transactions)
	m.values[name+"replica"] = (b.replica - a.replica) / steps
	m.values[name+"server"] = (b.server - a.server) / steps
	if b.flushes > a.flushes {
		m.values[name+"flush"] = (b.flushed - a.flushed) / (b.flushes - a.flushes)
	}
}

const (
	scaleWorking = 2000  // runs that other replicas work on
	scaleWaiting = 20000 // runs that wait for a person, for a hundred years
)

// duties measures what a replica does at regular intervals in a database with many runs. The costs of searches are for
// each run that is there.
func (m *scale) duties(t *testing.T) {
	t.Helper()
	c := place(t)
	c.Lease = time.Hour // no heartbeat of its own disturbs
	e, s := replicaOf(t, c, bystander)
	ctx := t.Context()
	for _, q := range []string{
		`INSERT INTO @replicas (id, name, began, expires)
			VALUES ('other', '', clock_timestamp(), clock_timestamp() + interval '1 hour')`,
		`INSERT INTO @runs (id, session, principal, caller, parent, parent_seq, core, agent, model, title, state, stop,
				created, updated, waiting)
			SELECT 'run_' || i, 's' || i, '', '', '', 0, 'c@1', 'a', 'm', 'a question',
				CASE WHEN i <= $1::int THEN 'working' ELSE 'input_required' END, '', 1, 1,
				CASE WHEN i > $1::int THEN convert_to('[{"step":"1","since":' ||
				'"2026-01-01T00:00:00Z","expires":"2126-01-01T00:00:00Z","data":{"kind":"approval"}}]', 'UTF8') END
			FROM generate_series(1, $1::int + $2::int) AS i`,
		`INSERT INTO @events (run, seq, n, last, events) SELECT n, 1, 1, 1, '\x00' FROM @runs`,
		`INSERT INTO @leases SELECT id, 'other', 1 FROM @runs WHERE state = 'working'`,
	} {
		var args []any
		if strings.Contains(q, "$1") {
			args = []any{scaleWorking, scaleWaiting}
		}
		if _, err := s.pool.Exec(ctx, s.sql(q), args...); err != nil {
			t.Fatal(err)
		}
	}
	admin(t, "VACUUM ANALYZE")
	list := func(f engine.Filter) func() error {
		return func() error {
			for f.Limit, f.Before = 1000, ""; ; {
				runs, err := e.List(ctx, f)
				if err != nil || len(runs) < f.Limit {
					return err
				}
				f.Before = runs[len(runs)-1].ID
			}
		}
	}
	for _, d := range []struct {
		name string
		rows float64 // number that the costs are divided by
		do   func() error
	}{
		{"look", scaleWorking, list(engine.Filter{Resumable: true})},
		{"expired", 1, list(engine.Filter{Expired: time.Now()})},
		{"poll", scaleWorking, func() error { _, err := s.others(ctx); return err }},
		{"inbox", 1, func() error { _, err := s.Signals(ctx, ""); return err }},
		{"beat", 1, func() error { return s.heartbeat(ctx) }},
	} {
		m.cost(t, d.name, d.rows, d.do)
	}
}

// cost measures the CPU time of something that a replica does, for each of its rows.
func (m *scale) cost(t *testing.T, name string, rows float64, do func() error) {
	t.Helper()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	server, replica, n := serverTime(t, m.postmaster), processTime(os.Getpid()), 0.0
	for began := time.Now(); time.Since(began) < time.Second; n++ {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	m.values[name+".replica"] = (processTime(os.Getpid()) - replica) / n / rows
	m.values[name+".server"] = (serverTime(t, m.postmaster) - server) / n / rows
}

// listeners measures what a notification costs for each connection that listens.
func (m *scale) listeners(t *testing.T) {
	t.Helper()
	const many = 32
	s := mustOpen(t, place(t))
	notify := func() error {
		_, err := s.pool.Exec(t.Context(), "SELECT pg_notify($1, $2)", "scale", s.replica)
		return err
	}
	m.cost(t, "notify.none", 1, notify)
	for range many {
		conn, err := pgx.Connect(t.Context(), server(t))
		if err == nil {
			_, err = conn.Exec(t.Context(), "LISTEN scale")
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				_, _ = conn.WaitForNotification(ctx) // ends with ctx
			}
		}()
		t.Cleanup(func() {
			stop()
			<-ended
			_ = conn.Close(context.Background()) // the values are taken
		})
	}
	m.cost(t, "notify.many", 1, notify)
	m.values["listener.server"] = (m.values["notify.many.server"] - m.values["notify.none.server"]) / many
	m.values["listener.replica"] = (m.values["notify.many.replica"] - m.values["notify.none.replica"]) / many
}
