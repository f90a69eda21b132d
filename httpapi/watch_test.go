package httpapi_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/internal/testserver"
	"github.com/tenonhq/tenon/servers"
)

// TestWatchResource watches a resource over HTTP from the client of another process.
func TestWatchResource(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- testserver.Run(ctx, []string{"--http", "127.0.0.1:0"}, strings.NewReader(""), io.Discard, w)
		_ = w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, r)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{
		Servers: map[string]servers.Config{"t": {URL: strings.TrimSpace(line)}}}})
	if err != nil {
		t.Fatal(err)
	}
	serveHost(t, h)
	c := httpapi.NewClient(h.Service().Info().Socket)
	t.Run("RP-11_changes", func(t *testing.T) {
		var got []servers.Update
		for u, err := range c.Servers().Context().Watch(t.Context(), "t", "test://a") {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, u); len(got) == 2 {
				break
			}
			if _, err := h.Service().Connections()["t"].Call(t.Context(), tenon.Call{Tool: "mutate"}); err != nil {
				t.Fatal(err)
			}
		}
		if !got[0].Began || got[1] != (servers.Update{Server: "t", URI: "test://a"}) {
			t.Errorf("got %+v", got)
		}
	})
	for name, tt := range map[string]struct {
		server, uri string
		want        tenon.Code
	}{
		"RP-11_no_server": {"none", "test://a", tenon.CodeNotFound},
		"RP-11_no_uri":    {"t", "", tenon.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			for u, err := range c.Servers().Context().Watch(t.Context(), tt.server, tt.uri) {
				if n++; tenon.ErrorCode(err) != tt.want {
					t.Errorf("got %+v, %v", u, err)
				}
			}
			if n != 1 {
				t.Errorf("%d values", n)
			}
		})
	}
}
