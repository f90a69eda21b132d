package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store"
)

const (
	envHistories   = "TENON_HISTORIES" // number of histories of each kind
	linearReplicas = 4
	linearClients  = 8 // of each replica
	linearLimit    = 1000
	linearUses     = 5
)

// operation is the input of a call by a client.
type operation struct {
	client int
	kind   string
	amount int64
	of     int64 // amount of the reservation that is being settled
	by     string
}

// history collects the operations on one object.
type history struct {
	mu   sync.Mutex
	list []porcupine.Operation
}

// do makes a call and records it. An endless call has no recorded end, so it may take effect at any time after its
// beginning.
func (h *history) do(in operation, endless bool, call func() string) {
	begin := time.Now().UnixNano()
	out := call()
	o := porcupine.Operation{ClientId: in.client, Input: in, Output: out, Call: begin, Return: time.Now().UnixNano()}
	if endless {
		o.Return = math.MaxInt64
	}
	h.mu.Lock()
	h.list = append(h.list, o)
	h.mu.Unlock()
}

func (h *history) check(t *testing.T, object string, m porcupine.Model) {
	t.Helper()
	if r := porcupine.CheckOperationsTimeout(m, h.list, time.Minute); r != porcupine.Ok {
		b, _ := json.Marshal(h.list) // for people
		t.Errorf("%s: the history is not linearizable (%s):\n%.6000s", object, r, b)
	}
}

// model returns a porcupine model with a state and a step function.
func model[S any](step func(s S, in operation, out string) (bool, S)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { var s S; return s },
		Step: func(state, input, output any) (bool, any) {
			return step(state.(S), input.(operation), output.(string))
		},
	}
}

// Only the first decision about a call counts, and every client gets its author.
var decisions = model(func(by string, in operation, out string) (bool, string) {
	if by == "" {
		by = in.by
	}
	return out == by, by
})

// A grant can be used only the given number of times.
var uses = model(func(used int, _ operation, out string) (bool, int) {
	if used < linearUses {
		return out == "true", used + 1
	}
	return out == "false", used
})

// A run has at most one owner. A client that does not become the owner may have competed with another client that did
// not, either.
var owners = model(func(held bool, in operation, out string) (bool, bool) {
	switch {
	case in.kind == "release":
		return held, false
	case out == "false":
		return true, held
	}
	return !held, true
})

type spending struct{ used, reserved int64 }

// No reservation exceeds the rest of a budget. The exception is the first reservation of a step.
var spendings = model(func(s spending, in operation, out string) (bool, spending) {
	if in.kind == "settle" {
		return out == "ok", spending{s.used + in.amount, s.reserved - in.of}
	}
	refused := s.used+s.reserved >= linearLimit || s.reserved > 0 && s.used+s.reserved+in.amount > linearLimit
	if !refused {
		s.reserved += in.amount
	}
	return out == told(refused, s.used, s.reserved), s
})

func told(refused bool, used, reserved int64) string {
	return fmt.Sprintf("refused=%t used=%d reserved=%d", refused, used, reserved)
}

// linear is a kind of object, with the calls that clients make.
type linear struct {
	model porcupine.Model
	// prepare creates an object, and returns a function that makes the calls of a client at a replica.
	prepare func(t *testing.T, object string) func(h *history, client, replica int)
}

