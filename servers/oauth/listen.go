package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// callbackPath is the path of the redirect URI.
const callbackPath = "/callback"

// Loopback is a [Signer] that waits on a port of this machine for the redirect of the browser (RFC 8252, section
// 7.3). It accepts only the redirect of the running sign-in: requests with another host name, method, path or state
// are refused.
type Loopback struct {
	show     func(address string)
	listener net.Listener
	server   *http.Server
	back     chan url.Values
	served   chan struct{}

	mu    sync.Mutex
	state string // state of the current sign-in, or ""
}

// Listen opens the port; 0 means any free port. Sign calls show with the address that a person must visit. The caller
// must call Close.
func Listen(port int, show func(address string)) (*Loopback, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeUnreachable,
			"the browser cannot come back to port %d: %w; set auth.callback_port to a free one", port, err)
	}
	b := &Loopback{show: show, listener: l, back: make(chan url.Values, 1), served: make(chan struct{})}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout:   10 * time.Second,
		MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(b.served)
		_ = b.server.Serve(l) // ends with Close
	}()
	return b, nil
}

// Port returns the port of a redirect URI, or 0 if it has none.
func Port(redirect string) int {
	u, err := url.Parse(redirect)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}

// Close frees the port.
func (b *Loopback) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := b.server.Shutdown(ctx) // the success page may still be on its way
	if errors.Is(err, context.DeadlineExceeded) {
		err = b.server.Close()
	}
	<-b.served
	return err
}

// RedirectURI implements [Signer].
func (b *Loopback) RedirectURI() string {
	return "http://" + b.listener.Addr().String() + callbackPath
}

// Sign implements [Signer].
func (b *Loopback) Sign(ctx context.Context, address string) (url.Values, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeProtocol, "%s is no address to sign in at", quote(address))
	}
	b.expect(u.Query().Get("state"))
	defer b.expect("")
	b.show(address)
	select {
	case q := <-b.back:
		return q, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, tenon.Errorf(tenon.CodeAuth, "nobody signed in in time")
		}
		return nil, ctx.Err()
	}
}

func (b *Loopback) expect(state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = state
}

// ServeHTTP handles the redirect of the browser.
func (b *Loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Connection", "close")
	_, port, _ := net.SplitHostPort(b.listener.Addr().String())
	switch {
	case r.Host != "127.0.0.1:"+port && r.Host != "localhost:"+port:
		page(w, http.StatusForbidden, "Not here", "This address is for a sign-in of tenon.")
		return
	case r.URL.Path != callbackPath:
		page(w, http.StatusNotFound, "Nothing here", "This address is for a sign-in of tenon.")
		return
	case r.Method != http.MethodGet:
		page(w, http.StatusMethodNotAllowed, "Not so", "This address is for a sign-in of tenon.")
		return
	}
	// A foreign web page may find the port, but does not know the state. It must not be able to end the sign-in.
	b.mu.Lock()
	want := b.state
	b.mu.Unlock()
	q := r.URL.Query()
	if want == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(want)) != 1 {
		page(w, http.StatusBadRequest, "Another sign-in",
			"This is not the answer to the sign-in that tenon began. Begin again in the terminal.")
		return
	}
	select {
	case b.back <- q:
	default: // only the first redirect counts
	}
	if q.Has("error") {
		page(w, http.StatusOK, "Not signed in",
			"The sign-in was refused. The terminal says why. You can close this page.")
		return
	}
	page(w, http.StatusOK, "Thank you",
		"Go back to the terminal, which says whether you are signed in. You can close this page.")
}

func page(w http.ResponseWriter, status int, title, text string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html><html lang=en><meta charset=utf-8><title>tenon: "+
		"%s</title><h1>%s</h1><p>%s</p></html>\n", title, title, text)
}

var (
	_ Signer       = (*Loopback)(nil)
	_ http.Handler = (*Loopback)(nil)
)
