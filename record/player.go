package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model/anthropic"
)

// Player answers from a cassette.
type Player struct {
	dir   string
	mu    sync.Mutex
	tapes []*tape
	bad   error // the first request that did not fit
}

// tape is one recording.
type tape struct {
	name string
	Exchange
	norm any
	used bool
}

// NewPlayer reads a cassette. Errors have code not_found where it has no
// recording, config where one cannot be read.
func NewPlayer(cfg Config) (*Player, error) {
	dir := modelDir(cfg.Dir)
	names, err := files(dir)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, tenon.Errorf(tenon.CodeNotFound, "replay: %s holds no recordings; make them with --record %s", dir, cfg.Dir)
	}
	p := &Player{dir: dir}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "replay: %w", err)
		}
		t := &tape{name: name}
		if err := decode(data, &t.Exchange); err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "replay: %s: %w; record it again", filepath.Join(dir, name), err)
		}
		t.norm = normal(t.Request)
		p.tapes = append(p.tapes, t)
	}
	return p, nil
}

// decode reads a file without the line breaks and spaces that make it readable,
// which raw members such as arguments would keep.
func decode(data []byte, x *Exchange) error {
	var flat bytes.Buffer
	if err := json.Compact(&flat, data); err != nil {
		return err
	}
	return json.Unmarshal(flat.Bytes(), x)
}

// take finds the first unused recording that fits.
func (p *Player) take(who string, request []byte) (*tape, error) {
	got := normal(request)
	p.mu.Lock()
	defer p.mu.Unlock()
	var nearest *tape
	var where string
	depth := -1
	for _, t := range p.tapes {
		if t.used {
			continue
		}
		at, deep, same := difference("", t.norm, got)
		if same {
			t.used = true
			return t, nil
		}
		if deep > depth {
			nearest, where, depth = t, at, deep
		}
	}
	err := tenon.Errorf(tenon.CodeConflict, "replay: %s asks what %s does not hold: all of its %d recordings are used; record it again",
		who, p.dir, len(p.tapes))
	if nearest != nil {
		err = tenon.Errorf(tenon.CodeConflict, "replay: %s asks what %s does not hold; the nearest unused recording, %s, differs at %s; record it again",
			who, p.dir, nearest.name, where)
	}
	if p.bad == nil {
		p.bad = err
	}
	return nil, err
}

// Close fails if a request found no recording or a recording found no request.
// The code is conflict.
func (p *Player) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bad != nil {
		return p.bad
	}
	var left []string
	for _, t := range p.tapes {
		if !t.used {
			left = append(left, t.name)
		}
	}
	if len(left) > 0 {
		return tenon.Errorf(tenon.CodeConflict, "replay: %d of %d recordings of %s were not asked for: %s",
			len(left), len(p.tapes), p.dir, strings.Join(left, ", "))
	}
	return nil
}

// Transport returns a transport that answers from the cassette and opens no
// connection. Its errors are of type *tenon.Error, code conflict.
func (p *Player) Transport() http.RoundTripper { return (*playing)(p) }

type playing Player

// RoundTrip answers with the recording that fits the request.
func (t *playing) RoundTrip(req *http.Request) (*http.Response, error) {
	_, body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	tp, err := (*Player)(t).take(fmt.Sprintf("%s %s", req.Method, req.URL.Redacted()), jsonBody(body))
	if err != nil {
		return nil, err
	}
	r := tp.Response
	if r == nil || r.Status == 0 {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "replay: %s holds no answer", tp.name)
	}
	content := r.bytes()
	resp := &http.Response{Status: fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)), StatusCode: r.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: req,
		Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content))}
	for k, v := range r.Headers {
		resp.Header.Set(k, v)
	}
	if r.Error != nil { // the stream broke
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(content), broken{}))
		resp.ContentLength = -1
	}
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Model returns a model of the given name that answers with what was recorded
// by [Recorder.Model].
func (p *Player) Model(name string) tenon.Model { return &playingModel{name, p} }

type playingModel struct {
	name string
	p    *Player
}

// Name returns the name that the model had when it was recorded.
func (m *playingModel) Name() string { return m.name }

// Generate yields the recorded deltas and the answer, or the recorded error.
func (m *playingModel) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		body, err := anthropic.EncodeRequest(m.name, req)
		if err != nil {
			yield(tenon.Delta{}, err)
			return
		}
		t, err := m.p.take(m.name, body)
		if err == nil && ctx.Err() != nil {
			err = tenon.Errorf(tenon.CodeCancelled, "replay: %w", ctx.Err())
		}
		if err == nil && (t.Response == nil || t.Response.Answer == nil && t.Response.Error == nil) {
			err = tenon.Errorf(tenon.CodeConflict, "replay: %s holds no answer", t.name)
		}
		if err != nil {
			yield(tenon.Delta{}, err)
			return
		}
		for _, d := range t.Response.Deltas {
			if !yield(tenon.Delta{Kind: d.Kind, Text: d.Text}, nil) {
				return
			}
		}
		if t.Response.Error != nil {
			yield(tenon.Delta{}, t.Response.Error)
			return
		}
		yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: t.Response.Answer}, nil)
	}
}

var (
	_ http.RoundTripper = (*playing)(nil)
	_ tenon.Model       = (*playingModel)(nil)
)