// TestLinearizable runs 32 clients at four replicas (8 clients for budgets). They decide about the same calls, use the
// same grants, spend the same budgets and take the same runs, while connections are killed. Every history must be
// linearizable.
func TestLinearizable(t *testing.T) {
	conf := place(t)
	var replicas []*Store
	var engines []engine.Engine
	for range linearReplicas {
		e, s := replicaOf(t, conf, bystander)
		engines, replicas = append(engines, e), append(replicas, s)
	}
	for name, kind := range map[string]linear{
		"decide": {decisions, deciding(engines)},
		"grant":  {uses, using(replicas)},
		"budget": {spendings, func(t *testing.T, key string) func(*history, int, int) {
			return func(h *history, client, replica int) { spend(t, h, replicas[replica], key, client) }
		}},
		"lease": {owners, func(t *testing.T, run string) func(*history, int, int) {
			return func(h *history, client, replica int) { own(t, h, replicas[replica], run, client) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stop := killSome(t, conf.Schema)
			defer stop()
			n := 0
			histories, clientsOf := times(t, envHistories, 8), linearClients
			if name == "budget" { // they wait for each other, and porcupine would need too long for many of them
				histories, clientsOf = max(1, histories/4), max(1, linearClients/4)
			}
			for i := range histories {
				object := fmt.Sprintf("%s_%d", name, i)
				act := kind.prepare(t, object)
				var h history
				var clients sync.WaitGroup
				for client := range linearReplicas * clientsOf {
					clients.Go(func() { act(&h, client, client%linearReplicas) })
				}
				clients.Wait()
				h.check(t, object, kind.model)
				n += len(h.list)
			}
			t.Logf("%d operations", n)
		})
	}
}

// deciding makes the clients decide about the call that a run waits for.
func deciding(engines []engine.Engine) func(*testing.T, string) func(*history, int, int) {
	return func(t *testing.T, run string) func(*history, int, int) {
		enginetest.Rested(t, engines[0], run)
		return func(h *history, client, replica int) {
			by := fmt.Sprint("client", client)
			h.do(operation{client: client, kind: "decide", by: by}, false, func() string {
				e, err := engines[replica].Signal(t.Context(), run, engine.Signal{ID: run + by, Kind: enginetest.KindGo,
					Step: "1", Data: json.RawMessage(strconv.Quote(by))})
				if err != nil {
					return err.Error()
				}
				var first string
				_ = json.Unmarshal(e.Data, &first) // written by this test
				return first
			})
		}
	}
}

// using has clients use a grant.
func using(replicas []*Store) func(*testing.T, string) func(*history, int, int) {
	return func(t *testing.T, id string) func(*history, int, int) {
		err := replicas[0].PutGrant(t.Context(), store.Grant{ID: id, Principal: "p", Server: "s", Remote: id,
			Uses: linearUses})
		if err != nil {
			t.Fatal(err)
		}
		return func(h *history, client, replica int) {
			h.do(operation{client: client, kind: "use"}, false, func() string {
				ok, err := replicas[replica].UseGrant(t.Context(), id, "r", fmt.Sprint(client), time.Now())
				if err != nil {
					return err.Error()
				}
				return fmt.Sprint(ok)
			})
		}
	}
}

// own takes the lease of a run, and releases it at once.
func own(t *testing.T, h *history, s *Store, run string, client int) {
	for range 3 {
		var release func()
		h.do(operation{client: client, kind: "acquire"}, false, func() string {
			r, ok, err := s.Acquire(run)
			if err != nil {
				t.Error(err)
			}
			release = r
			return fmt.Sprint(ok)
		})
		if release != nil { // if the connection was killed, the lease ends with the next heartbeat
			h.do(operation{client: client, kind: "release"}, true, func() string { release(); return "" })
		}
	}
}

// killSome ends connections of replicas until the returned function is called.
func killSome(t *testing.T, schema string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			admin(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'
				AND pid <> pg_backend_pid() AND query LIKE $1 AND random() < 0.2`, "%"+schema+"%")
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// spend reserves a part of a budget, and settles the reservation with another amount.
func spend(t *testing.T, h *history, s *Store, key string, client int) {
	// Each client uses different amounts, so that the balance shows which calls came before.
	run, amount, used := fmt.Sprint(key, "/", client), int64(10+7*client), int64(1+3*client)
	release, ok, err := s.Acquire(run) // reservations of runs without an owner are not counted
	if err != nil || !ok {
		t.Errorf("%s: %v, %v", run, ok, err)
		return
	}
	defer release()
	granted := false
	h.do(operation{client: client, kind: "reserve", amount: amount}, false, func() string {
		b, err := s.Reserve(t.Context(), run, "1", []store.Charge{{Key: key, Amount: amount, Limit: linearLimit}})
		if err != nil {
			return err.Error()
		}
		granted = !b[0].Refused
		return told(b[0].Refused, b[0].Used, b[0].Reserved)
	})
	if granted {
		h.do(operation{client: client, kind: "settle", amount: used, of: amount}, false, func() string {
			if err := s.Settle(t.Context(), run, "1", []int64{used}); err != nil {
				return err.Error()
			}
			return "ok"
		})
	}
}
