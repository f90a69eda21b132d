package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store/sqlite"
)

const (
	envDir   = "TENON_KILL_DIR"   // turns the test binary into the process to kill
	envCycle = "TENON_KILL_CYCLE" // -1 to finish the existing runs
	envKills = "TENON_KILLS"      // number of kills in TestKill
	killRuns = 6                  // new runs in each cycle
)

// killScript has calls that may be repeated and calls that must not, some of them concurrent, and a step that
// waits.
func killScript() enginetest.Script {
	var s enginetest.Script
	for i := range 12 {
		id := func(n int) string { return fmt.Sprintf("%d.%d", i, n) }
		s.Stages = append(s.Stages,
			[]enginetest.Step{{ID: id(0), Kind: "decide"}},
			[]enginetest.Step{{ID: id(1)}, {ID: id(2), Idempotent: true}, {ID: id(3)}})
		if i == 3 {
			s.Stages = append(s.Stages, []enginetest.Step{{ID: id(4), Kind: "wait"}})
		}
	}
	return s
}

// childMain is the process to kill. It resumes existing runs, starts new ones, and prints each event once it
// is stored.
func childMain() {
	dir := os.Getenv(envDir)
	if dir == "" {
		return
	}
	if err := child(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(dir string) error {
	ctx := context.Background()
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "tenon.db")})
	if err != nil {
		return err
	}
	effects, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	e, err := New(Config{Store: st, NewCore: enginetest.NewCore,
		Do: func(_ context.Context, run string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
			if c.Kind == engine.CommandDecide {
				return []tenon.Event{{Kind: "decided"}}, nil
			}
			time.Sleep(rand.N(2 * time.Millisecond))
			if _, err := fmt.Fprintf(effects, "%s %s\n", run, c.Step); err != nil {
				return nil, err
			}
			time.Sleep(rand.N(2 * time.Millisecond))
			return enginetest.Result(`"done"`), nil
		}})
	if err != nil {
		return err
	}
	var specs []engine.Spec
	for _, f := range []engine.Filter{{Resumable: true, Limit: 10000}, {State: tenon.RunInputRequired, Limit: 10000}} {
		runs, err := e.List(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range runs {
			specs = append(specs, engine.Spec{Run: tenon.Run{ID: r.ID}})
		}
	}
	if cycle := os.Getenv(envCycle); cycle != "-1" {
		for i := range killRuns {
			id := "run_" + cycle + "_" + strconv.Itoa(i)
			specs = append(specs, killScript().Spec(id, "session_"+id))
		}
	}
	var wg sync.WaitGroup
	errs := make(chan error, len(specs))
	for _, spec := range specs {
		wg.Go(func() {
			if err := work(ctx, e, spec); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	return st.Close()
}

// work drives one run to its end and answers its waits.
func work(ctx context.Context, e *Engine, spec engine.Spec) error {
	var seq uint64
	for {
		if err := e.Start(ctx, spec); err != nil {
			return err
		}
		waiting := ""
		for ev, err := range e.Events(ctx, spec.Run.ID, seq) {
			if err != nil {
				return err
			}
			if ev.Kind == engine.EventWaiting {
				waiting = "3.4"
				continue
			}
			seq = ev.Seq
			fmt.Printf("%s %d %s\n", ev.Run, ev.Seq, ev.Kind)
		}
		if waiting == "" {
			return nil
		}
		ev, err := e.Signal(ctx, spec.Run.ID, engine.Signal{ID: spec.Run.ID + "/go", Kind: enginetest.KindGo,
			Step: waiting})
		if err != nil {
			return err
		}
		fmt.Printf("%s %d %s\n", ev.Run, ev.Seq, ev.Kind)
	}
}

// TestKill kills working processes with SIGKILL at random times. It compares the journals with the output and
// the effects of the processes.
func TestKill(t *testing.T) {
	kills := 10
	if s := os.Getenv(envKills); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	acks := map[string]map[uint64]string{} // events that the processes reported as stored
	began, killed := time.Now(), 0
	for i := range kills {
		if life(t, dir, strconv.Itoa(i), time.Millisecond+rand.N(70*time.Millisecond), acks) {
			killed++
		}
	}
	for range 2 { // the second process has nothing to do
		life(t, dir, "-1", 0, acks)
	}
	n := check(t, dir, acks)
	t.Logf("%d processes, %d of them killed at work, in %s: %s", kills+2, killed,
		time.Since(began).Round(time.Millisecond), n)
}

// life runs one process. If the time is not zero, it kills the process that long after its first output. It
// reports whether the process was killed.
func life(t *testing.T, dir, cycle string, kill time.Duration, acks map[string]map[uint64]string) (killed bool) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envDir+"="+dir, envCycle+"="+cycle)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for first := true; ; first = false {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			break // an incomplete line does not count
		}
		if err != nil {
			t.Fatal(err)
		}
		if first && kill > 0 {
			time.AfterFunc(kill, func() { _ = cmd.Process.Kill() }) // fails if the process has ended
		}
		var run, kind string
		var seq uint64
		if _, err := fmt.Sscan(line, &run, &seq, &kind); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if acks[run] == nil {
			acks[run] = map[uint64]string{}
		}
		if old := acks[run][seq]; old != "" && old != kind {
			t.Errorf("event %d of %s was %s and is %s", seq, run, old, kind)
		}
		acks[run][seq] = kind
	}
	if err = cmd.Wait(); kill == 0 && err != nil {
		t.Fatalf("the last process: %v\n%s", err, stderr.String())
	}
	if s := stderr.String(); s != "" {
		t.Errorf("the process printed:\n%s", s)
	}
	return err != nil
}

