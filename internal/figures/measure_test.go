package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/figures/durable"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// TestMain also runs the child processes of the measurements.
func TestMain(m *testing.M) {
	durable.Main()
	if len(os.Args) > 2 && os.Args[1] == "child" {
		if err := child(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func testSession(t *testing.T) *session {
	return &session{ctx: t.Context(), root: "../..", exe: os.Args[0], tmp: t.TempDir(), rounds: 1, goal: "P0",
		rivals: &rivals{}}
}

// TestRounds runs one round of each kind of measurement. It checks only that there are values, not how large they are.
func TestRounds(t *testing.T) {
	longtest.Skip(t)
	s := testSession(t)
	t.Run("flow", func(t *testing.T) { roundOfFlow(t, s) })
	t.Run("contest", func(t *testing.T) { roundOfContest(t, s) })
	t.Run("idle", func(t *testing.T) { roundOfIdle(t, s) })
	t.Run("memory", func(t *testing.T) {
		if v, err := memoryRound(t.Context(), instantTools{}); err != nil || v <= 0 {
			t.Errorf("%v µs, %v", v, err)
		}
	})
	t.Run("list", func(t *testing.T) { roundOfList(t, s) })
	t.Run("tool table", func(t *testing.T) { roundOfToolTable(t, s) })
	t.Run("rows", func(t *testing.T) { roundOfRows(t, s) })
	t.Run("sql", func(t *testing.T) { roundOfSQL(t, s) })
	t.Run("chat", func(t *testing.T) {
		if chat, goAPI, bare, err := s.chatRound(t.TempDir(), 3); err != nil || chat <= 0 || goAPI <= 0 || bare <= 0 {
			t.Errorf("%v, %v, %v, %v", chat, goAPI, bare, err)
		}
	})
	t.Run("load", func(t *testing.T) { roundUnderLoad(t, s) })
	t.Run("journal", func(t *testing.T) {
		r, err := s.journalRound(t.TempDir())
		if err != nil || r.commits < journalRuns*instantTurns || r.bare <= 0 || r.took <= 0 {
			t.Errorf("%+v, %v: want at least one commit a turn", r, err)
		}
	})
	t.Run("growth", func(t *testing.T) { roundOfGrowth(t, s) })
	t.Run("GW", func(t *testing.T) { roundOfGateway(t, s) })
}

// roundOfGateway measures listings by the gateway, and its idle clients in both protocol eras.
func roundOfGateway(t *testing.T, s *session) {
	tenon := clitest.Build(t, filepath.Join("..", ".."), "./cmd/tenon")
	// More tools than fit on one page.
	if list, bare, err := s.gatewayLists(tenon, 2, 300, 5); err != nil || list <= 0 || bare <= 0 {
		t.Errorf("%v, %v, %v", list, bare, err)
	}
	if runtime.GOOS != "linux" {
		return // the memory of a process can only be read on Linux
	}
	for _, protocol := range []string{mcp.LatestLegacy, mcp.Modern} {
		if _, err := s.gatewayIdle(tenon, protocol, 1, 3); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// roundOfFlow measures the tool calls of a run.
func roundOfFlow(t *testing.T, s *session) {
	if err := measureFlow(s); err != nil {
		t.Fatal(err)
	}
	for _, f := range s.measured[len(s.measured)-5:] {
		if f.Value <= 0 {
			t.Errorf("%+v", f)
		}
		t.Logf("%s %v", f.ID, f.Value)
	}
}

// roundOfContest measures tenon and competing programs. One of them cannot be started.
func roundOfContest(t *testing.T, s *session) {
	raw := s.self(rawPipe)
	raw.single = true
	gone := candidate{name: "gone", command: []string{s.exe, "child", "runner", "gone"}, rival: true}
	got, err := s.contest([]candidate{raw, s.self(minPipe), s.self(spawnPipe), s.self(minHTTP), s.self(ours),
		s.self(oursModern),
		s.self(ours2025), s.self(ours2026), gone})
	if err != nil {
		t.Fatal(err)
	}
	if got["gone"] != nil {
		t.Error("a rival that fails to start was measured")
	}
	for _, name := range []string{rawPipe, minPipe, spawnPipe, minHTTP, ours, oursModern, ours2025, ours2026} {
		if o := got[name]; len(o.p50) != 1 || o.p50[0] <= 0 || name != rawPipe && o.rps64[0] <= 0 {
			t.Errorf("%s: %+v", name, o)
		}
	}
	gone.rival = false
	if _, err := s.contest([]candidate{gone}); err == nil {
		t.Error("an own candidate that fails to start returned no error")
	}
}

// roundOfIdle measures the memory of waiting runs and idle servers.
func roundOfIdle(t *testing.T, s *session) {
	if m, err := waitingAgents(t.Context(), t.TempDir(), 2, 5); err != nil || m.Live == 0 {
		t.Errorf("waiting runs: %+v, %v", m, err)
	}
	for _, transport := range []string{servers.TransportStdio, servers.TransportHTTP} {
		if m, err := idle(t.Context(), transport, true, 1, 2); err != nil || m.Live == 0 {
			t.Errorf("servers over %s: %+v, %v", transport, m, err)
		}
	}
}

// roundOfList measures listings over HTTP and on the command line.
func roundOfList(t *testing.T, s *session) {
	if list, bare, err := s.listHTTP(); err != nil || list <= 0 || bare <= 0 {
		t.Errorf("%v, %v, %v", list, bare, err)
	}
	if list, bare, err := listRound(t.Context(), s.exe); err != nil || list <= 0 || bare <= 0 {
		t.Errorf("%v, %v, %v", list, bare, err)
	}
}

// roundOfToolTable measures writing and listing a table of tools.
func roundOfToolTable(t *testing.T, s *session) {
	list, write, err := s.toolTable(t.TempDir(), 50)
	if err != nil || list <= 0 || write <= 0 {
		t.Errorf("%v, %v, %v", list, write, err)
	}
	if bare, err := bareList(t.Context(), s.exe, 50); err != nil || bare <= 0 {
		t.Errorf("%v, %v", bare, err)
	}
}

// roundOfRows measures tables with many rows.
func roundOfRows(t *testing.T, s *session) {
	const rows = 1000
	if err := makeToolTables(t.Context(), s.rowsDir(rows), rows); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{concatChild, checkChild} {
		var out strings.Builder
		if err := tableChild(t.Context(), what, s.rowsDir(rows), &out); err != nil || out.String() != "1000\n" {
			t.Errorf("%s: %q, %v", what, &out, err)
		}
	}
	if runtime.GOOS == "linux" {
		if concat, check, err := s.tablePeaks(rows); err != nil || concat <= 0 || check <= 0 {
			t.Errorf("%v, %v, %v", concat, check, err)
		}
	}
}

// roundOfSQL measures queries and compares them with another program.
func roundOfSQL(t *testing.T, s *session) {
	if runtime.GOOS != "linux" {
		t.Skip("the usage of a process is only measured on Linux")
	}
	const rows = 3000
	f, err := s.salesOf(rows)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if ours, theirs, err := s.groupRound(f); err != nil || ours.Wall <= 0 || theirs.Wall <= 0 ||
		strings.TrimSpace(ours.Out) != "1000" {
		t.Errorf("%+v, %+v, %v", ours, theirs, err)
	}
	if ours, theirs, err := s.ingestRound(f); err != nil || ours.Wall <= 0 || theirs.Wall <= 0 {
		t.Errorf("%+v, %+v, %v", ours, theirs, err)
	}
}

// roundUnderLoad measures concurrent requests.
func roundUnderLoad(t *testing.T, s *session) {
	url, stop, err := s.startModel(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	c := &asker{client: &http.Client{Transport: tr}, ctx: t.Context()}
	if l, err := underLoad(4, 3, time.Millisecond, nil, func() error { return c.model(url) }); err != nil ||
		l.p50 <= 0 {
		t.Errorf("%+v, %v", l, err)
	}
	tr.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// roundOfGrowth measures the requests of early and late turns of a conversation.
func roundOfGrowth(t *testing.T, s *session) {
	for _, p := range []string{"anthropic", "openai"} {
		early, late, err := growth(t.Context(), p)
		if err != nil || len(early.encoded) != 3*conversations || len(late.sent) != 3*conversations {
			t.Errorf("%s: %d and %d times, %v", p, len(early.encoded), len(late.sent), err)
		}
	}
}
