package local

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store/sqlite"
)

// queue is a dispatcher with one process: the engine that has it.
type queue struct {
	e    *Engine
	ctx  context.Context
	work sync.WaitGroup
	down error // of Ready

	mu   sync.Mutex
	rows []tenon.Run // in the order of Dispatch
}

func (q *queue) Ready(context.Context) error { return q.down }

func (q *queue) Keeps(run tenon.Run) bool { return run.ID == "kept" }

func (q *queue) Dispatch(_ context.Context, row tenon.Run) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows = append(q.rows, row)
	if row.State.Ended() || q.ctx.Err() != nil {
		return nil
	}
	q.work.Go(func() {
		for q.ctx.Err() == nil {
			if rest, err := q.e.Drive(q.ctx, row.ID); err != nil || !rest.Elsewhere {
				return // Start dispatches the run again
			}
			time.Sleep(time.Millisecond)
		}
	})
	return nil
}

func (q *queue) dispatched() []tenon.Run {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rows
}

// openQueued opens an engine with a [queue] on a store file.
func openQueued(t *testing.T, path string, s enginetest.Setup) (*queued, *queue) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	ctx, stop := context.WithCancel(context.Background())
	q.ctx = ctx
	e, err := New(Config{Store: st, NewCore: enginetest.NewCore, Do: s.Do, Clock: s.Clock, Parallel: s.Parallel,
		Grace: 200 * time.Millisecond, Dispatcher: q})
	if err != nil {
		t.Fatal(err)
	}
	q.e = e
	both := &queued{e, stop, q}
	t.Cleanup(func() {
		_ = both.Close() // reports errors that tests cause on purpose
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return both, q
}

// queued is an engine that ends its queue when it is closed.
type queued struct {
	*Engine
	stop  context.CancelFunc
	queue *queue
}

func (q *queued) Close() error {
	q.stop()
	q.queue.work.Wait()
	return q.Engine.Close()
}

// TestDispatched runs the suite of engines with a dispatcher.
func TestDispatched(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) func(enginetest.Setup) engine.Engine {
		path := filepath.Join(t.TempDir(), "tenon.db")
		return func(s enginetest.Setup) engine.Engine {
			e, _ := openQueued(t, path, s)
			return e
		}
	})
}

// TestDispatch shows what a dispatcher is asked: once for a new run and once after a decision, not for a run at rest
// that nothing has changed, and at last that a cancelled run needs no process.
func TestDispatch(t *testing.T) {
	e, q := openQueued(t, filepath.Join(t.TempDir(), "tenon.db"), enginetest.Setup{Do: func(context.Context, string,
		engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
		return enginetest.Result(`"ok"`), nil
	}})
	enginetest.Rested(t, e, "r")
	again := engine.Spec{Run: tenon.Run{ID: "r"}}
	if err := e.Start(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if rows := q.dispatched(); len(rows) != 1 || rows[0].State != tenon.RunWorking || rows[0].Seq != 1 {
		t.Fatalf("dispatched %+v, want only the new run", rows)
	}
	if _, err := e.Signal(t.Context(), "r", engine.Signal{ID: "a", Kind: enginetest.KindGo, Step: "1"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	for _, err := range e.Events(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Rested(t, e, "other")
	if err := e.Cancel(t.Context(), "other", "enough"); err != nil {
		t.Fatal(err)
	}
	rows := q.dispatched()
	if len(rows) != 4 || rows[1].ID != "r" || rows[1].State != tenon.RunWorking || rows[3].ID != "other" ||
		rows[3].State != tenon.RunCancelled {
		t.Fatalf("dispatched %+v", rows)
	}
	enginetest.Rested(t, e, "kept")
	if now := q.dispatched(); len(now) != len(rows) {
		t.Errorf("dispatched %+v, a run that this process keeps", now[len(rows):])
	}
	q.down = tenon.Errorf(tenon.CodeUnreachable, "no queue")
	err := e.Start(t.Context(), enginetest.Calls(1, false).Spec("late", ""))
	if tenon.ErrorCode(err) != tenon.CodeUnreachable {
		t.Errorf("without a queue: %v", err)
	}
	if list, err := e.List(t.Context(), engine.Filter{Prefix: "late"}); err != nil || len(list) != 0 {
		t.Errorf("stored without a queue: %v, %v", list, err)
	}
}

// TestDrive_elsewhere drives a run whose lease another process has, one that is at rest with a wait that expires, and
// one that does not exist.
func TestDrive_elsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenon.db")
	begun, release := make(chan struct{}, 1), make(chan struct{})
	owner, _ := openQueued(t, path, enginetest.Setup{Do: func(context.Context, string, engine.Attempt,
		func(tenon.Event)) ([]tenon.Event, error) {
		begun <- struct{}{}
		<-release
		return enginetest.Result(`"ok"`), nil
	}})
	other, _ := openQueued(t, path, enginetest.Setup{Do: owner.c.Do})
	script := enginetest.Script{Stages: [][]enginetest.Step{{{ID: "1"}},
		{{ID: "2", Kind: tenon.CommandWait, After: time.Hour}}}}
	if err := owner.Start(t.Context(), script.Spec("r", "")); err != nil {
		t.Fatal(err)
	}
	<-begun
	rest, err := other.Drive(t.Context(), "r")
	if err != nil || !rest.Elsewhere {
		t.Errorf("driving a run of another process: %+v, %v", rest, err)
	}
	close(release)
	rest, err = owner.Drive(t.Context(), "r")
	if err != nil || rest.Elsewhere || rest.Run.State != tenon.RunInputRequired || rest.Wake <= 0 ||
		rest.Wake > time.Hour {
		t.Errorf("at rest: %+v, %v", rest, err)
	}
	if _, err := owner.Drive(t.Context(), "no"); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("driving a run that does not exist: %v", err)
	}
}

var _ Dispatcher = (*queue)(nil)
