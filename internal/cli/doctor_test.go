package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestDoctorProbesStore checks that doctor reports a store in which no run can start, although its folder can be
// written, as /readyz does.
func TestDoctorProbesStore(t *testing.T) {
	home := t.TempDir()
	h, err := host.Open(t.Context(), host.Config{Config: &config.Config{}, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	if _, err := h.Sessions().List(t.Context(), host.SessionFilter{Limit: 1}); err != nil { // opens a connection
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(h.Service().Info().Socket), "tenon.db")); err != nil {
		t.Fatal(err)
	}
	d := &doctor{app: newApp(stdio{strings.NewReader(""), io.Discard, io.Discard})}
	d.store(t.Context(), h)
	if len(d.checks) != 1 || d.checks[0].Status != checkFail || !strings.Contains(d.checks[0].Text, "cannot be written") {
		t.Errorf("%+v", d.checks)
	}
}
