package host_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// TestUX6_KnownLists checks the lists of prompts and resources of a server that hangs after it was listed, and of one
// that was never listed: what is known comes without a request to either, with its time.
func TestUX6_KnownLists(t *testing.T) {
	to, err := url.Parse(overHTTP(t, "--prompts"))
	if err != nil {
		t.Fatal(err)
	}
	var hangs atomic.Bool
	asked := make(chan string, 100)
	at := *to
	at.Path = ""
	proxy := httputil.NewSingleHostReverseProxy(&at)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hangs.Load() {
			proxy.ServeHTTP(w, r)
			return
		}
		asked <- r.URL.Query().Get("of")
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
		<-r.Context().Done()
	}))
	t.Cleanup(front.Close)
	home := t.TempDir()

	h := openWithServers(t, home, front.URL+to.Path, "old")
	prompts, problems, err := h.Servers().Context().Prompts(t.Context())
	if err != nil || problems != nil || len(prompts) == 0 {
		t.Fatal(prompts, problems, err)
	}
	resources, problems, err := h.Servers().Context().Resources(t.Context())
	if err != nil || problems != nil || len(resources) == 0 {
		t.Fatal(resources, problems, err)
	}
	if k, err := h.Servers().Context().Known().StoredPrompts(t.Context()); err != nil || len(k.Items) != len(prompts) ||
		k.Listed.IsZero() {
		t.Errorf("of a connected server: %+v, %v", k, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	hangs.Store(true)
	h = openWithServers(t, home, front.URL+to.Path, "new", "old")
	defer func() { _ = h.Close() }()
	known := h.Servers().Context().Known()
	p, err := known.StoredPrompts(t.Context())
	if err != nil || !slices.Equal(p.Unlisted, []string{"new"}) || len(p.Items) != len(prompts) || p.Listed.IsZero() ||
		p.Items[0].Server != "old" || p.Items[0].Name != prompts[0].Name {
		t.Errorf("stored prompts: %+v, %v", p, err)
	}
	r, err := known.StoredResources(t.Context())
	if err != nil || !slices.Equal(r.Unlisted, []string{"new"}) || len(r.Items) != len(resources) {
		t.Errorf("stored resources: %+v, %v", r, err)
	}
	if p, err = known.Prompts(t.Context(), "old"); err != nil || len(p.Items) != len(prompts) || p.Unlisted != nil {
		t.Errorf("known prompts: %+v, %v", p, err)
	}
	if len(asked) > 0 {
		t.Errorf("server '%s' was asked", <-asked)
	}

	// Only the server that was never listed is waited for.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := known.Resources(ctx)
		done <- err
	}()
	if name := <-asked; name != "new" {
		t.Errorf("server '%s' was asked", name)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a server that hangs has answered")
	}
}

// TestUX6_LateServers checks that a server which did not start in time is waited for once: later lists have its error
// at once, unless it is named or all servers are asked.
func TestUX6_LateServers(t *testing.T) {
	front := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(front.Close)
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{
		Servers: map[string]servers.Config{"late": {URL: front.URL, Transport: servers.TransportHTTP,
			Timeout: 300 * time.Millisecond}}}, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	starts := func() int {
		list, err := h.Servers().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Starts
	}
	known, all := h.Servers().Context().Known(), h.Servers().Context()
	check := func(problems []host.Problem, err error) {
		t.Helper()
		if err != nil || len(problems) != 1 || tenon.ErrorCode(problems[0].Err) != tenon.CodeTimeout {
			t.Fatalf("%v, %v", problems, err)
		}
	}
	list := func() {
		k, err := known.Resources(t.Context())
		check(k.Problems, err)
	}
	list()
	waits := true
	for i := 0; waits && i < 20; i++ { // the background may start the server meanwhile
		before := starts()
		list()
		waits = starts() > before
	}
	if waits {
		t.Error("each list waits for a start of the server")
	}
	before := starts()
	k, err := known.Prompts(t.Context(), "late")
	check(k.Problems, err)
	if starts() == before {
		t.Error("a server that is named is not waited for")
	}
	before = starts()
	_, problems, err := all.Prompts(t.Context())
	check(problems, err)
	if starts() == before {
		t.Error("servers that are asked are not waited for")
	}
}

// openWithServers opens a host with servers at one address. Each has its name in the query.
func openWithServers(t *testing.T, home, address string, names ...string) *host.Host {
	t.Helper()
	entries := map[string]servers.Config{}
	for _, name := range names {
		entries[name] = servers.Config{URL: address + "?of=" + name, Transport: servers.TransportHTTP}
	}
	h, err := host.Open(t.Context(), host.Config{Home: home, Config: &config.Config{Servers: entries},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return h
}
