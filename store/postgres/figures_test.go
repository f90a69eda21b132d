package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
)

// envFigures names the file for the measured values. make figures ID=PG sets it: see internal/figures/pg.go.
const envFigures = "TENON_FIGURES"

const (
	figureWriters = 100
	figureSteps   = 40 // of each writer
	figureTurns   = 200
	figureDeltas  = 60 // of each run that streams
)

// stepResult is the result of a step: 1 KiB.
var stepResult = `"` + strings.Repeat("x", 1022) + `"`

// TestFigures measures one round of the figures PG.…. Values that are compared with each other are measured
// alternately.
func TestFigures(t *testing.T) {
	file := os.Getenv(envFigures)
	if file == "" {
		t.Skip(envFigures + " is not set: make figures ID=PG sets it")
	}
	values := map[string]float64{}
	bare := openBare(t)
	values["steps.floor"] = bare.round(t, figureWriters, figureSteps)
	values["steps.ours"] = stepsPerSecond(t, figureWriters, figureSteps)
	values["steps"] = values["steps.ours"] / values["steps.floor"]

	commit := 1 / bare.round(t, 1, figureTurns) // seconds
	turn, commits := oneRun(t)
	values["turn.ours"], values["turn.floor"], values["turn.commits"] = turn*1e3, commit*1e3, commits
	values["turn"] = turn / (commit * commits)
	values["follow"] = followLatency(t)
	b, err := json.Marshal(values)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// bareInserts is the lower bound for comparison: a single table, and one connection that inserts all waiting rows in
// one transaction.
type bareInserts struct {
	ops  chan bareRow
	next int64
}

type bareRow struct {
	run, seq int64
	done     chan error
}

func openBare(t *testing.T) *bareInserts {
	t.Helper()
	ctx := t.Context()
	conf, err := connConfig(server(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	conf.DefaultQueryExecMode, conf.StatementCacheCapacity = pgx.QueryExecModeCacheStatement, 16 // the fastest
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprintf("bare_%d", os.Getpid())
	if _, err := conn.Exec(ctx, "CREATE TABLE "+table+" (run bigint, seq bigint, data bytea, PRIMARY KEY (run, seq))"); err != nil {
		t.Fatal(err)
	}
	b := &bareInserts{ops: make(chan bareRow, maxBatch)}
	done := make(chan struct{})
	data := []byte(stepResult + `{"kind":"call","idempotent":true}`) // the bytes of a step
	go func() {
		defer close(done)
		for first := range b.ops {
			rows := b.collect(first)
			batch := &pgx.Batch{}
			batch.Queue("BEGIN")
			for _, r := range rows {
				batch.Queue("INSERT INTO "+table+" VALUES ($1, $2, $3)", r.run, r.seq, data)
			}
			batch.Queue("COMMIT")
			err := conn.SendBatch(ctx, batch).Close()
			for _, r := range rows {
				r.done <- err
			}
		}
	}()
	t.Cleanup(func() {
		close(b.ops)
		<-done
		_ = conn.Close(context.Background()) // the figures are taken
		admin(t, "DROP TABLE "+table)
	})
	return b
}

// collect takes the waiting rows, as [Store.collect] does.
func (b *bareInserts) collect(first bareRow) []bareRow {
	rows := []bareRow{first}
	for idle := 0; len(rows) < maxBatch && idle < 2; {
		select {
		case r := <-b.ops:
			rows, idle = append(rows, r), 0
		default:
			idle++
			runtime.Gosched()
		}
	}
	return rows
}

// round returns the number of rows that the writers insert per second. Each writer waits until its last row is stored.
func (b *bareInserts) round(t *testing.T, writers, steps int) (perSecond float64) {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for range writers {
		b.next++
		run := b.next
		wg.Go(func() {
			done := make(chan error, 1)
			for seq := range steps {
				b.ops <- bareRow{run, int64(seq), done}
				if err := <-done; err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(writers*steps) / time.Since(began).Seconds()
}

func stepping(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
	return enginetest.Result(stepResult), nil
}

// drive starts runs and waits until all have ended.
func drive(t *testing.T, e engine.Engine, prefix string, runs, steps int) time.Duration {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			run := fmt.Sprint(prefix, i)
			if err := e.Start(t.Context(), enginetest.Calls(steps, true).Spec(run, "")); err != nil {
				t.Error(err)
				return
			}
			for _, err := range e.Events(t.Context(), run, uint64(2*steps)) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}

func stepsPerSecond(t *testing.T, runs, steps int) float64 {
	t.Helper()
	e, _ := replicaOf(t, place(t), stepping)
	drive(t, e, "warm", 1, 2)
	return float64(runs*steps) / drive(t, e, "r", runs, steps).Seconds()
}

// oneRun returns the time in seconds and the number of commits for a step of a single run.
func oneRun(t *testing.T) (seconds, commits float64) {
	t.Helper()
	e, s := replicaOf(t, place(t), stepping)
	drive(t, e, "warm", 1, 2)
	written := func() (n int64) {
		err := s.pool.QueryRow(t.Context(), s.sql("SELECT coalesce(sum(n), 0) FROM @writers WHERE replica = $1"),
			s.replica).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := written()
	took := drive(t, e, "r", 1, figureTurns)
	return took.Seconds() / figureTurns, float64(written()-before) / figureTurns
}

// followLatency returns the 95th percentile of the time, in milliseconds, until a delta is seen at another replica while
// 100 runs stream, each a delta in 50 ms. Ten of them are followed.
func followLatency(t *testing.T) float64 {
	t.Helper()
	c := place(t)
	follow := make(chan struct{})
	owner, _ := replicaOf(t, c, func(ctx context.Context, _ string, _ engine.Attempt,
		emit func(tenon.Event)) ([]tenon.Event, error) {
		select {
		case <-follow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		for range figureDeltas {
			data, _ := json.Marshal(engine.Delta{Kind: "text", Text: fmt.Sprintf("%d ", time.Now().UnixMicro())})
			emit(tenon.Event{Kind: engine.LiveDelta, Data: data})
			time.Sleep(50 * time.Millisecond)
		}
		return enginetest.Result(`"done"`), nil
	})
	other, otherStore := replicaOf(t, c, bystander)
	for i := range figureWriters {
		if err := owner.Start(t.Context(), enginetest.Calls(1, true).Spec(fmt.Sprint("r", i), "")); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var late []float64
	var followers sync.WaitGroup
	for i := range 10 {
		followers.Go(func() {
			for e, err := range other.Events(t.Context(), fmt.Sprint("r", i), 0) {
				var d engine.Delta
				if err != nil || e.Kind != engine.LiveDelta || json.Unmarshal(e.Data, &d) != nil {
					continue
				}
				now := time.Now().UnixMicro()
				mu.Lock()
				for sent := range strings.FieldsSeq(d.Text) {
					if at, err := strconv.ParseInt(sent, 10, 64); err == nil {
						late = append(late, float64(now-at)/1e3)
					}
				}
				mu.Unlock()
			}
		})
	}
	wait(t, "ten runs are followed", func() bool { return !otherStore.live.idle() && len(otherStore.followed()) == 10 })
	close(follow)
	followers.Wait()
	if len(late) < 10*figureDeltas*9/10 {
		t.Errorf("%d of %d deltas were seen", len(late), 10*figureDeltas)
	}
	slices.Sort(late)
	return late[len(late)*95/100]
}

// followed returns the runs that are followed in this process.
func (s *Store) followed() (runs []string) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	for run := range s.live.runs {
		runs = append(runs, run)
	}
	return runs
}
