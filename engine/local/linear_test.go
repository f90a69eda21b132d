package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

const (
	envLinear     = "TENON_LINEAR"       // turns the test binary into one of the processes: "PROCESS HISTORIES BEGIN"
	envHistories  = "TENON_HISTORIES"    // number of histories in TestLinearizable
	linearProcs   = 4                    // on one store
	linearClients = 8                    // clients of each process
	linearSlot    = 4 * time.Millisecond // the time between two histories
	linearLimit   = 1000                 // limit of a budget
)

// operation is an output line of a process: a call or its return.
type operation struct {
	Client  int    `json:"client"`
	N       int    `json:"n"` // number of the client's operation
	Object  string `json:"object"`
	Kind    string `json:"kind"`
	Call    int64  `json:"call"`
	Return  int64  `json:"return,omitempty"`
	Amount  int64  `json:"amount,omitempty"`
	Settles int64  `json:"settles,omitempty"` // the reservation that settle ends
	Out     string `json:"out,omitempty"`
}

const (
	opDecide  = "decide"
	opCancel  = "cancel"
	opReserve = "reserve"
	opSettle  = "settle"
	refusedBy = "conflict"
)

// TestLinearizable runs 32 clients in four processes. They decide about the same calls, cancel the same runs
// and draw on the same budgets, 16 of them on each, while one of the processes is killed repeatedly. Every history of a
// run or a budget must be linearizable.
func TestLinearizable(t *testing.T) {
	histories := 40
	if s := os.Getenv(envHistories); s != "" {
		var err error
		if histories, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	e, st := linearEngine(t, dir)
	for i := range histories {
		enginetest.Rested(t, e, fmt.Sprintf("run_%d", i))
	}
	for i := range linearProcs * linearClients {
		enginetest.Rested(t, e, fmt.Sprintf("client_%d", i))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	decisions, killed := linearLives(t, dir, "decide", histories)
	budgets, _ := linearLives(t, dir, "budget", max(histories/4, 1))
	e, st = linearEngine(t, dir)
	defer func() {
		_ = e.Close() // no run is active
		_ = st.Close()
	}()
	for i := range histories { // an operation after all others sees the journal
		o := operation{Client: linearProcs * linearClients, N: i, Object: fmt.Sprintf("run_%d", i), Kind: opDecide,
			Call: time.Now().UnixNano()}
		o.Out = decide(t.Context(), e, o)
		o.Return = time.Now().UnixNano()
		decisions = append(decisions, o)
	}
	n, pending := linearizable(t, decisionModel, decisions)
	m, _ := linearizable(t, budgetModel, budgets)
	t.Logf(
		"%s: %d histories of %d decisions and cancels (%d of them broken off by %d kills), %d histories of %d "+
			"reservations and settlements, all linearizable",
		time.Since(began).Round(time.Millisecond), n, len(decisions), pending, killed, m, len(budgets))
}

func linearEngine(t *testing.T, dir string) (*Engine, *sqlite.Store) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Store: st, NewCore: enginetest.NewCore, Do: func(context.Context, string, engine.Attempt,
		func(tenon.Event)) ([]tenon.Event, error) {
		return enginetest.Result(`"done"`), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return e, st
}

// maxKilled bounds the number of kills.
const maxKilled = 20

// linearLives runs the processes and returns their operations. It kills and restarts the first process while
// there are decisions to make.
func linearLives(t *testing.T, dir, what string, histories int) (done []operation, killed int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now().Add(300 * time.Millisecond)
	live := func(proc int, kill time.Duration) (died bool) {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %d", envLinear, what, proc, histories,
			begin.UnixNano()), envDir+"="+dir)
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return false
		}
		if kill > 0 {
			stop := time.AfterFunc(kill, func() { _ = cmd.Process.Kill() }).Stop // fails if the process has ended
			defer stop()
		}
		err := cmd.Wait()
		if stderr.Len() > 0 || err != nil && kill == 0 {
			t.Errorf("process %d: %v\n%s", proc, err, stderr.String())
		}
		mu.Lock()
		defer mu.Unlock()
		done = append(done, operations(t, &out)...)
		return err != nil
	}
	for proc := range linearProcs {
		wg.Go(func() {
			for what == "decide" && proc == 0 && killed < maxKilled &&
				live(proc, 300*time.Millisecond+rand.N(linearSlot*time.Duration(histories/2+1))) {
				killed++
			}
			if proc > 0 || what != "decide" || killed == maxKilled {
				live(proc, 0) // a slow start, as under the race detector, would prevent any work
			}
		})
	}
	wg.Wait()
	return done, killed
}

