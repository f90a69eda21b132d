package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model/anthropic"
)

// Recorder records a cassette.
type Recorder struct {
	dir      string
	redactor *tenon.Redactor
	max      int64 // of bytes to write
	log      *slog.Logger
	folder   fs.FileInfo // dir, once the manifest is written

	mu      sync.Mutex
	last    map[string]int // the number of the last recording of each folder
	written int64          // bytes
	err     error          // the first error

	lists map[string][]byte // the last recorded lists of prompts and resources
}

// NewRecorder creates a cassette. It removes the recordings of an earlier cassette in the folder,
// unless the config resumes it, and leaves other files alone. Errors have code store, or config if
// it cannot resume a cassette of another version.
func NewRecorder(cfg Config) (*Recorder, error) {
	if cfg.Redactor == nil {
		cfg.Redactor = new(tenon.Redactor)
	}
	r := &Recorder{dir: cfg.Dir, redactor: cfg.Redactor, max: cmp.Or(cfg.MaxBytes, maxCassette),
		last: map[string]int{}, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}
	if err := checkFolders(cfg.Dir, modelFolder, serversFolder); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(modelDir(cfg.Dir), 0o700); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "record: %w", err)
	}
	folders, err := folders(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if cfg.Resumed {
		m, err := readManifest(cfg.Dir)
		if err == nil && m.Version < version && len(folders) > 0 {
			err = tenon.Errorf(tenon.CodeConfig, "record: %s has a version without the traffic of servers; "+
				"record it again", cfg.Dir)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := isOurs(cfg.Dir, folders); err != nil {
		return nil, err
	}
	for folder, names := range folders {
		if cfg.Resumed {
			r.last[folder] = numberOf(names[len(names)-1])
			continue
		}
		for _, name := range names {
			if err := os.Remove(filepath.Join(cfg.Dir, folder, name)); err != nil {
				return nil, tenon.Errorf(tenon.CodeStore, "record: %w", err)
			}
		}
		_ = os.Remove(filepath.Join(cfg.Dir, folder)) // the folder of a server, if it is empty
	}
	if err := os.MkdirAll(modelDir(cfg.Dir), 0o700); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "record: %w", err)
	}
	r.put(filepath.Join(cfg.Dir, manifestFile), manifest{Version: version})
	if r.folder, err = os.Stat(cfg.Dir); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "record: %w", err)
	}
	return r, r.Close()
}

// isOurs refuses to remove recordings of a folder without a manifest, and to replace the file of another program that
// has the manifest's name: somebody else may have written these files. A recorder writes its manifest before its first
// recording.
func isOurs(dir string, found map[string][]string) error {
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	var m struct{ Version *int }
	switch {
	case err == nil && (json.Unmarshal(b, &m) != nil || m.Version == nil):
		return tenon.Errorf(tenon.CodeConfig, "record: the file %s in %s is not of tenon; record into another folder, "+
			"or remove it", manifestFile, dir)
	case len(found) == 0, err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return tenon.Errorf(tenon.CodeStore, "record: %w", err)
	}
	return tenon.Errorf(tenon.CodeConfig, "record: %s has no %s, so the files in its folder '%s' may not be "+
		"recordings; record into another folder, or remove them", dir, manifestFile, slices.Sorted(maps.Keys(found))[0])
}

// Close returns the first error of writing a recording, or an error if the folder of the cassette is gone. Such a
// cassette is incomplete. Recording errors never fail a request.
func (r *Recorder) Close() error {
	r.isGone()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// prepare creates the folder of a server. A folder that is gone with its recordings is not made again, so that the next
// recording reports it.
func (r *Recorder) prepare(folder string) {
	r.mu.Lock()
	begun := r.last[folder] > 0
	r.mu.Unlock()
	if begun || r.isGone() {
		return
	}
	err := checkFolders(r.dir, folder)
	if err == nil {
		err = os.MkdirAll(filepath.Join(r.dir, folder), 0o700)
	}
	if err != nil {
		r.fault(err)
	}
}

// isGone reports whether the folder of the cassette was removed or replaced since the recording began. Its recordings
// are lost then, so this is the recorder's error.
func (r *Recorder) isGone() bool {
	st, err := os.Stat(r.dir)
	if err == nil && os.SameFile(st, r.folder) {
		_, err = os.Lstat(filepath.Join(r.dir, manifestFile)) // another folder may have got the number of the first
	} else if err == nil {
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		r.fail(removed(r.dir))
		return true
	}
	return false
}

func removed(folder string) error {
	return tenon.Errorf(tenon.CodeStore, "record: the folder %s was removed or replaced during the recording, so "+
		"recordings are lost; record it again", folder)
}

// checkFolders refuses a folder of a cassette that is a link: in a folder that others made, it could lead the recorder
// to overwrite files elsewhere. A missing folder is no error.
func checkFolders(dir string, folders ...string) error {
	for _, f := range folders {
		path := filepath.Join(dir, f)
		st, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return tenon.Errorf(tenon.CodeStore, "record: %w", err)
		case !st.IsDir():
			return tenon.Errorf(tenon.CodeConfig, "record: %s is not a folder; record into another folder", path)
		}
	}
	return nil
}

func (r *Recorder) fault(err error) { r.fail(tenon.Errorf(tenon.CodeStore, "record: %w", err)) }

// fail keeps the first error for Close, and logs it at once, because a recording may go on for hours.
func (r *Recorder) fail(err error) {
	r.mu.Lock()
	first := r.err == nil
	if first {
		r.err = err
	}
	r.mu.Unlock()
	if first {
		r.log.Warn(err.Error())
	}
}

