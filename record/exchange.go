package record

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
)

// Config says where a cassette lies.
type Config struct {
	// Dir is the cassette's folder; requests to models lie in its folder model, calls
	// of servers in mcp/SERVER.
	Dir string
	// Redactor masks the secrets that it knows wherever they occur. Nil: only
	// headers that carry credentials are masked.
	Redactor *tenon.Redactor
	// Resumed says that a process before this one has used the cassette, as when a run
	// that waited is resumed. A [Recorder] goes on with what is there, where it else
	// begins anew; a [Player] does not miss what lies before the first recording of a
	// folder that it is asked for.
	Resumed bool
}

// version is that of the cassettes that are written. Those of version 1 have no
// manifest and no traffic with servers.
const version = 2

// manifestFile says which version a cassette is of.
const manifestFile = "cassette.json"

type manifest struct {
	Version int `json:"version"`
}

// readManifest reads what version a cassette is of. It refuses those of a newer tenon.
func readManifest(dir string) (manifest, error) {
	m := manifest{Version: 1}
	path := filepath.Join(dir, manifestFile)
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return m, nil
	}
	if err != nil {
		return m, tenon.Errorf(tenon.CodeStore, "cassette: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil || m.Version < 1 {
		return m, tenon.Errorf(tenon.CodeConfig, "cassette: %s does not say its version; record it again", path)
	}
	if m.Version > version {
		return m, tenon.Errorf(tenon.CodeConfig, "cassette: %s is of version %d, and this tenon reads %d at most; use a newer one, or record it again", path, m.Version, version)
	}
	return m, nil
}

// HoldsServers reports whether a cassette answers for servers too, so that its replay
// starts none. Errors: config, store.
func HoldsServers(dir string) (bool, error) {
	m, err := readManifest(dir)
	return m.Version > 1, err
}

// Exchange is one file of a cassette.
type Exchange struct {
	// Model is the model's name where it has no HTTP.
	Model string `json:"model,omitempty"`
	// HTTP is the request's envelope where there was one.
	HTTP *HTTP `json:"http,omitempty"`
	// Request is the JSON body of the request.
	Request json.RawMessage `json:"request"`
	// Response is what came back; absent where nothing did.
	Response *Response `json:"response,omitempty"`
}

// HTTP is the envelope of a request.
type HTTP struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// Response is an answer, by HTTP (Status and one of Body, SSE and Text) or from
// a model without (Deltas and Answer). Error says why there is none, or why it
// ended early.
type Response struct {
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"` // a JSON document
	SSE     string            `json:"sse,omitempty"`  // an event stream as it was sent
	Text    string            `json:"text,omitempty"` // anything else
	Deltas  []Delta           `json:"deltas,omitempty"`
	Answer  *tenon.Response   `json:"answer,omitempty"`
	Error   *tenon.Error      `json:"error,omitempty"`
}

// Delta is one streamed piece of an answer.
type Delta struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// maxBody bounds what is kept of one request or response.
const maxBody = 64 << 20

var fileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{4,9}\.json$`) })

// files lists the recordings of a folder in order. A folder that is not there
// has none.
func files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "cassette %s: %w", dir, err)
	}
	var names []string
	for _, e := range entries {
		if fileName().MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

// The folders of a cassette.
const (
	modelFolder   = "model"
	serversFolder = "mcp"
)

func modelDir(dir string) string { return filepath.Join(dir, modelFolder) }

// serverFolder is where the calls of a server lie. Names of configured servers are
// names of files as they are; those of other toolsets may be anything.
func serverFolder(server string) string {
	name := url.PathEscape(server)
	if strings.Trim(name, ".") == "" {
		name = "_" + name
	}
	return filepath.Join(serversFolder, name)
}

// folders lists the recordings of a cassette by their folder. Folders without any
// are left out.
func folders(dir string) (map[string][]string, error) {
	all := []string{modelFolder}
	servers, err := os.ReadDir(filepath.Join(dir, serversFolder))
	if err != nil && !os.IsNotExist(err) {
		return nil, tenon.Errorf(tenon.CodeStore, "cassette %s: %w", dir, err)
	}
	for _, s := range servers {
		if s.IsDir() {
			all = append(all, filepath.Join(serversFolder, s.Name()))
		}
	}
	out := map[string][]string{}
	for _, folder := range all {
		names, err := files(filepath.Join(dir, folder))
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			out[folder] = names
		}
	}
	return out, nil
}

// mask is what stands for a secret.
const mask = "***"

// secretHeader fits the names of headers that carry credentials.
var secretHeader = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password|session`) })

// keptHeaders are the response headers that a replay needs.
var keptHeaders = []string{"Content-Type", "Retry-After", "Retry-After-Ms", "X-Should-Retry", "Request-Id", "X-Request-Id", "Location"}

func requestHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for k := range h {
		out[k] = h.Get(k)
		if secretHeader().MatchString(k) {
			out[k] = mask
		}
	}
	return out
}

func responseHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for _, k := range keptHeaders {
		if v := h.Get(k); v != "" {
			out[k] = v
		}
	}
	return out
}

// response makes the kept form of an HTTP answer.
func response(status int, h http.Header, body []byte) *Response {
	r := &Response{Status: status, Headers: responseHeaders(h)}
	switch {
	case strings.HasPrefix(h.Get("Content-Type"), "text/event-stream"):
		r.SSE = string(body)
	case json.Valid(body):
		r.Body = body
	default:
		r.Text = string(body)
	}
	return r
}

// bytes returns the body again.
func (r *Response) bytes() []byte {
	switch {
	case r.SSE != "":
		return []byte(r.SSE)
	case r.Body != nil:
		return r.Body
	}
	return []byte(r.Text)
}

// jsonBody returns a request's body if it is JSON, else the text as a JSON
// string.
func jsonBody(body []byte) json.RawMessage {
	if json.Valid(body) {
		return body
	}
	js, _ := json.Marshal(string(body)) // a string always encodes
	return js
}

func number(n int) string { return fmt.Sprintf("%04d.json", n) }

func numberOf(name string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(name, ".json")) // fileName fits
	return n
}
