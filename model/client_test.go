package model_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply is a scripted HTTP response.
type reply struct {
	status int
	header map[string]string
	body   string
	cut    bool // the connection breaks after the body
	err    error
}

// provider returns a sequence of responses and records the pauses between the requests.
type provider struct {
	replies []reply
	asked   int
	bodies  []string
	paths   []string
	slept   []time.Duration
}

func (p *provider) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	p.bodies, p.paths = append(p.bodies, string(body)), append(p.paths, req.URL.Path)
	r := p.replies[min(p.asked, len(p.replies)-1)]
	p.asked++
	if r.err != nil {
		return nil, r.err
	}
	if r.status == 0 {
		r.status = 200
	}
	h := http.Header{"Content-Type": {"text/event-stream"}}
	if r.status != 200 {
		h.Set("Content-Type", "application/json")
	}
	for k, v := range r.header {
		h.Set(k, v)
	}
	var rd io.Reader = strings.NewReader(r.body)
	if r.cut {
		rd = io.MultiReader(rd, breaking{})
	}
	return &http.Response{StatusCode: r.status, Header: h, Body: io.NopCloser(rd), Request: req}, nil
}

type breaking struct{}

func (breaking) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (p *provider) env() model.Env {
	return model.Env{Transport: p, Jitter: func() float64 { return 0 }, Sleep: func(ctx context.Context, d time.Duration) error {
		p.slept = append(p.slept, d)
		return ctx.Err()
	}}
}

