package servers

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// finish repeats a call until it has ended, and answers its questions. It also returns the keys of the questions.
func finish(ctx context.Context, s *Server, c tenon.Call, answers map[string]string) (*tenon.Result, []string, error) {
	var asked []string
	for range 10 {
		r, err := s.Call(ctx, c)
		if err != nil || r.Input == nil {
			return r, asked, err
		}
		c.Input = &tenon.InputAnswer{State: r.Input.State}
		responses := map[string]json.RawMessage{}
		for k := range rawjson.Members(r.Input.Requests) {
			asked = append(asked, string(k))
			responses[string(k)] = json.RawMessage(answers[string(k)])
		}
		if len(responses) > 0 {
			c.Input.Responses, _ = json.Marshal(responses) // JSON that we wrote
		}
	}
	return nil, asked, context.DeadlineExceeded
}

// TestTasks checks that a task is polled with pauses, asks questions, and is cancelled, and that the task's outcome is
// the outcome of the call.
func TestTasks(t *testing.T) {
	t.Parallel() // it waits for the ends of tasks
	for _, kind := range []string{"stdio", "http", "ws"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "stats.json")
			cfg := process("--stdio", "--tasks", "--stats", file)
			if kind != "stdio" {
				cfg = Config{URL: listening(t, "--"+kind, "127.0.0.1:0", "--tasks", "--stats", file)}
			}
			s := started(t, cfg, Options{})
			t.Run("first a handle", func(t *testing.T) { testTaskHandle(t, s) })
			t.Run("completed", func(t *testing.T) { testTaskCompleted(t, s) })
			t.Run("the server tells of its end", func(t *testing.T) { testTaskNotice(t, s) })
			t.Run("asks once", func(t *testing.T) {
				r, asked, err := finish(t.Context(), s, later(`{"ms":100,"ask":true}`), map[string]string{"name": `{"action":"accept","content":{"name":"Ann"}}`})
				if err != nil || r.Content[0].Text != "done for Ann" || !slices.Equal(asked, []string{"name"}) {
					t.Fatalf("%+v, %v, asked %v", r, err, asked)
				}
			})
			t.Run("error", func(t *testing.T) {
				if r, _, err := finish(t.Context(), s, later(`{"ms":50,"end":"error"}`), nil); err != nil || !r.IsError || r.Content[0].Text != "it went wrong" {
					t.Fatalf("%+v, %v", r, err)
				}
			})
			t.Run("failed", func(t *testing.T) { testTaskFailed(t, s) })
			t.Run("cancelled by the server", func(t *testing.T) {
				_, _, err := finish(t.Context(), s, later(`{"ms":50,"end":"cancelled"}`), nil)
				if tenon.ErrorCode(err) != tenon.CodeTool || !strings.Contains(err.Error(), "it was too much") {
					t.Fatal(err)
				}
			})
			t.Run("lost", func(t *testing.T) {
				_, _, err := finish(t.Context(), s, later(`{"end":"lost"}`), nil)
				if tenon.ErrorCode(err) != tenon.CodeUnknown || !strings.Contains(err.Error(), "Task not found") {
					t.Fatal(err)
				}
			})
			t.Run("the caller gives up", func(t *testing.T) { testTaskGivenUp(t, file, s) })
			if st := readStats(t, file); st.Calls != 9 {
				t.Errorf("%d calls, want one for each task", st.Calls)
			}
		})
	}
}

func testTaskHandle(t *testing.T, s *Server) {
	r, err := s.Call(t.Context(), later(`{}`))
	if err != nil || r.Input == nil || !r.Input.Resume || len(r.Input.Requests) > 0 || r.Input.State == "" {
		t.Fatalf("%+v, %v", r, err)
	}
}

func testTaskCompleted(t *testing.T, s *Server) {
	var said []string
	c := later(`{"ms":2000}`) // half of this time suffices to see its progress
	c.Progress = func(p tenon.Progress) { said = append(said, p.Message) }
	r, asked, err := finish(t.Context(), s, c, nil)
	if err != nil || r.IsError || r.Content[0].Text != "done for nobody" || string(r.Structured) != `{"id":9007199254740993}` || len(asked) > 0 {
		t.Fatalf("%+v, %v, asked %v", r, err, asked)
	}
	if len(said) == 0 || said[len(said)-1] != "task working: half of it is done" {
		t.Errorf("told %q", said)
	}
}

func testTaskNotice(t *testing.T, s *Server) {
	// The server wants to be polled once an hour, and tenon polls at least once a minute. The call must end sooner,
	// because the server notifies the client about the end of the task.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, asked, err := finish(ctx, s, later(`{"ms":200,"poll":3600000,"ask":true}`), map[string]string{"name": `{"action":"accept","content":{"name":"Ann"}}`})
	if err != nil || r.Content[0].Text != "done for Ann" || !slices.Equal(asked, []string{"name"}) {
		t.Fatalf("%+v, %v, asked %v", r, err, asked)
	}
}

func testTaskFailed(t *testing.T, s *Server) {
	_, _, err := finish(t.Context(), s, later(`{"ms":50,"end":"failed"}`), nil)
	if e, ok := err.(*tenon.Error); !ok || e.Code != tenon.CodeTool || !strings.Contains(e.Message, "-32603: the machine is broken") || string(e.Data) != `{"id":9007199254740993}` {
		t.Fatal(err)
	}
}

