package model

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/cloudtoken"
	"github.com/tenonhq/tenon/internal/sse"
)

// The limits of one answer. Compressed bodies are counted after decompression.
const (
	maxEvent     = 16 << 20 // maximum size of one event of a stream
	maxAnswer    = 64 << 20 // bytes of one stream
	maxErrorBody = 64 << 10
	maxTimeouts  = 10 // the maximum duration of a whole answer, as a multiple of the timeout
	drainTime    = 50 * time.Millisecond
	drainBytes   = 4 << 10
)

// Events returns the data of the next event of a stream. The data is valid until the next call.
// Events returns io.EOF at the end of the body.
type Events func() ([]byte, error)

// Parser reads one answer from a stream. It passes each delta to emit before it reads the next
// event. If emit returns false, it returns [ErrStopped]. If the stream ends without the provider's
// end mark, it returns [CutOff].
type Parser func(next Events, emit func(tenon.Delta) bool) (*tenon.Response, error)

// ErrStopped means that the consumer does not want the rest of the answer.
var ErrStopped = errors.New("model: the consumer stopped")

// Exchange is one request to a provider.
type Exchange struct {
	Base   string // replaces the base URL of the configuration; "" keeps it
	Path   string // relative to the base URL
	Header http.Header
	Body   *Body
	Parse  Parser
	// Whole converts an answer that is one JSON document to the events of a stream. If nil, the document is the only
	// event.
	Whole func(document []byte) [][]byte
	// Frames reads the events of a body in another form. If nil, the body is read as server-sent events.
	Frames func(body io.Reader) Events
	// Authorize adds credentials to the request of an attempt, after all other headers were set. If nil, Header
	// contains the credentials.
	Authorize func(r *http.Request, body *Body) error
	// Key sets the headers that contain a key. It is called if there is a key and no token.
	Key func(h http.Header, key string)
	// Renew drops credentials that the provider refused, and reports whether another attempt may have others. If nil, a
	// refusal is final.
	Renew func(refusal *Failure) bool
}

// Client sends the requests of one configured model. It is safe for concurrent use.
type Client struct {
	cfg      Config
	provider Provider
	env      Env
	http     *http.Client
	key      atomic.Pointer[tenon.Secret] // the current key, which [Env.Key] renews
	tokens   *cloudtoken.Source           // source of tokens of a cloud; nil if none is needed
	google   *cloudtoken.Google           // nil for other clouds
}

// NewClient checks the config for an adapter of the given wire format. Errors have code config, or
// auth_required if the provider's default address needs a key and the config has none.
func NewClient(cfg Config, wire string, env Env) (*Client, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p, _ := Lookup(cfg.Provider)
	if cfg.Wire() != wire {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s: provider %s does not use the wire format %s",
			cfg.key("provider"), p.Name, wire)
	}
	own := cfg.BaseURL == ""
	cfg = cfg.WithDefaults()
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	c := &Client{cfg: cfg, provider: p, env: env.withDefaults()}
	c.key.Store(&cfg.APIKey)
	c.openTokens()
	if p.NeedKey && own && cfg.APIKey.IsZero() {
		return nil, &tenon.Error{Code: tenon.CodeAuth, Err: &cause{kind: KindAuth},
			Message: fmt.Sprintf("%s: no API key; %s", c.Name(), c.remedy(&Failure{Code: tenon.CodeAuth}))}
	}
	c.http = &http.Client{
		Transport: c.env.Transport,
		// Following a redirect would send the key to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// maxIdle is the maximum number of idle connections to a provider. There may be as many concurrent
// runs, and a new connection costs more than a turn.
const maxIdle = 1024

// NewTransport returns an HTTP transport for models. It uses the proxy of the environment and keeps
// connections for the next turn. The caller must call CloseIdleConnections when it no longer uses
// the models.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost, t.MaxIdleConns = maxIdle, 2*maxIdle
	t.MaxResponseHeaderBytes = 256 << 10
	return t
}

// Name returns "provider/model".
func (c *Client) Name() string { return c.cfg.Provider + "/" + c.cfg.Model }

// Maker returns the value of [tenon.Message.By] for messages of this model. A model of the same name at another address
// is another model, because the two cannot read each other's encrypted content.
func (c *Client) Maker() string {
	u, err := url.Parse(c.cfg.BaseURL)
	own, _ := url.Parse(c.provider.BaseURL)
	if err != nil || own != nil && u.Hostname() == own.Hostname() {
		return c.Name()
	}
	return c.Name() + " at " + strings.ToLower(u.Hostname())
}

// Config returns the config with its defaults.
func (c *Client) Config() Config { return c.cfg }

