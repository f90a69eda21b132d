package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/engine/local"
	"github.com/tenonhq/tenon/store/postgres"
)

// program returns the server that .ci/temporal.sh has built, and skips the test without one.
func program(t testing.TB) string {
	t.Helper()
	path := os.Getenv("TENON_TEMPORAL_SERVER")
	if path == "" || os.Getenv("TENON_POSTGRES") == "" {
		t.Skip("TENON_TEMPORAL_SERVER or TENON_POSTGRES is not set: make temporal starts what the tests need")
	}
	return path
}

// frontend is a Temporal server of a test.
type frontend struct {
	path, db string
	port     int
	args     []string
	cmd      *exec.Cmd
}

func (f *frontend) address() string { return fmt.Sprintf("127.0.0.1:%d", f.port) }

// startFrontend starts a server with a new file, which ends with the test.
func startFrontend(t testing.TB, args ...string) *frontend {
	t.Helper()
	f := &frontend{path: program(t), db: filepath.Join(t.TempDir(), "temporal.db"), args: args}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	f.start(t)
	t.Cleanup(f.kill)
	return f
}

func (f *frontend) start(t testing.TB) {
	t.Helper()
	args := []string{fmt.Sprint(f.port)} // of the Java test server
	if os.Getenv("TENON_TEMPORAL_KIND") == "server" {
		args = append([]string{"-db", f.db, "-port", fmt.Sprint(f.port)}, f.args...)
	}
	f.cmd = exec.Command(f.path, args...)
	f.cmd.Stderr = os.Stderr
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the server like a crash.
func (f *frontend) kill() {
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait()
}

// await waits until the server answers.
func await(t testing.TB, c *Cluster) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := c.Ready(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

var shared struct {
	once sync.Once
	*frontend
}

func TestMain(m *testing.M) {
	// The Java test server keeps the tasks of a worker that has ended in that worker's own queue. A real server, whose
	// program is internal/temporalserver, gives them back to all workers.
	if os.Getenv("TENON_TEMPORAL_KIND") != "server" {
		worker.SetStickyWorkflowCacheSize(0)
	}
	status := m.Run()
	if shared.frontend != nil {
		shared.kill()
		_ = os.RemoveAll(filepath.Dir(shared.db))
	}
	os.Exit(status)
}

// server returns the address of a server that most tests share.
func server(t testing.TB) string {
	t.Helper()
	path := program(t)
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "tenon-temporal")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f := &frontend{path: path, db: filepath.Join(dir, "temporal.db"), port: l.Addr().(*net.TCPAddr).Port}
		_ = l.Close()
		f.start(t)
		shared.frontend = f
		c, err := New(Config{Address: f.address()})
		if err != nil {
			t.Fatal(err)
		}
		await(t, c)
		_ = c.Close()
	})
	return shared.address()
}

var places atomic.Int64

// place is a store and a task queue of a test.
type place struct {
	pg      postgres.Config
	queue   string
	engines atomic.Int64
	address string
	key     []byte
}

func newPlace(t testing.TB) *place {
	n := places.Add(1)
	return &place{address: server(t), queue: fmt.Sprintf("q%d-%d", os.Getpid(), n), pg: postgres.Config{
		DSN: os.Getenv("TENON_POSTGRES"), Schema: fmt.Sprintf("temporal_%d_%d", os.Getpid(), n), Lease: 2 * time.Second}}
}

// process is an engine with its cluster and its worker, like a process.
type process struct {
	*local.Engine
	cluster *Cluster
	store   *postgres.Store
	label   string
	place   *place
	stop    context.CancelFunc
	worked  chan error
}

// Ready implements [local.Dispatcher].
func (p *process) Ready(ctx context.Context) error { return p.cluster.Ready(ctx) }

// Keeps implements [local.Dispatcher].
func (p *process) Keeps(tenon.Run) bool { return false }

// Dispatch implements [local.Dispatcher]. The suite expects the work of an engine at that engine, hence the label. Runs
// of different tests have the same ids, hence the prefix.
func (p *process) Dispatch(ctx context.Context, row tenon.Run) error {
	row.ID = p.place.queue + "." + row.ID
	return p.cluster.Dispatch(ctx, row, p.label)
}

// driver takes the prefix off.
type driver struct{ p *process }

func (d driver) id(run string) string { return run[len(d.p.place.queue)+1:] }

func (d driver) Drive(ctx context.Context, run string) (local.Rest, error) {
	return d.p.Engine.Drive(ctx, d.id(run))
}

func (d driver) Cancel(ctx context.Context, run, reason string) error {
	return d.p.Engine.Cancel(ctx, d.id(run), reason)
}

// Close closes the engine and ends its worker.
func (p *process) Close() error {
	if p.stop == nil {
		return nil
	}
	p.stop()
	p.stop = nil
	err := p.Engine.Close()
	if werr := <-p.worked; err == nil {
		err = werr
	}
	return err
}

func (pl *place) open(t testing.TB, s enginetest.Setup) *process {
	t.Helper()
	p := &process{place: pl, label: fmt.Sprint(pl.engines.Add(1)), worked: make(chan error, 1)}
	var err error
	if p.store, err = postgres.Open(t.Context(), pl.pg); err != nil {
		t.Fatal(err)
	}
	p.cluster, err = New(Config{Address: pl.address, TaskQueue: pl.queue, Heartbeat: 3 * time.Second, Key: pl.key,
		Logger: logger()})
	if err != nil {
		t.Fatal(err)
	}
	p.Engine, err = local.New(local.Config{Store: p.store, NewCore: enginetest.NewCore, Do: s.Do, Clock: s.Clock,
		Parallel: s.Parallel, Grace: 200 * time.Millisecond, Dispatcher: p})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() { p.worked <- p.cluster.Work(ctx, driver{p}, p.label) }()
	t.Cleanup(func() {
		_ = p.Close() // reports errors that tests cause on purpose
		_ = p.cluster.Close()
		if err := p.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// logger writes to stderr if TENON_TEMPORAL_LOG is set.
func logger() *slog.Logger {
	if os.Getenv("TENON_TEMPORAL_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// TestEngine runs the suite of engines on PostgreSQL and Temporal.
func TestEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) func(enginetest.Setup) engine.Engine {
		pl := newPlace(t)
		return func(s enginetest.Setup) engine.Engine { return pl.open(t, s) }
	})
}

var _ local.Dispatcher = (*process)(nil)
