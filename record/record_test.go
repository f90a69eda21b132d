package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/openai"
	"github.com/tenonhq/tenon/model/script"
	"github.com/tenonhq/tenon/record"
)

const key = `sk-se"cret/key`

func ask(m tenon.Model, msgs ...*tenon.Message) (*tenon.Response, string, error) {
	return askWith(m, &tenon.Request{Messages: msgs})
}

func askWith(m tenon.Model, req *tenon.Request) (*tenon.Response, string, error) {
	deltas := ""
	for d, err := range m.Generate(context.Background(), req) {
		if err != nil {
			return nil, deltas, err
		}
		if d.Response != nil {
			return d.Response, deltas, nil
		}
		deltas += d.Text
	}
	return nil, deltas, fmt.Errorf("no response")
}

func results(calls []*tenon.ToolCall, isError bool, texts ...string) *tenon.Message {
	msg := &tenon.Message{Role: tenon.RoleTool}
	for i, c := range calls {
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartResult, Result: &tenon.ToolResult{
			ID: c.ID, Name: c.Name, IsError: isError, Content: []tenon.Content{tenon.Text(texts[i])}}})
	}
	return msg
}

type file struct {
	Model   string
	HTTP    *record.HTTP
	Request struct {
		Model    string
		Tools    []json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	Response *record.Response
}

func read(t *testing.T, dir string, n int) (file, string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "model", fmt.Sprintf("%04d.json", n)))
	if err != nil {
		t.Fatal(err)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	return f, string(data)
}

// Test_RA17_ScriptCassette checks that a script's requests are recorded in native blocks, and that
// the cassette replays without the script.
func Test_RA17_ScriptCassette(t *testing.T) {
	m, err := script.Parse("three.yaml", []byte(`
steps:
  - calls: [{name: a, arguments: {x: 1}}, {name: b}, {name: c}]
  - text: done now
`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rec, err := record.NewRecorder(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	run := func(m tenon.Model) (*tenon.Response, string) {
		msgs := []*tenon.Message{tenon.UserMessage("go")}
		first, _, err := ask(m, msgs...)
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, first.Message, results(first.Message.Calls(), true, "Error: boom", "two", "three"))
		last, deltas, err := ask(m, msgs...)
		if err != nil {
			t.Fatal(err)
		}
		return last, deltas
	}
	want, deltas := run(rec.Model(m))
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	one, raw := read(t, dir, 1)
	if one.Model != "script/three.yaml" || one.Request.Tools != nil || strings.Contains(raw, `"tools"`) {
		t.Errorf("RA-9: %s", raw)
	}
	two, _ := read(t, dir, 2)
	last := two.Request.Messages[2]
	var blocks []struct {
		Type    string
		ID      string `json:"tool_use_id"`
		IsError bool   `json:"is_error"`
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(last.Content, &blocks); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, b := range blocks {
		got += fmt.Sprintf("%s %s %t %s; ", b.Type, b.ID, b.IsError, b.Content[0].Text)
	}
	if last.Role != "user" || got != "tool_result call_1_1 true Error: boom; tool_result call_1_2 true two; tool_result call_1_3 true three; " {
		t.Errorf("%s %s", last.Role, got)
	}

	player, err := record.NewPlayer(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	replayed, replayedDeltas := run(player.Model(m.Name()))
	if d := cmp.Diff(want, replayed, cmpopts.IgnoreUnexported(tenon.Message{})); d != "" || deltas != replayedDeltas {
		t.Errorf("the replay differs: %s %s", replayedDeltas, d)
	}
	if err := player.Close(); err != nil {
		t.Error(err)
	}
}

// server streams an answer that repeats the question.
func server(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(500)
			return
		}
		q := body.Messages[len(body.Messages)-1].Content
		if q == "limit" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"error":{"message":"no quota","code":"insufficient_quota"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		text, _ := json.Marshal("you said " + q + ", key " + key)
		_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", text)
	}))
	t.Cleanup(s.Close)
	return s
}

func chat(t *testing.T, url string, rt http.RoundTripper) tenon.Model {
	t.Helper()
	none := 0
	m, err := openai.New(model.Config{Provider: "openai-compatible", Model: "m", BaseURL: url, APIKey: tenon.NewSecret(key), Retries: &none,
		Headers: map[string]string{"X-Api-Token": "other-token", "X-Team": "demo"}}, model.Env{Transport: rt})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHTTPCassetteIsRedactedAndPlaysConcurrently(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	redactor := new(tenon.Redactor)
	redactor.Add(tenon.NewSecret(key))
	rec, err := record.NewRecorder(record.Config{Dir: dir, Redactor: redactor})
	if err != nil {
		t.Fatal(err)
	}
	const n = 20
	both := func(rt http.RoundTripper) {
		t.Helper()
		m := chat(t, s.URL, rt)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				q := fmt.Sprintf("question %d", i)
				resp, _, err := ask(m, tenon.UserMessage(q))
				if err != nil || !strings.HasPrefix(resp.Message.Text(), "you said "+q+", ") {
					t.Errorf("%v, %v", resp, err)
				}
			})
		}
		wg.Wait()
		if _, _, err := ask(m, tenon.UserMessage("limit")); err == nil || !strings.Contains(err.Error(), "no quota") {
			t.Errorf("%v", err)
		}
	}
	both(rec.Transport(s.Client().Transport))
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range n + 1 {
		f, raw := read(t, dir, i+1)
		escaped, _ := json.Marshal(key)
		for _, secret := range []string{key, strings.Trim(string(escaped), `"`), "other-token"} {
			if strings.Contains(raw, secret) {
				t.Fatalf("the cassette holds a secret: %s", raw)
			}
		}
		if f.HTTP.Headers["Authorization"] != "***" || f.HTTP.Headers["X-Team"] != "demo" || f.Request.Model != "m" {
			t.Errorf("%+v", f.HTTP)
		}
	}
	player, err := record.NewPlayer(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	both(player.Transport())
	if err := player.Close(); err != nil {
		t.Error(err)
	}
}

