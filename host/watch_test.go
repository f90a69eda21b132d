package host_test

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// TestWatchResource watches a resource, and continues to do so after the connection was lost.
func TestWatchResource(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run("RP-11_watch_"+protocol, func(t *testing.T) {
			entries := map[string]servers.Config{
				"t":     {URL: overHTTP(t), Protocol: protocol},
				"plain": {URL: overHTTP(t, "--no-subscribe"), Protocol: protocol},
				"each":  {URL: overHTTP(t), Protocol: protocol, Lifecycle: servers.LifecyclePerCall},
			}
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{Servers: entries},
				LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			mutate := func() {
				t.Helper()
				if _, err := h.Service().Connections()["t"].Call(t.Context(), tenon.Call{Tool: "mutate"}); err != nil {
					t.Fatal(err)
				}
			}
			began, updates := 0, 0
			for u, err := range h.Servers().Context().Watch(t.Context(), "t", "test://a") {
				if err != nil || u.Server != "t" || u.URI != "test://a" {
					t.Fatal(u, err)
				}
				switch {
				case !u.Began:
					updates++
				default:
					began++
				}
				if updates == 2 {
					break
				}
				if updates == 1 && began == 1 { // a new connection watches again
					if _, err := h.Servers().Restart(t.Context(), "t"); err != nil {
						t.Fatal(err)
					}
					continue
				}
				mutate()
			}
			if began != 2 {
				t.Errorf("watching began %d times, want 2", began)
			}
			for name, want := range map[string]tenon.Code{"plain": tenon.CodeInvalid, "each": tenon.CodeInvalid,
				"none": tenon.CodeNotFound} {
				n := 0
				for u, err := range h.Servers().Context().Watch(t.Context(), name, "test://a") {
					if n++; tenon.ErrorCode(err) != want {
						t.Errorf("%s: %+v, %v", name, u, err)
					}
				}
				if n != 1 {
					t.Errorf("%s: %d values", name, n)
				}
			}
		})
	}
}
