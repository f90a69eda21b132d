package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/record"
)

// shop is a toolset with distinct answers that contain a secret.
type shop struct {
	mu    sync.Mutex
	tools []tenon.Tool
	calls int
}

func (s *shop) Tools(context.Context) ([]tenon.Tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == nil {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "closed today")
	}
	return s.tools, nil
}

func (s *shop) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	s.mu.Lock()
	s.calls++
	n := s.calls
	s.mu.Unlock()
	switch c.Tool {
	case "fail":
		return nil, tenon.Errorf(tenon.CodeTimeout, "too slow")
	case "ask":
		c.Progress(tenon.Progress{Progress: 1, Message: "asking"})
		a, err := c.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"who?"}`))
		if err != nil {
			return tenon.ErrorResult("refused: " + err.Error()), nil
		}
		return &tenon.Result{Content: []tenon.Content{tenon.Text(string(a))}}, nil
	case "input":
		if c.Input == nil {
			return &tenon.Result{Input: &tenon.InputRequired{State: "s1", Requests: json.RawMessage(`{"k":{"method":"elicitation/create","params":{"message":"why?"}}}`)}}, nil
		}
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(fmt.Sprintf("%d %s %s", n, c.Arguments, key))}, Structured: json.RawMessage(`{"id":9007199254740993}`)}, nil
}

func tool(name string) tenon.Tool {
	readOnly := true
	return tenon.Tool{Server: "t", Remote: name, Description: "does " + name, Input: json.RawMessage(`{"type":"object","x-own":1}`), Annotations: tenon.Annotations{ReadOnly: &readOnly}}
}

func newCassette(t *testing.T) (string, *record.Recorder) {
	t.Helper()
	dir := t.TempDir()
	redactor := new(tenon.Redactor)
	redactor.Add(tenon.NewSecret(key))
	rec, err := record.NewRecorder(record.Config{Dir: dir, Redactor: redactor})
	if err != nil {
		t.Fatal(err)
	}
	return dir, rec
}

func play(t *testing.T, dir string) *record.Player {
	t.Helper()
	p, err := record.NewPlayer(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func call(ts tenon.Toolset, name, args string) (string, error) {
	r, err := ts.Call(context.Background(), tenon.Call{Tool: name, Arguments: json.RawMessage(args)})
	if err != nil {
		return "", err
	}
	return r.Text(), nil
}

// TestServerCassette checks that parallel calls, including equal ones, are replayed correctly in
// any order, that the files contain no secret, and that the list of tools follows the calls.
func TestServerCassette(t *testing.T) {
	dir, want := recordTwice(t)
	p := play(t, dir)
	again := p.Toolset("t")
	if tools, err := again.Tools(t.Context()); err != nil || len(tools) != 2 {
		t.Fatalf("%v, %v", tools, err)
	}
	playCalls(t, again)
	got, err := again.Tools(t.Context())
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range got {
		got[i].Raw = nil
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "1 of 13 recordings") || !strings.Contains(err.Error(), "mcp/t/0013.json") {
		t.Errorf("%v", err)
	}
	if _, err := call(again, "fail", "{}"); tenon.ErrorCode(err) != tenon.CodeTimeout || err.Error() != "too slow" {
		t.Errorf("%v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	_, err = call(again, "a", `{"n":9}`)
	if tenon.ErrorCode(err) != tenon.CodeConflict || !strings.Contains(err.Error(), "all of its 13 recordings are used") {
		t.Errorf("%v", err)
	}
	_, err = call(play(t, dir).Toolset("t"), "a", `{"n":9}`)
	if err == nil || !strings.Contains(err.Error(), "differs at params.arguments.n") {
		t.Errorf("%v", err)
	}
	if _, err := play(t, dir).Toolset("other").Tools(t.Context()); tenon.ErrorCode(err) != tenon.CodeConflict || !strings.Contains(err.Error(), "server 'other'") {
		t.Errorf("%v", err)
	}
}

// recordTwice records the lists of a server with two tools, and with a third, ten calls and a failed one: 13 files.
func recordTwice(t *testing.T) (string, []tenon.Tool) {
	t.Helper()
	dir, rec := newCassette(t)
	s := &shop{tools: []tenon.Tool{tool("a"), tool("b")}}
	s.tools[1].Kind = tenon.KindHTTP
	ts := rec.Toolset("t", s)
	for range 3 { // recorded once
		if _, err := ts.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if _, err := call(ts, "a", fmt.Sprintf(`{"n": %d}`, i%5)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.mu.Lock()
	s.tools = append(s.tools, tool("c"))
	s.mu.Unlock()
	want, err := ts.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(ts, "fail", ""); tenon.ErrorCode(err) != tenon.CodeTimeout {
		t.Fatal(err)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "mcp", "t", "*.json"))
	if len(names) != 13 {
		t.Fatalf("%d files", len(names))
	}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil || strings.Contains(string(b), `cret/key`) {
			t.Fatalf("%s: %v\n%s", n, err, b)
		}
	}
	return dir, want
}

// playCalls makes the ten recorded calls at the same time and checks that each answer is given once.
func playCalls(t *testing.T, again tenon.Toolset) {
	t.Helper()
	var wg sync.WaitGroup
	seen := map[string]bool{}
	var mu sync.Mutex
	for i := range 10 {
		wg.Go(func() {
			text, err := call(again, "a", fmt.Sprintf(`{"n":%d}`, i%5))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[text] || !strings.Contains(text, fmt.Sprintf(`{"n": %d} ***`, i%5)) {
				t.Errorf("%q, %v", text, err)
			}
			seen[text] = true
		})
	}
	wg.Wait()
}

// TestServerAsksInACassette checks that a server's requests during a call are repeated, and that a
// different answer is an error. The answers of both eras can be looked up.
func TestServerAsksInACassette(t *testing.T) {
	dir, rec := newCassette(t)
	ts := rec.Toolset("a/../t", &shop{tools: []tenon.Tool{}})
	ask := func(answer string, err error) tenon.Call {
		return tenon.Call{Tool: "ask", Progress: func(tenon.Progress) {}, Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(answer), err
		}}
	}
	refused := errors.New("nobody here")
	for _, c := range []tenon.Call{ask(`{"action":"accept"}`, nil), ask("", refused),
		{Tool: "input"}, {Tool: "input", Input: &tenon.InputAnswer{State: "s1", Responses: json.RawMessage(`{"k":{"action":"decline"}}`)}}} {
		if _, err := ts.Call(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mcp", "a%2F..%2Ft", "0004.json")); err != nil {
		t.Error(err)
	}

	p := play(t, dir)
	for _, q := range []struct{ message, want string }{{"who?", `{"action":"accept"}`}, {"who?", "error nobody here"}, {"why?", `{"action":"decline"}`}, {"who?", "none"}} {
		a, ok, err := p.Answer("a/../t", "elicitation/create", json.RawMessage(fmt.Sprintf(`{"message":%q}`, q.message)))
		got := string(a)
		if err != nil {
			got = "error " + err.Error()
		}
		if !ok {
			got = "none"
		}
		if got != q.want {
			t.Errorf("%s: %s, want %s", q.message, got, q.want)
		}
	}
	again := p.Toolset("a/../t")
	notices := 0
	c := ask(`{"action":"accept"}`, nil)
	c.Progress = func(tenon.Progress) { notices++ }
	r, err := again.Call(t.Context(), c)
	if err != nil || r.Text() != `{"action":"accept"}` || notices != 1 {
		t.Errorf("%v, %v, %d", r, err, notices)
	}
	if r, err := again.Call(t.Context(), ask("", refused)); err != nil || !r.IsError {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := again.Call(t.Context(), tenon.Call{Tool: "input"}); err != nil || r.Input == nil || r.Input.State != "s1" {
		t.Errorf("%v, %v", r, err)
	}
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "0004.json") {
		t.Errorf("%v", err)
	}
	other := play(t, dir)
	if _, err := other.Toolset("a/../t").Call(t.Context(), ask(`{"action":"cancel"}`, nil)); tenon.ErrorCode(err) != tenon.CodeConflict || !strings.Contains(err.Error(), "differs at action") {
		t.Errorf("%v", err)
	}
	if err := other.Close(); err == nil || !strings.Contains(err.Error(), "differs from the recording") {
		t.Errorf("%v", err)
	}
}

// TestCassetteVersions checks that a cassette without a manifest contains no servers, that a newer
// version is refused, and that a resumed process continues the cassette.
func TestCassetteVersions(t *testing.T) {
	dir, rec := newCassette(t)
	if _, err := call(rec.Toolset("t", &shop{}), "a", "{}"); err != nil {
		t.Fatal(err)
	}
	on, err := record.NewRecorder(record.Config{Dir: dir, Resumed: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(on.Toolset("t", &shop{}), "b", "{}"); err != nil {
		t.Fatal(err)
	}
	if !play(t, dir).HoldsServers() {
		t.Error("a new cassette holds no servers")
	}
	p, err := record.NewPlayer(record.Config{Dir: dir, Resumed: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(p.Toolset("t"), "b", "{}"); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("what the process before it used is missed: %v", err)
	}
	manifest := filepath.Join(dir, "cassette.json")
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	if play(t, dir).HoldsServers() {
		t.Error("an old cassette holds servers")
	}
	if _, err := record.NewRecorder(record.Config{Dir: dir, Resumed: true}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(manifest, []byte(`{"version":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := record.HoldsServers(dir); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("%v", err)
	}
	if _, err := record.NewRecorder(record.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "mcp", "*", "*")); len(names) != 0 {
		t.Errorf("a new recording leaves %v", names)
	}
}

