package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 16 << 20

// route is one line of the table: what is served where.
type route struct {
	method, pattern string
	serve           func(*api, http.ResponseWriter, *http.Request) error
}

// routes is all that is served. A test goes through it.
func routes() []route {
	return []route{
		{http.MethodGet, "/healthz", (*api).health},
		{http.MethodPost, "/api/v1/runs", (*api).start},
		{http.MethodGet, "/api/v1/runs/{id}", (*api).show},
		{http.MethodGet, "/api/v1/runs/{id}/events", (*api).events},
		{http.MethodPost, "/api/v1/runs/{id}/resume", (*api).resume},
		{http.MethodPost, "/api/v1/runs/{id}/cancel", (*api).cancel},
		{http.MethodPost, "/api/v1/runs/{id}/steer", (*api).steer},
	}
}

// api serves one host.
type api struct{ h *host.Host }

// Handler serves a host. The handler is safe for concurrent use; who may reach
// it is the listener's matter, see [Listen].
func Handler(h *host.Host) http.Handler {
	a := &api{h}
	byPattern := map[string]map[string]route{}
	for _, r := range routes() {
		if byPattern[r.pattern] == nil {
			byPattern[r.pattern] = map[string]route{}
		}
		byPattern[r.pattern][r.method] = r
		if r.method == http.MethodGet {
			byPattern[r.pattern][http.MethodHead] = r
		}
	}
	mux := http.NewServeMux()
	for pattern, methods := range byPattern {
		allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			r, ok := methods[req.Method]
			if !ok {
				w.Header().Set("Allow", allow)
				a.fail(w, req, refuse(http.StatusMethodNotAllowed, tenon.CodeInvalid, "%s takes %s, not %s", req.URL.Path, allow, req.Method))
				return
			}
			if err := r.serve(a, w, req); err != nil {
				a.fail(w, req, err)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		a.fail(w, req, tenon.Errorf(tenon.CodeNotFound, "there is nothing at %s", req.URL.Path))
	})
	return mux
}

// fail answers with an error.
func (a *api) fail(w http.ResponseWriter, req *http.Request, err error) {
	if req.Context().Err() != nil {
		return // nobody reads it
	}
	p, known := problem(err)
	if !known {
		a.h.Logger().Error("a request met a defect", "method", req.Method, "path", req.URL.Path, "error", err)
	}
	send(w, p.Status, "application/problem+json", p)
}

// answer sends a result.
func answer(w http.ResponseWriter, status int, v any) error {
	send(w, status, "application/json", v)
	return nil
}

// send writes a JSON value of our own types. A client that has gone is no error
// of ours.
func send(w http.ResponseWriter, status int, kind string, v any) {
	b, err := encode(v)
	if err != nil {
		status, kind, b = http.StatusInternalServerError, "application/problem+json", []byte(`{"title":"Internal Server Error","code":"internal"}`)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// encode writes JSON on one line, with < and & as they are.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// decode reads the body of a request: one JSON object with known keys. No body
// at all leaves v as it is, where that is allowed.
func decode(w http.ResponseWriter, req *http.Request, v any, optional bool) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tenon.Errorf(tenon.CodeTooLarge, "the body has more than %d bytes", maxBody)
	case err != nil:
		return tenon.Errorf(tenon.CodeInvalid, "the body cannot be read: %w", err)
	case len(body) == 0 && optional:
		return nil
	}
	if kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, tenon.CodeInvalid, "the content type must be application/json, not '%s'", req.Header.Get("Content-Type"))
	}
	if !utf8.Valid(body) {
		return tenon.Errorf(tenon.CodeInvalid, "the body is not UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the body is not what is taken here: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return tenon.Errorf(tenon.CodeInvalid, "the body holds more than one JSON value")
	}
	return nil
}
