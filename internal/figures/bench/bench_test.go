package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain also runs the child processes of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "runner":
			if err := Serve(context.Background(), os.Stdin, os.Stdout, &local{}); err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		case "dies":
			_, _ = os.Stderr.WriteString("no\nluck\n")
			os.Exit(1)
		case "http":
			if err := ServeHTTP(os.Stdin, os.Stdout, http.NotFoundHandler()); err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// local handles calls in this process. The echo with number fail returns an error.
type local struct {
	fail  int64
	calls atomic.Int64
}

func (l *local) Call(_ context.Context, tool, text string) (string, error) {
	if tool == EchoTool && l.fail > 0 && l.calls.Add(1) >= l.fail {
		return "", errors.New("out of order")
	}
	return Answer(tool, text)
}

func (l *local) Close() error { return nil }

func TestServe(t *testing.T) {
	for _, c := range []struct {
		name   string
		orders string
		fail   int64
		check  func(Report) bool
	}{
		{"one after another", `{"calls":7}`, 0, func(r Report) bool {
			return r.Calls == 7 && len(r.Latencies) == 7 &&
				r.Used.Alloc > 0
		}},
		{"at once", `{"callers":4,"for_ns":1000000}`, 0,
			func(r Report) bool { return r.Calls > 0 && r.Elapsed >= time.Millisecond }},
		{"an echo fails", `{"calls":7}`, 3, func(r Report) bool { return r.Error == "out of order" }},
		{"an echo fails at once", `{"callers":4,"for_ns":1000000000}`, 3,
			func(r Report) bool { return r.Error == "out of order" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Serve(t.Context(), strings.NewReader(c.orders), &out, &local{fail: c.fail}); err != nil {
				t.Fatal(err)
			}
			dec := json.NewDecoder(&out)
			var ready, r Report
			if err := errors.Join(dec.Decode(&ready), dec.Decode(&r)); err != nil {
				t.Fatal(err)
			}
			if !c.check(r) {
				t.Errorf("report: %+v", r)
			}
			if err := dec.Decode(&r); !errors.Is(err, io.EOF) {
				t.Errorf("more than two reports: %v", err)
			}
		})
	}
	if err := Serve(t.Context(), strings.NewReader("nonsense"), io.Discard, &local{}); err == nil {
		t.Error("an order that is not JSON returned no error")
	}
}

func TestRunner(t *testing.T) {
	r, err := Start(t.Context(), "self", os.Args[0], "runner")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Do(Order{Calls: 3})
	if err != nil || rep.Calls != 3 {
		t.Errorf("report %+v, %v", rep, err)
	}
	r.Close()
	if _, err := r.Do(Order{Calls: 1}); err == nil {
		t.Error("an order to an ended runner returned no error")
	}
	if _, err := Start(t.Context(), "dead", os.Args[0], "dies"); err == nil ||
		!strings.Contains(err.Error(), "no luck") {
		t.Errorf("a runner that dies: %v, want its stderr", err)
	}
}

func TestHTTP(t *testing.T) {
	url, stop, err := StartHTTP(os.Args[0], "http")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %s", resp.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, _, err := StartHTTP(os.Args[0], "dies"); err == nil {
		t.Error("a server that dies returned no error")
	}
}

func TestTail(t *testing.T) {
	var x tail
	for range 100 {
		_, _ = x.Write([]byte(strings.Repeat("x", 99) + "\n"))
	}
	_, _ = x.Write([]byte("the end\n"))
	if s := x.String(); len(s) > 2048 || !strings.HasSuffix(s, "the end") {
		t.Errorf("tail of %d bytes: %q", len(s), s)
	}
}
