package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/engine/local"
	"github.com/tenonhq/tenon/store/signed"
)

// replicaOf returns an engine with its own store, and the store.
func replicaOf(t *testing.T, c Config, do engine.Do) (engine.Engine, *Store) {
	t.Helper()
	st, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := local.New(local.Config{Store: st, NewCore: enginetest.NewCore, Do: do, Grace: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close() // fails if a test has cut the connection
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, st
}

// speaker is an executor that emits the texts that the test sends, until the channel is closed.
func speaker(texts <-chan string) engine.Do {
	return func(ctx context.Context, _ string, _ engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
		for {
			select {
			case text, ok := <-texts:
				if !ok {
					return enginetest.Result(`"done"`), nil
				}
				data, _ := json.Marshal(engine.Delta{Kind: "text", Text: text})
				emit(tenon.Event{Kind: engine.LiveDelta, Data: data})
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
}

// heard follows a run and sends the text received so far after each delta. The channel is closed when the run ends.
func heard(t *testing.T, e engine.Engine, run string) <-chan string {
	t.Helper()
	out := make(chan string, 10_000)
	go func() {
		defer close(out)
		all := ""
		for event, err := range e.Events(t.Context(), run, 0) {
			if err != nil {
				return // the test misses the text
			}
			var d engine.Delta
			if event.Kind == engine.LiveDelta && json.Unmarshal(event.Data, &d) == nil {
				all += d.Text
				out <- all
			}
		}
	}()
	return out
}

// until waits for a text.
func until(t *testing.T, who string, texts <-chan string, want string) {
	t.Helper()
	last := ""
	for {
		select {
		case text, ok := <-texts:
			if !ok {
				t.Fatalf("%s heard %q until the end of the run, want %q", who, last, want)
			}
			if last = text; last == want {
				return
			}
			if !strings.HasPrefix(want, last) {
				t.Fatalf("%s heard %q, want %q", who, last, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s heard %q, want %q", who, last, want)
		}
	}
}

// TestLive_Replicas follows a run of one replica on two others. Each follower gets the complete text in order and once,
// even one that joins later. It also works with a store key, and without a listening connection.
func TestLive_Replicas(t *testing.T) {
	for name, deaf := range map[string]bool{"listening": false, "polling": true} {
		t.Run(name, func(t *testing.T) {
			c := place(t)
			key, err := signed.NewKey([]byte(strings.Repeat("k", 32)))
			if err != nil {
				t.Fatal(err)
			}
			c.Key, c.Lease = key, 2*time.Second
			if deaf {
				c.Direct = "host=/nonexistent dbname=d user=u"
			}
			texts := make(chan string)
			owner, ownerStore := replicaOf(t, c, speaker(texts))
			second, _ := replicaOf(t, c, bystander)
			third, thirdStore := replicaOf(t, c, bystander)
			if err := owner.Start(t.Context(), enginetest.Calls(1, true).Spec("r", "")); err != nil {
				t.Fatal(err)
			}
			texts <- "a"
			one := heard(t, second, "r")
			until(t, "the first follower", one, "a")
			want := "a"
			for i := range 50 {
				text := fmt.Sprintf(" %d\x00", i)
				want += text
				texts <- text
			}
			until(t, "the first follower", one, want)
			two, again := heard(t, third, "r"), heard(t, second, "r")
			until(t, "the follower that joins later", two, want)
			until(t, "the second follower of a replica", again, want)
			texts <- " end"
			want += " end"
			for who, list := range map[string]<-chan string{"first": one, "later": two, "second": again} {
				until(t, who, list, want)
			}
			close(texts)
			for range one { // read until the end of the run
			}
			for range two {
			}
			for range again {
			}
			wait(t, "the rows of followers are removed", func() bool {
				list, err := ownerStore.Followed(t.Context())
				n := 0
				if err == nil {
					err = thirdStore.pool.QueryRow(t.Context(), thirdStore.sql("SELECT (SELECT count(*) FROM @follows) + "+
						"(SELECT count(*) FROM @live)")).Scan(&n)
				}
				return err == nil && len(list) == 0 && n == 0
			})
		})
	}
}

// bystander is the executor of a replica that executes nothing.
func bystander(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
	return enginetest.Result(`"other"`), nil
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: that did not happen", what)
		}
	}
}

// TestLive_Foreign checks that live events that another user has written into the table are ignored, and that
// notifications contain no text.
func TestLive_Foreign(t *testing.T) {
	c := place(t)
	key, err := signed.NewKey([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	c.Key = key
	ctx := t.Context()
	conn, err := Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	listener, err := conn.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	if _, err := listener.Exec(ctx, `LISTEN "tenon_`+c.Schema+`"`); err != nil {
		t.Fatal(err)
	}
	texts := make(chan string)
	owner, _ := replicaOf(t, c, speaker(texts))
	other, otherStore := replicaOf(t, c, bystander)
	if err := owner.Start(ctx, enginetest.Calls(1, true).Spec("r", "")); err != nil {
		t.Fatal(err)
	}
	texts <- "secret"
	list := heard(t, other, "r")
	until(t, "the follower", list, "secret")
	admin(t, "INSERT INTO "+c.Schema+".live (target, at, run, events) VALUES ($1, clock_timestamp(), 'r', $2)",
		otherStore.replica, []byte(`[{"run":"r","seq":0,"step":"1","kind":"delta","data":{"kind":"text","text":"forged"}}]`))
	texts <- " text"
	until(t, "the follower", list, "secret text")
	close(texts)
	for range list {
	}
	for { // the notifications so far
		short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		n, err := listener.Conn().WaitForNotification(short)
		stop()
		if err != nil {
			break
		}
		if strings.Contains(n.Payload, "secret") || strings.Contains(n.Payload, "text") || len(n.Payload) > 40 {
			t.Errorf("a notification has the payload %q", n.Payload)
		}
	}
}
