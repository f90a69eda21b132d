//go:build unix

package postgres

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// cluster is a PostgreSQL server that a test starts, kills and restarts.
type cluster struct {
	dir  string // folder of the socket and the data
	bin  string
	as   *syscall.Credential // user of the server, because it refuses to run as root
	proc *exec.Cmd
}

// binaries returns the folder of PostgreSQL's programs, which .ci/postgres.sh has found.
func binaries(t testing.TB) string {
	t.Helper()
	bin := os.Getenv("TENON_POSTGRES_BIN")
	if bin == "" {
		t.Skip("TENON_POSTGRES_BIN is not set: make postgres sets it")
	}
	return bin
}

func newFolder(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{bin: binaries(t)}
	var err error
	if c.dir, err = os.MkdirTemp("/tmp", "tenon-cluster."); err != nil { // a socket's path has at most 107 bytes
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.dir) }) // if this fails, the folder stays in /tmp
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32) // digits on unix
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		c.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(c.dir, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { c.kill() })
	return c
}

// own makes the user of the server the owner of a file.
func (c *cluster) own(t testing.TB, path string) {
	t.Helper()
	if c.as == nil {
		return
	}
	if err := os.Chown(path, int(c.as.Uid), int(c.as.Gid)); err != nil {
		t.Fatal(err)
	}
}

// newCluster starts a server with settings such as "fsync=off".
func newCluster(t testing.TB, settings ...string) *cluster {
	t.Helper()
	c := newFolder(t)
	c.run(t, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	c.start(t, settings...)
	return c
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) dsn() string { return "host=" + c.dir + " user=postgres dbname=postgres" }

func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	return cmd
}

func (c *cluster) run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := c.command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// start starts the server and returns when it answers.
func (c *cluster) start(t testing.TB, settings ...string) {
	t.Helper()
	args := []string{"-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "max_connections=100"}
	for _, s := range append([]string{"fsync=off"}, settings...) {
		args = append(args, "-c", s)
	}
	for end := time.Now().Add(time.Minute); ; {
		var log bytes.Buffer
		cmd := c.command("postgres", args...)
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c.proc = cmd
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait() // the test that kills it knows why it failed
			close(ended)
		}()
		if c.answers(ended) {
			return
		}
		c.kill()
		<-ended
		c.killRest()
		if time.Now().After(end) { // processes of the killed server may still be ending
			t.Fatalf("PostgreSQL does not start: %s", log.String())
		}
	}
}

func (c *cluster) answers(ended <-chan struct{}) bool {
	for range 3000 {
		conn, err := pgx.Connect(context.Background(), c.dsn())
		if err == nil {
			_ = conn.Close(context.Background()) // it is only looked at
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}

// kill ends the server with SIGKILL. Its connections end with it.
func (c *cluster) kill() {
	if c.proc != nil && c.proc.Process != nil {
		_ = c.proc.Process.Kill() // fails if it has ended
	}
}

// killRest kills processes that a killed server has left. Without a disk, some of them do not end by themselves.
func (c *cluster) killRest() {
	folders, _ := filepath.Glob("/proc/[0-9]*/cwd") // none where the system has no such files
	for _, link := range folders {
		if dir, err := os.Readlink(link); err != nil || dir != c.data() {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // fails if it has ended
		}
	}
}

// exec executes a statement as the superuser.
func (c *cluster) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.dsn())
	if err == nil {
		_, err = conn.Exec(ctx, query, args...)
		_ = conn.Close(ctx) // err says more
	}
	if err != nil {
		t.Fatal(err)
	}
}

// load is a set of writers on two replicas. They append to runs and spend a budget.
type load struct {
	replicas []*Store
	stop     context.CancelFunc
	done     chan struct{}
	written  [loadRuns]atomic.Int64 // acknowledged appends
	spent    [loadRuns]atomic.Int64 // acknowledged settlements
	failed   atomic.Pointer[string]
}

const (
	loadRuns  = 6
	loadLimit = 1 << 40
)

func loadRun(i int) string { return "load" + strconv.Itoa(i) }

func newLoad(t *testing.T, replicas ...*Store) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{replicas: replicas, stop: stop, done: make(chan struct{})}
	left := make(chan struct{}, loadRuns)
	for i := range loadRuns {
		s := replicas[i%len(replicas)]
		if _, ok, err := s.Acquire(loadRun(i)); err != nil || !ok {
			t.Fatal(ok, err)
		}
		create(t, s, loadRun(i))
		go func() {
			defer func() { left <- struct{}{} }()
			for n := uint64(2); ctx.Err() == nil; n++ {
				if err := l.step(s, i, n); err != nil {
					text := fmt.Sprintf("run %d, step %d: %v", i, n, err)
					l.failed.CompareAndSwap(nil, &text)
					return
				}
			}
		}()
	}
	go func() {
		for range loadRuns {
			<-left
		}
		close(l.done)
	}()
	t.Cleanup(func() {
		stop()
		<-l.done
	})
	return l
}

// step stores a step of a run.
func (l *load) step(s *Store, i int, n uint64) error {
	ctx := context.Background()
	id := fmt.Sprint(n)
	b, err := s.Reserve(ctx, loadRun(i), id, []store.Charge{{Key: "k", Amount: 1, Limit: loadLimit}})
	if err != nil {
		return err
	}
	if b[0].Refused {
		return fmt.Errorf("refused: %+v", b)
	}
	if err := s.Append(ctx, store.Append{Run: loadRun(i), Events: []tenon.Event{event(n)}}); err != nil {
		return err
	}
	l.written[i].Add(1)
	if err := s.Settle(ctx, loadRun(i), id, []int64{1}); err != nil {
		return err
	}
	l.spent[i].Add(1)
	return nil
}

// moves waits until each run has made more steps.
func (l *load) moves(t *testing.T) {
	t.Helper()
	var before [loadRuns]int64
	for i := range before {
		before[i] = l.spent[i].Load()
	}
	wait(t, "the load goes on", func() bool {
		if text := l.failed.Load(); text != nil {
			t.Fatal(*text)
		}
		for i := range before {
			if l.spent[i].Load() < before[i]+2 {
				return false
			}
		}
		return true
	})
}

// check ends the load. It checks that no acknowledged write is lost, that nothing is stored twice, and that the budget
// shows exactly the spent amount.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.stop()
	<-l.done
	if text := l.failed.Load(); text != nil {
		t.Fatal(*text)
	}
	var all int64
	for i := range loadRuns {
		list, err := l.replicas[(i+1)%len(l.replicas)].Events(t.Context(), loadRun(i), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := l.written[i].Load() + 1; int64(len(list)) != want {
			t.Errorf("run %d has %d events, want %d", i, len(list), want)
		}
		for j, e := range list {
			if e.Seq != uint64(j+1) {
				t.Fatalf("run %d: event %d is at place %d", i, e.Seq, j+1)
			}
		}
		all += l.spent[i].Load()
	}
	b, err := l.replicas[0].Balances(t.Context(), "k")
	if err != nil || len(b) != 1 || b[0].Used != all || b[0].Reserved != 0 {
		t.Errorf("balances %+v, %v; want %d used", b, err, all)
	}
	t.Logf("%d steps", all)
}

// isOne reports whether an error is a single line that contains the text.
func isOne(err error, text string) bool {
	return err != nil && strings.Contains(err.Error(), text) && !strings.Contains(err.Error(), "\n")
}