// operations parses the output of a process. An operation without a return was cut off, and may have taken
// effect or not.
func operations(t *testing.T, out *bytes.Buffer) (done []operation) {
	t.Helper()
	open := map[[2]int]operation{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var o operation
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			continue // the last line of a killed process
		}
		if o.Return == 0 {
			open[[2]int{o.Client, o.N}] = o
			continue
		}
		delete(open, [2]int{o.Client, o.N})
		done = append(done, o)
	}
	for _, o := range open {
		o.Return = math.MaxInt64
		done = append(done, o)
	}
	return done
}

// linearizable checks each object's history against a model.
func linearizable(t *testing.T, m porcupine.Model, done []operation) (histories, pending int) {
	t.Helper()
	objects := map[string][]porcupine.Operation{}
	for _, o := range done {
		if o.Return == math.MaxInt64 {
			pending++
		}
		objects[o.Object] = append(objects[o.Object], porcupine.Operation{ClientId: o.Client, Input: o, Output: o.Out,
			Call: o.Call, Return: o.Return})
	}
	for object, history := range objects {
		if r := porcupine.CheckOperationsTimeout(m, history, time.Minute); r != porcupine.Ok {
			b, _ := json.MarshalIndent(history, "", " ")
			t.Errorf("%s: the history is not linearizable (%s):\n%.6000s", object, r, b)
		}
	}
	return len(objects), pending
}

// decided is the state of a waiting run: the first decision, and whether the run was cancelled.
type decided struct {
	by        string
	cancelled bool
}

