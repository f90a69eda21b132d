package httpapi

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// lostRoute is where a browser gets to by a wrong address: a page that says so and leads to
// the workbench. It tells nothing that needs a token, and is no page of the workbench, so
// that its status can be the one that it is.
var lostRoute = &route{open: true, none: true, serve: func(c *call) error {
	c.w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	c.sendBytes(http.StatusNotFound, "text/html; charset=utf-8", fmt.Appendf(nil,
		"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Not found - tenon</title><p>There is nothing at %s. <a href=\"/\">To the workbench</a></p></html>\n",
		html.EscapeString(c.req.URL.Path)))
	return nil
}}

// lost reports whether a person looks for a page where there is nothing; programs, and whoever
// looks below the paths of an API, get an error in the API's form.
func (a *api) lost(req *http.Request) bool {
	for _, api := range []string{"/api/", "/v1/", "/mcp/"} {
		if strings.HasPrefix(req.URL.Path, api) {
			return false
		}
	}
	return a.cfg.Pages != nil && (req.Method == http.MethodGet || req.Method == http.MethodHead) && strings.Contains(req.Header.Get("Accept"), "text/html")
}
