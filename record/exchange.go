package record

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// Config configures a [Recorder] or a [Player].
type Config struct {
	// Dir is the folder of the cassette. Requests to models are in its folder model, requests
	// to servers are in mcp/SERVER.
	Dir string
	// Redactor masks its secrets in recordings, and in requests and recordings before a [Player] compares them. If nil,
	// only headers with credentials are masked.
	Redactor *tenon.Redactor
	// Secrets, if not nil, adds further secrets to Redactor. A [Player] calls it once, when a request matches no
	// recording: a replay starts no servers, so their secrets may not have been read yet.
	Secrets func()
	// Logger, if not nil, receives a warning when a [Recorder] cannot write, or its folder is gone.
	Logger *slog.Logger
	// Resumed means that an earlier process used the cassette before this one, for example because a waiting run is
	// resumed. A [Recorder] then continues the cassette instead of replacing it. A [Player] ignores unused recordings
	// that precede the first used recording of each folder.
	Resumed bool
	// MaxBytes bounds the bytes that a [Recorder] writes. The exchanges after that are not recorded, and
	// [Recorder.Close] returns an error of code too_large. 0 means 1 GiB.
	MaxBytes int64
}

// maxCassette is the default of [Config.MaxBytes].
const maxCassette = 1 << 30

// version is the version of written cassettes. Cassettes of version 1 have no manifest and no
// traffic of servers.
const version = 2

// manifestFile contains the version of a cassette.
const manifestFile = "cassette.json"

type manifest struct {
	Version int `json:"version"`
}

// readManifest reads the version of a cassette. It refuses newer versions than its own.
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
		return m, tenon.Errorf(tenon.CodeConfig, "cassette: %s has no valid version; record it again", path)
	}
	if m.Version > version {
		return m, tenon.Errorf(tenon.CodeConfig, "cassette: %s has version %d, and this tenon reads at most "+
			"version %d; use a newer tenon, or record it again", path, m.Version, version)
	}
	return m, nil
}

// HoldsServers reports whether a cassette contains the traffic of servers. If so, its replay starts no servers. Errors:
// config, store.
func HoldsServers(dir string) (bool, error) {
	m, err := readManifest(dir)
	return m.Version > 1, err
}

// Exchange is one file of a cassette.
type Exchange struct {
	// Model is the name of a model without HTTP.
	Model string `json:"model,omitempty"`
	// HTTP contains the method, URL and headers of an HTTP request.
	HTTP *HTTP `json:"http,omitempty"`
	// Request is the JSON body of the request.
	Request json.RawMessage `json:"request"`
	// Response is absent if there was no response.
	Response *Response `json:"response,omitempty"`
}

// HTTP contains the method, URL and headers of a request.
type HTTP struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// Response is an HTTP response (Status and one of Body, SSE, Text and Binary) or the answer of a model
// without HTTP (Deltas and Answer). Error is set if there is no answer or it ended early.
type Response struct {
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`   // a JSON document
	SSE     string            `json:"sse,omitempty"`    // an unchanged event stream
	Text    string            `json:"text,omitempty"`   // any other text
	Binary  []byte            `json:"binary,omitempty"` // base64 of any other body, such as Bedrock's frames
	Deltas  []Delta           `json:"deltas,omitempty"`
	Answer  *tenon.Response   `json:"answer,omitempty"`
	Error   *tenon.Error      `json:"error,omitempty"`
}

// Delta is a streamed piece of an answer.
type Delta struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// maxBody bounds the recorded bytes of a request or a response.
const maxBody = 64 << 20

var fileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{4,9}\.json$`) })

// files returns the recordings of a folder in order. It returns nil if the folder does not exist.
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

// serverFolder returns the folder of a server. Names of configured servers are valid file names;
// names of other toolsets may contain any character.
func serverFolder(server string) string {
	name := url.PathEscape(server)
	if strings.Trim(name, ".") == "" {
		name = "_" + name
	}
	return filepath.Join(serversFolder, name)
}

// folders returns the recordings of a cassette by folder. It omits empty folders.
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

// mask replaces a secret.
const mask = "***"

// secretHeader matches the names of headers with credentials.
var secretHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password|session`)
})

// keptHeaders are the response headers that a replay needs.
var keptHeaders = []string{
	"Content-Type", "Retry-After", "Retry-After-Ms", "X-Should-Retry", "Request-Id", "X-Request-Id", "Location",
	"X-Amzn-Requestid", "X-Amzn-Errortype",
}

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

// response converts an HTTP response for recording.
func response(status int, h http.Header, body []byte) *Response {
	r := &Response{Status: status, Headers: responseHeaders(h)}
	switch {
	case strings.HasPrefix(h.Get("Content-Type"), "text/event-stream"):
		r.SSE = string(body)
	case json.Valid(body):
		r.Body = body
	case utf8.Valid(body):
		r.Text = string(body)
	default:
		r.Binary = body
	}
	return r
}

// bytes returns the body of the response.
func (r *Response) bytes() []byte {
	switch {
	case r.SSE != "":
		return []byte(r.SSE)
	case r.Body != nil:
		return r.Body
	case r.Binary != nil:
		return r.Binary
	}
	return []byte(r.Text)
}

// jsonBody returns the body of a request if it is JSON, otherwise its text as a JSON string.
func jsonBody(body []byte) json.RawMessage {
	if json.Valid(body) {
		return body
	}
	js, _ := json.Marshal(string(body)) // a string always encodes
	return js
}

func number(n int) string { return fmt.Sprintf("%04d.json", n) }

func numberOf(name string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(name, ".json")) // fileName matches the name
	return n
}