// Generate sends the exchange and retries it according to the retry policy. It yields the deltas of
// the answer, then the answer.
func (c *Client) Generate(ctx context.Context, x Exchange) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		renewed := false
		for attempt := 0; ; attempt++ {
			delivered, stopped := false, false
			resp, f := c.once(ctx, x, func(d tenon.Delta) bool {
				delivered, stopped = true, !yield(d, nil)
				return !stopped
			})
			if stopped { // stopped by the caller, so a failure after that does not matter
				return
			}
			if f == nil {
				if p := c.cfg.Price; p != nil && resp.Usage != nil && resp.Cost == nil {
					cost := p.Cost(*resp.Usage)
					resp.Cost = &cost
				}
				resp.Message.By = c.Maker()
				yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: resp}, nil)
				return
			}
			if f.Kind == KindBadCall && ctx.Err() == nil {
				if delivered && !yield(tenon.Delta{Kind: tenon.DeltaReset, Text: c.hide(f.Message)}, nil) {
					return
				}
				yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: c.badCall(f)}, nil)
				return
			}
			if f.Code == tenon.CodeAuth && f.Status != 0 && !renewed && c.renew(ctx, &x, f) {
				renewed = true // credentials expire while a process lives; a second refusal is final
				attempt--
				continue
			}
			wait, again := c.wait(ctx, f, attempt)
			if !again || ctx.Err() != nil {
				yield(tenon.Delta{}, c.fail(f, attempt+1))
				return
			}
			if delivered && !yield(tenon.Delta{Kind: tenon.DeltaReset, Text: c.hide(f.Message)}, nil) {
				return
			}
			if err := c.env.Sleep(ctx, wait); err != nil {
				yield(tenon.Delta{}, c.fail(ended(err), attempt+1))
				return
			}
		}
	}
}

// join appends a path to an address, before the address's query, such as Azure's ?api-version=….
func join(base, path string) string {
	base, query, ok := strings.Cut(base, "?")
	if !ok {
		return base + path
	}
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	return strings.TrimRight(base, "/") + path + sep + query
}

// badCall returns the answer for a call that the provider refused to parse. The agent then asks the model again.
func (c *Client) badCall(f *Failure) *tenon.Response {
	return &tenon.Response{Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}, By: c.Maker()},
		Stop: tenon.StopBadCall, RawStop: c.hide(f.CallError()), ID: f.Request}
}

// once makes one attempt. It returns either an answer or a failure.
func (c *Client) once(ctx context.Context, x Exchange, emit func(tenon.Delta) bool) (*tenon.Response, *Failure) {
	w := newWatch(ctx, c.cfg.Timeout)
	defer w.stop()
	base := cmp.Or(x.Base, c.cfg.BaseURL)
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, join(base, x.Path), x.Body.Reader())
	if err != nil {
		return nil, Broken("%s is not an address", base)
	}
	w.request = req
	req.ContentLength = x.Body.Len()
	req.GetBody = func() (io.ReadCloser, error) { return x.Body.Reader(), nil }
	req.Header = x.Header.Clone()
	req.Header.Set("Content-Type", "application/json")
	if err := c.authorize(req, &x); err != nil {
		return nil, unauthorized(ctx, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.connection(ctx, w, err)
	}
	defer resp.Body.Close()
	body := &watched{body: resp.Body, watch: w, left: maxAnswer}
	if f := c.status(resp, body); f != nil {
		if ctx.Err() != nil {
			return nil, ended(ctx.Err())
		}
		return nil, f
	}
	stream, document := x.sniff(resp.Header.Get("Content-Type"), body)
	if document {
		return c.document(ctx, w, x, resp, stream, emit)
	}
	next, closing := x.events(stream)
	defer closing()
	answer, err := x.Parse(next, emit)
	if err != nil {
		return nil, c.stream(ctx, w, resp, err)
	}
	if answer.ID == "" {
		answer.ID = requestID(resp.Header)
	}
	// Read the rest of the body, usually nothing, so that the connection can be reused.
	w.reset(drainTime)
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	return answer, nil
}

// events returns the events of a body, and a function that releases their resources.
func (x *Exchange) events(body io.Reader) (Events, func()) {
	if x.Frames != nil {
		return x.Frames(body), func() {}
	}
	// The last event may lack its blank line.
	reader := sse.NewReader(io.MultiReader(body, strings.NewReader("\n\n")), maxEvent)
	reader.KeepErrors()
	return func() ([]byte, error) {
		ev, err := reader.Next()
		if err == nil && ev.Type == "error" && !isErrorEvent(ev.Data) {
			return nil, ErrorObject(0, ev.Data)
		}
		return ev.Data, err
	}, reader.Close
}

