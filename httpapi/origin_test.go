package httpapi_test

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/web"
)

// TestForeignPages sends to every route, to a page and to an unknown path the requests that a page of another site can
// make a browser send. They have the right token. No request may reach a handler, and the page may not read the answer.
func TestForeignPages(t *testing.T) {
	h, _, _ := serve(t)
	reached := 0
	handler := httpapi.Counted(h, guarded(), func() { reached++ })
	attacks := map[string]struct {
		host   string
		header [][2]string
	}{
		"a rebound name":              {host: "evil.example:8420"},
		"our address as a prefix":     {host: "127.0.0.1.evil.example:8420"},
		"localhost as a prefix":       {host: "localhost.evil.example"},
		"a subdomain of localhost":    {host: "evil.localhost"},
		"an empty name":               {host: ":8420"},
		"a name as the port":          {host: "localhost:evil.example"},
		"a user before the name":      {host: "localhost:8420@evil.example"},
		"the address as a number":     {host: "2130706433:8420"},
		"the address cut short":       {host: "127.1:8420"},
		"the unspecified address":     {host: "0.0.0.0:8420"},
		"the unspecified, as IPv6":    {host: "[::]:8420"},
		"a name behind a dot":         {host: "localhost."},
		"an allowed name as a part":   {host: "tools.example.com.evil.example"},
		"a foreign origin":            {header: [][2]string{{"Origin", "https://evil.example"}}},
		"null":                        {header: [][2]string{{"Origin", "null"}}},
		"an empty origin":             {header: [][2]string{{"Origin", ""}}},
		"a file":                      {header: [][2]string{{"Origin", "file://"}}},
		"an extension":                {header: [][2]string{{"Origin", "chrome-extension://abcdefgh"}}},
		"our address, another port":   {header: [][2]string{{"Origin", "http://127.0.0.1:3000"}}},
		"our port, another address":   {header: [][2]string{{"Origin", "http://127.0.0.2:8420"}}},
		"SEC-F3_our address, https":   {header: [][2]string{{"Origin", "https://127.0.0.1:8420"}}},
		"SEC-F3_a preflight, https":   {header: [][2]string{{"Origin", "https://127.0.0.1:8420"}, {"Access-Control-Request-Method", "POST"}}},
		"localhost for the address":   {header: [][2]string{{"Origin", "http://localhost:8420"}}},
		"the allowed one, http":       {header: [][2]string{{"Origin", "http://tools.example.com"}}},
		"the allowed one, a port":     {header: [][2]string{{"Origin", "https://tools.example.com:8443"}}},
		"the allowed one, a suffix":   {header: [][2]string{{"Origin", "https://tools.example.com.evil.example"}}},
		"the allowed one, a prefix":   {header: [][2]string{{"Origin", "https://evil.tools.example.com"}}},
		"the allowed one, in capital": {header: [][2]string{{"Origin", "https://TOOLS.example.com"}}},
		"a list of origins":           {header: [][2]string{{"Origin", "https://tools.example.com https://evil.example"}}},
		"two, the good one first":     {header: [][2]string{{"Origin", "https://tools.example.com"}, {"Origin", "https://evil.example"}}},
		"two, the good one last":      {header: [][2]string{{"Origin", "https://evil.example"}, {"Origin", "http://127.0.0.1:8420"}}},
		"the good one twice":          {header: [][2]string{{"Origin", "http://127.0.0.1:8420"}, {"Origin", "http://127.0.0.1:8420"}}},
		"a user in the origin":        {header: [][2]string{{"Origin", "http://evil@127.0.0.1:8420"}}},
		"a path in the origin":        {header: [][2]string{{"Origin", "http://127.0.0.1:8420/x"}}},
		"an upgrade":                  {header: [][2]string{{"Origin", "https://evil.example"}, {"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}},
		"an image of another site":    {header: [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "no-cors"}}},
		"an image of another port":    {header: [][2]string{{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Mode", "no-cors"}}},
		"a preflight":                 {header: [][2]string{{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "POST"}}},
		"a preflight of null":         {header: [][2]string{{"Origin", "null"}, {"Access-Control-Request-Method", "POST"}}},
		"a rebound preflight":         {host: "evil.example", header: [][2]string{{"Origin", "http://evil.example"}, {"Access-Control-Request-Method", "POST"}}},
	}
	type target struct{ method, path string }
	targets := []target{{"GET", "/"}, {"GET", "/settings"}, {"GET", "/assets/none.js"}, {"GET", "/none"}, {"POST", "/api/v1/none"}, {"TRACE", "/api/v1/runs"}}
	for _, r := range httpapi.Routes() {
		targets = append(targets, target{r.Method, fill(r.Pattern)}, target{"OPTIONS", fill(r.Pattern)})
	}
	for name, a := range attacks {
		t.Run("SEC-F3_"+name, func(t *testing.T) {
			for _, to := range targets {
				req := httptest.NewRequestWithContext(t.Context(), to.method, "http://127.0.0.1:8420"+to.path, nil)
				req.Header.Set("Authorization", "Bearer "+ownToken)
				req.Host = cmp.Or(a.host, req.Host)
				for _, kv := range a.header {
					req.Header.Add(kv[0], kv[1])
				}
				reached = 0
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, req)
				if w.Code != http.StatusForbidden || reached > 0 {
					t.Errorf("%s %s: status %d, %d handlers reached", to.method, to.path, w.Code, reached)
				}
				for key := range w.Header() {
					if strings.HasPrefix(key, "Access-Control-") {
						t.Errorf("%s %s: the answer has %s", to.method, to.path, key)
					}
				}
			}
		})
	}
}

// TestPreflight checks that CORS preflights let pages of configured origins send requests to every route, and pages of
// other origins to none.
func TestPreflight(t *testing.T) {
	h, _, _ := serve(t)
	reached := 0
	handler := httpapi.Counted(h, guarded(), func() { reached++ })
	ask := func(path, origin, method string, more ...string) *httptest.ResponseRecorder {
		t.Helper()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "http://127.0.0.1:8420"+path, nil)
		req.Header.Set("Origin", origin)
		req.Header.Set("Access-Control-Request-Method", method)
		for i := 0; i+1 < len(more); i += 2 {
			req.Header.Set(more[i], more[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		return w
	}
	const page = "https://tools.example.com"
	for _, r := range httpapi.Routes() {
		path := fill(r.Pattern)
		w := ask(path, page, r.Method, "Access-Control-Request-Headers", "authorization,content-type")
		head := w.Header()
		methods, headers := strings.Split(head.Get("Access-Control-Allow-Methods"), ", "), strings.ToLower(head.Get("Access-Control-Allow-Headers"))
		vary := strings.Join(head.Values("Vary"), ", ")
		switch {
		case w.Code != http.StatusNoContent || head.Get("Access-Control-Allow-Origin") != page || len(head.Values("Access-Control-Allow-Origin")) != 1:
			t.Errorf("%s %s: status %d, origin %q", r.Method, path, w.Code, head.Values("Access-Control-Allow-Origin"))
		case !slices.Contains(methods, r.Method) || slices.Contains(methods, "*") || slices.Contains(methods, "TRACE"):
			t.Errorf("%s %s: methods %v", r.Method, path, methods)
		case !strings.Contains(headers, "authorization") || !strings.Contains(headers, "content-type") || strings.Contains(headers, "*"):
			t.Errorf("%s %s: headers %s", r.Method, path, headers)
		case head.Get("Access-Control-Allow-Credentials") != "" || head.Get("Access-Control-Allow-Private-Network") != "":
			t.Errorf("%s %s: %v", r.Method, path, head)
		case !strings.Contains(vary, "Origin") || !strings.Contains(vary, "Access-Control-Request-Method"):
			t.Errorf("%s %s: Vary %s", r.Method, path, vary)
		case reached > 0 || w.Body.Len() > 0:
			t.Errorf("%s %s: a handler was reached", r.Method, path)
		}
		if w := ask(path, "http://127.0.0.1:8420", r.Method); w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: our own page: %d %v", r.Method, path, w.Code, w.Header())
		}
	}
	if w := ask("/api/v1/runs", page, "POST", "Access-Control-Request-Private-Network", "true"); w.Header().Get("Access-Control-Allow-Private-Network") != "true" {
		t.Errorf("from a public page: %v", w.Header())
	}
	if w := ask("/api/v1/none", page, "POST"); w.Code < 400 {
		t.Errorf("no route: %d", w.Code)
	}
	// Without the headers of a preflight, OPTIONS is treated as a method that no route has.
	req := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "http://127.0.0.1:8420/api/v1/runs", nil)
	w := httptest.NewRecorder()
	if handler.ServeHTTP(w, req); w.Code == http.StatusNoContent {
		t.Errorf("no preflight: %d", w.Code)
	}
}

// TestAnswersForPages checks that a page of a configured origin can read answers and errors.
func TestAnswersForPages(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.New(h, guarded())
	const page = "https://tools.example.com"
	for name, tt := range map[string]struct {
		token, path string
		status      int
	}{
		"answer":    {ownToken, "/api/v1/me", 200},
		"no token":  {"wrong", "/api/v1/me", 401},
		"not found": {ownToken, "/api/v1/runs/run_none", 404},
	} {
		t.Run(name, func(t *testing.T) {
			status, head, body := request(t, handler, "GET", tt.path, "", "", "Authorization", "Bearer "+tt.token, "Origin", page)
			if status != tt.status || head.Get("Access-Control-Allow-Origin") != page || !strings.Contains(strings.Join(head.Values("Vary"), ","), "Origin") {
				t.Errorf("status %d, %v: %s", status, head, body)
			}
			if head.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("credentials are allowed")
			}
		})
	}
	// The response varies by Origin, so that a cache does not give it to another page.
	if _, head, _ := request(t, handler, "GET", "/api/v1/me", "", "", "Authorization", "Bearer "+ownToken); !strings.Contains(strings.Join(head.Values("Vary"), ","), "Origin") || head.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without a page: %v", head)
	}
}

// TestRawHost checks that requests without a Host header, with two of them, or with a host in the request line do not
// reach a route. It uses real connections.
func TestRawHost(t *testing.T) {
	h, _, _ := serve(t)
	cfg := guarded()
	cfg.Pages = web.Files()
	reached := 0
	s := httptest.NewUnstartedServer(httpapi.Counted(h, cfg, func() { reached++ }))
	s.Config.DisableGeneralOptionsHandler = true // as tenon serve has it
	s.Start()
	defer s.Close()
	const auth = "Authorization: Bearer " + ownToken + "\r\nConnection: close\r\n\r\n"
	for name, text := range map[string]string{
		"no Host":               "GET /api/v1/config HTTP/1.1\r\n" + auth,
		"no Host, an old one":   "GET /api/v1/config HTTP/1.0\r\n" + auth,
		"two":                   "GET /api/v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n" + auth,
		"in the line":           "GET http://evil.example/api/v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\n" + auth,
		"in the line, a prefix": "GET http://127.0.0.1.evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n" + auth,
		"a tunnel":              "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n" + auth,
		"a star":                "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n" + auth,
	} {
		t.Run("SEC-F3_"+name, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode < 400 || reached > 0 {
				t.Errorf("status %d, %d handlers reached", res.StatusCode, reached)
			}
		})
	}
}
