package signed

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

func key(t *testing.T, name string) *Key {
	t.Helper()
	k, err := NewKey(bytes.Repeat([]byte(name), MinSecret))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestNewKey(t *testing.T) {
	for _, secret := range []string{"", "short", string(bytes.Repeat([]byte("x"), MinSecret-1))} {
		if _, err := NewKey([]byte(secret)); tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("a secret of %d bytes: %v", len(secret), err)
		}
	}
	e := &Events{Run: "r", Seq: 1, N: 1}
	if bytes.Equal(key(t, "a").Events(e), key(t, "b").Events(e)) || bytes.Equal(RandomKey().Events(e), RandomKey().Events(e)) {
		t.Error("different keys make the same MAC")
	}
	if !bytes.Equal(key(t, "a").Events(e), key(t, "a").Events(e)) {
		t.Error("the same key makes different MACs")
	}
}

// TestNilKey checks that a store without a key neither signs rows nor refuses any.
func TestNilKey(t *testing.T) {
	var k *Key
	if k.Events(&Events{}) != nil || k.RunRow(k.RunBase(&tenon.Run{}, nil), "", "", "", nil, 0) != nil || k.Grant(&store.Grant{}) != nil || k.Mark(nil) != nil || k.Use("", "", "") != nil || k.Held(&Held{}) != nil || k.Session("", "") != nil || k.Listing() != nil {
		t.Error("the nil key signs")
	}
	if !k.OwnEvents(&Events{}, nil) || !k.OwnRun(&tenon.Run{}, nil, nil, nil) || !k.OwnSignal(&store.Signal{}, nil) || !k.OwnResult(&store.KeptResult{}, nil) ||
		!k.OwnPin(&store.Pin{}, nil) || !k.OwnGrant(&store.Grant{}, nil) || !k.OwnMark(nil, nil) ||
		!k.OwnUse("", "", "", nil) || !k.OwnHeld(&Held{}, nil) || !k.OwnSession("", "", nil) {
		t.Error("the nil key refuses")
	}
}

// row is a row of some kind whose fields can be changed one by one.
type row struct {
	sum     func() []byte
	own     func(mac []byte) bool
	changes map[string]func()
}

// rows returns a new row of each kind.
func rows(k *Key) map[string]row {
	now := time.Unix(1, 2)
	e := &Events{Run: "run", Seq: 3, N: 2, Last: now, Packed: []byte("packed"), Blob: []byte("blob")}
	r := &tenon.Run{ID: "run", Session: "ses", Principal: "me", Caller: "caller", Parent: "parent", ParentSeq: 4, Core: "core", Agent: "agent", Model: "model",
		Title: "title", State: tenon.RunWorking, Stop: "stop", Created: now, Seq: 9}
	waiting, imported := []byte("waiting"), []byte("imported")
	s := &store.Signal{ID: "sig", Run: "run", Kind: "kind", Step: "step", By: "me", Data: json.RawMessage("1"), Time: now}
	kept := &store.KeptResult{Key: "key", Run: "run", Step: "step", Expires: now, Data: json.RawMessage("1")}
	p := &store.Pin{Server: "server", Remote: "remote", Raw: "raw", Digest: "digest", Definition: json.RawMessage("{}"), By: "me", Created: now}
	g := &store.Grant{ID: "gr", Principal: "me", Server: "server", Name: "name", Remote: "remote", Target: "target", Definition: "definition", Condition: "if",
		Uses: 3, Used: 1, Expires: now, By: "by", Created: now}
	held := &Held{Run: "run", ID: "1.0", N: 2, Key: "key", Amount: 5, Open: true}
	use := [3]string{"gr", "run", "1.0"}
	ses := &tenon.Session{ID: "ses", Principal: "me"}
	return map[string]row{
		"use": {func() []byte { return k.Use(use[0], use[1], use[2]) }, func(mac []byte) bool { return k.OwnUse(use[0], use[1], use[2], mac) }, map[string]func(){
			"grant": func() { use[0] = "x" }, "run": func() { use[1] = "x" }, "step": func() { use[2] = "1.1" }, "run and step": func() { use[1], use[2] = "run1", ".0" },
		}},
		"reservation": {func() []byte { return k.Held(held) }, func(mac []byte) bool { return k.OwnHeld(held, mac) }, map[string]func(){
			"run": func() { held.Run = "x" }, "id": func() { held.ID = "x" }, "n": func() { held.N = 0 }, "key": func() { held.Key = "x" },
			"amount": func() { held.Amount = 0 }, "open": func() { held.Open = false },
		}},
		"session": {func() []byte { return k.Session(ses.ID, ses.Principal) }, func(mac []byte) bool { return k.OwnSession(ses.ID, ses.Principal, mac) }, map[string]func(){
			"id": func() { ses.ID = "x" }, "principal": func() { ses.Principal = "bob" },
		}},
		"events": {func() []byte { return k.Events(e) }, func(mac []byte) bool { return k.OwnEvents(e, mac) }, map[string]func(){
			"run": func() { e.Run = "other" }, "seq": func() { e.Seq++ }, "n": func() { e.N++ }, "last": func() { e.Last = e.Last.Add(1) },
			"packed": func() { e.Packed = []byte("x") }, "blob": func() { e.Blob = nil }, "packed and blob": func() { e.Packed, e.Blob = []byte("packedb"), []byte("lob") },
		}},
		"run": {func() []byte { return k.RunRow(k.RunBase(r, imported), r.ID, r.State, r.Stop, waiting, r.Seq) }, func(mac []byte) bool { return k.OwnRun(r, waiting, imported, mac) },
			map[string]func(){
				"id": func() { r.ID = "x" }, "session": func() { r.Session = "x" }, "principal": func() { r.Principal = "x" }, "caller": func() { r.Caller = "" },
				"parent": func() { r.Parent = "" }, "parent_seq": func() { r.ParentSeq = 0 }, "core": func() { r.Core = "x" }, "agent": func() { r.Agent = "x" },
				"model": func() { r.Model = "x" }, "title": func() { r.Title = "x" }, "state": func() { r.State = tenon.RunCompleted }, "stop": func() { r.Stop = "x" },
				"created": func() { r.Created = now.Add(1) }, "waiting": func() { waiting = nil }, "imported": func() { imported = nil }, "shorter journal": func() { r.Seq = 8 },
				"agent and model": func() { r.Agent, r.Model = "agentm", "odel" },
			}},
		"signal": {func() []byte { return k.Signal(s) }, func(mac []byte) bool { return k.OwnSignal(s, mac) }, map[string]func(){
			"id": func() { s.ID = "x" }, "run": func() { s.Run = "x" }, "kind": func() { s.Kind = "x" }, "step": func() { s.Step = "x" }, "by": func() { s.By = "x" },
			"data": func() { s.Data = json.RawMessage("2") }, "time": func() { s.Time = now.Add(1) },
		}},
		"result": {func() []byte { return k.Result(kept) }, func(mac []byte) bool { return k.OwnResult(kept, mac) }, map[string]func(){
			"key": func() { kept.Key = "x" }, "run": func() { kept.Run = "x" }, "step": func() { kept.Step = "x" }, "expires": func() { kept.Expires = now.Add(1) },
			"data": func() { kept.Data = json.RawMessage("2") },
		}},
		"pin": {func() []byte { return k.Pin(p) }, func(mac []byte) bool { return k.OwnPin(p, mac) }, map[string]func(){
			"server": func() { p.Server = "x" }, "remote": func() { p.Remote = "" }, "raw": func() { p.Raw = "x" }, "digest": func() { p.Digest = "x" },
			"definition": func() { p.Definition = json.RawMessage("[]") }, "by": func() { p.By = "x" }, "created": func() { p.Created = now.Add(1) },
		}},
		"grant": {func() []byte { return k.Grant(g) }, func(mac []byte) bool { return k.OwnGrant(g, mac) }, map[string]func(){
			"id": func() { g.ID = "x" }, "principal": func() { g.Principal = "x" }, "server": func() { g.Server = "x" }, "name": func() { g.Name = "x" },
			"remote": func() { g.Remote = "x" }, "target": func() { g.Target = "" }, "definition": func() { g.Definition = "" }, "condition": func() { g.Condition = "" },
			"uses": func() { g.Uses = 0 }, "used": func() { g.Used = 0 }, "expires": func() { g.Expires = time.Time{} }, "by": func() { g.By = "x" },
			"created": func() { g.Created = now.Add(1) },
		}},
	}
}

