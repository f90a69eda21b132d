package host_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/store/sqlite"
)

// sellTea is a model that asks for a price, and in its second step sells tea.
const sellTea = "steps:\n  - calls: [{name: price, arguments: {thing: milk}}]\n  - calls: [{name: sell, arguments: {thing: tea}}]\n  - text: done\n"

// chapterOf, eventsOf and lastOf write SQL about the journal of a run.
func chapterOf(run string) string {
	return "(SELECT c.n FROM chapters c JOIN runs r ON r.n = c.run WHERE r.id = '" + run + "')"
}

func eventsOf(run string) string { return "chapter = " + chapterOf(run) }

func lastOf(run string) string {
	return "(SELECT max(seq) FROM events WHERE " + eventsOf(run) + ")"
}

// TestTamperedJournals changes the user's own store. Run a waits for a person; in run b the call was allowed. No call
// of run a is made, and a person never sees a call that differs from the one that would be sent.
func TestTamperedJournals(t *testing.T) {
	graft := func(a, b, mac string) string {
		return "INSERT INTO events (chapter, seq, n, last, events, blob, mac) SELECT " + chapterOf(a) + ", seq, n, last, events, blob, " + mac +
			" FROM events WHERE " + eventsOf(b) + " AND seq > " + lastOf(a)
	}
	const working = "UPDATE runs SET state = 'working', waiting = NULL WHERE id = '%s'"
	for name, change := range map[string]func(a, b string) []string{
		"the state": func(a, _ string) []string { return []string{fmt.Sprintf(working, a)} },
		"the state with the MAC of another run": func(a, b string) []string {
			return []string{fmt.Sprintf(working, a), "UPDATE runs SET mac = (SELECT mac FROM runs WHERE id = '" + b + "') WHERE id = '" + a + "'"}
		},
		"the decision of another run": func(a, b string) []string { return []string{graft(a, b, "mac")} },
		"the decision and the row of another run": func(a, b string) []string {
			return []string{graft(a, b, "mac"), fmt.Sprintf(working, a), "UPDATE runs SET mac = (SELECT mac FROM runs WHERE id = '" + b + "') WHERE id = '" + a + "'"}
		},
		"a decision without a MAC":       func(a, b string) []string { return []string{graft(a, b, "NULL")} },
		"a decision with an empty MAC":   func(a, b string) []string { return []string{graft(a, b, "x''")} },
		"a decision with half a MAC":     func(a, b string) []string { return []string{graft(a, b, "substr(mac, 1, 16)")} },
		"a decision with a longer MAC":   func(a, b string) []string { return []string{graft(a, b, "mac || x'00'")} },
		"a decision with a MAC of zeros": func(a, b string) []string { return []string{graft(a, b, "zeroblob(32)")} },
		"a decision with the MAC of the first": func(a, b string) []string {
			return []string{graft(a, b, "(SELECT mac FROM events WHERE "+eventsOf(a)+" AND seq = 1)")}
		},
		"the arguments in the journal": func(a, _ string) []string {
			return []string{"UPDATE events SET events = CAST(replace(CAST(events AS TEXT), '\"tea\"', '\"gun\"') AS BLOB) WHERE " + eventsOf(a) + " AND seq > 1"}
		},
		"the arguments that are shown": func(a, _ string) []string {
			return []string{"UPDATE runs SET waiting = CAST(replace(CAST(waiting AS TEXT), '\"tea\"', '\"gun\"') AS BLOB) WHERE id = '" + a + "'"}
		},
		"the first rows are gone": func(a, _ string) []string {
			return []string{"DELETE FROM events WHERE " + eventsOf(a) + " AND seq = 1"}
		},
		"a row in the midst is gone": func(a, _ string) []string {
			return []string{"DELETE FROM events WHERE " + eventsOf(a) + " AND seq > 1 AND seq < " + lastOf(a)}
		},
		"the end is gone": func(a, _ string) []string {
			return []string{"DELETE FROM events WHERE " + eventsOf(a) + " AND seq = " + lastOf(a)}
		},
		"the principal": func(a, _ string) []string {
			return []string{"UPDATE runs SET principal = 'bob' WHERE id = '" + a + "'"}
		},
		"the session": func(a, b string) []string {
			return []string{"UPDATE runs SET session = (SELECT session FROM runs WHERE id = '" + b + "') WHERE id = '" + a + "'"}
		},
		"the parent": func(a, b string) []string {
			return []string{"UPDATE runs SET parent = '" + b + "', parent_seq = 5 WHERE id = '" + a + "'"}
		},
		"the caller": func(a, b string) []string {
			return []string{"UPDATE runs SET caller = '" + b + "' WHERE id = '" + a + "'"}
		},
		"the core": func(a, _ string) []string {
			return []string{"UPDATE runs SET core = 'direct@1' WHERE id = '" + a + "'"}
		},
		"the ids are exchanged": func(a, b string) []string {
			return []string{"UPDATE runs SET id = 'x' WHERE id = '" + a + "'", "UPDATE runs SET id = '" + a + "' WHERE id = '" + b + "'", "UPDATE runs SET id = '" + b + "' WHERE id = 'x'"}
		},
		"the journals are exchanged": func(a, b string) []string {
			return []string{"CREATE TEMP TABLE t AS SELECT n FROM runs WHERE id = '" + a + "'", "UPDATE chapters SET run = -1 WHERE run = (SELECT n FROM t)",
				"UPDATE chapters SET run = (SELECT n FROM t) WHERE run = (SELECT n FROM runs WHERE id = '" + b + "')",
				"UPDATE chapters SET run = (SELECT n FROM runs WHERE id = '" + b + "') WHERE run = -1"}
		},
		"all MACs are gone": func(string, string) []string {
			return []string{"UPDATE runs SET mac = NULL", "UPDATE events SET mac = NULL"}
		},
	} {
		t.Run("SEC-F4_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { checkTampered(t, change) })
	}
}

// checkTampered changes the rows of a waiting run and checks that its call is not made.
func checkTampered(t *testing.T, change func(a string, b string) []string) {
	p := newSharedStore(t)
	p.steps = sellTea
	var a, b string
	p.as(t, "victim", func(h *host.Host) { a, b = waits(t, h), decided(t, h) })
	p.sql(t, change(a, b)...)
	h := p.open(t, "victim")
	ctx := t.Context()
	goOn(t, h, a)
	if _, _, err := h.Approvals().Decide(ctx, a, "2.0", agent.Ruling{Verdict: tenon.Allow}); err == nil {
		t.Error("the call can be allowed")
	}
	goOn(t, h, a)
	if n := p.shop.sold.Load(); n != 0 {
		t.Errorf("sold %d", n)
	}
}

// goOn resumes a run, if possible, and follows it until it ends or waits.
func goOn(t *testing.T, h *host.Host, run string) {
	t.Helper()
	if h.Runs().Resume(t.Context(), run) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, err := range h.Runs().Events(ctx, run, 0) {
		if err != nil {
			return
		}
	}
	if ctx.Err() != nil {
		t.Error("the run neither ends nor rests")
	}
}

// TestTamperedParents changes the journal of an earlier run of a session. The session then refuses the next question.
func TestTamperedParents(t *testing.T) {
	t.Run("SEC-F4_parent", func(t *testing.T) {
		p := newSharedStore(t)
		var session, first string
		p.as(t, "victim", func(h *host.Host) {
			first = waits(t, h)
			if _, _, err := h.Approvals().Decide(t.Context(), first, "1.0", agent.Ruling{Verdict: tenon.Allow}); err != nil {
				t.Fatal(err)
			}
			if err := h.Runs().Resume(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			r, _ := follow(t, h, first)
			session = r.Session
			r, _ = ask(t, h, host.Question{Text: "second", Session: session})
			if r.State != tenon.RunInputRequired {
				t.Fatal(r.State)
			}
			if err := h.Runs().Cancel(t.Context(), r.Run, "no"); err != nil {
				t.Fatal(err)
			}
		})
		p.shop.sold.Store(0)
		p.sql(t, `UPDATE events SET events = CAST(replace(CAST(events AS TEXT), '"text":"q"', '"text":"Q"') AS BLOB), mac = NULL WHERE `+eventsOf(first))
		h := p.open(t, "victim")
		_, err := h.Start(t.Context(), host.Question{Text: "third", Session: session, Grant: "--yes"})
		wantWaiting(t, "continue after a changed journal", err)
		if n := p.shop.sold.Load(); n != 0 {
			t.Errorf("sold %d", n)
		}
	})
}

// TestTamperedSignals moves decisions in the store to other calls.
func TestTamperedSignals(t *testing.T) {
	for name, change := range map[string]func(a, b string) []string{
		"to another run":  func(a, _ string) []string { return []string{"UPDATE signals SET run = '" + a + "'"} },
		"to another step": func(a, _ string) []string { return []string{"UPDATE signals SET run = '" + a + "', step = '1.0'"} },
		"with another verdict": func(a, _ string) []string {
			return []string{"UPDATE signals SET run = '" + a + "', data = CAST(replace(CAST(data AS TEXT), 'deny', 'allow') AS BLOB)"}
		},
		"copied": func(a, _ string) []string {
			return []string{"INSERT INTO signals (id, run, kind, step, by, data, time, seq, mac) SELECT 'sig_copy', '" + a + "', kind, step, by, data, time, 0, mac FROM signals"}
		},
	} {
		t.Run("SEC-F4_signal_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := newSharedStore(t)
			var a, b string
			p.as(t, "victim", func(h *host.Host) { a, b = waits(t, h), waits(t, h) })
			p.raw(t, p.key(t, "victim"), func(s *sqlite.Store) { putAllow(t, s, b, "1.0") })
			p.sql(t, change(a, b)...)
			h := p.open(t, "victim")
			if err := h.Runs().Resume(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if r, _ := follow(t, h, a); r.State != tenon.RunInputRequired {
				t.Errorf("the run is %s", r.State)
			}
			if n := p.shop.sold.Load(); n != 0 {
				t.Errorf("sold %d", n)
			}
		})
	}
	t.Run("SEC-F4_signal_in_place", func(t *testing.T) {
		p := newSharedStore(t)
		var a string
		p.as(t, "victim", func(h *host.Host) { a = waits(t, h) })
		p.raw(t, p.key(t, "victim"), func(s *sqlite.Store) { putAllow(t, s, a, "1.0") })
		h := p.open(t, "victim") // nothing was changed: it counts
		if err := h.Runs().Resume(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if r, _ := follow(t, h, a); r.State != tenon.RunCompleted {
			t.Errorf("the run is %s", r.State)
		}
	})
}

// TestTamperedGrants changes the user's own grants. The original grant is for a single call by bob, has a condition
// that is not met, and has expired.
func TestTamperedGrants(t *testing.T) {
	for name, change := range map[string][]string{
		"nothing":     {},
		"its owner":   {"UPDATE grants SET principal = 'local', condition = '', expires = 0"},
		"a copy":      {"INSERT INTO grants SELECT 'gr_copy', 'local', server, name, remote, target, definition, '', 0, 0, 0, by, created, mac, NULL FROM grants"},
		"its limits":  {"UPDATE grants SET condition = '', uses = 0, expires = 0"},
		"no MAC":      {"UPDATE grants SET principal = 'local', condition = '', uses = 0, expires = 0, mac = NULL"},
		"an old form": {"UPDATE grants SET principal = 'local', server = 'shop', name = 'shop', condition = '', uses = 0, expires = 0, target = '', definition = '', mac = NULL"},
	} {
		t.Run("SEC-F4_grant_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := newSharedStore(t)
			p.steps = sellTea
			p.as(t, "victim", func(h *host.Host) {
				r, _ := ask(t, h, host.Question{Text: "q", Principal: "bob"})
				if _, _, err := h.Approvals().Decide(t.Context(), r.Run, "2.0", agent.Ruling{Verdict: tenon.Allow, Remember: agent.RememberAlways,
					If: `args.thing == "milk"`, Uses: 1, For: time.Nanosecond}); err != nil {
					t.Fatal(err)
				}
			})
			p.sql(t, change...)
			h := p.open(t, "victim")
			for _, who := range []tenon.Principal{"bob", tenon.PrincipalLocal} {
				if r, _ := ask(t, h, host.Question{Text: "again", Principal: who}); r.State != tenon.RunInputRequired {
					t.Errorf("a run of %s is %s", who, r.State)
				}
			}
			if n := p.shop.sold.Load(); n != 0 {
				t.Errorf("sold %d", n)
			}
		})
	}
}

// TestTamperedResults moves a cached result to another call.
func TestTamperedResults(t *testing.T) {
	t.Run("SEC-F4_result_of_another_call", func(t *testing.T) {
		p := newSharedStore(t)
		price := func(thing string) string {
			return "steps:\n  - calls: [{name: price, arguments: {thing: " + thing + "}}]\n  - text: done\n"
		}
		p.change = func(c *host.Config) {
			c.Config.Policy.Defaults.Cache.TTL, c.Config.Policy.Defaults.Cache.Scope = new(time.Hour), "project"
		}
		p.steps = price("tea")
		p.as(t, "victim", func(h *host.Host) { ask(t, h, host.Question{Text: "q"}) })
		var tea string
		p.sqlRow(t, "SELECT key FROM results", &tea)
		p.steps = price("gun")
		p.as(t, "victim", func(h *host.Host) { ask(t, h, host.Question{Text: "q"}) })
		p.sql(t, "DELETE FROM results WHERE key = '"+tea+"'", "UPDATE results SET key = '"+tea+"'")
		p.shop.keys, p.steps = nil, price("tea")
		h := p.open(t, "victim")
		if r, _ := ask(t, h, host.Question{Text: "q"}); r.ToolCalls[0].Cached || len(p.shop.keys) != 1 {
			t.Errorf("%+v", r.ToolCalls)
		}
	})
}

// TestStoreKey checks where the key of the store comes from, and which keys are refused.
func TestStoreKey(t *testing.T) {
	keyOf := func(p *sharedStore) string { return filepath.Join(p.states["victim"], "tenon", "store.key") }
	t.Run("SEC-F4_made_once", func(t *testing.T) { testKeyMadeOnce(t, keyOf) })
	t.Run("SEC-F4_not_beside_the_store", testKeyBesideTheStore)
	for name, spoil := range map[string]func(t *testing.T, path string) error{
		"readable by others":  func(_ *testing.T, path string) error { return os.Chmod(path, 0o644) },
		"readable by a group": func(_ *testing.T, path string) error { return os.Chmod(path, 0o640) },
		"writable by others":  func(_ *testing.T, path string) error { return os.Chmod(path, 0o602) },
		"in an open folder":   func(_ *testing.T, path string) error { return os.Chmod(filepath.Dir(path), 0o777) },
		"cut":                 func(_ *testing.T, path string) error { return os.WriteFile(path, []byte("0011"), 0o600) },
		"empty":               func(_ *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) },
		"not a key": func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("z", 64)), 0o600)
		},
		"a folder": func(_ *testing.T, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a link to an open one": func(t *testing.T, path string) error {
			other := filepath.Join(t.TempDir(), "key")
			return errors.Join(os.Rename(path, other), os.Chmod(other, 0o644), os.Symlink(other, path))
		},
	} {
		t.Run("SEC-F4_key_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("Windows has no modes")
			}
			p := newSharedStore(t)
			p.as(t, "victim", func(*host.Host) {})
			if err := spoil(t, keyOf(p)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(filepath.Dir(keyOf(p)), 0o700) })
			h, err := p.tryOpen(t, "victim")
			if err == nil {
				_ = h.Close()
			}
			if tenon.ErrorCode(err) != tenon.CodeStore {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("SEC-F4_named", func(t *testing.T) { testNamedKey(t, keyOf) })
	t.Run("SEC-F4_of_a_project", testKeyOfProject)
}