func TestReplayIsStrict(t *testing.T) {
	s := server(t)
	dir := t.TempDir()
	rec, err := record.NewRecorder(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m := chat(t, s.URL, rec.Transport(s.Client().Transport))
	for _, q := range []string{"one", "two"} {
		if _, _, err := ask(m, tenon.UserMessage(q)); err != nil {
			t.Fatal(err)
		}
	}
	player, err := record.NewPlayer(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m = chat(t, s.URL, player.Transport())
	if _, _, err := askWith(m, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("two")}, Sampling: tenon.Sampling{MaxTokens: 99}}); err != nil {
		t.Errorf("another limit is no difference: %v", err)
	}
	if err := player.Close(); tenon.ErrorCode(err) != tenon.CodeConflict || !strings.Contains(err.Error(), "1 of 2 recordings") || !strings.Contains(err.Error(), "0001.json") {
		t.Errorf("%v", err)
	}
	_, _, err = ask(m, tenon.UserMessage("three"))
	if tenon.ErrorCode(err) != tenon.CodeConflict || !strings.Contains(err.Error(), "0001.json, differs at messages[0].content") {
		t.Errorf("%v", err)
	}
	if _, _, err := ask(m, tenon.UserMessage("one")); err != nil {
		t.Error(err)
	}
	if _, _, err := ask(m, tenon.UserMessage("one")); err == nil || !strings.Contains(err.Error(), "all of its 2 recordings are used") {
		t.Errorf("%v", err)
	}
	if err := player.Close(); err == nil || !strings.Contains(err.Error(), "differs at") {
		t.Errorf("the request that did not fit is forgotten: %v", err)
	}
}

