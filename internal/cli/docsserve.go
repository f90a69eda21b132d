package cli

import (
	"cmp"
	"context"
	"html"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/docs"
)

// docsFlags are the flags of tenon docs.
type docsFlags struct {
	serve  bool
	site   string
	listen string
}

// docsAddress is where tenon docs --serve listens by default; make docs-site writes it into sitemaps.
const docsAddress = "127.0.0.1:8421"

// docsPolicy lets a page of the documentation load only its own files, whatever is in the folder.
const docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

// serveDocs serves the documentation until ctx ends: the site in the folder that is named or found, otherwise the pages
// in the binary.
func (a *app) serveDocs(ctx context.Context, f docsFlags) error {
	addr := cmp.Or(f.listen, docsAddress)
	if why := config.CheckListen(addr); why != "" || addr == config.ListenOff {
		return tenon.Errorf(tenon.CodeInvalid, "--listen %s: %s", tenon.Visible(addr),
			cmp.Or(why, "it must be ADDRESS:PORT"))
	}
	if !config.IsLoopback(addr) {
		return tenon.Errorf(tenon.CodeInvalid, "--listen %s: tenon docs serves this machine only: listen on "+
			"127.0.0.1, or publish the site's folder with a web server", tenon.Visible(addr))
	}
	handler, from, err := docsHandler(f.site)
	if err != nil {
		return err
	}
	if c, ok := handler.(*siteHandler); ok {
		defer c.root.Close()
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return tenon.Errorf(tenon.CodeUnreachable, "tenon docs cannot listen on %s: %w; choose another address with "+
			"--listen", addr, err)
	}
	web := webServer(handler, context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	a.note("documentation (%s): %s/", from, urlOf(l))
	select {
	case err := <-failed:
		return tenon.Errorf(tenon.CodeUnreachable, "tenon docs cannot serve any longer: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	shutdown(last, web)
	<-failed
	return nil
}

// docsHandler returns the handler of the documentation and a description of its source. If no folder is named, it looks
// for share/doc/tenon/site beside the folder of the program, where system packages put documents.
func docsHandler(site string) (http.Handler, string, error) {
	folder := site
	if folder == "" {
		own, err := os.Executable()
		if err != nil {
			return pagesHandler(), "pages in the program", nil
		}
		folder = filepath.Join(filepath.Dir(own), "..", "share", "doc", "tenon", "site")
		if _, err := os.Stat(filepath.Join(folder, "index.html")); err != nil {
			return pagesHandler(), "pages in the program", nil
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, "", tenon.Errorf(tenon.CodeNotFound, "--site %s: %w; make docs-site builds a site",
			tenon.Visible(folder), err)
	}
	if info, err := root.Stat("index.html"); err != nil || !info.Mode().IsRegular() {
		_ = root.Close() // nothing was read
		return nil, "", tenon.Errorf(tenon.CodeNotFound, "--site %s: the folder has no index.html, so it is no site; "+
			"make docs-site builds one", tenon.Visible(folder))
	}
	return &siteHandler{root}, tenon.Visible(folder), nil
}

// siteHandler serves the files of a site. Links out of its folder lead nowhere, and folders are not listed.
type siteHandler struct{ root *os.Root }

func (h *siteHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !docsHeaders(w, r) {
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == "" || strings.HasSuffix(r.URL.Path, "/") {
		name = path.Join(name, "index.html")
	}
	file, err := h.root.Open(filepath.FromSlash(name))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err == nil && info.IsDir():
		http.Redirect(w, r, "/"+name+"/", http.StatusFound)
	case err != nil || info.Mode()&fs.ModeType != 0:
		http.NotFound(w, r)
	default:
		http.ServeContent(w, r, name, info.ModTime(), file)
	}
}

// docsHeaders writes the headers of every answer, and refuses methods that do not read.
func docsHeaders(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Content-Security-Policy", docsPolicy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
	return false
}

// pagesHandler serves the pages in the binary: a list, llms.txt, and each page as plain text, at the path that links
// between pages have.
func pagesHandler() http.Handler {
	texts := map[string]string{"/llms.txt": docs.Index()}
	var list strings.Builder
	list.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>tenon</title></head>\n" +
		"<body>\n<h1>tenon</h1>\n<ul>\n")
	for _, p := range docs.Pages() {
		at := "/" + p.Name + ".md"
		if !strings.HasPrefix(p.Name, "guide/") {
			at = "/reference/" + p.Name + ".md"
		}
		texts[at] = p.Text
		list.WriteString("<li><a href=\"" + html.EscapeString(at) + "\">" + html.EscapeString(p.Title) + "</a></li>\n")
	}
	list.WriteString("</ul>\n<p><a href=\"/llms.txt\">llms.txt</a></p>\n</body></html>\n")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !docsHeaders(w, r) {
			return
		}
		text, ok := texts[r.URL.Path]
		switch {
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			text = list.String()
		case !ok:
			http.NotFound(w, r)
			return
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		_, _ = w.Write([]byte(text)) // the client may have left
	})
}
