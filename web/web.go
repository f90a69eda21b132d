// Package web is the workbench: the pages that tenon serve shows in a browser.
//
//	web/app   the source, in TypeScript: an events-folding view of the API, no state of its own
//	web/dist  what is built of it, committed, so that go install needs no Node
//	Files     dist as an http.Handler
//
// The pages are public: they hold no data and no secret. All that they show they ask
// the API for, with the token that a person gave them, which stays in the tab. What
// servers and models wrote is data to them: it becomes text, never markup, and a
// content security policy refuses everything that would come from elsewhere, run, or
// be sent away. Pages have addresses of their own (/runs/ID), which all lead to
// index.html; what none of them is at is not found.
//
// `make web` builds dist anew; CI does so too and fails where it differs.
package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// Policy is the content security policy of every page: nothing but our own files and
// pictures that are part of what is shown.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'"

// pages are the first parts of the addresses that the workbench has itself.
var pages = []string{"", "runs", "sessions", "approvals", "servers", "tools", "workflows", "tables", "stats", "doctor", "settings"}

// file is one built file, compressed when it is first asked for so.
type file struct {
	kind   string
	plain  []byte
	once   sync.Once
	packed []byte
}

// Handler serves the built files. It is safe for concurrent use.
type Handler struct{ files map[string]*file }

// Files returns the handler of the files that are part of this program.
func Files() *Handler {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return Of(built)
}

// Of serves built files from elsewhere, which are read at once.
func Of(built fs.FS) *Handler {
	h := &Handler{files: map[string]*file{}}
	_ = fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be read is not served
		}
		if b, err := fs.ReadFile(built, name); err == nil {
			h.files["/"+name] = &file{kind: kindOf(name), plain: b}
		}
		return nil
	})
	return h
}

// kindOf does not ask the system, whose tables differ.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	if k := mime.TypeByExtension(path.Ext(name)); k != "" {
		return k
	}
	return "application/octet-stream"
}

// Has reports whether a page or a file is at a path.
func (h *Handler) Has(p string) bool { f, _ := h.at(p); return f != nil }

func (h *Handler) at(p string) (f *file, kept bool) {
	if strings.HasPrefix(p, "/assets/") || p == "/icon.svg" {
		return h.files[p], strings.HasPrefix(p, "/assets/")
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	if slices.Contains(pages, first) {
		return h.files["/index.html"], false
	}
	return nil, false
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	f, kept := h.at(req.URL.Path)
	if f == nil {
		http.NotFound(w, req)
		return
	}
	head := w.Header()
	head.Set("Content-Type", f.kind)
	head.Set("Content-Security-Policy", Policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	head.Set("Vary", "Accept-Encoding")
	if kept { // its name says what is in it
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		head.Set("Cache-Control", "no-cache")
	}
	body := f.plain
	if len(body) > 1024 && acceptsGzip(req) {
		f.once.Do(f.pack)
		body = f.packed
		head.Set("Content-Encoding", "gzip")
	}
	if req.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // a browser that has gone needs no answer
}

// named are the files that a page names.
var named = regexp.MustCompile(`(?:src|href)="([^"]+)"`)

// FirstPage returns how many bytes a browser reads for the first page, compressed: the
// page and every file that it names. Error: it names one that is not here.
func (h *Handler) FirstPage() (int, error) {
	page := h.files["/index.html"]
	if page == nil {
		return 0, errors.New("there is no index.html")
	}
	page.once.Do(page.pack)
	total := len(page.packed)
	for _, m := range named.FindAllSubmatch(page.plain, -1) {
		f := h.files[string(m[1])]
		if f == nil {
			return 0, fmt.Errorf("index.html names %s, which is not here", m[1])
		}
		f.once.Do(f.pack)
		total += len(f.packed)
	}
	return total, nil
}

func (f *file) pack() {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(f.plain)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // neither the level nor a buffer can fail
	}
	f.packed = b.Bytes()
}

func acceptsGzip(req *http.Request) bool {
	for part := range strings.SplitSeq(req.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(name, "gzip") && strings.ReplaceAll(q, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
