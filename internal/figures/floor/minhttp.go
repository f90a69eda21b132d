package floor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/tenonhq/tenon/internal/figures/bench"
)

// MinHTTP is the client of a JSON-RPC server over HTTP: one POST with keep-alive for each call.
type MinHTTP struct {
	url    string
	client *http.Client
	last   atomic.Int64
	stop   func() error
}

// NewMinHTTP returns a client of the server at url, which must be [HandleMinHTTP]. Close calls stop.
func NewMinHTTP(url string, stop func() error) *MinHTTP {
	return &MinHTTP{url: url, stop: stop, client: &http.Client{
		Transport: &http.Transport{MaxIdleConns: 128, MaxIdleConnsPerHost: 128, DisableCompression: true},
	}}
}

// Call implements [bench.Peer].
func (p *MinHTTP) Call(ctx context.Context, tool, text string) (string, error) {
	id := p.last.Add(1)
	b, err := encodeCall(id, tool, text)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := p.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("floor: sending a request: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("floor: reading a response: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("floor: the server answered %s: %.200s", resp.Status, body)
	}
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		return "", fmt.Errorf("floor: a response that is no JSON: %w", err)
	}
	if r.ID != id {
		return "", fmt.Errorf("floor: asked as %d, answered as %d", id, r.ID)
	}
	return r.text()
}

// Close implements [bench.Peer].
func (p *MinHTTP) Close() error {
	p.client.CloseIdleConnections()
	if p.stop == nil {
		return nil
	}
	return p.stop()
}

// HandleMinHTTP handles one request.
func HandleMinHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = handle(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // fails if the client has gone
}

var _ bench.Peer = (*MinHTTP)(nil)
