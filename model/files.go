package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// Files are the files that a provider stores for requests. Sources: the types and services of anthropic-sdk-go
// (beta files), openai-go (files) and go-genai (files), and the pages "Files API" of these providers. Gemini deletes
// files after 48 hours by itself, OpenAI is asked to. Anthropic keeps files until they are deleted.
type Files struct {
	c    *Client
	wire string
}

// The bounds of uploads.
const (
	uploadChunk  = 8 << 20 // bytes of a request of a resumable upload, as in go-genai
	uploadTries  = 3       // attempts of a piece of a resumable upload
	processing   = 10 * time.Minute
	processPause = time.Second // between two questions whether a file is ready; doubled up to 8 times
)

// filesBeta is the value of the header anthropic-beta for files.
const filesBeta = "files-api-2025-04-14"

// HasFiles reports whether the provider of a model stores files for requests to it.
func (c Config) HasFiles() bool {
	switch c.Wire() {
	case WireAnthropic:
		return c.Provider == "anthropic"
	case WireGemini:
		return c.Provider == "gemini"
	case WireChat, WireResponses:
		return c.ResolvedQuirks().Documents
	}
	return false
}

// UploadMin returns the size of all images and files in a request, in bytes of base64, from which they are uploaded. 0
// means never. By default, only files are uploaded with which the request would be too large: the limits are 20 MB
// (Gemini, now 100 MB), 32 MB (Anthropic) and 50 MB (OpenAI).
func (c Config) UploadMin() int {
	switch {
	case c.Uploads == UploadNever || !c.HasFiles():
		return 0
	case c.Uploads == UploadAlways:
		return 1
	case c.Wire() == WireGemini:
		return 14 << 20
	case c.Wire() == WireAnthropic:
		return 24 << 20
	}
	return 40 << 20
}

// OpenFiles returns the files of a model's provider. Errors: config (the provider has none), and the errors of
// [NewClient].
func OpenFiles(cfg Config, env Env) (*Files, error) {
	wire := cfg.Wire()
	if !cfg.HasFiles() {
		return nil, tenon.Errorf(tenon.CodeConfig, "provider %s stores no files for requests", cfg.Provider)
	}
	c, err := NewClient(cfg, wire, env)
	if err != nil {
		return nil, err
	}
	return &Files{c: c, wire: wire}, nil
}

// Upload stores a file at the provider and waits until requests can name it. The returned id is the part of
// [tenon.Part.URI] after "file-id:". name identifies the file in the provider's lists. Errors are errors of models.
func (f *Files) Upload(ctx context.Context, name, mime string, data []byte) (id string, err error) {
	var fail *Failure
	switch f.wire {
	case WireGemini:
		id, fail = f.uploadGemini(ctx, name, mime, data)
	default:
		id, fail = f.uploadForm(ctx, name, mime, data)
	}
	if fail != nil {
		return "", f.c.fail(fail, 1)
	}
	if id == "" {
		return "", f.c.fail(&Failure{Code: tenon.CodeProtocol, Message: "the answer to an upload has no id"}, 1)
	}
	return id, nil
}

// Delete deletes a file. A file that does not exist is no error.
func (f *Files) Delete(ctx context.Context, id string) error {
	resp, fail := f.do(ctx, http.MethodDelete, f.address("/files/"+escapeID(id)), nil, nil)
	if fail != nil && fail.Status != http.StatusNotFound &&
		(f.wire != WireGemini || fail.Status != http.StatusForbidden) {
		return f.c.fail(fail, 1)
	}
	if fail == nil {
		resp.stop()
	}
	return nil // Gemini answers 403 for a file that was deleted
}

// Find returns the id of the file with a name, or "" if there is none, after a crash between an upload and its record.
// Only Anthropic's files are searched, because the others expire.
func (f *Files) Find(ctx context.Context, name string) (id string, err error) {
	if f.wire != WireAnthropic {
		return "", nil
	}
	after := ""
	for range maxPages {
		var page struct {
			Data []struct {
				ID   string `json:"id"`
				Name string `json:"filename"`
			} `json:"data"`
			More bool   `json:"has_more"`
			Last string `json:"last_id"`
		}
		if fail := f.read(ctx, http.MethodGet, f.address("/files?limit=1000"+after), nil, nil, &page); fail != nil {
			return "", f.c.fail(fail, 1)
		}
		for _, e := range page.Data {
			if e.Name == name {
				return e.ID, nil
			}
		}
		if !page.More || page.Last == "" {
			break
		}
		after = "&after_id=" + url.QueryEscape(page.Last)
	}
	return "", nil
}

