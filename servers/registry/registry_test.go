package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// paged returns a handler that lists n servers in pages.
func paged(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var from, size int
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &from)
		_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &size)
		var list []any
		for i := from; i < min(from+size, n); i++ {
			official := map[string]any{"io.modelcontextprotocol.registry/official": map[string]any{"status": "active"}}
			list = append(list, map[string]any{"_meta": official, "server": map[string]any{
				"name": fmt.Sprintf("io.example/s%d", i), "description": "x", "version": "1"}})
		}
		meta := map[string]any{"count": len(list)}
		if from+size < n {
			meta["nextCursor"] = fmt.Sprint(from + size)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"servers": list, "metadata": meta})
	}
}

func TestSearch(t *testing.T) {
	write := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		limit   int
		want    int
		more    bool
		code    tenon.Code
	}{
		"one page":   {paged(3), 20, 3, false, ""},
		"many pages": {paged(250), 1000, 250, false, ""},
		"cut":        {paged(250), 120, 120, true, ""},
		"none":       {write(`{"servers":null,"metadata":{}}`), 5, 0, false, ""},
		"the older shape": {write(
			`{"servers":[{"name":"a/b","description":"x","version":"1"}],"metadata":{"next_cursor":""}}`), 5, 1,
			false, ""},
		"a cursor again": {write(`{"servers":[{"server":{"name":"a/b"}}],"metadata":{"nextCursor":"x"}}`), 500,
			2, true, ""},
		"endless":         {endless(), 1 << 20, 0, true, ""},
		"no registry":     {write(`<html>`), 5, 0, false, tenon.CodeProtocol},
		"some other JSON": {write(`{"ok":true}`), 5, 0, false, tenon.CodeProtocol},
		"not there":       {http.NotFound, 5, 0, false, tenon.CodeProtocol},
		"refused": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, 5, 0, false,
			tenon.CodeAuth},
		"too often": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, 5, 0, false,
			tenon.CodeRateLimited},
		"broken": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, 5, 0, false,
			tenon.CodeUnreachable},
		"a huge page": {write(`{"servers":["` + strings.Repeat("x", maxPage) + `"]}`), 5, 0, false,
			tenon.CodeTooLarge},
		"another origin": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, 5, 0, false, tenon.CodeUnreachable},
		"names of nothing": {write(`{"servers":[{"server":{}},{}]}`), 5, 0, false, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			defer s.Close()
			list, more, err := Search(context.Background(), Config{URL: s.URL}, "x", tt.limit)
			if tenon.ErrorCode(err) != tt.code && (err != nil || tt.code != "") {
				t.Fatalf("error %v, want %s", err, tt.code)
			}
			if len(list) != tt.want || more != tt.more {
				t.Errorf("%d servers, more %v; want %d, %v", len(list), more, tt.want, tt.more)
			}
		})
	}
}

// endless returns a handler whose pages are empty and always name a next page.
func endless() http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = fmt.Fprintf(w, `{"servers":[],"metadata":{"nextCursor":"%d"}}`, n)
	}
}

func TestEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"https://r.example": "https://r.example/v0.1/servers", "https://r.example/": "https://r.example/v0.1/servers",
		"https://r.example/v0":         "https://r.example/v0/servers",
		"https://r.example/x/v0.1/":    "https://r.example/x/v0.1/servers",
		"https://r.example/v0/servers": "https://r.example/v0/servers", "ftp://x": "", "": "", "x": "",
	} {
		u, err := endpoint(in)
		if want == "" {
			if tenon.ErrorCode(err) != tenon.CodeConfig {
				t.Errorf("%q: %v", in, err)
			}
		} else if err != nil || u.String() != want {
			t.Errorf("%q is %v, %v, want %s", in, u, err, want)
		}
	}
}

func TestCommand(t *testing.T) {
	tests := map[string]struct{ server, want string }{
		"npm": {`{"name":"io.example/files","packages":[{
			"registryType":"npm","identifier":"@x/files","version":"1.2.0","transport":{"type":"stdio"},
			"packageArguments":[{"type":"positional","valueHint":"folder","isRequired":true},
				{"type":"named","name":"--mode","value":"ro"}],
			"environmentVariables":[{"name":"API_KEY","isSecret":true,"isRequired":true},
				{"name":"MODE","default":"ro"},{"name":"OTHER"}]}]}`,
			"tenon servers add --env API_KEY=${API_KEY} --env MODE=ro files -- npx -y @x/files@1.2.0 <folder> --mode " +
				"ro"},
		"pypi": {`{"name":"io.example/py","packages":[{"registryType":"pypi","identifier":"py-server","version":"2",` +
			`"transport":{"type":"stdio"}}]}`,
			"tenon servers add py -- uvx py-server@2"},
		"oci": {`{"name":"io.example/img","packages":[{"registryType":"oci","identifier":"docker.io/x/img:1",` +
			`"transport":{"type":"stdio"},"environmentVariables":[{"name":"T","isSecret":true}]}]}`,
			"tenon servers add --env T=${T} img -- docker run -i --rm -e T docker.io/x/img:1"},
		"remote": {`{"name":"io.example/web","remotes":[{"type":"streamable-http","url":"https://w.example/mcp",` +
			`"headers":[{"name":"X-Api-Key","isSecret":true}]}]}`,
			"tenon servers add --transport http --header X-Api-Key: ${X_API_KEY} web https://w.example/mcp"},
		"neither": {`{"name":"io.example/no","packages":[{"registryType":"mcpb","identifier":"x",` +
			`"transport":{"type":"stdio"}}]}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var s Server
			if err := json.Unmarshal([]byte(tt.server), &s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Join(command(s), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
