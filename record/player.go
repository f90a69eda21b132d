package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/model/anthropic"
)

// Player replays a cassette.
type Player struct {
	dir      string
	redactor *tenon.Redactor
	version  int
	resumed  bool
	mu       sync.Mutex
	tapes    []*tape
	servers  map[string]*serverTapes // by folder
	bad      error                   // the first request without a matching recording
	learn    func()                  // calls Config.Secrets once
	forms    int                     // the size of the redactor when the recordings were masked last
}

// tape is the recording of one request to a model.
type tape struct {
	name string
	Exchange
	norm any
	used bool
}

// NewPlayer reads a cassette. Errors have code not_found if the cassette has no recordings, and
// config if a recording is invalid.
func NewPlayer(cfg Config) (*Player, error) {
	m, err := readManifest(cfg.Dir)
	if err != nil {
		return nil, err
	}
	all, err := folders(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 && m.Version == 1 {
		return nil, tenon.Errorf(tenon.CodeNotFound, "replay: %s holds no recordings; make them with --record %s",
			cfg.Dir, cfg.Dir)
	}
	p := &Player{dir: cfg.Dir, redactor: cfg.Redactor, version: m.Version, resumed: cfg.Resumed,
		servers: map[string]*serverTapes{}}
	if p.redactor == nil {
		p.redactor = new(tenon.Redactor)
	}
	p.learn = func() {}
	if cfg.Secrets != nil {
		p.learn = sync.OnceFunc(cfg.Secrets)
	}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		for _, name := range all[folder] {
			if err := p.load(folder, filepath.Join(folder, name)); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// load reads one recording. name is its path in the cassette.
func (p *Player) load(folder, name string) error {
	path := filepath.Join(p.dir, name)
	st, err := os.Stat(path)
	if err == nil && (!st.Mode().IsRegular() || st.Size() > maxCassette) {
		return tenon.Errorf(tenon.CodeConfig, "replay: %s is not a recording, or has more than %d bytes", path,
			maxCassette)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "replay: %w", err)
	}
	name = filepath.ToSlash(name)
	if folder == modelFolder {
		t := &tape{name: name}
		err = decode(data, &t.Exchange)
		t.norm = normal(t.Request)
		p.tapes = append(p.tapes, t)
	} else {
		s := p.servers[folder]
		if s == nil {
			s = &serverTapes{}
			p.servers[folder] = s
		}
		err = s.load(name, data)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeConfig, "replay: %s: %w; record it again", path, err)
	}
	return nil
}

// decode reads a file without its indentation, which raw members such as arguments would otherwise
// contain.
func decode(data []byte, x any) error {
	var flat bytes.Buffer
	if err := json.Compact(&flat, data); err != nil {
		return err
	}
	return exactjson.DecodeOpen(flat.Bytes(), x)
}

// mask masks the known secrets in the recorded requests, because the recording process may not have known all of them.
func (p *Player) mask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forms == p.redactor.Size() {
		return
	}
	p.forms = p.redactor.Size()
	for _, t := range p.tapes {
		t.norm = normal(maskJSON(p.redactor, t.Request))
	}
	for _, s := range p.servers {
		s.mask(p.redactor)
	}
}

// retried calls find, and calls it again with all secrets if it finds nothing.
func (p *Player) retried(find func() bool) bool {
	if find() {
		return true
	}
	p.learn()
	p.mask()
	return find()
}

// take returns the first unused recording that matches a request.
func (p *Player) take(who string, request []byte) (*tape, error) {
	var found *tape
	var near nearest
	find := func() bool {
		got := normal(maskJSON(p.redactor, request))
		p.mu.Lock()
		defer p.mu.Unlock()
		near = nearest{}
		for _, t := range p.tapes {
			if !t.used && near.compare(t.name, t.norm, got) {
				t.used, found = true, t
				break
			}
		}
		return found != nil
	}
	if p.retried(find) {
		return found, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return nil, p.unexpected(who, len(p.tapes), near)
}

// unexpected records and returns the error for a request without a matching recording. The caller
// holds the lock.
func (p *Player) unexpected(who string, recorded int, near nearest) error {
	err := tenon.Errorf(tenon.CodeConflict, "replay: %s: no matching recording in %s: all of its %d recordings "+
		"are used; record it again", who, p.dir, recorded)
	if near.name != "" {
		err = tenon.Errorf(tenon.CodeConflict, "replay: %s: no matching recording in %s: the nearest unused "+
			"recording, %s, differs at %s; record it again", who, p.dir, near.name, near.where)
	}
	return p.fault(err)
}

// fault records the first error for Close. The caller holds the lock.
func (p *Player) fault(err *tenon.Error) error {
	if p.bad == nil {
		p.bad = err
	}
	return err
}

// Close returns an error if a request had no recording, or if a recording was not used. The error has code conflict.
func (p *Player) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bad != nil {
		return p.bad
	}
	var left []string
	total := len(p.tapes)
	begun := !p.resumed
	for _, t := range p.tapes {
		begun = begun || t.used
		if begun && !t.used {
			left = append(left, t.name)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(p.servers)) {
		total += len(p.servers[folder].tapes)
		left = append(left, p.servers[folder].unused(p.resumed)...)
	}
	if len(left) > 0 {
		return tenon.Errorf(tenon.CodeConflict, "replay: %d of %d recordings of %s were not used: %s",
			len(left), total, p.dir, strings.Join(left, ", "))
	}
	return nil
}

// Transport returns a transport that answers from the cassette and opens no connections. Its errors
// are of type *tenon.Error with code conflict.
func (p *Player) Transport() http.RoundTripper { return (*playing)(p) }

type playing Player

// RoundTrip answers with the recording that matches the request.
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
		return nil, tenon.Errorf(tenon.CodeUnreachable, "replay: %s has no answer", tp.name)
	}
	content := r.bytes()
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)), StatusCode: r.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: req,
		Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}
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

// Model returns a model of the given name that replays the recordings of [Recorder.Model].
func (p *Player) Model(name string) tenon.Model { return &playingModel{name, p} }

type playingModel struct {
	name string
	p    *Player
}

// Name returns the name of the recorded model.
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
			err = tenon.Errorf(tenon.CodeConflict, "replay: %s has no answer", t.name)
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
