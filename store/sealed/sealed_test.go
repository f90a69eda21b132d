package sealed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sealed"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/store/storetest"
)

// reverse is a cipher that reverses the bytes of a value.
type reverse struct{}

type box struct {
	Bound string `json:"bound"`
	Data  []byte `json:"data"`
}

func (reverse) Seal(plain []byte, bound string) ([]byte, error) {
	return json.Marshal(box{bound, reversed(plain)})
}

func (reverse) Open(sealed []byte, bound string) ([]byte, error) {
	var b box
	if err := json.Unmarshal(sealed, &b); err != nil {
		return nil, err
	}
	if b.Bound != bound {
		return nil, errors.New("bound to " + b.Bound)
	}
	return reversed(b.Data), nil
}

func reversed(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := len(b) - 1; i >= 0; i-- {
		out = append(out, b[i])
	}
	return out
}

// TestSuite runs the suite of all stores with the encryption of names that occur in much of its data.
func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		path := filepath.Join(t.TempDir(), "tenon.db")
		return func() store.Store {
			s, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			return sealed.New(s, reverse{}, []string{"n", "text", "data"})
		}
	})
}

func TestEncryption(t *testing.T) {
	ctx := context.Background()
	inner, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := sealed.New(inner, reverse{}, []string{"IBAN"})
	now := time.Unix(1, 0)
	run := tenon.Run{ID: "run_1", Session: "ses_1", Created: now, Updated: now, State: tenon.RunInputRequired}
	tests := map[string]struct {
		data   string
		sealed bool
	}{
		"a named member":         {`{"arguments":{"iban":"DE1"}}`, true},
		"a name in another case": {`{"Iban":"DE2"}`, true},
		"an escaped name":        {`{"\u0069ban":"DE3"}`, true},
		"no named member":        {`{"city":"Bern"}`, false},
	}
	created := store.Append{Create: &run, Run: run.ID, State: run.State, Events: []tenon.Event{{Run: run.ID, Seq: 1, Time: now, Kind: tenon.EventRun}}}
	if err := s.Append(ctx, created); err != nil {
		t.Fatal(err)
	}
	seq := uint64(1)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			seq++
			data := json.RawMessage(tt.data)
			a := store.Append{Run: run.ID, State: run.State, Events: []tenon.Event{{Run: run.ID, Seq: seq, Time: now, Kind: "k", Step: "1", Data: data}},
				Waiting: []tenon.Waiting{{Step: "1", Data: data}}}
			if err := s.Append(ctx, a); err != nil {
				t.Fatal(err)
			}
			raw, err := inner.Events(ctx, run.ID, seq-1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := !bytes.Contains(raw[0].Data, data); got != tt.sealed {
				t.Errorf("stored as %s", raw[0].Data)
			}
			got, err := s.Events(ctx, run.ID, seq-1, 1)
			if err != nil || string(got[0].Data) != tt.data {
				t.Errorf("read %s, %v", got[0].Data, err)
			}
			r, err := s.Run(ctx, run.ID)
			if err != nil || len(r.Waiting) != 1 || string(r.Waiting[0].Data) != tt.data {
				t.Errorf("waits for %+v, %v", r.Waiting, err)
			}
		})
	}
	if _, err := sealed.New(inner, nil, nil).Events(ctx, run.ID, 0, 10); tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "encrypted") {
		t.Errorf("without a cipher: %v", err)
	}
}

// relay is a store that passes published live events to followers.
type relay struct {
	store.Store
	sent []store.LiveEvents
}

func (r *relay) FollowLive(_ context.Context, run string, each func(tenon.Event)) {
	for _, l := range r.sent {
		for _, e := range l.Events {
			if l.Run == run {
				each(e)
			}
		}
	}
}
func (r *relay) Followed(context.Context) ([]store.LiveFollower, error) { return nil, nil }
func (r *relay) Wake() <-chan struct{}                                  { return make(chan struct{}) }
func (r *relay) PublishLive(_ context.Context, list []store.LiveEvents) error {
	r.sent = list
	return nil
}

// TestLive_Sealed checks that live events that may contain a named value are encrypted when they are published, and
// decrypted for followers. Without a cipher they are left out.
func TestLive_Sealed(t *testing.T) {
	plain := tenon.Event{Run: "r", Step: "1", Kind: "delta", Data: json.RawMessage(`{"kind":"text","text":"hello"}`)}
	named := tenon.Event{Run: "r", Step: "1", Kind: "progress", Data: json.RawMessage(`{"password":"geheim"}`)}
	for name, c := range map[string]struct {
		cipher sealed.Cipher
		want   string
	}{"cipher": {reverse{}, "hello geheim"}, "no cipher": {nil, "hello"}} {
		t.Run(name, func(t *testing.T) {
			under := &relay{}
			w := sealed.New(under, c.cipher, []string{"password"})
			if err := w.PublishLive(t.Context(), []store.LiveEvents{{LiveFollower: store.LiveFollower{Run: "r"},
				Events: []tenon.Event{plain, named}}}); err != nil {
				t.Fatal(err)
			}
			if sent, _ := json.Marshal(under.sent); bytes.Contains(sent, []byte("geheim")) {
				t.Errorf("published: %s", sent)
			}
			got := ""
			w.FollowLive(t.Context(), "r", func(e tenon.Event) { got += string(e.Data) })
			for _, word := range []string{"hello", "geheim"} {
				if strings.Contains(got, word) != strings.Contains(c.want, word) {
					t.Errorf("followers receive %s, want %s", got, c.want)
				}
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	none := sealed.New(nil, nil, nil)
	none.FollowLive(ctx, "r", nil)
	if none.Wake() != nil || none.PublishLive(ctx, nil) != nil {
		t.Error("a store without live events carries some")
	}
}