func TestIDsMayDifferArgumentsMayNot(t *testing.T) {
	dir := t.TempDir()
	rec, err := record.NewRecorder(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	conversation := func(id, arg string) []*tenon.Message {
		call := &tenon.ToolCall{ID: id, Name: "f", Arguments: json.RawMessage(`{"id":"` + arg + `"}`)}
		return []*tenon.Message{tenon.UserMessage("q"), {Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartCall, Call: call}}},
			results([]*tenon.ToolCall{call}, false, "ok")}
	}
	m, err := script.Parse("s", []byte("steps: [{text: a}, {text: b}]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(rec.Model(m), conversation("call_1", "A")...); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]bool{"A": true, "B": false} {
		p, err := record.NewPlayer(record.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ask(p.Model("script/s"), conversation("call_xyz", arg)...); (err == nil) != want {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestErrorsAndBrokenCassettes(t *testing.T) {
	dir := t.TempDir()
	if _, err := record.NewPlayer(record.Config{Dir: dir}); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("%v", err)
	}
	rec, err := record.NewRecorder(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m, err := script.Parse("s", []byte("steps: [{text: par, error: {code: rate_limited, message: slow down}}]"))
	if err != nil {
		t.Fatal(err)
	}
	_, deltas, first := ask(rec.Model(m), tenon.UserMessage("q"))
	p, err := record.NewPlayer(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, again, second := ask(p.Model("script/s"), tenon.UserMessage("q"))
	if first.Error() != second.Error() || tenon.ErrorCode(second) != tenon.CodeRateLimited || deltas != again {
		t.Errorf("%v, %v", first, second)
	}
	// A new recording replaces the old one.
	if err := os.WriteFile(filepath.Join(dir, "model", "0002.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model", "notes.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := record.NewPlayer(record.Config{Dir: dir}); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "0002.json") {
		t.Errorf("%v", err)
	}
	if _, err := record.NewRecorder(record.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "model"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "notes.json" {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestBrokenStreamIsReplayedBroken checks that a stream that ended early ends early in the replay.
func TestBrokenStreamIsReplayedBroken(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"hal"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	dir := t.TempDir()
	rec, err := record.NewRecorder(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, deltas, first := ask(chat(t, s.URL, rec.Transport(s.Client().Transport)), tenon.UserMessage("q"))
	p, err := record.NewPlayer(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, again, second := ask(chat(t, s.URL, p.Transport()), tenon.UserMessage("q"))
	if first == nil || second == nil || first.Error() != second.Error() || deltas != "hal" || again != "hal" {
		t.Errorf("%v, %v", first, second)
	}
}

// TestGW_33_CassetteIsBounded checks that a recorder stops at its limit, says so, and disturbs no call.
func TestGW_33_CassetteIsBounded(t *testing.T) {
	dir := t.TempDir()
	r, err := record.NewRecorder(record.Config{Dir: dir, MaxBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	tools := r.Toolset("s", boundedTools{})
	for range 20 {
		if _, err := tools.Call(t.Context(), tenon.Call{Tool: "t", Arguments: []byte(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); tenon.ErrorCode(err) != tenon.CodeTooLarge {
		t.Errorf("the recorder ends with %v", err)
	}
	var size int64
	files, err := os.ReadDir(filepath.Join(dir, "mcp", "s"))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if size += info.Size(); info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
	}
	if size > 2000 {
		t.Errorf("%d bytes", size)
	}
}

// boundedTools answers every call.
type boundedTools struct{}

func (boundedTools) Tools(context.Context) ([]tenon.Tool, error) { return nil, nil }

func (boundedTools) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{{Type: "text", Text: "done"}}}, nil
}

// TestFoldersThatOthersMade checks that the recorder writes to nothing outside of its folder, and that the player reads
// only files.
func TestFoldersThatOthersMade(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	link := func(dir, name, to string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(to, path)); err != nil {
			t.Skip(err) // a system without links
		}
	}
	for content, refused := range map[string]bool{"mine": true, `{"version":1}`: false} {
		if err := os.WriteFile(victim, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		link(dir, "cassette.json.tmp", victim)
		link(dir, "cassette.json", victim)
		if _, err := record.NewRecorder(record.Config{Dir: dir}); (err != nil) != refused {
			t.Errorf("%s: error %v, want one: %t", content, err, refused)
		}
		if b, err := os.ReadFile(victim); err != nil || string(b) != content {
			t.Errorf("the file outside has %q, %v, want %q", b, err, content)
		}
	}
	for _, name := range []string{"mcp", "model"} {
		dir := t.TempDir()
		link(dir, name, outside)
		if _, err := record.NewRecorder(record.Config{Dir: dir}); tenon.ErrorCode(err) != tenon.CodeConfig {
			t.Errorf("%s is a link: %v", name, err)
		}
	}
	dir := t.TempDir()
	link(dir, "model/0001.json", "/dev/null")
	if _, err := record.NewPlayer(record.Config{Dir: dir}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a recording that is a device: %v", err)
	}
}
