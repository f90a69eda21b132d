package model

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
)

// The limits of the retry policy. A request is not retried if the provider asks for a longer pause
// than maxWait.
const (
	firstWait = 500 * time.Millisecond
	lastWait  = 8 * time.Second
	maxWait   = 60 * time.Second
)

var causes = []error{context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF}

// Env contains the dependencies of an adapter. The zero value is correct outside of tests.
type Env struct {
	// Transport sends the requests; package record replaces it. If nil, [NewTransport] is used.
	Transport http.RoundTripper
	// Sleep waits between attempts. If nil, it uses a timer and returns when ctx ends.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter returns a number in [0,1). If nil, the number is random.
	Jitter func() float64
	// Key reads the key again after the provider refused it. A key in a file or from a program may have changed. If
	// nil, the key stays the same.
	Key func(ctx context.Context) (tenon.Secret, error)
	// LookupEnv reads an environment variable. Adapters use it to find the credentials of a cloud. If nil, it is
	// os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Credentials sends the requests for credentials of a cloud. If nil, a separate transport is used. [Env.Transport]
	// is never used, because it may record traffic, and credentials must not get into a recording.
	Credentials http.RoundTripper
}

// requestID returns the provider's id of a request, or "".
func requestID(h http.Header) string {
	return cmp.Or(h.Get("request-id"), h.Get("x-request-id"), h.Get("x-amzn-requestid"))
}

// headers reads the request id and the retry headers of a response.
func (f *Failure) headers(h http.Header, now time.Time) {
	if f.Request == "" {
		f.Request = excerpt([]byte(requestID(h)))
	}
	switch h.Get("x-should-retry") {
	case "true":
		f.Retry = true
	case "false":
		f.Retry = false
	}
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms >= 0 {
		f.Wait = seconds(ms / 1000)
		return
	}
	after := h.Get("retry-after")
	if s, err := strconv.ParseFloat(after, 64); err == nil && s >= 0 {
		f.Wait = seconds(s)
	} else if at, err := http.ParseTime(after); err == nil {
		f.Wait = max(at.Sub(now), 0)
	}
}

// seconds converts without overflow. It limits the result to one year.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600
	if !(s < year) {
		s = year
	}
	return time.Duration(s * float64(time.Second))
}

// wait returns the pause before the next attempt. It returns false if there is no further attempt. attempt starts at 0.
func (c *Client) wait(ctx context.Context, f *Failure, attempt int) (time.Duration, bool) {
	if !f.Retry || attempt >= *c.cfg.Retries || f.Wait > maxWait {
		return 0, false
	}
	d := f.Wait
	if d == 0 {
		d = min(firstWait<<min(attempt, 10), lastWait)
		d -= time.Duration(float64(d) * 0.25 * c.env.Jitter())
	}
	if end, ok := ctx.Deadline(); ok && time.Now().Add(d).After(end) {
		return 0, false
	}
	return d, true
}

func (e Env) withDefaults() Env {
	if e.Sleep == nil {
		e.Sleep = func(ctx context.Context, d time.Duration) error {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-t.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if e.Jitter == nil {
		e.Jitter = rand.Float64
	}
	if e.Transport == nil {
		e.Transport = NewTransport()
	}
	return e
}

var errIdle = errors.New("silent for too long")