func testKeyMadeOnce(t *testing.T, keyOf func(p *sharedStore) string) {
	p := newSharedStore(t)
	var run string
	p.as(t, "victim", func(h *host.Host) { run = waits(t, h) })
	st, err := os.Lstat(keyOf(p))
	if err != nil || runtime.GOOS != "windows" && st.Mode() != 0o600 {
		t.Fatalf("%v, %v", st, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(keyOf(p)), ".new-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	h := p.open(t, "victim")
	if row, err := h.Runs().Get(t.Context(), run); err != nil || row.Foreign {
		t.Errorf("%+v, %v", row, err)
	}
}

func testKeyBesideTheStore(t *testing.T) {
	p := newSharedStore(t)
	var run string
	p.as(t, "attacker", func(h *host.Host) { run = waits(t, h) })
	raw, err := os.ReadFile(filepath.Join(p.states["attacker"], "tenon", "store.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"store.key", "auth/store.key", ".tenon/store.key", "tenon/store.key"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(p.home, at)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.home, at), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.home, ".env"), []byte("TENON_STORE_KEY="+string(raw)), 0o600); err != nil {
		t.Fatal(err)
	}
	h := p.open(t, "victim")
	if row, err := h.Runs().Get(t.Context(), run); err != nil || !row.Foreign {
		t.Errorf("%+v, %v", row, err)
	}
}

func testNamedKey(t *testing.T, keyOf func(p *sharedStore) string) {
	p := newSharedStore(t)
	named := func(key string) func(*host.Config) {
		return func(c *host.Config) {
			c.LookupEnv = func(name string) (string, bool) {
				return map[string]string{"TENON_STORE_KEY": key, "XDG_STATE_HOME": p.states["victim"]}[name], true
			}
		}
	}
	var run string
	p.change = named(strings.Repeat("a", 40))
	p.as(t, "victim", func(h *host.Host) { run = waits(t, h) })
	if _, err := os.Lstat(keyOf(p)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was made beside the named one: %v", err)
	}
	foreign := func() bool {
		h := p.open(t, "victim")
		row, err := h.Runs().Get(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		return row.Foreign
	}
	if foreign() {
		t.Error("foreign with the same key")
	}
	p.change = named(strings.Repeat("b", 40))
	if !foreign() {
		t.Error("own with another key")
	}
	p.change = named("short")
	if _, err := p.tryOpen(t, "victim"); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a short key: %v", err)
	}
}

func testKeyOfProject(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"tenon.yaml": "version: 1\nstore: {key: {env: THEIRS}}\n", ".env": "THEIRS=" + strings.Repeat("a", 40) + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, named := range []string{"", filepath.Join(dir, "tenon.yaml")} {
		_, err := config.Load(t.Context(), config.Options{Dir: dir, File: named, Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }})
		if err == nil || !strings.Contains(err.Error(), "tenon.yaml:2") || !strings.Contains(err.Error(), "a project does not choose the key") {
			t.Errorf("%v", err)
		}
	}
}
