package httpapi

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// lostRoute answers a browser at a wrong address with a page that links to the workbench. The page is public and
// reveals nothing. It is separate from the workbench, so that its status can be 404.
var lostRoute = &route{traits: public | noBody, serve: func(c *call) error {
	c.w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	c.sendBytes(http.StatusNotFound, "text/html; charset=utf-8", fmt.Appendf(nil,
		"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Not found - tenon</title><p>There is "+
			"nothing at %s. <a href=\"/\">To the workbench</a></p></html>\n",
		html.EscapeString(c.req.URL.Path)))
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
