package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/table"
)

// uploadRows is the number of rows of the uploaded table, of a MiB each: more than a body in JSON takes.
const uploadRows = 40

// uploadFile writes a table of 40 MiB and returns its path.
func uploadFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.arrow")
	rows := make([]json.RawMessage, uploadRows)
	for i := range rows {
		rows[i] = json.RawMessage(fmt.Sprintf(`{"id":%d,"text":%q}`, i, strings.Repeat(fmt.Sprintf("%07d ", i), 1<<17)))
	}
	if err := table.WriteRows(t.Context(), path, rows, nil, table.WriteOptions{BatchRows: 4}); err != nil {
		t.Fatal(err)
	}
	return path
}

// put sends a body of any length to the route of uploads.
func put(t *testing.T, client *http.Client, base, name, kind string, body io.Reader) (int, httpapi.Problem, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, base+"/api/v1/tables?name="+name, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var p httpapi.Problem
	_ = json.Unmarshal(b, &p)
	return res.StatusCode, p, string(b)
}

// measured is a body that measures the reachable memory of the process after every 4 MiB. Nothing else arrives
// meanwhile, so the measurement does not depend on the load of the machine.
type measured struct {
	r           io.Reader
	sent        int64
	times       int
	first, most uint64 // bytes of the heap
}

func (m *measured) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if m.times == 0 || m.sent>>22 != (m.sent+int64(n))>>22 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		if m.times == 0 {
			m.first = s.HeapAlloc
		}
		m.most = max(m.most, s.HeapAlloc)
		m.times++
	}
	m.sent += int64(n)
	return n, err
}