// escapeID returns the path of an id. Ids of Gemini begin with "files/".
func escapeID(id string) string { return url.PathEscape(strings.TrimPrefix(id, "files/")) }

// address returns the address of a path of the API.
func (f *Files) address(path string) string {
	switch f.wire {
	case WireAnthropic:
		return join(strings.TrimSuffix(f.c.cfg.BaseURL, "/v1"), "/v1"+path)
	case WireGemini:
		return join(strings.TrimSuffix(f.c.cfg.BaseURL, "/v1beta"), "/v1beta"+path)
	}
	base := strings.TrimSuffix(strings.TrimSuffix(f.c.cfg.BaseURL, "/chat/completions"), "/responses")
	return join(base, path)
}

// answer is an answer whose body is open.
type fileAnswer struct {
	*http.Response
	watch *watch
}

func (a fileAnswer) stop() {
	_ = a.Body.Close() // the rest does not matter
	a.watch.stop()
}

// do makes one request. The caller calls stop of a successful answer.
func (f *Files) do(ctx context.Context, method, address string, h http.Header, body []byte) (fileAnswer, *Failure) {
	w := newWatch(ctx, f.c.cfg.Timeout)
	if h = h.Clone(); h == nil {
		h = http.Header{}
	}
	both := f.c.cfg.ResolvedQuirks().KeyHeader
	key := func(h http.Header, key string) {
		switch f.wire {
		case WireAnthropic:
			h.Set("X-Api-Key", key)
		case WireGemini:
			h.Set("X-Goog-Api-Key", key)
		default:
			h.Set("Authorization", "Bearer "+key)
			if both {
				h.Set("Api-Key", key)
			}
		}
	}
	if f.wire == WireAnthropic {
		h.Set(betaHeader, filesBeta)
	}
	resp, fail := f.c.send(ctx, w, method, address, body, Exchange{Key: key, Header: h, Body: &Body{}})
	if fail != nil {
		w.stop()
	}
	return fileAnswer{resp, w}, fail
}

// read makes one request and decodes its answer.
func (f *Files) read(ctx context.Context, method, address string, h http.Header, body []byte, answer any) *Failure {
	resp, fail := f.do(ctx, method, address, h, body)
	if fail != nil {
		return fail
	}
	defer resp.stop()
	return f.c.readListing(ctx, resp.watch, resp.Response, nil, answer)
}

// uploadForm uploads a file in a form (Anthropic and OpenAI). OpenAI deletes it by itself if tenon cannot.
func (f *Files) uploadForm(ctx context.Context, name, mime string, data []byte) (string, *Failure) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	if f.wire != WireAnthropic {
		purpose := "user_data"
		if strings.HasPrefix(mime, "image/") {
			purpose = "vision"
		}
		for _, field := range [][2]string{{"purpose", purpose}, {"expires_after[anchor]", "created_at"},
			{"expires_after[seconds]", strconv.Itoa(int((48 * time.Hour).Seconds()))}} {
			if m.WriteField(field[0], field[1]) != nil {
				return "", Broken("the form cannot be written")
			}
		}
	}
	part, err := m.CreatePart(textproto.MIMEHeader{"Content-Type": {mime}, "Content-Disposition": {
		fmt.Sprintf(`form-data; name="file"; filename=%q`, name)}})
	if err == nil {
		_, err = part.Write(data)
	}
	if err = errors.Join(err, m.Close()); err != nil {
		return "", Broken("the form cannot be written")
	}
	var answer struct {
		ID string `json:"id"`
	}
	fail := f.read(ctx, http.MethodPost, f.address("/files"), http.Header{"Content-Type": {m.FormDataContentType()}},
		b.Bytes(), &answer)
	return answer.ID, fail
}