func testTaskGivenUp(t *testing.T, file string, s *Server) {
	r, err := s.Call(t.Context(), later(`{"end":"never"}`))
	if err != nil {
		t.Fatal(err)
	}
	again := tenon.Call{Tool: "later", Input: &tenon.InputAnswer{State: r.Input.State}}
	closing, leave := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { leave(tenon.ErrClosing) })
	if _, err := s.Call(closing, again); tenon.ErrorCode(err) != tenon.CodeCancelled {
		t.Fatal(err)
	}
	if st := readStats(t, file); slices.Contains(st.Methods, "tasks/cancel") {
		t.Error("a task is cancelled that another process may go on with")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // the call has to reach the server in this time
	defer cancel()
	if _, err := s.Call(ctx, again); tenon.ErrorCode(err) != tenon.CodeTimeout {
		t.Fatal(err)
	}
	if st := readStats(t, file); !slices.Contains(st.Methods, "tasks/cancel") {
		t.Errorf("the server is not told: %v", st.Methods)
	}
	if _, err := s.Call(t.Context(), again); tenon.ErrorCode(err) != tenon.CodeTool || !strings.Contains(err.Error(), "as you wished") {
		t.Error(err)
	}
}

// later returns a call of the tool that answers after a while.
func later(args string) tenon.Call {
	return tenon.Call{Tool: "later", Arguments: json.RawMessage(args)}
}

// TestOldTasks checks tasks of revision 2025-11-25: the client requests the task, polls it and fetches the result.
func TestOldTasks(t *testing.T) {
	t.Parallel() // it waits for the ends of tasks
	for _, kind := range []string{"stdio", "http", "ws"} {
		t.Run("RP-11_"+kind, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "stats.json")
			cfg := process("--stdio", "--tasks", "--stats", file)
			if kind != "stdio" {
				cfg = Config{URL: listening(t, "--"+kind, "127.0.0.1:0", "--tasks", "--stats", file)}
			}
			cfg.Protocol = "2025-11-25"
			s := started(t, cfg, Options{})
			t.Run("completed", func(t *testing.T) { testOldTaskCompleted(t, kind, cfg, s) })
			t.Run("input", func(t *testing.T) {
				c := later(`{"ms":100,"ask":true}`)
				c.Ask = func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
					if method != "elicitation/create" {
						t.Errorf("asked %s", method)
					}
					return json.RawMessage(`{"action":"accept","content":{"name":"Ann"}}`), nil
				}
				r, _, err := finish(t.Context(), s, c, nil)
				if err != nil || r.Content[0].Text != "done for Ann" {
					t.Fatalf("%+v, %v", r, err)
				}
			})
			for end, want := range map[string]string{"failed": "the machine is broken", "cancelled": "it was too much",
				"lost": "what becomes of it is not known"} {
				t.Run(end, func(t *testing.T) {
					_, _, err := finish(t.Context(), s, later(`{"ms":50,"end":"`+end+`"}`), nil)
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v, want %s", err, want)
					}
				})
			}
			t.Run("error", func(t *testing.T) {
				r, _, err := finish(t.Context(), s, later(`{"ms":50,"end":"error"}`), nil)
				if err != nil || !r.IsError || r.Content[0].Text != "it went wrong" {
					t.Errorf("%+v, %v", r, err)
				}
			})
			t.Run("cancel", func(t *testing.T) { testOldTaskCancelled(t, file, s) })
			t.Run("without a task", func(t *testing.T) {
				r, err := s.Call(t.Context(), tenon.Call{Tool: "add", Arguments: json.RawMessage(`{"a":1,"b":2}`)})
				if err != nil || r.Input != nil || r.IsError {
					t.Errorf("%+v, %v", r, err)
				}
			})
		})
	}
}

func testOldTaskCompleted(t *testing.T, kind string, cfg Config, s *Server) {
	var said []string
	c := later(`{"ms":2000}`)
	c.Progress = func(p tenon.Progress) { said = append(said, p.Message) }
	r, err := s.Call(t.Context(), c)
	if err != nil || r.Input == nil || !r.Input.Resume || len(r.Input.Requests) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	c.Input = &tenon.InputAnswer{State: r.Input.State}
	other := started(t, cfg, Options{}) // another process could not reach the task of a stdio server
	if kind == "stdio" {
		other = s
	}
	r, err = other.Call(t.Context(), c)
	if err != nil || r.Content[0].Text != "done for nobody" || string(r.Structured) != `{"id":9007199254740993}` {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(said) == 0 || said[len(said)-1] != "task working: half of it is done" {
		t.Errorf("told %q", said)
	}
}

func testOldTaskCancelled(t *testing.T, file string, s *Server) {
	ctx, cancel := context.WithCancel(t.Context())
	c := later(`{"ms":60000}`)
	c.Progress = func(tenon.Progress) { cancel() }
	if _, _, err := finish(ctx, s, c, nil); tenon.ErrorCode(err) != tenon.CodeCancelled {
		t.Error(err)
	}
	if methods := readStats(t, file).Methods; !slices.Contains(methods, "tasks/cancel") {
		t.Errorf("the server saw %q", methods)
	}
}
