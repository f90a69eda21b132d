package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

const (
	// restartTime is how long a message waits for a tenon serve that is started again.
	restartTime = 15 * time.Second
	// restartPause is the pause between two attempts to send it.
	restartPause = 100 * time.Millisecond
	// maxRelayed bounds the messages of a client that are under way. More are read when others have ended.
	maxRelayed = 256
	// maxHandshake bounds the initialize request that is kept for a new session, in bytes.
	maxHandshake = 1 << 20
)

// RelayConfig configures [Relay].
type RelayConfig struct {
	URL     string            // of the endpoint
	Network http.RoundTripper // transport to it; if nil, the default
	// Restart is how long a message waits for an endpoint that is started again. 0 means 15 seconds.
	Restart time.Duration
}

// Relay carries the messages of a client between a stream, such as stdin and stdout, and the MCP endpoint of a running
// tenon serve, until the stream or ctx ends. The client stays connected while tenon serve restarts: a message that did
// not arrive is sent again, and a legacy session is opened again with the client's own initialize. A request that may
// have arrived is answered with an error, never sent again.
func Relay(ctx context.Context, client jsonrpc.Stream, cfg RelayConfig) error {
	h, err := transport.DialHTTP(transport.HTTPConfig{URL: cfg.URL, RoundTripper: cfg.Network})
	if err != nil {
		return err
	}
	if cfg.Restart <= 0 {
		cfg.Restart = restartTime
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &relay{client: client, http: h, restart: cfg.Restart, open: map[string]*relayed{},
		slots: make(chan struct{}, maxRelayed)}
	err = r.run(ctx)
	cancel()
	r.work.Wait()
	return errors.Join(err, h.Close())
}

// relay is one call of [Relay].
type relay struct {
	client  jsonrpc.Stream
	http    *transport.HTTP
	restart time.Duration
	slots   chan struct{}
	work    sync.WaitGroup

	mu        sync.Mutex
	open      map[string]*relayed // requests under way that were not cancelled, by raw id
	handshake []byte              // the client's initialize; nil in the modern era
	listens   bool
	modern    bool

	opening sync.Mutex // held while a new session is opened
}

// run reads the client's messages.
func (r *relay) run(ctx context.Context) error {
	for ctx.Err() == nil {
		raw, err := r.client.Recv(ctx)
		var size *jsonrpc.SizeError
		switch {
		case errors.As(err, &size):
			r.fail(ctx, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", err))
			continue
		case err != nil:
			return nil // the client is gone
		}
		if !jsonrpc.Batch(raw, func(one []byte, over bool) { r.parse(ctx, one, over) }) {
			r.parse(ctx, raw, false)
		}
	}
	return nil
}

// parse reads a message, or one message of a batch, and takes it.
func (r *relay) parse(ctx context.Context, raw []byte, over bool) {
	var m jsonrpc.Message
	switch err := jsonrpc.Parse(raw, &m); {
	case err != nil:
		code := jsonrpc.CodeParse
		if jsonrpc.Valid(raw) == nil {
			code = jsonrpc.CodeInvalidRequest
		}
		r.fail(ctx, nil, jsonrpc.Errorf(code, "%s", err))
	case over:
		r.fail(ctx, m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", jsonrpc.ErrBatch))
	default:
		r.take(ctx, raw, m)
	}
}

// take sends a message on, in a new goroutine.
func (r *relay) take(ctx context.Context, raw []byte, m jsonrpc.Message) {
	version, modern := rawjson.ParseString(rawjson.Field(rawjson.Field(m.Params, "_meta"),
		"io.modelcontextprotocol/protocolVersion"))
	r.mu.Lock()
	switch {
	case modern && m.IsRequest():
		r.modern = true
		r.http.SetProtocol(version, true)
	case m.Method == "initialize" && m.IsRequest() && len(raw) <= maxHandshake:
		r.modern, r.handshake = false, raw
		r.http.SetProtocol("", false)
	}
	ended := false
	if m.Method == "notifications/cancelled" {
		id := string(rawjson.Field(m.Params, "requestId"))
		if q := r.open[id]; q != nil && r.modern {
			q.cancel()
		}
		delete(r.open, id) // the request gets no answer any more
		ended = r.modern   // cancelling the exchange notifies the server
	}
	taken := m.IsRequest() && r.open[string(m.ID)] != nil
	r.mu.Unlock()
	if taken { // an error with this id would be read as the answer to the other request
		r.fail(ctx, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the id %s belongs to a request that is still "+
			"being handled; use a new id for each request", m.ID))
	}
	if ended || taken {
		return
	}
	out := jsonrpc.Outgoing{Body: raw, Method: m.Method, Name: nameIn(m), Patient: func() bool { return true }}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	if !m.IsRequest() {
		r.work.Go(func() {
			defer func() { <-r.slots }()
			_ = r.persist(ctx, m.Method, func() error { return r.http.Send(ctx, out) }) // it gets no answer
		})
		return
	}
	own, cancel := context.WithCancel(ctx)
	q := &relayed{cancel}
	r.mu.Lock()
	r.open[string(m.ID)] = q
	r.mu.Unlock()
	r.work.Go(func() {
		defer func() { <-r.slots }()
		defer cancel()
		r.exchange(own, ctx, m, out, func() (was bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if was = r.open[string(m.ID)] == q; was {
				delete(r.open, string(m.ID))
			}
			return was
		})
	})
}

// relayed is a request under way.
type relayed struct{ cancel context.CancelFunc }

// nameIn returns the name or URI in the params of a request. The modern era requires the same value in a header.
func nameIn(m jsonrpc.Message) string {
	key := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[m.Method]
	if key == "" {
		return ""
	}
	return rawjson.String(rawjson.Field(m.Params, key))
}

// exchange sends a request and passes its response, and the messages before it, on to the client. ctx ends with the
// request, whole with the relay. leave releases the id of the request and reports whether it may still be answered.
func (r *relay) exchange(ctx, whole context.Context, m jsonrpc.Message, out jsonrpc.Outgoing, leave func() bool) {
	err := r.persist(ctx, m.Method, func() error {
		return r.http.Exchange(ctx, out, func(body []byte) bool {
			var a jsonrpc.Message
			if jsonrpc.Parse(body, &a) != nil {
				return false
			}
			answered := a.IsAnswer() && string(a.ID) == string(m.ID)
			if answered && m.Method == "initialize" && a.Result != nil {
				r.began(rawjson.String(rawjson.Field(a.Result, "protocolVersion")))
			}
			if answered && !leave() {
				return true
			}
			_ = r.client.Send(ctx, jsonrpc.Outgoing{Body: body}) // if the client is gone, the relay ends by itself
			return answered
		})
	})
	if leave() && err != nil && ctx.Err() == nil {
		r.fail(ctx, m.ID, r.explained(err))
	}
	if m.Method == "initialize" && err == nil {
		r.listen(whole)
	}
}

// explained returns the error for the client of a request that got no answer.
func (r *relay) explained(err error) *jsonrpc.Error {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		return rpc
	}
	if isUnsent(err) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "tenon serve does not answer; start it again: %s", err)
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "tenon serve ended before it answered, so the outcome is unknown; the "+
		"request is not sent again: %s", err)
}

