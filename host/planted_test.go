package host_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/transcript"
)

// sharedStore is a folder with a store that several users open. Each user has a separate state folder.
type sharedStore struct {
	home   string
	states map[string]string // by user
	shop   *shop
	steps  string // what the model does
	flow   host.Workflow
	change func(*host.Config)
}

func newSharedStore(t *testing.T) *sharedStore {
	t.Helper()
	p := &sharedStore{home: t.TempDir(), states: map[string]string{"attacker": t.TempDir(), "victim": t.TempDir()}, shop: &shop{}, steps: sellSteps}
	p.flow = flowFile(t, "steps:\n  - {id: sell, tool: sell, server: shop}\n  - {id: msg, template: 'sold: {{ steps.sell.text }}'}\nmessage: msg\n")
	return p
}

// open opens the store as a user.
func (p *sharedStore) open(t *testing.T, user string) *host.Host {
	t.Helper()
	h, err := p.tryOpen(t, user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func (p *sharedStore) tryOpen(t *testing.T, user string) (*host.Host, error) {
	t.Helper()
	agents := map[string]agent.Config{}
	for _, name := range []string{"default", "seller"} {
		agents[name] = agent.Config{Description: name, Instructions: agent.Instructions{Text: name}}.WithDefaults()
	}
	c := host.Config{Home: p.home, Toolsets: map[string]tenon.Toolset{"shop": p.shop}, Workflows: map[string]host.Workflow{"w": p.flow},
		Config:    &config.Config{Agents: agents, Tools: map[string]catalog.Tool{"delegate": {Kind: tenon.KindAgent, Agent: "seller"}}},
		LookupEnv: func(name string) (string, bool) { return p.states[user], name == "XDG_STATE_HOME" }}
	if p.change != nil {
		p.change(&c)
	}
	if c.Models == nil {
		c.Model = "script:" + writeSteps(t, p.home, p.steps)
	}
	return host.Open(t.Context(), c)
}

// as opens the store as a user, runs a function and closes the store.
func (p *sharedStore) as(t *testing.T, user string, do func(h *host.Host)) {
	t.Helper()
	h := p.open(t, user)
	do(h)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// key returns the signing key of a user.
func (p *sharedStore) key(t *testing.T, user string) *signed.Key {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.states[user], "tenon", "store.key"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := signed.NewKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// raw opens the store without a host. If key is nil, nothing is signed or checked.
func (p *sharedStore) raw(t *testing.T, key *signed.Key, do func(s *sqlite.Store)) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(p.home, "tenon.db"), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	do(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// sql changes the store's file.
func (p *sharedStore) sql(t *testing.T, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.home, "tenon.db"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // temporary tables are a connection's
	for _, s := range statements {
		r, err := db.Exec(s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 && !strings.HasPrefix(s, "CREATE") {
			t.Fatalf("%s changes %d rows, %v", s, n, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// waits starts a run whose call of sell waits for a person, and returns its id.
func waits(t *testing.T, h *host.Host) string {
	t.Helper()
	r, _ := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunInputRequired {
		t.Fatalf("the run is %s", r.State)
	}
	return r.Run
}

// decided starts a run whose call of sell a person has allowed. It returns when the run is in state working.
func decided(t *testing.T, h *host.Host) string {
	t.Helper()
	run := waits(t, h)
	list, err := h.Approvals().List(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Approvals().Decide(t.Context(), list[0].Run, list[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "attacker"}); err != nil {
		t.Fatal(err)
	}
	return run
}

// plants create runs of another user, each of which would sell something if it continued.
var plants = map[string]func(t *testing.T, p *sharedStore) (run string){
	"a run that waits": func(t *testing.T, p *sharedStore) (run string) {
		p.as(t, "attacker", func(h *host.Host) { run = waits(t, h) })
		return run
	},
	"a run at work whose call was allowed": func(t *testing.T, p *sharedStore) (run string) {
		p.as(t, "attacker", func(h *host.Host) { run = decided(t, h) })
		return run
	},
	"a decision in the inbox": func(t *testing.T, p *sharedStore) (run string) {
		p.as(t, "attacker", func(h *host.Host) { run = waits(t, h) })
		p.raw(t, p.key(t, "attacker"), func(s *sqlite.Store) { putAllow(t, s, run, "1.0") })
		return run
	},
	"a decision in the inbox without a mark": func(t *testing.T, p *sharedStore) (run string) {
		p.as(t, "attacker", func(h *host.Host) { run = waits(t, h) })
		p.raw(t, nil, func(s *sqlite.Store) { putAllow(t, s, run, "1.0") })
		return run
	},
	"a failed run that was begun with --yes": func(t *testing.T, p *sharedStore) (run string) {
		steps := p.steps
		p.steps = "steps: [{error: {status: 500, message: down}}]"
		p.as(t, "attacker", func(h *host.Host) {
			r, _ := ask(t, h, host.Question{Text: "q", Grant: "--yes"})
			run = r.Run
		})
		p.steps = steps
		return run
	},
	"a run without marks that was begun with --yes": func(t *testing.T, p *sharedStore) (run string) {
		p.as(t, "attacker", func(h *host.Host) { run = decided(t, h) })
		p.sql(t, "UPDATE runs SET mac = NULL", "UPDATE events SET mac = NULL, sum = NULL", "DELETE FROM marks")
		return run
	},
	"a sub-agent whose call was allowed": func(t *testing.T, p *sharedStore) (run string) {
		steps := p.steps
		p.steps = "steps:\n  - calls: [{name: delegate, arguments: {message: sell}}]\n  - text: done\n  - calls: [{name: sell, arguments: {}}]\n  - text: done\n"
		p.change = func(c *host.Config) { c.Models, c.Model = map[string]tenon.Model{"m": answering(delegates)}, "m" }
		p.as(t, "attacker", func(h *host.Host) { run = decided(t, h) })
		p.steps = steps
		return run
	},
	"a workflow whose call was allowed": func(t *testing.T, p *sharedStore) (run string) {
		p.as(t, "attacker", func(h *host.Host) {
			row, _ := runFlow(t, h, host.WorkflowCall{Workflow: p.flow})
			if _, _, err := h.Approvals().Decide(t.Context(), row.ID, "sell.0", agent.Ruling{Verdict: tenon.Allow, By: "attacker"}); err != nil {
				t.Fatal(err)
			}
			run = row.ID
		})
		return run
	},
	"a run whose time to be decided is up": func(t *testing.T, p *sharedStore) (run string) {
		change := p.change
		p.change = func(c *host.Config) { c.Config.Policy.Defaults.Expires = time.Nanosecond }
		steps := p.steps
		p.steps = "steps:\n  - calls: [{name: sell, arguments: {}}]\n  - calls: [{name: sell, arguments: {}}]\n  - text: done\n"
		p.as(t, "attacker", func(h *host.Host) {
			row, err := h.Start(t.Context(), host.Question{Text: "q"})
			if err != nil {
				t.Fatal(err)
			}
			run = row.ID
		})
		p.change, p.steps = change, steps
		return run
	},
}

// delegates plays two agents. The first one lets the second one sell.
func delegates(req *tenon.Request) (*tenon.Response, error) {
	switch last := lastText(req); {
	case req.System == "seller" && last == "sell":
		return calls(`sell {}`), nil
	case last == "q":
		return calls(`delegate {"message":"sell"}`), nil
	}
	return says("done"), nil
}

func putAllow(t *testing.T, s store.Store, run, step string) {
	t.Helper()
	data, err := json.Marshal(agent.Ruling{Verdict: tenon.Allow, By: "attacker"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutSignal(t.Context(), store.Signal{ID: "sig_planted", Run: run, Kind: agent.EventDecision, Step: step, By: "attacker", Data: data}); err != nil {
		t.Fatal(err)
	}
}

// wantWaiting checks that an operation is refused until the user has adopted the store.
func wantWaiting(t *testing.T, what string, err error) {
	t.Helper()
	if tenon.ErrorCode(err) != tenon.CodeWaiting || !strings.Contains(err.Error(), "tenon store adopt") {
		t.Errorf("%s: %v", what, err)
	}
}

// TestPlantedRuns checks that a run that another user wrote never continues, whatever is tried. It can be read and
// deleted.
func TestPlantedRuns(t *testing.T) {
	for name, plant := range plants {
		t.Run("SEC-F4_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := newSharedStore(t)
			run := plant(t, p)
			h := p.open(t, "victim")
			ctx := t.Context()
			row, err := h.Runs().Get(ctx, run)
			if err != nil || !row.Foreign {
				t.Fatalf("%+v, %v", row, err)
			}
			wantWaiting(t, "resume", h.Runs().Resume(ctx, run))
			list, err := h.Approvals().List(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				if !a.Foreign || a.Narrower != nil {
					t.Errorf("%+v is not marked", a)
				}
				_, _, err := h.Approvals().Decide(ctx, a.Run, a.Step, agent.Ruling{Verdict: tenon.Allow, By: "victim"})
				wantWaiting(t, "settle", err)
			}
			for _, step := range []string{"1.0", "sell.0"} {
				if _, _, err := h.Approvals().Decide(ctx, run, step, agent.Ruling{Verdict: tenon.Allow}); err == nil {
					t.Errorf("a decision about step %s is taken", step)
				}
			}
			if !row.State.Ended() {
				wantWaiting(t, "cancel", h.Runs().Cancel(ctx, run, "no"))
			}
			if row.Core == agent.Version {
				_, err = h.Runs().Steer(ctx, run, "sell", "victim")
				wantWaiting(t, "steer", err)
				_, err = h.Start(ctx, host.Question{Text: "more", Session: row.Session})
				wantWaiting(t, "continue", err)
				_, err = h.Start(ctx, host.Question{Text: "more", Session: row.Session, Fork: true, Grant: "--yes"})
				wantWaiting(t, "continue in a fork", err)
				_, _, err = h.Sessions().Fork(ctx, host.Fork{Session: row.Session})
				wantWaiting(t, "fork", err)
				_, err = h.Start(ctx, host.Question{Key: "key", Text: "more", Session: row.Session})
				wantWaiting(t, "continue with a key", err)
				_, err = h.Sessions().Compact(ctx, row.Session, "")
				wantWaiting(t, "compact", err)
			}
			// It can be read.
			if _, err := h.Runs().Open(run).Report(ctx); err != nil {
				t.Error(err)
			}
			if events, err := h.Runs().Open(run).Journal(ctx, 0, 0); err != nil || len(events) == 0 {
				t.Errorf("%d events, %v", len(events), err)
			}
			if row.Core == agent.Version {
				if err := h.Sessions().Transcripts().Export(ctx, new(bytes.Buffer), row.Session, host.FormatJSON); err != nil {
					t.Error(err)
				}
			}
			if n := p.shop.sold.Load(); n != 0 {
				t.Errorf("sold %d", n)
			}
			if row.Session != "" {
				if err := h.Sessions().Delete(ctx, row.Session); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPlantedRunsUnderServe supervises a store with all kinds of foreign runs, and one run of the user, which
// continues.
func TestPlantedRunsUnderServe(t *testing.T) {
	t.Run("SEC-F4_serve", func(t *testing.T) {
		p := newSharedStore(t)
		planted := map[string]string{}
		for name, plant := range plants {
			p.change = nil
			planted[plant(t, p)] = name
		}
		p.change = nil
		var own string
		p.as(t, "victim", func(h *host.Host) { own = decided(t, h) })
		h := p.open(t, "victim")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { h.Service().Supervise(ctx) })
		completed := func(run string) func() bool {
			return func() bool {
				row, err := h.Runs().Get(t.Context(), run)
				return err == nil && row.State == tenon.RunCompleted
			}
		}
		eventually(t, "the own run is completed", completed(own))
		second := decided(t, h) // a further look
		eventually(t, "the second own run is completed", completed(second))
		cancel()
		wg.Wait()
		if n := p.shop.sold.Load(); n != 2 {
			t.Errorf("sold %d, want those of the own runs", n)
		}
		rows, err := h.Runs().List(t.Context(), engine.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if name, ok := planted[r.ID]; ok && !r.Foreign {
				t.Errorf("%s: it was taken up: %s", name, r.State)
			}
		}
	})
}

// TestAdopt checks which rows are accepted after the user has adopted a store.
func TestAdopt(t *testing.T) {
	p := newSharedStore(t)
	var waiting, at string
	p.as(t, "attacker", func(h *host.Host) {
		at = decided(t, h)
		waiting = waits(t, h)
		if _, _, err := h.Approvals().Decide(t.Context(), waiting, "1.0", agent.Ruling{Verdict: tenon.Allow, By: "ann", Remember: agent.RememberAlways}); err != nil {
			t.Fatal(err)
		}
	})
	h := p.open(t, "victim")
	if r, _ := ask(t, h, host.Question{Text: "before"}); r.State != tenon.RunInputRequired {
		t.Errorf("before: %s", r.State)
	}
	f, err := h.Service().Storage().Foreign(t.Context())
	if err != nil || f.Runs != 2 || len(f.Granted) != 1 || len(f.Unended) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := h.Service().Storage().Adopt(t.Context(), "another digest"); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("adopt something else: %v", err)
	}
	if err := h.Service().Storage().Adopt(t.Context(), f.Digest); err != nil {
		t.Fatal(err)
	}
	if r, _ := ask(t, h, host.Question{Text: "after"}); r.State != tenon.RunCompleted || r.ToolCalls[0].By != "ann (always)" {
		t.Errorf("after: %s %+v", r.State, r.ToolCalls)
	}
	for _, run := range []string{at, waiting} {
		if err := h.Runs().Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if r, _ := follow(t, h, run); r.State != tenon.RunCompleted {
			t.Errorf("run %s is %s", run, r.State)
		}
	}
	if n := p.shop.sold.Load(); n != 3 {
		t.Errorf("sold %d", n)
	}
}

// TestPlantedRows checks planted rows other than runs.
func TestPlantedRows(t *testing.T) {
	t.Run("SEC-F4_grants", testPlantedGrant)
	t.Run("SEC-F4_session_grant", testPlantedSessionGrant)
	t.Run("SEC-F4_kept_result", testPlantedResult)
	t.Run("SEC-F4_idempotency_key", testPlantedKey)
	t.Run("SEC-F4_imported_run", testPlantedImport)
}

func testPlantedGrant(t *testing.T) {
	p := newSharedStore(t)
	p.as(t, "attacker", func(h *host.Host) {
		run := waits(t, h)
		if _, _, err := h.Approvals().Decide(t.Context(), run, "1.0", agent.Ruling{Verdict: tenon.Allow, Remember: agent.RememberAlways}); err != nil {
			t.Fatal(err)
		}
		if r, _ := ask(t, h, host.Question{Text: "again"}); r.State != tenon.RunCompleted {
			t.Fatalf("the grant does not count for its owner: %s", r.State)
		}
	})
	p.shop.sold.Store(0)
	h := p.open(t, "victim")
	waits(t, h)
	list, err := h.Approvals().Grants(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].State != host.GrantForeign {
		t.Errorf("%+v, %v", list, err)
	}
	if err := h.Approvals().Revoke(t.Context(), "", list[0].ID); err != nil {
		t.Error(err)
	}
	if n := p.shop.sold.Load(); n != 0 {
		t.Errorf("sold %d", n)
	}
}

func testPlantedSessionGrant(t *testing.T) {
	p := newSharedStore(t)
	var session string
	p.as(t, "attacker", func(h *host.Host) {
		run := waits(t, h)
		if _, _, err := h.Approvals().Decide(t.Context(), run, "1.0", agent.Ruling{Verdict: tenon.Allow, Remember: agent.RememberSession}); err != nil {
			t.Fatal(err)
		}
		if err := h.Runs().Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		r, _ := follow(t, h, run)
		session = r.Session
	})
	p.shop.sold.Store(0)
	h := p.open(t, "victim")
	_, err := h.Start(t.Context(), host.Question{Text: "go on", Session: session})
	wantWaiting(t, "continue", err)
	if n := p.shop.sold.Load(); n != 0 {
		t.Errorf("sold %d", n)
	}
}

func testPlantedResult(t *testing.T) {
	p := newSharedStore(t)
	p.steps = "steps:\n  - calls: [{name: price, arguments: {thing: tea}}]\n  - text: done\n"
	p.change = func(c *host.Config) {
		c.Config.Policy.Defaults.Cache = policy.Cache{TTL: new(time.Hour), Scope: policy.ScopeProject}
	}
	p.as(t, "attacker", func(h *host.Host) { ask(t, h, host.Question{Text: "q"}) })
	p.sql(t, `UPDATE results SET data = CAST(replace(CAST(data AS TEXT), '3 EUR', 'FREE!') AS BLOB)`)
	p.shop.keys = nil
	h := p.open(t, "victim")
	r, _ := ask(t, h, host.Question{Text: "q"})
	if len(p.shop.keys) != 1 || r.ToolCalls[0].Cached || text(r.ToolCalls[0].Result) != "3 EUR" {
		t.Errorf("%d calls; %+v", len(p.shop.keys), r.ToolCalls)
	}
	if r, _ := ask(t, h, host.Question{Text: "q"}); !r.ToolCalls[0].Cached { // and its own is kept
		t.Errorf("%+v", r.ToolCalls)
	}
}

func testPlantedKey(t *testing.T) {
	p := newSharedStore(t)
	var planted string
	p.as(t, "attacker", func(h *host.Host) {
		run, err := h.Start(t.Context(), host.Question{Key: "well-known", Text: "q"})
		if err != nil {
			t.Fatal(err)
		}
		planted = run.ID
		follow(t, h, run.ID)
	})
	h := p.open(t, "victim")
	run, err := h.Start(t.Context(), host.Question{Key: "well-known", Text: "q"})
	wantWaiting(t, "start with the key of a planted run", err)
	if run.ID == planted {
		t.Error("the planted run is the answer")
	}
}

func testPlantedImport(t *testing.T) {
	p := newSharedStore(t)
	var file bytes.Buffer
	p.as(t, "attacker", func(h *host.Host) {
		run := decided(t, h)
		row, err := h.Runs().Get(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Sessions().Transcripts().Export(t.Context(), &file, row.Session, host.FormatJSON); err != nil {
			t.Fatal(err)
		}
		if err := h.Runs().Cancel(t.Context(), run, "no"); err != nil {
			t.Fatal(err)
		}
		if err := h.Sessions().Delete(t.Context(), row.Session); err != nil {
			t.Fatal(err)
		}
	})
	var run string
	p.as(t, "victim", func(h *host.Host) {
		if _, err := h.Sessions().Transcripts().Import(t.Context(), transcript.Import{From: &file}); err != nil {
			t.Fatal(err)
		}
		rows, err := h.Runs().List(t.Context(), engine.Filter{})
		if err != nil || len(rows) != 1 || rows[0].Foreign {
			t.Fatalf("%+v, %v", rows, err)
		}
		run = rows[0].ID
	})
	// Without the mark "imported", the run would continue.
	p.sql(t, "UPDATE runs SET imported = NULL, state = 'working', stop = ''")
	h := p.open(t, "victim")
	wantWaiting(t, "resume", h.Runs().Resume(t.Context(), run))
	if n := p.shop.sold.Load(); n != 0 {
		t.Errorf("sold %d", n)
	}
}

// sqlRow reads one value from the store's file.
func (p *sharedStore) sqlRow(t *testing.T, query string, dest any) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.home, "tenon.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(dest); err != nil {
		t.Fatal(err)
	}
}