// geminiFile is a file of Gemini's API.
type geminiFile struct {
	Name  string `json:"name"` // files/ID
	State string `json:"state"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// uploadGemini uploads a file in pieces, each of which is sent again from the place that has arrived, and waits until
// the file is processed. Videos are PROCESSING for a while.
func (f *Files) uploadGemini(ctx context.Context, name, mime string, data []byte) (string, *Failure) {
	start, err := json.Marshal(map[string]any{"file": map[string]string{"displayName": name}})
	if err != nil {
		return "", Broken("the request cannot be written")
	}
	resp, fail := f.do(ctx, http.MethodPost, join(strings.TrimSuffix(f.c.cfg.BaseURL, "/v1beta"),
		"/upload/v1beta/files"), http.Header{"X-Goog-Upload-Protocol": {"resumable"},
		"X-Goog-Upload-Command":               {"start"},
		"X-Goog-Upload-Header-Content-Length": {strconv.Itoa(len(data))}, "X-Goog-Upload-Header-Content-Type": {mime}},
		start)
	if fail != nil {
		return "", fail
	}
	address := resp.Header.Get("X-Goog-Upload-URL")
	resp.stop()
	if !f.sameSite(address) {
		return "", &Failure{Code: tenon.CodeProtocol, Message: "the address for an upload is missing, or it is not " +
			"the provider's: '" + Visible(address) + "'"}
	}
	var answer struct {
		File geminiFile `json:"file"`
	}
	for at, tries := 0, 0; ; {
		end, command := min(at+uploadChunk, len(data)), "upload"
		if end == len(data) {
			command = "upload, finalize"
		}
		h := http.Header{"X-Goog-Upload-Command": {command}, "X-Goog-Upload-Offset": {strconv.Itoa(at)},
			"Content-Type": {"application/octet-stream"}}
		if end == len(data) {
			fail = f.read(ctx, http.MethodPost, address, h, data[at:end], &answer)
		} else if resp, fail = f.do(ctx, http.MethodPost, address, h, data[at:end]); fail == nil {
			resp.stop()
		}
		switch {
		case fail == nil && end == len(data):
			return f.processed(ctx, answer.File)
		case fail == nil:
			at, tries = end, 0
			continue
		}
		if tries++; tries >= uploadTries || !fail.Retry || ctx.Err() != nil {
			return "", fail
		}
		if err := f.c.env.Sleep(ctx, processPause<<tries); err != nil {
			return "", ended(err)
		}
		if at, fail = f.received(ctx, address, at, len(data)); fail != nil {
			return "", fail
		}
	}
}

// received asks how many bytes of an upload have arrived. It returns at if the answer does not say it.
func (f *Files) received(ctx context.Context, address string, at, size int) (int, *Failure) {
	resp, fail := f.do(ctx, http.MethodPost, address, http.Header{"X-Goog-Upload-Command": {"query"}}, []byte{})
	if fail != nil {
		return at, fail
	}
	defer resp.stop()
	n, err := strconv.Atoi(resp.Header.Get("X-Goog-Upload-Size-Received"))
	if err != nil || n < 0 || n > size {
		return at, nil
	}
	return n, nil
}

// sameSite reports whether bytes of a file may be sent to an address that the provider named.
func (f *Files) sameSite(address string) bool {
	to, err := url.Parse(address)
	own, _ := url.Parse(f.c.cfg.BaseURL)
	return err == nil && own != nil && to.Scheme == own.Scheme && to.Host == own.Host && to.Host != ""
}

// processed waits until a file can be used, and returns its id. It deletes a file that cannot be processed.
func (f *Files) processed(ctx context.Context, file geminiFile) (string, *Failure) {
	id := strings.TrimPrefix(file.Name, "files/")
	if id == "" {
		return "", nil
	}
	pause, waited := processPause, time.Duration(0)
	for file.State == "PROCESSING" {
		if waited > processing {
			return "", &Failure{Code: tenon.CodeTimeout, Message: fmt.Sprintf("the file is still processed after %s",
				processing)}
		}
		if err := f.c.env.Sleep(ctx, pause); err != nil {
			return "", ended(err)
		}
		waited += pause
		pause = min(2*pause, 8*processPause)
		if fail := f.read(ctx, http.MethodGet, f.address("/files/"+escapeID(id)), nil, nil, &file); fail != nil {
			return "", fail
		}
	}
	if file.State == "FAILED" {
		_ = f.Delete(ctx, id) // it expires otherwise
		return "", &Failure{Code: tenon.CodeModel,
			Message: "the file cannot be processed: " + Visible(file.Error.Message)}
	}
	return id, nil
}
