package enginetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

func testClose(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e := open(Setup{Do: func(ctx context.Context, _ string, c engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
		begun <- fmt.Sprintf("%s#%d", c.Step, c.Attempt)
		<-ctx.Done()
		if c.Step == "1" {
			return Result(`"in time"`), nil
		}
		return nil, ctx.Err()
	}})
	s := Script{Stages: [][]Step{{{ID: "1"}, {ID: "2"}}}}
	must(t, e.Start(t.Context(), s.Spec("r", "")))
	<-begun
	<-begun
	ended := make(chan error, 1)
	go func() {
		for _, err := range e.Events(t.Context(), "r", 0) {
			if err != nil {
				ended <- err
			}
		}
		close(ended)
	}()
	time.Sleep(time.Millisecond)
	must(t, e.Close())
	must(t, e.Close())
	wantCode(t, <-ended, tenon.CodeCancelled)
	wantCode(t, e.Start(t.Context(), s.Spec("r2", "")), tenon.CodeCancelled)
	e = open(Setup{Do: answer})
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 started:2#1 result:1#1 unknown:2#1 done")
}

func testList(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	dead := open(Setup{Do: hang(begun)})
	must(t, dead.Start(t.Context(), Calls(1, true).Spec("run_1", "a")))
	waitFor(t, begun, "1#1")
	must(t, dead.Close())
	e, other := open(Setup{Do: hang(begun)}), open(Setup{Do: answer})
	must(t, e.Start(t.Context(), Calls(1, true).Spec("run_2", "b")))
	waitFor(t, begun, "1#1")
	rest(t, other, "run_3", asking)
	must(t, other.Start(t.Context(), Calls(1, true).Spec("run_4", "b4")))
	_, _, err := follow(t, other, "run_4", 0)
	must(t, err)
	for name, c := range map[string]struct {
		f    engine.Filter
		want string
	}{
		"all":       {engine.Filter{}, "run_4 run_3 run_2 run_1"},
		"resumable": {engine.Filter{Resumable: true}, "run_1"},
		"working":   {engine.Filter{State: tenon.RunWorking}, "run_2 run_1"},
		"session":   {engine.Filter{Session: "b"}, "run_2"},
		"page":      {engine.Filter{Before: "run_4", Limit: 2}, "run_3 run_2"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range []engine.Engine{e, other} {
				rows, err := e.List(t.Context(), c.f)
				must(t, err)
				var ids []string
				for _, r := range rows {
					ids = append(ids, r.ID)
				}
				if got := strings.Join(ids, " "); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			}
		})
	}
}

// testOneOwner starts the same run from many engines. Only one may work on it.
func testOneOwner(t *testing.T, open func(Setup) engine.Engine) {
	var mu sync.Mutex
	ran := map[string]int{}
	do := func(ctx context.Context, run string, c engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
		mu.Lock()
		ran[c.Step]++
		mu.Unlock()
		time.Sleep(time.Millisecond)
		return answer(ctx, run, c, emit)
	}
	var wg sync.WaitGroup
	engines := []engine.Engine{open(Setup{Do: do}), open(Setup{Do: do}), open(Setup{Do: do})}
	for i := range 12 {
		wg.Go(func() {
			if err := engines[i%3].Start(t.Context(), Calls(5, false).Spec("r", "s")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range engines {
		wantJournal(t, e, "r",
			"run started:1#1 result:1#1 started:2#1 result:2#1 started:3#1 result:3#1 started:4#1 result:4#1 "+
				"started:5#1 result:5#1 done")
	}
	for step, n := range ran {
		if n != 1 {
			t.Errorf("step %s ran %d times", step, n)
		}
	}
}

func testManyRuns(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			id := fmt.Sprintf("r%03d", i)
			if err := e.Start(t.Context(), Calls(10, i%2 == 0).Spec(id, id)); err != nil {
				t.Error(err)
				return
			}
			n := 0
			for _, err := range e.Events(deadline(t), id, 0) {
				if err != nil {
					t.Error(err)
				}
				n++
			}
			if n != 22 {
				t.Errorf("run %s has %d events, want 22", id, n)
			}
		})
	}
	wg.Wait()
}

// testStuck starts a run whose core returns no command.
func testStuck(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: func(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
		return []tenon.Event{{Kind: tenon.EventStarted}}, nil // invalid: the step stays running
	}})
	must(t, e.Start(t.Context(), Calls(1, false).Spec("r", "")))
	_, _, err := follow(t, e, "r", 0)
	wantCode(t, err, tenon.CodeInternal)
}

func testNoEvent(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: func(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
		return nil, nil
	}})
	must(t, e.Start(t.Context(), Calls(1, false).Spec("r", "")))
	_, _, err := follow(t, e, "r", 0)
	wantCode(t, err, tenon.CodeInternal)
}