// fits counts the bytes of a file, and reports whether the cassette may have them. If it may not, the recording is
// incomplete from now on.
func (r *Recorder) fits(path string, size int) bool {
	r.mu.Lock()
	r.written += int64(size)
	fits := r.written <= r.max
	r.mu.Unlock()
	if !fits {
		r.fail(tenon.Errorf(tenon.CodeTooLarge, "record: the cassette in %s is incomplete: %s is the first exchange "+
			"beyond the limit of %d bytes", r.dir, filepath.Base(path), r.max))
	}
	return fits
}

// begin writes the request to the next file of a folder. So the request is recorded even if the
// process dies before the response.
func (r *Recorder) begin(folder string, x any) (path string) {
	r.mu.Lock()
	r.last[folder]++
	path = filepath.Join(r.dir, folder, number(r.last[folder]))
	r.mu.Unlock()
	r.write(path, x)
	return path
}

// write writes a file atomically, unless the folder of the cassette is gone.
func (r *Recorder) write(path string, x any) {
	if !r.isGone() {
		r.put(path, x)
	}
}

func (r *Recorder) put(path string, x any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(x)
	masked := maskJSON(r.redactor, buf.Bytes())
	if err == nil && !r.fits(path, len(masked)) {
		return
	}
	if err == nil {
		err = replace(path, masked)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.fail(removed(filepath.Dir(path)))
	case err != nil:
		r.fault(err)
	}
}

// replace replaces a file as a whole. It writes to no file that exists, so it follows no link, unlike package
// internal/wholefile, which is for files of the user.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".*.tmp") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}

// Transport returns a transport that records the traffic of base.
func (r *Recorder) Transport(base http.RoundTripper) http.RoundTripper {
	return &recording{r, base}
}

type recording struct {
	r    *Recorder
	base http.RoundTripper
}

// RoundTrip forwards the request and records the part of the response that is read.
func (t *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	x := &Exchange{Request: jsonBody(body),
		HTTP: &HTTP{Method: req.Method, URL: req.URL.Redacted(), Headers: requestHeaders(req.Header)}}
	path := t.r.begin(modelFolder, x)
	resp, err := t.base.RoundTrip(sent)
	if err != nil {
		x.Response = &Response{Error: &tenon.Error{Code: tenon.CodeUnreachable, Message: err.Error()}}
		t.r.write(path, x)
		return nil, err
	}
	resp.Body = &kept{body: resp.Body, done: func(body []byte, err error) {
		x.Response = response(resp.StatusCode, resp.Header, body)
		if err != nil {
			x.Response.Error = &tenon.Error{Code: tenon.CodeProtocol, Message: err.Error()}
		}
		t.r.write(path, x)
	}}
	return resp, nil
}

// readBody reads the body of a request, up to maxBody. It returns a copy of the request with the whole body, because a
// transport must not modify its request.
func readBody(req *http.Request) (*http.Request, []byte, error) {
	if req.Body == nil {
		return req, nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil {
		_ = req.Body.Close() // the first error says more
		return nil, nil, err
	}
	sent := req.Clone(req.Context())
	if len(body) == maxBody { // there may be more, which is not recorded
		sent.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
		return sent, body, nil
	}
	_ = req.Body.Close() // nothing to report after reading
	sent.Body = io.NopCloser(bytes.NewReader(body))
	sent.ContentLength = int64(len(body))
	return sent, body, nil
}

// kept is a response body that keeps the bytes that were read.
type kept struct {
	body io.ReadCloser
	buf  bytes.Buffer
	once sync.Once
	done func([]byte, error)
}

func (k *kept) Read(p []byte) (int, error) {
	n, err := k.body.Read(p)
	if k.buf.Len() < maxBody {
		k.buf.Write(p[:n])
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		k.finish(nil)
	default:
		k.finish(err)
	}
	return n, err
}

// Close records what was read. A reader that has seen the end mark of a stream need not read to the
// end of the body.
func (k *kept) Close() error {
	k.finish(nil)
	return k.body.Close()
}

func (k *kept) finish(err error) {
	k.once.Do(func() { k.done(k.buf.Bytes(), err) })
}

// Model returns a model that records the requests and answers of m. It is for models without HTTP;
// record other models with [Recorder.Transport].
func (r *Recorder) Model(m tenon.Model) tenon.Model { return &recordingModel{m, r} }

type recordingModel struct {
	tenon.Model
	r *Recorder
}

// Generate forwards the request and records the exchange.
func (m *recordingModel) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		body, err := anthropic.EncodeRequest(m.Name(), req)
		if err != nil {
			yield(tenon.Delta{}, err)
			return
		}
		x := &Exchange{Model: m.Name(), Request: body}
		path := m.r.begin(modelFolder, x)
		x.Response = &Response{}
		defer func() { m.r.write(path, x) }()
		for d, err := range m.Model.Generate(ctx, req) {
			switch {
			case err != nil:
				x.Response.Error = asError(err)
			case d.Response != nil:
				x.Response.Answer = d.Response
			default:
				x.Response.Deltas = append(x.Response.Deltas, Delta{d.Kind, d.Text})
			}
			if d.Response != nil || err != nil {
				// Write the file before the caller acts on the answer.
				m.r.write(path, x)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func asError(err error) *tenon.Error {
	var e *tenon.Error
	if errors.As(err, &e) {
		return e
	}
	return &tenon.Error{Code: tenon.CodeInternal, Message: err.Error()}
}

var (
	_ http.RoundTripper = (*recording)(nil)
	_ tenon.Model       = (*recordingModel)(nil)
)