// decisionModel: the first decision wins and every caller gets it. After a cancel there are no further
// decisions.
var decisionModel = porcupine.Model{
	Init: func() any { return decided{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(decided), input.(operation), output.(string)
		told := func(want string) bool { return in.Return == math.MaxInt64 || out == want }
		switch {
		case in.Kind == opCancel:
			s.cancelled = true
			return told("ok"), s
		case s.by != "":
			return told(s.by), s
		case s.cancelled:
			return told(refusedBy), s
		}
		s.by = in.name()
		return told(s.by), s
	},
}

func (o operation) name() string { return fmt.Sprintf("%d/%d", o.Client, o.N) }

// spending is the state of a budget.
type spending struct{ used, reserved int64 }

// budgetModel models the rules of [store.Budgets].
var budgetModel = porcupine.Model{
	Init: func() any { return spending{} },
	Step: func(state, input, output any) (bool, any) {
		s, in := state.(spending), input.(operation)
		if in.Kind == opSettle {
			s.used, s.reserved = s.used+in.Amount, s.reserved-in.Settles
			return output == "ok", s
		}
		refused := s.used+s.reserved >= linearLimit || s.reserved > 0 && s.used+s.reserved+in.Amount > linearLimit
		if !refused {
			s.reserved += in.Amount
		}
		return output == s.told(refused), s
	},
}

func (s spending) told(refused bool) string {
	return fmt.Sprintf("refused=%t used=%d reserved=%d", refused, s.used, s.reserved)
}

// linearMain is one of the processes.
func linearMain() {
	args := os.Getenv(envLinear)
	if args == "" {
		return
	}
	if err := linearProcess(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func linearProcess(args string) error {
	var what string
	var proc, histories int
	var begin int64
	if _, err := fmt.Sscan(args, &what, &proc, &histories, &begin); err != nil {
		return err
	}
	st, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(os.Getenv(envDir), "tenon.db")})
	if err != nil {
		return err
	}
	e, err := New(Config{Store: st, NewCore: enginetest.NewCore, Do: func(context.Context, string, engine.Attempt,
		func(tenon.Event)) ([]tenon.Event, error) {
		return enginetest.Result(`"done"`), nil
	}})
	if err != nil {
		return err
	}
	p := &process{e: e, st: st, out: json.NewEncoder(os.Stdout)}
	var wg sync.WaitGroup
	for i := range linearClients {
		wg.Go(func() {
			client := proc*linearClients + i
			for h := range histories {
				due := time.Unix(0, begin).Add(time.Duration(h) * linearSlot)
				if what == "decide" && time.Since(due) > linearSlot*20 && proc == 0 {
					continue // a restarted process continues where the others are
				}
				time.Sleep(time.Until(due))
				switch {
				case what == "decide":
					p.decideOrCancel(client, h)
				case client%2 == h%2: // with more clients at once, the search takes minutes under the race detector
					p.spend(client, h)
				}
			}
		})
	}
	wg.Wait()
	if err := e.Close(); err != nil {
		return err
	}
	return st.Close()
}

// process is a process of clients.
type process struct {
	e   *Engine
	st  *sqlite.Store
	mu  sync.Mutex
	out *json.Encoder
}

// do prints the start of an operation, runs it, and prints its result.
func (p *process) do(o operation, does func() string) string {
	o.Call = time.Now().UnixNano()
	p.say(o)
	o.Out = does()
	o.Return = time.Now().UnixNano()
	p.say(o)
	return o.Out
}

func (p *process) say(o operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(o) // on an error, the operation has no end
}

func (p *process) decideOrCancel(client, h int) {
	o := operation{Client: client, N: h + 1000*os.Getpid(), Object: fmt.Sprintf("run_%d", h), Kind: opDecide}
	if rand.IntN(24) == 0 {
		o.Kind = opCancel
		p.do(o, func() string {
			if err := p.e.Cancel(context.Background(), o.Object, ""); err != nil {
				return err.Error()
			}
			return "ok"
		})
		return
	}
	p.do(o, func() string { return decide(context.Background(), p.e, o) })
}

// decide answers the wait of a run and returns the client whose answer won.
func decide(ctx context.Context, e *Engine, o operation) string {
	ev, err := e.Signal(ctx, o.Object, engine.Signal{ID: o.Object + "/" + o.name(), Kind: enginetest.KindGo, Step: "1",
		Data: json.RawMessage(strconv.Quote(o.name()))})
	switch {
	case tenon.ErrorCode(err) == tenon.CodeConflict:
		return refusedBy
	case err != nil:
		return err.Error()
	case ev.Kind != enginetest.KindGo:
		return refusedBy // another event made the decision void
	}
	var by string
	_ = json.Unmarshal(ev.Data, &by) // written by this test
	return by
}

// spend draws on a budget until the budget refuses.
func (p *process) spend(client, h int) {
	run, key := fmt.Sprintf("client_%d", client), fmt.Sprintf("day/%d/tokens", h)
	release, ok, err := p.st.Acquire(run)
	if err != nil || !ok {
		p.say(operation{Client: client, N: -1, Object: key, Kind: "lease", Return: 1, Out: fmt.Sprint(ok, err)})
		return
	}
	defer release()
	for i := range 3 {
		n, amount := h*10+i, 1+rand.Int64N(300)
		id := fmt.Sprint("step", n)
		granted := false
		p.do(operation{Client: client, N: 2 * n, Object: key, Kind: opReserve, Amount: amount}, func() string {
			b, err := p.st.Reserve(context.Background(), run, id,
				[]store.Charge{{Key: key, Amount: amount, Limit: linearLimit}})
			if err != nil {
				return err.Error()
			}
			granted = !b[0].Refused
			return spending{b[0].Used, b[0].Reserved}.told(b[0].Refused)
		})
		if !granted {
			continue
		}
		cost := rand.Int64N(amount + 1)
		p.do(operation{Client: client, N: 2*n + 1, Object: key, Kind: opSettle, Amount: cost, Settles: amount},
			func() string {
				if err := p.st.Settle(context.Background(), run, id, []int64{cost}); err != nil {
					return err.Error()
				}
				return "ok"
			})
	}
}