// tally counts the results of the check.
type tally struct{ runs, events, acked, results, unknown, repeated int }

func (n tally) String() string {
	return fmt.Sprintf("%d runs, %d events, %d acknowledged, %d results, %d unknown, %d idempotent calls repeated",
		n.runs, n.events, n.acked, n.results, n.unknown, n.repeated)
}

func check(t *testing.T, dir string, acks map[string]map[uint64]string) (n tally) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }() // opened for reading only
	data, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		effects[line]++
	}
	for run, acked := range acks {
		n.runs++
		n.acked += len(acked)
		row, err := st.Run(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if row.State != tenon.RunCompleted {
			t.Errorf("run %s is %s", run, row.State)
		}
		events, err := st.Events(t.Context(), run, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		n.events += len(events)
		ends := map[string][]string{}
		for i, e := range events {
			if e.Seq != uint64(i+1) {
				t.Fatalf("run %s: event %d is at position %d", run, e.Seq, i+1)
			}
			if e.Kind == enginetest.KindResult || e.Kind == tenon.EventUnknown || e.Kind == enginetest.KindGo {
				ends[e.Step] = append(ends[e.Step], e.Kind)
			}
		}
		for seq, kind := range acked {
			if seq > uint64(len(events)) || events[seq-1].Kind != kind {
				t.Errorf("run %s: event %d (%s) was acknowledged but is lost", run, seq, kind)
			}
		}
		for _, stage := range killScript().Stages {
			for _, s := range stage {
				if s.Kind == "decide" {
					continue
				}
				end := ends[s.ID]
				if len(end) != 1 {
					t.Errorf("run %s: step %s ended %d times: %v", run, s.ID, len(end), end)
					continue
				}
				did := effects[run+" "+s.ID]
				switch {
				case end[0] == tenon.EventUnknown:
					n.unknown++
					if s.Idempotent || did > 1 {
						t.Errorf("run %s: step %s (idempotent %t) is unknown and ran %d times", run, s.ID,
							s.Idempotent, did)
					}
				case end[0] == enginetest.KindResult:
					n.results++
					if did == 0 || did > 1 && !s.Idempotent {
						t.Errorf("run %s: step %s (idempotent %t) has a result and ran %d times", run, s.ID,
							s.Idempotent, did)
					}
					n.repeated += did - 1
				}
			}
		}
	}
	return n
}
