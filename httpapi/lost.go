package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"strings"
	"sync"
)

// lostStyle is the style sheet of the page for a wrong address. The policy of the page contains its hash.
const lostStyle = `body{font:16px/1.5 ui-sans-serif,system-ui,sans-serif;background:#f6f7f9;color:#18212f;margin:0}` +
	`main{min-height:100vh;box-sizing:border-box;padding:2rem;display:flex;flex-direction:column;align-items:center;` +
	`justify-content:center;gap:.75rem;text-align:center}h1{font-size:1.4rem;margin:0}p{margin:0;color:#5a6577}` +
	`code{overflow-wrap:anywhere}a{color:#1257c9;margin:0 .5rem}@media(prefers-color-scheme:dark){body{` +
	`background:#0e131b;color:#e4e9f1}p{color:#99a5b8}a{color:#7fb2ff}}`

// lostPolicy returns the Content Security Policy of the page. It permits the style by its hash (CSP 3, section 2.3.1).
var lostPolicy = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(lostStyle))
	return "default-src 'none'; frame-ancestors 'none'; img-src 'self'; style-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'"
})

// lostRoute answers a browser at a wrong address with a page that links to the workbench. The page is public and
// reveals nothing. It is separate from the workbench, so that its status can be 404.
var lostRoute = &route{traits: public | noBody, serve: func(c *call) error {
	c.w.Header().Set("Content-Security-Policy", lostPolicy())
	c.sendBytes(http.StatusNotFound, "text/html; charset=utf-8", fmt.Appendf(nil,
		"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"+
			"<meta name=\"viewport\" content=\"width=device-width\">"+
			"<title>Not found - tenon</title><style>%s</style><main><img src=\"/icon.svg\" alt=\"tenon\" width=\"48\">"+
			"<h1>There is no page here</h1><p>There is nothing at <code>%s</code>.</p><p><a href=\"/\">Chat</a>"+
			"<a href=\"/runs\">Runs</a><a href=\"/tools\">Tools</a></p></main></html>\n",
		lostStyle, html.EscapeString(c.req.URL.Path)))
	return nil
}}

// lost reports whether a request for a path without a route comes from a browser that wants a page. Other programs, and
// requests for paths below an API, get an error in the form of the API.
func (a *api) lost(req *http.Request) bool {
	for _, api := range []string{"/api/", "/v1/", "/mcp/"} {
		if strings.HasPrefix(req.URL.Path, api) {
			return false
		}
	}
	return a.cfg.Pages != nil && (req.Method == http.MethodGet || req.Method == http.MethodHead) &&
		strings.Contains(req.Header.Get("Accept"), "text/html")
}
