package temporal

import (
	"net"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/engine/local"
	"github.com/tenonhq/tenon/store/sqlite"
)

// refusing returns the address of a server that answers every request with an error.
func refusing(t *testing.T, err error) string {
	t.Helper()
	l, lerr := net.Listen("tcp", "127.0.0.1:0")
	if lerr != nil {
		t.Fatal(lerr)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return err }))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { s.Stop(); <-served })
	return l.Addr().String()
}

// TestRefused starts a run at clusters that cannot be used. Each is one error with what to correct, and no run is
// stored.
func TestRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	_ = l.Close()
	for name, c := range map[string]struct {
		address string
		code    tenon.Code
		says    string
	}{
		"unreachable": {gone, tenon.CodeUnreachable, "engine.temporal.address"},
		"key": {refusing(t, status.Error(codes.Unauthenticated, "no such key")), tenon.CodeAuth,
			"engine.temporal.api_key"},
		"permission": {refusing(t, status.Error(codes.PermissionDenied, "not yours")), tenon.CodeAuth,
			"engine.temporal.api_key"},
		"namespace": {refusing(t, serviceerror.ToStatus(serviceerror.NewNamespaceNotFound("other")).Err()),
			tenon.CodeConfig, "correct engine.temporal.namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := New(Config{Address: c.address, Namespace: "other"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cluster.Close() })
			st, err := sqlite.Open(t.Context(), sqlite.Config{Path: t.TempDir() + "/tenon.db"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			e, err := local.New(local.Config{Store: st, NewCore: enginetest.NewCore, Do: done,
				Dispatcher: &process{cluster: cluster}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			err = e.Start(t.Context(), enginetest.Calls(1, true).Spec("r", ""))
			if tenon.ErrorCode(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q (%s), want %s with %q", err, tenon.ErrorCode(err), c.code, c.says)
			}
			if _, err := st.Run(t.Context(), "r"); tenon.ErrorCode(err) != tenon.CodeNotFound {
				t.Errorf("the run is stored: %v", err)
			}
			if err := cluster.Work(t.Context(), e); tenon.ErrorCode(err) != c.code {
				t.Errorf("a worker got %v", err)
			}
		})
	}
}