// leftover returns the names in the folder of uploaded tables.
func leftover(t *testing.T, home string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(home, "tables"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestUX12_Upload checks that a table above the size of other bodies is stored while it arrives, without a copy of it
// in memory, and that refused, broken and doubled uploads leave nothing.
func TestUX12_Upload(t *testing.T) {
	path := uploadFile(t)
	h, base, home := uploadHost(t, 0)
	open := func() *os.File {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	client := &http.Client{}
	defer client.CloseIdleConnections()

	body := &measured{r: open()}
	status, _, text := put(t, client, base, "large.arrow", "application/vnd.apache.arrow.file", body)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	if grown := int64(body.most) - int64(body.first); body.times < uploadRows/8 || grown > 8<<20 {
		t.Errorf("an upload of %d MiB takes %d MiB of memory, measured %d times", uploadRows, grown>>20, body.times)
	}
	p, err := h.Tables().Page(t.Context(), "uploaded:large.arrow", host.PageOptions{Skip: uploadRows - 1, Limit: 5, Count: true})
	if err != nil || len(p.Rows) != 1 || p.Total != uploadRows {
		t.Errorf("%d rows, total %d, %v", len(p.Rows), p.Total, err)
	}
	for name, tt := range map[string]struct {
		file, kind string
		body       io.Reader
		status     int
		code       tenon.Code
		says       string
	}{
		"the name is taken": {"large.arrow", "application/octet-stream", open(), 409, tenon.CodeConflict, "there is a table 'large.arrow' already"},
		"no table":          {"none.arrow", "application/octet-stream", strings.NewReader("no table"), 400, tenon.CodeInvalid, "none.arrow"},
		"a part":            {"part.arrow", "application/octet-stream", io.LimitReader(open(), 20<<20), 400, tenon.CodeInvalid, "part.arrow"},
		"another folder":    {"..%2Fup.arrow", "application/octet-stream", open(), 400, tenon.CodeInvalid, "not a valid name"},
		"in JSON":           {"x.arrow", "application/json", strings.NewReader("{}"), 415, tenon.CodeInvalid, "the content type must be one of application/vnd.apache.arrow.file"},
		"a form":            {"x.arrow", "multipart/form-data; boundary=x", strings.NewReader("--x--"), 415, tenon.CodeInvalid, "the content type"},
		"a simple type":     {"x.arrow", "text/plain", open(), 415, tenon.CodeInvalid, "the content type"},
	} {
		t.Run(name, func(t *testing.T) {
			status, p, text := put(t, client, base, tt.file, tt.kind, tt.body)
			if status != tt.status || p.Code != tt.code || !strings.Contains(p.Detail, tt.says) {
				t.Errorf("%d %s", status, text)
			}
			if strings.Contains(text, home) {
				t.Errorf("the folder is named: %s", text)
			}
		})
	}
	t.Run("the client leaves", func(t *testing.T) {
		in, out := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, base+"/api/v1/tables?name=gone.arrow", in)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/octet-stream")
		go func() {
			_, _ = out.Write(bytes.Repeat([]byte("x"), 1<<20))
			_ = out.CloseWithError(errors.New("the cable is pulled"))
		}()
		if res, err := client.Do(req); err == nil {
			_ = res.Body.Close()
			t.Errorf("HTTP %d", res.StatusCode)
		}
	})
	for range 3000 { // the server notices a closed connection a moment later
		if got := strings.Join(leftover(t, home), " "); got == "large.arrow" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the folder has %v", leftover(t, home))
}

// TestUX12_UploadBound checks that tables.max_bytes bounds an upload, and that the client gets the answer although it
// was still sending.
func TestUX12_UploadBound(t *testing.T) {
	_, base, home := uploadHost(t, 1<<20)
	f, err := os.Open(uploadFile(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	client := &http.Client{}
	defer client.CloseIdleConnections()
	status, p, text := put(t, client, base, "large.arrow", "application/octet-stream", f)
	if status != http.StatusRequestEntityTooLarge || p.Code != tenon.CodeTooLarge || !strings.Contains(p.Detail, "'large.arrow' has more than 1 MiB, as tables.max_bytes says") {
		t.Errorf("%d %s", status, text)
	}
	if got := leftover(t, home); len(got) > 0 {
		t.Errorf("the folder has %v", got)
	}
}

// TestUX12_UploadRest checks that a refused upload gets its answer although the client never sends all of it.
func TestUX12_UploadRest(t *testing.T) {
	h, _, _ := uploadHost(t, 0)
	for name, tt := range map[string]struct {
		pause  time.Duration // between two bytes
		status int
	}{
		"a little at a time": {10 * time.Millisecond, http.StatusBadRequest},
		"nothing":            {time.Hour, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(httpapi.New(h, httpapi.Config{BodyTime: 500 * time.Millisecond}))
			defer s.Close()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // it was read to the end
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "PUT /api/v1/tables?name=..%2Fup.arrow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			ended, sent := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(sent)
				for {
					select {
					case <-ended:
						return
					case <-time.After(tt.pause):
						if _, err := conn.Write([]byte("x")); err != nil {
							return // the server closed the connection
						}
					}
				}
			}()
			defer func() { close(ended); <-sent }()
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != tt.status || !strings.Contains(string(b), "not a valid name") || !res.Close {
				t.Errorf("HTTP %d, closed %v: %s, %v", res.StatusCode, res.Close, b, err)
			}
		})
	}
}

// TestUX12_UploadRefusedFirst checks that a wrong or taken name is reported before the body is asked for.
func TestUX12_UploadRefusedFirst(t *testing.T) {
	_, base, home := uploadHost(t, 0)
	if err := os.MkdirAll(filepath.Join(home, "tables"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "tables", "taken.arrow"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		query, header, want string
	}{
		"the name, expecting":   {"..%2Fup.arrow", "Expect: 100-continue\r\n", "HTTP/1.1 400 "},
		"taken, expecting":      {"taken.arrow", "Expect: 100-continue\r\n", "HTTP/1.1 409 "},
		"taken, without":        {"taken.arrow", "", "HTTP/1.1 409 "},
		"a good one, expecting": {"good.arrow", "Expect: 100-continue\r\n", "HTTP/1.1 100 "},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // it was read as far as it matters
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "PUT /api/v1/tables?name="+tt.query+" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000000\r\n"+tt.header+"\r\n"); err != nil {
				t.Fatal(err)
			}
			// Nothing of the body is sent, so the answer cannot have waited for it.
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, tt.want) {
				t.Errorf("%q, want %q: %v", line, tt.want, err)
			}
		})
	}
}

// uploadHost serves a host with a store on the disk. A bound of 0 means that tables.max_bytes is not set.
func uploadHost(t *testing.T, bound int64) (h *host.Host, base, home string) {
	t.Helper()
	home = t.TempDir()
	cfg := &config.Config{}
	cfg.Tables.MaxBytes = tenon.Size(bound)
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: home,
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
	t.Cleanup(func() {
		s.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, s.URL, home
}
