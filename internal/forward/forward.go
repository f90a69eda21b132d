package forward

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// Peers are the processes that serve a store; [store.Peers] documents the methods.
type Peers interface {
	Self() string
	Peer(ctx context.Context, id string) (address string, alive bool, err error)
	PeerKey(purpose string) []byte
}

// Config configures a [Forwarder].
type Config struct {
	Peers  Peers
	Logger *slog.Logger // if nil, nothing is logged
	// Poll is the time between two looks at an owner that has not answered yet. If 0, it is 2 s.
	Poll time.Duration
	// Lease is the time for which the store takes a silent process for alive. An owner is gone after two looks that are
	// a third of it apart. If 0, it is 10 s.
	Lease time.Duration
	// Dial is the time to connect to an owner. If 0, it is 2 s.
	Dial time.Duration
}

// Forwarder forwards requests to their owners, and opens the requests that others forward to this process. It is safe
// for concurrent use.
type Forwarder struct {
	cfg    Config
	self   string
	keys   *keys
	out    *http.Transport
	closed context.Context // ends with Close; the cause is tenon.ErrClosing
	close  context.CancelCauseFunc
	owned  sync.WaitGroup // goroutines that look at owners
	calls  sync.WaitGroup // forwarded requests under way
	seen   nonces

	mu     sync.Mutex
	ending bool // no further request is forwarded, so that nothing is added to calls and owned during a wait
	owners map[string]*owner
}

// New returns a forwarder for a process. It returns nil if the store has no key, because any process could then forge
// sessions. Errors: internal.
func New(c Config) (*Forwarder, error) {
	k, err := newKeys(c.Peers.PeerKey)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the key for requests to other replicas cannot be derived: %w",
			err)
	}
	if k == nil {
		return nil, nil
	}
	c.Poll, c.Dial = cmp.Or(c.Poll, 2*time.Second), cmp.Or(c.Dial, 2*time.Second)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Forwarder{cfg: c, self: c.Peers.Self(), keys: k, owners: map[string]*owner{}}
	f.out = &http.Transport{DialContext: (&net.Dialer{Timeout: c.Dial}).DialContext, TLSHandshakeTimeout: c.Dial,
		DisableCompression: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10}
	f.closed, f.close = context.WithCancelCause(context.Background())
	return f, nil
}

// Close ends the requests under way and waits for them.
func (f *Forwarder) Close() {
	f.refuse()
	f.close(tenon.ErrClosing)
	f.calls.Wait()
	f.owned.Wait()
	f.out.CloseIdleConnections()
}

// Drain waits until the forwarded requests are answered, or until ctx ends. Streams end by themselves when the process
// begins to stop. Later requests are refused.
func (f *Forwarder) Drain(ctx context.Context) {
	f.refuse()
	answered := make(chan struct{})
	go func() { // Close ends the requests that the goroutine waits for
		defer close(answered)
		f.calls.Wait()
	}()
	select {
	case <-answered:
	case <-ctx.Done():
	}
}

// refuse lets no further request begin.
func (f *Forwarder) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = true
}

// SessionID returns the id of a new session of this process.
func (f *Forwarder) SessionID(who tenon.Principal, endpoint string) string {
	return f.keys.sessionID(f.self, who, endpoint)
}

// forwarded is the context key of a request that another replica has forwarded.
type forwarded struct{}

// Unwrap returns the client's request in a request of another replica, and proves in the answer that it was opened. A
// request without the header is returned as it is. Errors: denied (no replica of this store has sealed the request, or
// not for this process, not now, or it was opened before), limit (too many requests).
func (f *Forwarder) Unwrap(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	values := r.Header.Values(Header)
	if len(values) == 0 {
		return r, nil
	}
	refused := tenon.Errorf(tenon.CodeDenied, "the header %s is for replicas of this tenon; no replica has sealed "+
		"this request for this process", Header)
	if len(values) > 1 {
		return nil, refused
	}
	in, nonce, ok := f.keys.open(values[0])
	if !ok || in.To != f.self || in.Method != r.Method || in.URI != r.URL.RequestURI() || !isForwardable(r.URL.Path) {
		return nil, refused
	}
	now := time.Now()
	if !isTimely(in.At, now) {
		f.cfg.Logger.Warn("a forwarded request is refused: the clocks of the replicas differ by more than 30 s, or "+
			"somebody has sent an old request again", "sealed", in.At.UTC(), "now", now.UTC())
		return nil, refused
	}
	fresh, full := f.seen.add(nonce, now)
	if !fresh {
		return nil, refused
	}
	w.Header().Set(Header, f.keys.proof(f.self, nonce))
	if full {
		return nil, tenon.Errorf(tenon.CodeLimit, "more than %d forwarded requests in a minute; send it again later",
			maxNonces)
	}
	opened := r.WithContext(context.WithValue(r.Context(), forwarded{}, in))
	opened.Host, opened.Header = in.Host, in.Header
	if opened.Header == nil {
		opened.Header = http.Header{}
	}
	return opened, nil
}

// isForwardable reports whether a path is one of MCP's.
func isForwardable(path string) bool {
	return path == "/mcp" || strings.HasPrefix(path, "/mcp/")
}

// check compares a forwarded request with what the checks of this process found.
func (in *request) check(body []byte, who tenon.Principal) error {
	sum := sha256.Sum256(body)
	switch {
	case in.Who != who:
		return tenon.Errorf(tenon.CodeDenied, "a replica has forwarded a request of '%s', which is one of '%s' here: "+
			"the tokens of the replicas differ (serve.auth)", tenon.Visible(string(in.Who)), who)
	case subtle.ConstantTimeCompare(sum[:], in.Body) != 1:
		return tenon.Errorf(tenon.CodeDenied, "the body of a forwarded request was changed on its way")
	}
	return nil
}

// isClosing reports whether a context ended because this process ends.
func isClosing(ctx context.Context) bool { return errors.Is(context.Cause(ctx), tenon.ErrClosing) }
