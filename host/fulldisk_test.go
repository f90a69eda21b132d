package host_test

import (
	"context"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// fullDisk is a store whose writes fail while full is true.
type fullDisk struct {
	store.Store
	full atomic.Bool
}

func (f *fullDisk) Append(ctx context.Context, a store.Append) error {
	if f.full.Load() {
		return tenon.Errorf(tenon.CodeStore, "run %s: the disk is full", a.Run)
	}
	return f.Store.Append(ctx, a)
}

func (f *fullDisk) PutBlob(ctx context.Context, run string, data []byte) (string, error) {
	if f.full.Load() {
		return "", tenon.Errorf(tenon.CodeStore, "run %s: the disk is full", run)
	}
	return f.Store.PutBlob(ctx, run, data)
}

// TestFullDiskDuringCall fills the disk during a call that must not be repeated, and resumes the run in the same
// process. The model gets the result, and the call is not repeated. If the result is too large for the journal, the
// model gets as much of it as the rules allow.
func TestFullDiskDuringCall(t *testing.T) {
	for name, c := range map[string]struct {
		most tenon.Size
		mode string
		want string
	}{
		"RP-27_small":     {0, "", "^sold$"},
		"RP-27_truncated": {3, policy.LargeTruncate, `truncated: 4 bytes; the rest is lost, because the store cannot be written`},
		"RP-27_artifact":  {3, policy.LargeArtifact, `truncated: 4 bytes; the rest is lost, because the store cannot be written`},
		"RP-27_too_large": {3, policy.LargeError, `the tool was called, but its result is too large: 4 bytes, at most 3`},
	} {
		t.Run(name, func(t *testing.T) {
			fillsDisk(t, policy.Block{ResultBytes: c.most, OnLargeResult: c.mode}, c.want)
		})
	}
}

func fillsDisk(t *testing.T, rules policy.Block, want string) {
	t.Helper()
	file, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	disk, read := &fullDisk{Store: file}, ""
	m := answering(func(req *tenon.Request) (*tenon.Response, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role != tenon.RoleTool {
			return calls("sell {}"), nil
		}
		read = last.Parts[0].Result.Content[0].Text
		return says("done"), nil
	})
	sold := 0
	s := &shelf{during: func() { sold++; disk.full.Store(true) }}
	h, err := host.Open(t.Context(), host.Config{Store: disk, Model: "m", Models: map[string]tenon.Model{"m": m},
		Toolsets: map[string]tenon.Toolset{"shop": s}, Config: &config.Config{Policy: policy.Config{Defaults: rules}},
		Approve: func(context.Context, host.Approval) (agent.Ruling, error) {
			return agent.Ruling{Verdict: tenon.Allow}, nil
		},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	r, err := host.Ask(t.Context(), h, host.Question{Text: "q"})
	if tenon.ErrorCode(err) != tenon.CodeStore {
		t.Fatalf("with a full disk: %v", err)
	}
	disk.full.Store(false)
	if err := h.Runs().Resume(t.Context(), r.Run.ID); err != nil {
		t.Fatal(err)
	}
	for _, err := range h.Runs().Events(t.Context(), r.Run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !regexp.MustCompile(want).MatchString(read) || sold != 1 {
		t.Errorf("%d calls, and the model reads %q", sold, read)
	}
}