// fail answers a request with an error.
func (r *relay) fail(ctx context.Context, id []byte, e *jsonrpc.Error) {
	_ = r.client.Send(ctx, jsonrpc.Outgoing{Body: jsonrpc.AppendError(nil, id, e)}) // fails only if the client is gone
}

// began records the protocol revision of a legacy session.
func (r *relay) began(version string) {
	if mcp.IsLegacy(version) {
		r.http.SetProtocol(version, false)
	}
}

// persist calls send again while the message certainly did not arrive, for the time that a restart may take.
func (r *relay) persist(ctx context.Context, method string, send func() error) error {
	for end := time.Now().Add(r.restart); ; {
		session := r.http.Session()
		err := send()
		if err == nil || !isUnsent(err) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		if errors.Is(err, transport.ErrSession) && method != "initialize" {
			if again := r.reopen(ctx, session); again != nil {
				err = again
			} else {
				continue
			}
		}
		select {
		case <-time.After(restartPause):
		case <-ctx.Done():
			return err
		}
	}
}

// isUnsent reports whether a message certainly did not reach the server's handlers.
func isUnsent(err error) bool {
	var lost *jsonrpc.LostError
	if errors.As(err, &lost) {
		return !lost.Sent
	}
	return tenon.ErrorCode(err) == tenon.CodeUnreachable
}

// reopen opens a new legacy session with the client's own initialize, unless another message has done so.
func (r *relay) reopen(ctx context.Context, old string) error {
	r.opening.Lock()
	defer r.opening.Unlock()
	if r.http.Session() != old {
		return nil
	}
	r.mu.Lock()
	handshake := r.handshake
	r.mu.Unlock()
	var m jsonrpc.Message
	if handshake == nil || jsonrpc.Parse(handshake, &m) != nil {
		return fmt.Errorf("there is no session to open again: %w", transport.ErrSession)
	}
	err := r.http.Exchange(ctx, jsonrpc.Outgoing{Body: handshake, Method: "initialize"}, func(body []byte) bool {
		var a jsonrpc.Message
		if jsonrpc.Parse(body, &a) != nil || !a.IsAnswer() {
			return false
		}
		r.began(rawjson.String(rawjson.Field(a.Result, "protocolVersion")))
		return true
	})
	if err != nil {
		return err
	}
	return r.http.Send(ctx, jsonrpc.Outgoing{Method: "notifications/initialized",
		Body: jsonrpc.AppendRequest(nil, 0, "notifications/initialized", nil)})
}

// listen receives the notifications of a legacy session.
func (r *relay) listen(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listens {
		return
	}
	r.listens = true
	r.work.Go(func() {
		deliver := func(body []byte) bool {
			_ = r.client.Send(ctx, jsonrpc.Outgoing{Body: body}) // if the client is gone, the relay ends by itself
			return false
		}
		_ = r.http.Listen(ctx, func(error) {}, deliver) // it ends with the relay
	})
}
