package model_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// fileServer plays the file APIs of the providers.
type fileServer struct {
	t       *testing.T
	calls   []string
	data    []byte // what arrived
	fail    int    // how many pieces fail after half of their bytes
	pending int    // how often a file is still processed
	state   string // the last state
}

func (s *fileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	command := r.Header.Get("X-Goog-Upload-Command")
	s.calls = append(s.calls, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+command))
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.URL.Path == "/upload/v1beta/files" && command == "start":
		if r.Header.Get("X-Goog-Upload-Header-Content-Type") != "video/mp4" || !strings.Contains(string(body), `"displayName":"tenon-x"`) {
			s.t.Errorf("%v %s", r.Header, body)
		}
		w.Header().Set("X-Goog-Upload-URL", "http://"+r.Host+"/upload/session")
	case r.URL.Path == "/upload/session" && command == "query":
		w.Header().Set("X-Goog-Upload-Size-Received", fmt.Sprint(len(s.data)))
	case r.URL.Path == "/upload/session":
		if at := r.Header.Get("X-Goog-Upload-Offset"); at != fmt.Sprint(len(s.data)) {
			s.t.Errorf("a piece at %s of %d", at, len(s.data))
		}
		if s.fail > 0 {
			s.fail--
			s.data = append(s.data, body[:len(body)/2]...)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.data = append(s.data, body...)
		if strings.Contains(command, "finalize") {
			fmt.Fprint(w, `{"file":{"name":"files/f1","state":"PROCESSING"}}`)
		}
	case r.Method == http.MethodGet && r.URL.Path == "/v1beta/files/f1":
		if s.pending--; s.pending > 0 {
			fmt.Fprint(w, `{"name":"files/f1","state":"PROCESSING"}`)
			return
		}
		fmt.Fprintf(w, `{"name":"files/f1","state":%q,"error":{"message":"no frames"}}`, s.state)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/files":
		if r.URL.Query().Get("after_id") == "" {
			fmt.Fprint(w, `{"data":[{"id":"f0","filename":"other"}],"has_more":true,"last_id":"f0"}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"f1","filename":"tenon-x"}],"has_more":false}`)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/files":
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			s.t.Errorf("%v", err)
			return
		}
		f := r.MultipartForm.File["file"][0]
		in, _ := f.Open()
		s.data, _ = io.ReadAll(in)
		s.calls = append(s.calls, fmt.Sprint(f.Filename, " ", f.Header.Get("Content-Type"), " ", r.MultipartForm.Value, " ",
			r.Header.Get("Anthropic-Beta")))
		fmt.Fprint(w, `{"id":"f1"}`)
	case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/gone"):
		http.Error(w, `{"error":{"message":"not found"}}`, http.StatusNotFound)
	case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/kept"):
		http.Error(w, `{"error":{"message":"try later"}}`, http.StatusInternalServerError)
	case r.Method == http.MethodDelete:
		fmt.Fprint(w, `{}`)
	default:
		http.NotFound(w, r)
	}
}

func openFiles(t *testing.T, s *fileServer, cfg model.Config) *model.Files {
	t.Helper()
	s.t = t
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	cfg.Model, cfg.APIKey, cfg.BaseURL = "m", tenon.NewSecret("k"), server.URL
	if cfg.Provider == "openai" {
		cfg.BaseURL += "/v1"
	}
	yes := true
	cfg.Quirks.Documents = &yes
	f, err := model.OpenFiles(cfg, model.Env{Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFiles: files are uploaded in the form of each provider, and deleted.
func TestFiles(t *testing.T) {
	const big = 20 << 20
	for name, c := range map[string]struct {
		provider, mime string
		size           int
		server         fileServer
		want           []string // calls
		err            string
	}{
		"MD-7_anthropic": {"anthropic", "application/pdf", 9, fileServer{}, []string{"POST /v1/files",
			"tenon-x application/pdf map[] files-api-2025-04-14"}, ""},
		"MD-7_openai": {"openai", "application/pdf", 9, fileServer{}, []string{"POST /v1/files",
			"tenon-x application/pdf map[expires_after[anchor]:[created_at] expires_after[seconds]:[172800] purpose:[user_data]] "}, ""},
		"MD-7_openai_image": {"openai", "image/png", 9, fileServer{}, []string{"POST /v1/files",
			"tenon-x image/png map[expires_after[anchor]:[created_at] expires_after[seconds]:[172800] purpose:[vision]] "}, ""},
		"MD-7_gemini": {"gemini", "video/mp4", big, fileServer{pending: 2, state: "ACTIVE"}, []string{"POST /upload/v1beta/files start",
			"POST /upload/session upload", "POST /upload/session upload", "POST /upload/session upload, finalize",
			"GET /v1beta/files/f1", "GET /v1beta/files/f1"}, ""},
		"MD-7_gemini_resumed": {"gemini", "video/mp4", 9 << 20, fileServer{fail: 1, state: "ACTIVE"}, []string{"POST /upload/v1beta/files start",
			"POST /upload/session upload", "POST /upload/session query", "POST /upload/session upload, finalize", "GET /v1beta/files/f1"}, ""},
		"MD-7_gemini_gives_up": {"gemini", "video/mp4", 100, fileServer{fail: 9}, nil, "503"},
		"MD-7_gemini_failed": {"gemini", "video/mp4", 100, fileServer{state: "FAILED"}, []string{"POST /upload/v1beta/files start",
			"POST /upload/session upload, finalize", "GET /v1beta/files/f1", "DELETE /v1beta/files/f1"}, "cannot be processed: no frames"},
	} {
		t.Run(name, func(t *testing.T) {
			f := openFiles(t, &c.server, model.Config{Provider: c.provider})
			data := []byte(strings.Repeat("0123456789", c.size/10+1)[:c.size])
			id, err := f.Upload(t.Context(), "tenon-x", c.mime, data)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v", err)
				}
			} else if err != nil || id != "f1" || string(c.server.data) != string(data) {
				t.Errorf("%q, %v, %d bytes", id, err, len(c.server.data))
			}
			if c.want != nil && !slices.Equal(c.server.calls, c.want) {
				t.Errorf("%q", c.server.calls)
			}
		})
	}
}

// TestDeleteFile: a file that is gone is no error, and a file without a record is found by its name.
func TestDeleteFile(t *testing.T) {
	s := &fileServer{}
	f := openFiles(t, s, model.Config{Provider: "anthropic"})
	if err := f.Delete(t.Context(), "gone"); err != nil {
		t.Error(err)
	}
	if err := f.Delete(t.Context(), "kept"); err == nil || !strings.Contains(err.Error(), "try later") {
		t.Errorf("%v", err)
	}
	if id, err := f.Find(t.Context(), "tenon-x"); id != "f1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := f.Find(t.Context(), "tenon-y"); id != "" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// TestHasFiles: MD-7, only providers with a file API have uploads.
func TestHasFiles(t *testing.T) {
	for name, want := range map[string]bool{"anthropic": true, "openai": true, "gemini": true, "vertex": false, "bedrock": false,
		"ollama": false, "groq": false} {
		c := model.Config{Provider: name, Model: "m"}
		if c.HasFiles() != want || (c.UploadMin() > 0) != want {
			t.Errorf("%s: %t, %d", name, c.HasFiles(), c.UploadMin())
		}
		c.Uploads = model.UploadAlways
		if err := c.Check(); want != (err == nil) && name != "vertex" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