// status returns a failure for every response that is not an event stream.
func (c *Client) status(resp *http.Response, body io.Reader) *Failure {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		to := "elsewhere"
		if u, err := resp.Location(); err == nil {
			to = u.Scheme + "://" + u.Host
		}
		return &Failure{Status: resp.StatusCode, Code: tenon.CodeModel,
			Message: fmt.Sprintf("redirected to %s; redirects are not followed because they would send the key to "+
				"another address, so set %s to the final address", Visible(to), c.cfg.key("base_url"))}
	case resp.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
		f := ErrorObject(resp.StatusCode, text)
		if kind == "text/html" {
			f.Message = "answered with a web page instead of an API response"
		}
		if f.Message == "" {
			f.Message = http.StatusText(resp.StatusCode)
		}
		if t := resp.Header.Get("x-amzn-errortype"); t != "" && f.Type == "" {
			f.Type, _, _ = strings.Cut(t, ":")
			f.classify()
		}
		f.headers(resp.Header, time.Now())
		if f.billing() {
			f.Retry = false
		}
		return f
	case kind == "text/html":
		return &Failure{Status: 200, Code: tenon.CodeProtocol,
			Message: "answered with a web page instead of an event stream; check " + c.cfg.key("base_url")}
	}
	return nil
}

// connection returns the failure of a request without a response.
func (c *Client) connection(ctx context.Context, w *watch, err error) *Failure {
	switch {
	case ctx.Err() != nil:
		return ended(ctx.Err())
	case w.expired():
		return &Failure{Code: tenon.CodeTimeout, Retry: true, Err: errIdle,
			Message: fmt.Sprintf("no answer within %s", c.cfg.Timeout)}
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var own *tenon.Error // the error comes from a transport of tenon, such as a cassette that does not match
	if errors.As(err, &own) {
		return &Failure{Code: own.Code, Message: own.Message, Err: own}
	}
	host := c.cfg.BaseURL
	if r := w.request; r != nil {
		host = r.URL.Host
	}
	f := &Failure{Code: tenon.CodeUnreachable, Retry: true, Err: err}
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &cert):
		f.Retry = false
		f.Message = fmt.Sprintf("%s cannot be trusted: %s", host, cert.Err)
	case errors.As(err, &op) && op.Op == "dial":
		f.Message = fmt.Sprintf("%s cannot be reached: %s", host, op.Err)
	case errors.Is(err, io.EOF):
		f.Message = host + " closed the connection without an answer"
	default:
		f.Message = fmt.Sprintf("no answer from %s: %s", host, Visible(err.Error()))
	}
	return f
}

// stream returns the failure of an answer that had begun.
func (c *Client) stream(ctx context.Context, w *watch, resp *http.Response, err error) *Failure {
	var f *Failure
	switch {
	case errors.Is(err, ErrStopped):
		return &Failure{Code: tenon.CodeCancelled, Message: "stopped", Err: ErrStopped}
	case ctx.Err() != nil:
		return ended(ctx.Err())
	case w.expired():
		f = &Failure{Code: tenon.CodeTimeout, Retry: true, Err: errIdle,
			Message: fmt.Sprintf("the answer stopped: no data for %s", c.cfg.Timeout)}
	case errors.As(err, &f):
	case errors.Is(err, errTooMuch):
		f = &Failure{Code: tenon.CodeProtocol, Message: fmt.Sprintf("the answer is larger than %d MiB", maxAnswer>>20)}
	case errors.Is(err, errTooLong):
		f = &Failure{Code: tenon.CodeTimeout, Err: errIdle,
			Message: fmt.Sprintf("the answer did not end within %s, %d times the timeout",
				maxTimeouts*c.cfg.Timeout, maxTimeouts)}
	case errors.Is(err, sse.ErrTooLarge):
		f = &Failure{Code: tenon.CodeProtocol,
			Message: fmt.Sprintf("one event of the answer is larger than %d MiB", maxEvent>>20)}
	default:
		f = &Failure{Code: tenon.CodeProtocol, Retry: true, Err: io.ErrUnexpectedEOF,
			Message: "the connection broke during the answer: " + Visible(err.Error())}
	}
	f.headers(http.Header{"Request-Id": {requestID(resp.Header)}}, time.Time{})
	return f
}

// ended returns the failure for a context that has ended.
func ended(err error) *Failure {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Failure{Code: tenon.CodeTimeout, Err: err,
			Message: "the deadline passed before the answer was complete"}
	}
	return &Failure{Code: tenon.CodeCancelled, Message: "cancelled", Err: err}
}