const good = `data: {"choices":[{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

const key = "sk-secret-key-1"

func chat(t *testing.T, p *provider, change func(*model.Config)) tenon.Model {
	t.Helper()
	cfg := model.Config{Name: "main", Provider: "openai", Model: "gpt", APIKey: tenon.NewSecret(key)}
	if change != nil {
		change(&cfg)
	}
	m, err := openai.New(cfg, p.env())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRetryPolicy checks the retry policy in section 8 of the reference about models.
func TestRetryPolicy(t *testing.T) {
	ms := time.Millisecond
	object := func(typ, msg string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"code":%q}}`, msg, typ, typ)
	}
	for name, c := range map[string]struct {
		replies []reply
		want    string // the text "fine", or a part of the error
		code    tenon.Code
		slept   []time.Duration
	}{
		"no need":          {[]reply{{body: good}}, "fine", "", nil},
		"500 twice":        {[]reply{{status: 500}, {status: 503}, {body: good}}, "fine", "", []time.Duration{500 * ms, 1000 * ms}},
		"500 for ever":     {[]reply{{status: 529, body: object("overloaded_error", "Overloaded"), header: map[string]string{"x-request-id": "req_9"}}}, "openai/gpt: HTTP 529: overloaded_error: Overloaded (request req_9); 3 attempts", "model_error", []time.Duration{500 * ms, 1000 * ms}},
		"408":              {[]reply{{status: 408}, {body: good}}, "fine", "", []time.Duration{500 * ms}},
		"409":              {[]reply{{status: 409}, {body: good}}, "fine", "", []time.Duration{500 * ms}},
		"429 seconds":      {[]reply{{status: 429, header: map[string]string{"Retry-After": "3"}}, {body: good}}, "fine", "", []time.Duration{3 * time.Second}},
		"429 milliseconds": {[]reply{{status: 429, header: map[string]string{"Retry-After-Ms": "70", "Retry-After": "3"}}, {body: good}}, "fine", "", []time.Duration{70 * ms}},
		"429 RetryInfo":    {[]reply{{status: 429, body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow","details":[{"@type":"x"},{"retryDelay":"34.4s"}]}}`}, {body: good}}, "fine", "", []time.Duration{34400 * ms}},
		"429 too long":     {[]reply{{status: 429, body: object("rate_limit_exceeded", "slow down"), header: map[string]string{"Retry-After": "3600"}}}, "slow down; the provider asks for a pause of 1h0m0s; try again then", "rate_limited", nil},
		"429 quota":        {[]reply{{status: 429, body: object("insufficient_quota", "You exceeded your current quota")}}, "check plan and billing", "model_error", nil},
		"should not retry": {[]reply{{status: 500, header: map[string]string{"x-should-retry": "false"}}}, "HTTP 500", "model_error", nil},
		"should retry":     {[]reply{{status: 400, header: map[string]string{"x-should-retry": "true"}}, {body: good}}, "fine", "", []time.Duration{500 * ms}},
		"400":              {[]reply{{status: 400, body: `{"error":{"message":"Unsupported parameter","type":"invalid_request_error","param":"temperature","code":"unsupported_parameter"}}`}}, "remove models.main.temperature", "model_error", nil},
		"401":              {[]reply{{status: 401, body: object("invalid_api_key", "Incorrect API key provided: "+key)}}, "Incorrect API key provided: ***; the key is not accepted; check OPENAI_API_KEY or models.main.api_key", "auth_required", nil},
		"404":              {[]reply{{status: 404, body: `{"error":{"message":"no model gpt"}}`}}, "no model gpt; check models.main.model and models.main.base_url", "model_error", nil},
		"413":              {[]reply{{status: 413}}, "HTTP 413", "too_large", nil},
		"context full":     {[]reply{{status: 400, body: object("context_length_exceeded", "too many tokens")}}, "shorten the conversation", "too_large", nil},
		"plain error":      {[]reply{{status: 400, body: `{"error":"model 'x' not found"}`}}, "HTTP 400: model 'x' not found", "model_error", nil},
		"web page":         {[]reply{{status: 404, header: map[string]string{"Content-Type": "text/html"}, body: "<html>x</html>"}}, "a web page instead of an API response", "model_error", nil},
		"web page 200":     {[]reply{{header: map[string]string{"Content-Type": "text/html; charset=utf-8"}, body: "<html>x</html>"}}, "a web page instead of an event stream; check models.main.base_url", "protocol", nil},
		"document 200":     {[]reply{{header: map[string]string{"Content-Type": "application/json"}, body: `{"choices":[]}`}}, "this server does not stream", "protocol", nil},
		"error 200":        {[]reply{{header: map[string]string{"Content-Type": "application/json"}, body: object("server_error", "oops")}, {body: good}}, "fine", "", []time.Duration{500 * ms}},
		"redirect":         {[]reply{{status: 302, header: map[string]string{"Location": "https://evil.example/x"}}}, "redirected to https://evil.example", "model_error", nil},
		"refused":          {[]reply{{err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}, {body: good}}, "fine", "", []time.Duration{500 * ms}},
		"refused for ever": {[]reply{{err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}}, "api.openai.com cannot be reached: connection refused; 3 attempts; check the network and models.main.base_url", "unreachable", []time.Duration{500 * ms, 1000 * ms}},
		"bare EOF":         {[]reply{{err: io.EOF}, {body: good}}, "fine", "", []time.Duration{500 * ms}},
		"broke before":     {[]reply{{cut: true}, {body: good}}, "fine", "", []time.Duration{500 * ms}},
		"broke in between": {[]reply{{body: `data: {"choices":[{"index":0,"delta":{"content":"fi"}}]}` + "\n\n", cut: true}, {body: good}}, "reset(the connection broke during the answer: unexpected EOF) fine", "", []time.Duration{500 * ms}},
		"half a line":      {[]reply{{body: `data: {"choices":[{"index":0,"del`}, {body: good}}, "fine", "", []time.Duration{500 * ms}},
		"empty stream":     {[]reply{{body: ""}}, "the answer was cut off", "protocol", []time.Duration{500 * ms, 1000 * ms}},
		"our own error":    {[]reply{{err: tenon.Errorf(tenon.CodeConflict, "replay: no")}}, "openai/gpt: replay: no", "conflict", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{replies: c.replies}
			a, err := generate(t.Context(), chat(t, p, nil), question)
			got := a.text
			if a.resets > 0 {
				got = "reset(the connection broke during the answer: unexpected EOF) " + got
			}
			if err != nil {
				got = err.Error()
				var e *tenon.Error
				if !errors.As(err, &e) || strings.Contains(got, key) {
					t.Errorf("%T %v", err, err)
				}
			}
			if !strings.Contains(got, c.want) || tenon.ErrorCode(err) != c.code {
				t.Errorf("\ngot  %s (%s)\nwant %s (%s)", got, tenon.ErrorCode(err), c.want, c.code)
			}
			if d := cmp.Diff(c.slept, p.slept); d != "" {
				t.Errorf("pauses (-want +got):\n%s", d)
			}
			for _, b := range p.bodies[1:] {
				if b != p.bodies[0] {
					t.Errorf("the repeated body differs: %s", b)
				}
			}
		})
	}
}

func TestWaitBeyondTheDeadlineIsAnErrorAtOnce(t *testing.T) {
	p := &provider{replies: []reply{{status: 429, header: map[string]string{"Retry-After": "30"}}}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := generate(ctx, chat(t, p, nil), question)
	if tenon.ErrorCode(err) != tenon.CodeRateLimited || len(p.slept) != 0 || p.asked != 1 {
		t.Errorf("%v, %d requests, pauses %v", err, p.asked, p.slept)
	}
}

func TestRetryAfterDate(t *testing.T) {
	p := &provider{replies: []reply{{status: 503, header: map[string]string{"Retry-After": time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)}}, {body: good}}}
	if _, err := generate(t.Context(), chat(t, p, nil), question); err != nil {
		t.Fatal(err)
	}
	if len(p.slept) != 1 || p.slept[0] < 10*time.Second || p.slept[0] > 20*time.Second {
		t.Errorf("pauses %v", p.slept)
	}
}

func TestConsumerStops(t *testing.T) {
	p := &provider{replies: []reply{{body: good}}}
	for d, err := range chat(t, p, nil).Generate(t.Context(), question) {
		if err != nil || d.Text != "fine" {
			t.Errorf("%+v, %v", d, err)
		}
		break
	}
	if p.asked != 1 {
		t.Errorf("%d requests", p.asked)
	}
}

// A consumer that stopped is not called again, even if the answer then turns out to be invalid.
func TestConsumerStopsAtAnAnswerThatFails(t *testing.T) {
	p := &provider{replies: []reply{{body: `data: {"choices":[{"index":0,"delta":{"content":"x"}}],"error":{"code":503,"message":"overloaded"}}` + "\n\n"}}}
	n := 0
	for range chat(t, p, nil).Generate(t.Context(), question) {
		n++
		break
	}
	if n != 1 || p.asked != 1 {
		t.Errorf("%d deltas, %d requests", n, p.asked)
	}
}

func TestMissingKey(t *testing.T) {
	_, err := openai.New(model.Config{Name: "main", Provider: "openai", Model: "gpt"}, model.Env{})
	if tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), "set OPENAI_API_KEY or models.main.api_key") {
		t.Errorf("%v", err)
	}
	for name, cfg := range map[string]model.Config{
		"provider":    {Provider: "opnai", Model: "m"},
		"no provider": {Model: "m"},
		"other wire":  {Provider: "anthropic", Model: "m"},
		"no model":    {Provider: "openai"},
		"no address":  {Provider: "openai-compatible", Model: "m"},
		"bad address": {Provider: "openai-compatible", Model: "m", BaseURL: "localhost:80"},
	} {
		if _, err := openai.New(cfg, model.Env{}); tenon.ErrorCode(err) != tenon.CodeConfig {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// slow is a response body that pauses between its pieces.
type slow struct {
	pieces []string
	pause  time.Duration
	ctx    context.Context
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(s.pause):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	n := copy(p, s.pieces[0])
	s.pieces = s.pieces[1:]
	return n, nil
}

func (s *slow) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	s.ctx = req.Context()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(s), Request: req}, nil
}

func TestSilenceEndsARequestBusynessDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		pause  time.Duration
		code   tenon.Code
		want   string
	}{
		"slow but alive": {[]string{": ping\n\n", ": ping\n\n", ": ping\n\n", good}, 90 * time.Second, "", "fine"},
		"silent":         {[]string{good}, 121 * time.Second, tenon.CodeTimeout, "the answer stopped: no data for 2m0s; raise models.main.timeout"},
		"for ever":       {strings.Split(strings.Repeat(": ping\n\n|", 100), "|"), 60 * time.Second, tenon.CodeTimeout, "did not end within 20m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				none := 0
				m, err := openai.New(model.Config{Name: "main", Provider: "openai", Model: "gpt", APIKey: tenon.NewSecret(key), Retries: &none},
					model.Env{Transport: &slow{pieces: c.pieces, pause: c.pause}})
				if err != nil {
					t.Fatal(err)
				}
				a, err := generate(t.Context(), m, question)
				if got := a.text + fmt.Sprint(err); tenon.ErrorCode(err) != c.code || !strings.Contains(got, c.want) {
					t.Errorf("%s", got)
				}
			})
		})
	}
}

func TestCancelAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{replies: []reply{{status: 500}}}
		env := p.env()
		env.Sleep = nil // the default, with the clock of synctest
		m, err := openai.New(model.Config{Provider: "openai", Model: "gpt", APIKey: tenon.NewSecret(key)}, env)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := generate(ctx, m, question); tenon.ErrorCode(err) != tenon.CodeCancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		s := &slow{pieces: []string{good}, pause: time.Hour}
		env.Transport = s
		m, err = openai.New(model.Config{Provider: "openai", Model: "gpt", APIKey: tenon.NewSecret(key)}, env)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := generate(ctx, m, question); tenon.ErrorCode(err) != tenon.CodeTimeout || strings.Contains(err.Error(), "raise") {
			t.Errorf("%v", err)
		}
	})
}

