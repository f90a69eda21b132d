package forward

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// errGone is the cause of a request's end if its owner is gone.
var errGone = errors.New("the replica that has the session is gone")

// Forward answers a request that has passed all checks if its session is in another process. It returns done false if
// this process answers: the request names no session or its own, or was forwarded to it already. Errors: not_found (the
// owner of the session is gone), unreachable (it went while it worked on the request), too_large (the headers), denied,
// store.
func (f *Forwarder) Forward(w http.ResponseWriter, r *http.Request, body []byte, who tenon.Principal) (done bool,
	err error) {
	if in, ok := r.Context().Value(forwarded{}).(*request); ok {
		return false, in.check(body, who)
	}
	session := r.Header.Get("Mcp-Session-Id")
	id, ok := f.keys.owner(session, who, r.PathValue("endpoint"))
	if !ok || id == f.self || !isForwardable(r.URL.Path) ||
		rawjson.String(rawjson.Field(body, "method")) == "initialize" { // it begins a session, whatever it names
		return false, nil
	}
	address, err := f.find(r.Context(), id)
	if err != nil {
		return true, err
	}
	if address == "" {
		return true, gone()
	}
	return true, f.send(w, r, body, who, id, address)
}

// find returns the address of an owner, or "" if it has none or is gone. Whether it is gone, a second look tells: after
// an absence of the database, the rows of all processes have expired.
func (f *Forwarder) find(ctx context.Context, id string) (string, error) {
	address, alive, err := f.cfg.Peers.Peer(ctx, id)
	if err != nil || alive {
		return address, err
	}
	select {
	case <-time.After(f.cfg.Lease / 3):
	case <-ctx.Done():
		return "", tenon.Errorf(tenon.CodeCancelled, "the request has ended: %w", context.Cause(ctx))
	}
	address, _, err = f.cfg.Peers.Peer(ctx, id)
	return address, err
}

// gone is the answer about a session whose process is gone. MCP's clients then initialize again.
func gone() error {
	return tenon.Errorf(tenon.CodeNotFound, "no such session: the replica that had it is gone; initialize again")
}

// send sends a request to its owner and passes the answer on.
func (f *Forwarder) send(w http.ResponseWriter, r *http.Request, body []byte, who tenon.Principal, id,
	address string) error {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return gone()
	}
	sum := sha256.Sum256(body)
	sealed, nonce, err := f.keys.seal(&request{To: id, Who: who, Method: r.Method, URI: r.URL.RequestURI(),
		Host: r.Host, Header: endToEnd(r.Header), Body: sum[:], At: time.Now()})
	if err != nil {
		return tenon.Errorf(tenon.CodeInternal, "a request cannot be forwarded to another replica: %w", err)
	}
	if len(sealed) > maxSealed {
		return tenon.Errorf(tenon.CodeTooLarge, "the headers of the request are too large for another replica, which "+
			"has the session: %d bytes, and at most %d", len(sealed), maxSealed)
	}
	ctx, stop, err := f.until(r, id)
	if err != nil {
		return err
	}
	defer stop()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected.Store(true)
	}})
	at := *r.URL
	at.Scheme, at.Host = to.Scheme, to.Host
	out, err := http.NewRequestWithContext(ctx, r.Method, at.String(), bytes.NewReader(body))
	if err != nil {
		return gone()
	}
	out.Header.Set(Header, sealed)
	out.Header.Set("User-Agent", "") // the client's is sealed
	if len(body) > 0 {
		out.Header.Set("Content-Type", "application/json")
	}
	res, err := f.out.RoundTrip(out)
	if err != nil {
		return f.lost(ctx, r, id, connected.Load(), err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end, or given up
	if !hmac.Equal([]byte(res.Header.Get(Header)), []byte(f.keys.proof(id, nonce))) {
		f.cfg.Logger.Warn("another program answers at the address of a replica; is serve.replica_url of that replica "+
			"right, the key of the store the same, and its clock?", "address", address, "status", res.StatusCode)
		if r.Method == http.MethodPost && res.StatusCode >= http.StatusInternalServerError {
			return unanswered() // a proxy in front of the owner, which may have begun
		}
		return gone()
	}
	f.pass(ctx, w, res)
	return nil
}

// lost is the answer if no response came. A request that the owner may have begun is not answered with 404, because the
// client would repeat it.
func (f *Forwarder) lost(ctx context.Context, r *http.Request, id string, connected bool, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errGone) {
		return tenon.Errorf(tenon.CodeCancelled, "the request has ended: %w", cause)
	}
	f.cfg.Logger.Info("the replica that has a session does not answer", "replica", id, "error", err.Error())
	if connected && r.Method == http.MethodPost {
		return unanswered()
	}
	slow, ok := errors.AsType[net.Error](err)
	if !connected && ok && slow.Timeout() { // it is alive according to the store, and nothing was sent
		return tenon.Errorf(tenon.CodeUnreachable, "the replica that has the session did not accept a connection "+
			"within %v; send the request again", f.cfg.Dial)
	}
	return gone()
}

// unanswered is the answer about a request that the owner may have begun. The client does not repeat it.
func unanswered() error {
	return tenon.Errorf(tenon.CodeUnreachable, "no answer came from the replica that may have worked on the request; "+
		"the journal has how its calls ended: tenon runs list")
}

// pass passes an answer on while it arrives. If the owner breaks off, the client's connection is broken off, too, so
// that half an answer is not taken for a whole one.
func (f *Forwarder) pass(ctx context.Context, w http.ResponseWriter, res *http.Response) {
	h := endToEnd(res.Header)
	h.Del(Header)
	maps.Copy(w.Header(), h)
	w.WriteHeader(res.StatusCode)
	control := http.NewResponseController(w)
	stream := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	buf := make([]byte, 32<<10)
	for {
		if stream {
			_ = control.Flush() // fails if the client has gone
		}
		n, err := res.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return // the client has gone
			}
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF) && (ctx.Err() == nil || errors.Is(context.Cause(ctx), errGone)):
			_ = control.SetWriteDeadline(time.Unix(1, 0)) // the last chunk is then not sent
		}
		return
	}
}

// hops are the headers that belong to one connection (RFC 9110, section 7.6.1).
var hops = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Proxy-Connection"}

// endToEnd returns the headers of a message that do not belong to its connection.
func endToEnd(h http.Header) http.Header {
	h = h.Clone()
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hops {
		h.Del(name)
	}
	return h
}
