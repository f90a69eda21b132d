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
	maxRetry    = 30 * time.Second // between two attempts to open a stream
	maxResumes  = 5                // of one answer, without an event in between
	lingerLimit = 100 * time.Millisecond
)

// stream reads the event stream that answers a request, and opens it again in
// the legacy era where the server gave event ids.
func (h *HTTP) stream(ctx context.Context, cancel context.CancelFunc, resp *http.Response, st *httpState, patient func() bool, deliver func([]byte) bool) error {
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
			return &jsonrpc.LostError{Sent: true, Err: fmt.Errorf("the event stream ended without an answer: %w", err)}
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
				// Without %w: the request has reached the server, so nobody may take an
				// ErrSession here for a request that was refused and send it again.
				return &jsonrpc.LostError{Sent: true, Err: fmt.Errorf("the event stream broke and cannot be resumed: %v", err)}
			}
		}
	}
}

// isRefused reports whether a status says that asking again is of no use.
func isRefused(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status >= 300 && status.Status < 500 && status.Status != http.StatusTooManyRequests
}

type streamEnd struct {
	answered, seen bool
	last           string
	retry          time.Duration
}

// events delivers the messages of one stream until its end, silence, or the
// answer. Silence while the server waits for us, which patient reports, does not
// count; nil: it always does.
func (h *HTTP) events(resp *http.Response, patient func() bool, deliver func([]byte) bool) (streamEnd, error) {
	var expired atomic.Bool
	var idle *time.Timer
	armed := make(chan struct{})
	idle = time.AfterFunc(h.cfg.IdleTimeout, func() {
		if <-armed; patient != nil && patient() {
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
			return e, fmt.Errorf("nothing came for %s", h.cfg.IdleTimeout)
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

// linger waits a moment for the end of a stream whose answer has come, so that
// its network connection can be used again.
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

// Listen keeps the stream of notices of a legacy session open until the context
// or the connection ends, waiting longer after each stream that gave nothing.
// It returns early only where the server has no such stream. What comes is
// delivered; a broken stream costs nothing else. State is told nil when the stream
// is open, and the reason when it broke more than once without giving anything:
// proxies cut streams that are fine. It is called by one goroutine at a time.
func (h *HTTP) Listen(ctx context.Context, state func(error), deliver func([]byte) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	session, last, retry := "", "", time.Duration(0)
	broken := false
	for tries := 0; ; tries++ {
		st := h.state.Load()
		if st.session != session { // event ids are those of a session
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
			if e.seen || time.Since(begun) > maxRetry { // proxies cut streams that were fine
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
		h.cfg.Logger.Debug("the stream of notices broke; it will be opened again", "error", err.Error(), "try", tries)
		if err := sleep(ctx, backoff(retry, tries)); err != nil {
			return err
		}
	}
}

// backoff is the server's own retry time, else 0.5 s doubling to 30 s.
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

// HeaderValue encodes a value for an Mcp-Name or Mcp-Param header (revision
// 2026-07-28): plain where it is printable ASCII without outer blanks and does
// not look encoded itself, else =?base64?…?=.
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

// DecodeHeaderValue is the reverse of [HeaderValue]. It reports false where the
// wrapper holds no base64.
func DecodeHeaderValue(s string) (string, bool) {
	in, ok := strings.CutPrefix(s, "=?base64?")
	if !ok || !strings.HasSuffix(in, "?=") {
		return s, true
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(in, "?="))
	return string(b), err == nil
}