// TestDeltasAreNotHeldBack checks that a delta reaches the consumer before the provider sends the
// next event.
func TestDeltasAreNotHeldBack(t *testing.T) {
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":"%d"}}]}`+"\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
		_, _ = io.WriteString(w, good)
	}))
	defer server.Close()
	m, err := openai.New(model.Config{Provider: "openai-compatible", Model: "m", BaseURL: server.URL}, model.Env{Transport: server.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for d, err := range m.Generate(t.Context(), question) {
		if err != nil {
			t.Fatal(err)
		}
		if got += d.Text; len(got) <= 3 && d.Text != "" {
			next <- struct{}{} // blocks forever if the delta is late
		}
	}
	if got != "012fine" {
		t.Errorf("%s", got)
	}
}

// TestBodiesAreBounded checks that an endless body, compressed or not, is an error and does not
// exhaust memory.
func TestBodiesAreBounded(t *testing.T) {
	longtest.Skip(t)
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		status := 200
		if strings.Contains(r.URL.Path, "error") {
			status = 400
		}
		w.Header().Set("Content-Type", "text/event-stream")
		var out io.Writer = w
		if strings.Contains(r.URL.Path, "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			zw, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			defer zw.Close()
			out = zw
		}
		w.WriteHeader(status)
		piece := []byte(": " + strings.Repeat("x", 64<<10) + "\n\n")
		if strings.Contains(r.URL.Path, "line") {
			piece = []byte(strings.Repeat("x", 64<<10))
		}
		for range 2000 { // 125 MiB
			if _, err := out.Write(piece); err != nil {
				return
			}
			sent.Add(int64(len(piece)))
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{
		"/stream": "the answer is larger than 64 MiB", "/gzip": "the answer is larger than 64 MiB",
		"/gzip/line": "one event of the answer is larger than 16 MiB", "/gzip/error/line": "HTTP 400: xxxx",
	} {
		m, err := openai.New(model.Config{Provider: "openai-compatible", Model: "m", BaseURL: server.URL + path}, model.Env{Transport: server.Client().Transport})
		if err != nil {
			t.Fatal(err)
		}
		_, err = generate(t.Context(), m, question)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", path, err)
		}
		// The conversation is not too large, so the error must not ask for a shorter one.
		if tenon.ErrorCode(err) == tenon.CodeTooLarge || model.KindOf(err) == model.KindTooLong {
			t.Errorf("%s: code %s, kind %s", path, tenon.ErrorCode(err), model.KindOf(err))
		}
	}
}
