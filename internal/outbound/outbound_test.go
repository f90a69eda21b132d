package outbound

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPublicAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1:248:1893:25c8:1946": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false,
		"192.168.1.1":     false,
		"169.254.169.254": false, "fe80::1": false, "fd00::1": false, "0.0.0.0": false, "::": false,
		"100.64.1.1":       false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
		"224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

// elsewhere returns a client for which public.test resolves to a server on this machine, like a rebound name.
func elsewhere(t *testing.T, address string) *Client {
	c := New()
	t.Cleanup(c.Close)
	for _, tr := range []*http.Transport{c.guarded, c.open} {
		dial := tr.DialContext
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(addr); strings.HasSuffix(host, ".test") {
				addr = address
			}
			return dial(ctx, network, addr)
		}
	}
	return c
}

func TestDo(t *testing.T) {
	var mu sync.Mutex // the server may still be reading an abandoned request
	var got []*http.Request
	var bodies []string
	mux := http.NewServeMux()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		got, bodies = append(got, r), append(bodies, string(b))
		mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	other := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	routeAnswers(t, mux, other)
	address := srv.Listener.Addr().String()
	header := http.Header{"Authorization": {"Bearer s"}, "X-Api-Key": {"k"}, "Accept": {"a/b"}}

	for _, tt := range []struct {
		name, method, url string
		private           bool
		code              tenon.Code
		last              func(r *http.Request) bool
	}{
		{"an address that the configuration names", "GET", srv.URL + "/ok", false, "",
			func(r *http.Request) bool { return r.Header.Get("X-Api-Key") == "k" }},
		{"a public name that leads to a private address", "GET", "http://public.test/ok", false, tenon.CodeDenied, nil},
		{"the same where it is allowed", "GET", "http://public.test/ok", true, "", nil},
		{"a redirect within the origin", "GET", srv.URL + "/same", false, "",
			func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer s" }},
		{"a redirect elsewhere, from an address of this machine", "GET", srv.URL + "/other", false, tenon.CodeDenied, nil},
		{"a redirect elsewhere takes no headers along", "GET", srv.URL + "/other", true, "",
			func(r *http.Request) bool {
				return r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" &&
					r.Header.Get("Accept") == "a/b"
			}},
		{"a body is not sent elsewhere", "POST", srv.URL + "/other307", true, tenon.CodeDenied, nil},
		{"a body is sent again within the origin", "POST", srv.URL + "/same307", false, "",
			func(r *http.Request) bool { return r.Method == "POST" }},
		{"redirects without end", "GET", srv.URL + "/loop", false, tenon.CodeDenied, nil},
		{"a redirect to a file", "GET", srv.URL + "/file", true, tenon.CodeDenied, nil},
		{"too large", "GET", srv.URL + "/large", false, tenon.CodeTooLarge, nil},
		{"too large when unpacked", "GET", srv.URL + "/bomb", false, tenon.CodeTooLarge, nil},
		{"a lost answer to a change", "POST", srv.URL + "/drop", false, tenon.CodeUnknown, nil},
		{"a lost answer to a question", "GET", srv.URL + "/drop", false, tenon.CodeUnreachable, nil},
		{"no answer in time", "GET", srv.URL + "/hang", false, tenon.CodeTimeout, nil},
		{"nobody there", "POST", "http://127.0.0.1:1/x", false, tenon.CodeUnreachable, nil},
		{"another scheme", "GET", "file:///etc/passwd", false, tenon.CodeInvalid, nil},
		{"a user in the URL", "GET", "http://u:p@127.0.0.1/", false, tenon.CodeInvalid, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mu.Lock()
			got, bodies = nil, nil
			mu.Unlock()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			if strings.HasSuffix(tt.url, "/hang") {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			c := elsewhere(t, address)
			r, err := c.Do(ctx, Request{Method: tt.method, URL: tt.url, Header: header, Body: []byte("b"),
				Private: tt.private})
			if tenon.ErrorCode(err) != tt.code || errors.Is(err, io.EOF) && tt.code == "" {
				t.Fatalf("error %v, want code %q", err, tt.code)
			}
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			last := got[len(got)-1]
			if r.Status != 200 || string(r.Body) != "fine" || tt.last != nil && !tt.last(last) {
				t.Errorf("%d %s %v", r.Status, r.Body, last.Header)
			}
			if last.Method == "POST" && bodies[len(bodies)-1] != "b" {
				t.Errorf("body %q", bodies)
			}
		})
	}
}

// routeAnswers adds an answer for each path. other is the address of another origin.
func routeAnswers(t *testing.T, mux *http.ServeMux, other string) {
	t.Helper()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) })
	mux.HandleFunc("/same", func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, "/ok", http.StatusFound)
	})
	mux.HandleFunc("/same307", func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+"/ok",
			http.StatusFound)
	})
	mux.HandleFunc("/other307", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+"/ok", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusFound)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(w, zeros{}, MaxBody+1) })
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.CopyN(z, zeros{}, 64<<20)
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b.Bytes())
	})
	mux.HandleFunc("/drop", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