func FuzzServerCassette(f *testing.F) {
	f.Add([]byte(`{"request":{"method":"tools/call","params":{"name":"a","arguments":{}}},"response":{"result":{"content":[]}}}`))
	f.Add([]byte(`{"request":{"method":"tools/list"},"response":{"tools":[{"name":"a"},1,null]}}`))
	f.Add([]byte(`{"request":{"method":"tools/call","params":{"inputResponses":{"k":1}}},"response":{"input":{"requests":{"k":{}}}},"asked":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "mcp", "t"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"0001.json", "0002.json"} {
			if err := os.WriteFile(filepath.Join(dir, "mcp", "t", n), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := record.NewPlayer(record.Config{Dir: dir})
		if err != nil {
			return
		}
		ts := p.Toolset("t")
		_, _ = ts.Tools(t.Context())
		_, _ = call(ts, "a", "{}")
		_, _, _ = p.Answer("t", "elicitation/create", nil)
		_ = p.Close()
	})
}

// TestRecorderOfForeignFolder checks that a recorder removes nothing from a folder without a manifest.
func TestRecorderOfForeignFolder(t *testing.T) {
	for _, foreign := range []string{`{"http_interactions":[]}`, "", "[1]", "version: 2"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "cassette.json")
		if err := os.WriteFile(file, []byte(foreign), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := record.NewRecorder(record.Config{Dir: dir})
		if kept, _ := os.ReadFile(file); err == nil || !strings.Contains(err.Error(), "is not of tenon") || string(kept) != foreign {
			t.Errorf("%q: %v; then it has %q", foreign, err, kept)
		}
	}
	for name, manifest := range map[string]bool{"of somebody else": false, "a cassette": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "mcp", "bank", "0001.json")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			if manifest {
				if err := os.WriteFile(filepath.Join(dir, "cassette.json"), []byte(`{"version":2}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := record.NewRecorder(record.Config{Dir: dir})
			_, gone := os.Stat(file)
			if (err == nil) != manifest || os.IsNotExist(gone) != manifest {
				t.Errorf("%v; the file: %v", err, gone)
			}
			if !manifest && !strings.Contains(err.Error(), "has no cassette.json") {
				t.Error(err)
			}
		})
	}
}
