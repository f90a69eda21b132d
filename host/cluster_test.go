package host_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestPG_ClusterRefused opens hosts that cannot use the cluster of their configuration. Each is refused before a run is
// touched, with what to change.
func TestPG_ClusterRefused(t *testing.T) {
	opens := func(context.Context, host.ClusterConfig) (host.Cluster, error) {
		t.Error("the cluster is opened")
		return nil, tenon.Errorf(tenon.CodeInternal, "unexpected")
	}
	for name, tc := range map[string]struct {
		kind string
		cfg  host.Config
		want string
	}{
		"a program without the driver": {"temporal", host.Config{}, "use tenon-temporal"},
		"a store in a file":            {"temporal", host.Config{Cluster: opens}, "add store.postgres"},
		"a worker without a cluster":   {"local", host.Config{Cluster: opens, Worker: true}, "a worker needs engine: {kind: temporal}"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Home, tc.cfg.Config = t.TempDir(), &config.Config{Engine: config.Engine{Kind: tc.kind}}
			h, err := host.Open(t.Context(), tc.cfg)
			if err == nil {
				t.Fatal(h.Close())
			}
			if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tenon.ErrorCode(err), err)
			}
		})
	}
}
