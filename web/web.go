// Package web contains the workbench: the pages that tenon serve shows in a browser.
//
//	web/app   the source, in TypeScript: folds the events of the API into pages, stores nothing
//	web/dist  the built files, committed so that go install needs no Node
//	Files     serves dist, an http.Handler
//
// The pages are public: they contain no data and no secret. They load all data from the API, with a token that the
// user enters and that stays in the browser tab. Texts of servers and models are shown as text, never as markup. A
// content security policy blocks scripts and files of other origins, and requests to them. Each page has a URL, such
// as /runs/ID. All these URLs return index.html; any other path is not found.
//
// `make web` rebuilds dist. CI rebuilds it, too, and fails if it differs.
package web

import (
	"bytes"
	"cmp"
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

// Policy is the content security policy of every page. It allows only files of the workbench
// and embedded pictures.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src " +
	"data: blob:; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"object-src 'none'; require-trusted-types-for 'script'"

// pages are the first path elements of the workbench's pages.
var pages = []string{"", "runs", "sessions", "approvals", "servers", "tools", "prompts", "resources", "workflows",
	"tables", "clients", "stats", "doctor", "settings"}

// file is one built file. It is compressed at the first request that accepts compression.
type file struct {
	kind   string
	plain  []byte
	once   sync.Once
	packed []byte
}

// Handler serves the built files. It is safe for concurrent use.
type Handler struct{ files map[string]*file }

// Files returns the handler of the embedded files.
func Files() *Handler {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return Of(built)
}

// Of returns a handler for another set of built files. It reads all files at once.
func Of(built fs.FS) *Handler {
	h := &Handler{files: map[string]*file{}}
	_ = fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // an unreadable file is not served
		}
		if b, err := fs.ReadFile(built, name); err == nil {
			h.files["/"+name] = &file{kind: kindOf(name), plain: b}
		}
		return nil
	})
	return h
}

// kindOf returns the media type for a file name. It does not use the system's tables, which differ between systems.
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
	return cmp.Or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream")
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
	head.Add("Vary", "Accept-Encoding")
	if kept { // its name contains a hash of its content
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
	_, _ = w.Write(body) // the browser may have disconnected
}

// named matches the files that a page refers to. The links of its navigation are pages, which are not part of it.
var named = regexp.MustCompile(`<(?:script|link|img)[^>]* (?:src|href)="([^"]+)"`)

// FirstPage returns the compressed size in bytes of the first page and of every file that it
// refers to. It returns an error if one of these files does not exist.
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
		panic(err) // the level is valid, and a buffer never fails
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
