package deploycheck

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestREL_compose loads the files of Docker Compose as its program does, and checks the rules of
// docs/guide/deploying.md.
func TestREL_compose(t *testing.T) {
	tests := []struct {
		name     string
		files    []string
		services int
	}{
		{"sqlite", []string{"compose.yaml"}, 2},
		{"postgres", []string{"compose.yaml", "compose.postgres.yaml"}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(deploy)); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "environment.example"), filepath.Join(dir, "environment")); err != nil {
				t.Fatal(err)
			}
			details := types.ConfigDetails{WorkingDir: dir, Environment: types.Mapping{"POSTGRES_PASSWORD": "x"}}
			for _, f := range tt.files {
				details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: filepath.Join(dir, f)})
			}
			p, err := loader.LoadWithContext(t.Context(), details)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Services) != tt.services {
				t.Errorf("services %v", p.ServiceNames())
			}
			for _, s := range p.Services {
				checkService(t, dir, s)
			}
			tenon := p.Services["tenon"]
			if grace := *tenon.StopGracePeriod; time.Duration(grace) < 35*time.Second {
				t.Errorf("it is killed after %s", time.Duration(grace))
			}
			if tenon.Environment["TENON_STORE_KEY"] == nil || tenon.Environment["TENON_SERVE_TOKEN"] == nil {
				t.Errorf("environment %v", tenon.Environment)
			}
			if (tenon.Environment["TENON_POSTGRES_DSN"] != nil) != (tt.services == 3) {
				t.Errorf("environment %v", tenon.Environment)
			}
			if got := p.Services["proxy"].NetworkMode; got != "service:tenon" {
				t.Errorf("the proxy has the network %q and reaches no loopback of tenon", got)
			}
		})
	}
}

// checkService checks what a service may do.
func checkService(t *testing.T, dir string, s types.ServiceConfig) {
	t.Helper()
	if s.MemLimit == 0 {
		t.Errorf("%s has no limit of memory", s.Name)
	}
	if s.Name == "postgres" { // its image changes its user
		return
	}
	if !s.ReadOnly || s.User != "65532:65532" || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) != 1 {
		t.Errorf("%s: read-only %t, user %q, dropped %v, options %v", s.Name, s.ReadOnly, s.User, s.CapDrop, s.SecurityOpt)
	}
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeBind || filepath.Base(v.Source) == "tls" {
			continue
		}
		if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
			t.Errorf("%s mounts %s: read-only %t, %v", s.Name, v.Source, v.ReadOnly, err)
		}
	}
}