// TestRows checks that changing any field of a row invalidates its MAC.
func TestRows(t *testing.T) {
	k, other := key(t, "a"), key(t, "b")
	for kind, r := range rows(k) {
		t.Run(kind, func(t *testing.T) {
			mac := r.sum()
			if !r.own(mac) {
				t.Fatal("an own row is foreign")
			}
			for name, bad := range map[string][]byte{"none": nil, "empty": {}, "short": mac[:len(mac)-1], "half": mac[:len(mac)/2], "long": append(bytes.Clone(mac), 0),
				"zero": make([]byte, len(mac)), "other key": rows(other)[kind].sum(), "flipped": append(bytes.Clone(mac[:len(mac)-1]), mac[len(mac)-1]^1)} {
				if r.own(bad) {
					t.Errorf("a MAC is accepted: %s", name)
				}
			}
			for name := range r.changes {
				changed := rows(k)[kind]
				changed.changes[name]()
				if changed.own(mac) {
					t.Errorf("the row is own with another %s", name)
				}
			}
			for other, o := range rows(k) {
				if other != kind && r.own(o.sum()) {
					t.Errorf("the MAC of a row of kind %s is accepted", other)
				}
			}
		})
	}
}

// TestRunGrows checks that appending to a journal does not invalidate the MAC of the run's row.
func TestRunGrows(t *testing.T) {
	k := key(t, "a")
	r := tenon.Run{ID: "run", State: tenon.RunWorking, Seq: 9}
	mac := k.RunRow(k.RunBase(&r, nil), r.ID, r.State, r.Stop, nil, 3)
	if !k.OwnRun(&r, nil, nil, mac) {
		t.Error("a run is foreign after its journal has grown")
	}
	r.Seq = 2
	if k.OwnRun(&r, nil, nil, mac) {
		t.Error("a run is own after its journal was cut")
	}
}

func TestPinInList(t *testing.T) {
	k := key(t, "a")
	p := store.Pin{Server: "s", Remote: "t", Digest: "d", Definition: json.RawMessage(`{}`)}
	mac := k.Pin(&p)
	p.Definition = nil
	if !k.OwnPin(&p, mac) {
		t.Error("a pin of a list is foreign")
	}
}

func BenchmarkEvents(b *testing.B) {
	k, _ := NewKey(make([]byte, MinSecret))
	e := &Events{Run: "run_06d8k2w5p1v3h9q4c7xz", Seq: 12, N: 3, Packed: make([]byte, 1500)}
	for b.Loop() {
		k.Events(e)
	}
}
