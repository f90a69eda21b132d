package httpapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/httpapi"
)

// TestReady requests /readyz of a host whose store is removed while it is open.
func TestReady(t *testing.T) {
	t.Run("RP-24_removed", removedStore)
}

func removedStore(t *testing.T) {
	h, _, socket := serve(t)
	handler := httpapi.Handler(h)
	status, _, body := request(t, handler, http.MethodGet, "/readyz", "", "")
	if status != http.StatusOK || !strings.Contains(body, `"store":"ok"`) {
		t.Fatalf("%d %s", status, body)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(socket), "tenon.db")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; { // each answer is cached for a second
		status, _, body = request(t, handler, http.MethodGet, "/readyz", "", "")
		if status == http.StatusServiceUnavailable && strings.Contains(body, `"store":"error"`) {
			if !strings.Contains(body, `"reason":"it cannot be written`) || strings.Contains(body, filepath.Dir(socket)) {
				t.Errorf("the reason: %s", body)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %s", status, body)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
