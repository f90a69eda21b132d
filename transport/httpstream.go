package transport

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon/internal/sse"
	"github.com/tenonhq/tenon/jsonrpc"
)

const (
	maxRetry    = 30 * time.Second // longest wait between two attempts to open a stream
	maxResumes  = 5                // attempts to resume one response without a new event
	lingerLimit = 100 * time.Millisecond
)

// stream reads the event stream that answers a request. In the legacy era it reopens a broken stream if the
// server sent event ids.
func (h *HTTP) stream(ctx context.Context, cancel context.CancelFunc, resp *http.Response, st *httpState,
	patient func() bool, deliver func([]byte) bool) error {
	last, retry := "", time.Duration(0)
	for tries := 0; ; {
		r, err := h.events(resp, patient, deliver)
		if r.answered {
			linger(resp.Body, cancel)
			closeBody(resp)
			return nil
		}
		closeBody(resp)
		var size *jsonrpc.SizeError
		if errors.As(err, &size) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.seen {
			tries = 0
		}
		if r.last != "" {
			last = r.last
		}
		if r.retry > 0 {
			retry = r.retry
		}
		if st.modern || last == "" || tries >= maxResumes {
			return &jsonrpc.LostError{Sent: true,
				Err: fmt.Errorf("the event stream ended without a response: %w", err)}
		}
		for {
			tries++
			if err := sleep(ctx, backoff(retry, tries-1)); err != nil {
				return err
			}
			if resp, err = h.get(ctx, st, last); err == nil {
				break
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if tries >= maxResumes || isRefused(err) {
				// The error is not wrapped: the request has reached the server, and a caller that finds
				// ErrSession would treat it as refused and send it again.
				return &jsonrpc.LostError{Sent: true,
					Err: fmt.Errorf("the event stream broke and cannot be resumed: %v", err)}
			}
		}
	}
}

// isRefused reports whether the status shows that a retry cannot succeed.
func isRefused(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status
	return code >= 300 && code < 500 && code != http.StatusTooManyRequests
}

// SilenceError reports an event stream that was silent for longer than [HTTPConfig].IdleTimeout.
type SilenceError struct {
	Limit time.Duration // the IdleTimeout
}

// Error says how long nothing arrived.
func (e *SilenceError) Error() string { return fmt.Sprintf("no data received for %s", e.Limit) }

type streamEnd struct {
	answered, seen bool
	last           string
	retry          time.Duration
}

// events delivers the messages of one stream. It returns when the stream ends, when the stream is silent for too long,
// or when it has delivered the response. While patient reports that the server waits for us, silence does not count. If
// patient is nil, silence always counts.
func (h *HTTP) events(resp *http.Response, patient func() bool, deliver func([]byte) bool) (streamEnd, error) {
	var expired atomic.Bool
	var idle *time.Timer
	armed := make(chan struct{})
	idle = time.AfterFunc(h.cfg.IdleTimeout, func() {
		<-armed
		if patient != nil && patient() {
			idle.Reset(h.cfg.IdleTimeout)
			return
		}
		expired.Store(true)
		closeBody(resp)
	})
	close(armed)
	defer idle.Stop()
	r := sse.NewReader(resp.Body, h.cfg.MaxMessage)
	defer r.Close()
	var e streamEnd
	for {
		ev, err := r.Next()
		e.last, e.retry = r.LastID(), r.Retry()
		switch {
		case errors.Is(err, sse.ErrTooLarge):
			return e, &jsonrpc.SizeError{Limit: h.cfg.MaxMessage}
		case err != nil && expired.Load():
			return e, &SilenceError{Limit: h.cfg.IdleTimeout}
		case err != nil:
			return e, err
		}
		e.seen = true
		idle.Reset(h.cfg.IdleTimeout)
		if len(ev.Data) == 0 || ev.Type != "" && ev.Type != "message" {
			continue
		}
		if deliver(append([]byte(nil), ev.Data...)) {
			e.answered = true
			return e, nil
		}
	}
}

// linger waits briefly for the end of a stream after its response, so that the network connection can be
// reused.
func linger(body io.Reader, cancel context.CancelFunc) {
	t := time.AfterFunc(lingerLimit, cancel)
	defer t.Stop()
	var b [512]byte
	for range 8 {
		if _, err := body.Read(b[:]); err != nil {
			return
		}
	}
}

// get opens an event stream (legacy era).
func (h *HTTP) get(ctx context.Context, st *httpState, last string) (*http.Response, error) {
	header := st.header.Clone()
	delete(header, "Content-Type")
	header["Accept"] = []string{"text/event-stream"}
	if last != "" {
		header["Last-Event-Id"] = []string{last}
	}
	resp, err := h.roundTrip(ctx, http.MethodGet, header, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream" {
		defer closeBody(resp)
		return nil, h.status(resp, jsonrpc.Outgoing{}, st)
	}
	return resp, nil
}

// Listen keeps the notification stream of a legacy session open until the context or the connection ends. It delivers
// each message. After a stream without messages it waits longer before the next attempt. It returns early only if the
// server offers no such stream. It calls state with nil when the stream is open. It calls state with an error when the
// stream broke more than once without a message in between, because proxies also cut healthy streams. Only one
// goroutine may call Listen at a time.
func (h *HTTP) Listen(ctx context.Context, state func(error), deliver func([]byte) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	session, last, retry := "", "", time.Duration(0)
	broken := false
	for tries := 0; ; tries++ {
		st := h.state.Load()
		if st.session != session { // event ids belong to a session
			session, last = st.session, ""
		}
		begun := time.Now()
		resp, err := h.get(ctx, st, last)
		if isRefused(err) {
			return err
		}
		if err == nil {
			var e streamEnd
			if tries == 0 {
				state(nil)
			}
			e, err = h.events(resp, nil, func(b []byte) bool {
				if broken {
					broken = false
					state(nil)
				}
				deliver(b)
				return false
			})
			closeBody(resp)
			if e.last != "" {
				last = e.last
			}
			if e.retry > 0 {
				retry = e.retry
			}
			if e.seen || time.Since(begun) > maxRetry { // proxies also cut healthy streams
				tries = 0
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if tries > 0 && !broken {
			broken = true
			state(err)
		}
		h.cfg.Logger.Debug("the notification stream broke and will be reopened", "error", err.Error(), "try", tries)
		if err := sleep(ctx, backoff(retry, tries)); err != nil {
			return err
		}
	}
}

// backoff returns the pause before an attempt. Before the first attempt, this is the server's own retry time. Otherwise
// it begins with 0.5 s, or with the server's retry time if that is longer, and doubles up to 30 s.
func backoff(retry time.Duration, tries int) time.Duration {
	if retry > 0 && tries == 0 {
		return min(retry, maxRetry)
	}
	return min(max(retry, 500*time.Millisecond)<<min(tries, 6), maxRetry)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HeaderValue encodes a value for an Mcp-Name or Mcp-Param header (revision 2026-07-28). Printable ASCII
// without outer spaces stays as it is, unless it looks encoded itself. Other values become =?base64?…?=.
func HeaderValue(s string) string {
	plain := s == strings.TrimSpace(s) && !(strings.HasPrefix(s, "=?base64?") && strings.HasSuffix(s, "?="))
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= 0x20 && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// DecodeHeaderValue reverses [HeaderValue]. It reports false if the wrapper does not contain base64.
func DecodeHeaderValue(s string) (string, bool) {
	in, ok := strings.CutPrefix(s, "=?base64?")
	if !ok || !strings.HasSuffix(in, "?=") {
		return s, true
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(in, "?="))
	return string(b), err == nil
}
