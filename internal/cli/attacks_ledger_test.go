//go:build unix

package cli

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/trust"
)

// TestAttackRecords checks that nothing is trusted if the ledger of trusted projects is damaged or cannot be written.
func TestAttackRecords(t *testing.T) {
	longtest.Skip(t)
	state := func() string { return filepath.Join(os.Getenv("HOME"), ".local", "state", "tenon", "trust") }
	rewrite := func(h *clone, change func([]byte) []byte) {
		for _, path := range h.trusted() {
			b, err := os.ReadFile(path)
			h.do(err)
			h.do(os.WriteFile(path, change(b), 0o600))
		}
	}
	for name, do := range map[string]func(h *clone){
		"truncated": func(h *clone) { rewrite(h, func(b []byte) []byte { return b[:len(b)/2] }) },
		"empty":     func(h *clone) { rewrite(h, func([]byte) []byte { return nil }) },
		"of zeros":  func(h *clone) { rewrite(h, func(b []byte) []byte { return make([]byte, len(b)) }) },
		"a list":    func(h *clone) { rewrite(h, func(b []byte) []byte { return append(append([]byte("["), b...), ']') }) },
		"of another version": func(h *clone) {
			rewrite(h, func(b []byte) []byte { return bytes.Replace(b, []byte(`"version": 1`), []byte(`"version": 2`), 1) })
		},
		"without files": func(h *clone) {
			rewrite(h, func(b []byte) []byte { return bytes.Replace(b, []byte(`"files"`), []byte(`"filez"`), 1) })
		},
		"without items": func(h *clone) {
			rewrite(h, func(b []byte) []byte { return bytes.Replace(b, []byte(`"items"`), []byte(`"itemz"`), 1) })
		},
		"with a digest cut": func(h *clone) {
			rewrite(h, func(b []byte) []byte { return bytes.Replace(b, []byte(`"sha256": "`), []byte(`"sha256": "0`), 1) })
		},
		"of 70 MB": func(h *clone) {
			rewrite(h, func(b []byte) []byte { return append(b, bytes.Repeat([]byte(" "), 70<<20)...) })
		},
		"a pipe":             func(h *clone) { p := h.trusted()[0]; h.do(os.Remove(p)); h.do(syscall.Mkfifo(p, 0o600)) },
		"a folder":           func(h *clone) { p := h.trusted()[0]; h.do(os.Remove(p)); h.do(os.Mkdir(p, 0o700)) },
		"under another name": func(h *clone) { p := h.trusted()[0]; h.do(os.Rename(p, filepath.Join(filepath.Dir(p), "x.json"))) },
		"writable by all":    func(h *clone) { h.do(os.Chmod(h.trusted()[0], 0o666)) },
		"in an open folder":  func(h *clone) { h.do(os.Chmod(state(), 0o777)) },
		"in a linked folder of the project": func(h *clone) {
			h.do(os.Rename(state(), filepath.Join(h.dir, "state")))
			h.do(os.Symlink(filepath.Join(h.dir, "state"), state()))
		},
		"of the folder before it moved": func(h *clone) { h.do(os.Rename(h.dir, h.beside("moved"))); h.t.Chdir(h.beside("moved")) },
		"of a copy":                     func(h *clone) { h.do(os.CopyFS(h.beside("copy"), os.DirFS(h.dir))); h.t.Chdir(h.beside("copy")) },
		"with another HOME":             func(h *clone) { h.t.Setenv("HOME", h.t.TempDir()) },
		"without HOME":                  func(h *clone) { h.t.Setenv("HOME", "") },
		"with HOME of the project":      func(h *clone) { h.t.Setenv("HOME", filepath.Join(h.dir, "home")) },
		"of a project that went back":   func(h *clone) { h.write("run.sh", "true\n"); h.trust(); h.write("run.sh", h.evil()) },
		"where the state folder is a file": func(h *clone) {
			h.do(os.RemoveAll(filepath.Join(os.Getenv("HOME"), ".local")))
			h.do(os.WriteFile(filepath.Join(os.Getenv("HOME"), ".local"), nil, 0o600))
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.small()
			h.trust()
			do(h)
			if status, stdout, stderr := runHere(t, "servers", "test", "script"); h.harmed() || status == exitOK || status == ran {
				t.Errorf("status %d, something ran: %v: %s%s", status, h.harmed(), stdout, stderr)
			}
		})
	}
	t.Run("a_restored_backup_of_a_trusted_project", attackRestoredProject)
	t.Run("two_processes_agree_at_once", func(t *testing.T) {
		h := newClone(t)
		h.small()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { runHere(t, "trust", "--trust") })
		}
		wg.Wait()
		if status, _, stderr := runHere(t, "servers", "test", "script"); status != ran || len(h.trusted()) != 1 {
			t.Errorf("status %d, %d records: %s", status, len(h.trusted()), stderr)
		}
	})
	t.Run("a_home_that_cannot_be_written", attackUnwritableHome)
}

func attackUnwritableHome(t *testing.T) {
	h := newClone(t)
	h.small()
	s := trust.NewStore("/proc/none/trust")
	if kept, err := s.Grant(trust.Project{Path: h.dir, Dir: h.dir}, nil, time.Now()); kept || err == nil {
		t.Errorf("%v %v", kept, err)
	}
	t.Setenv("XDG_STATE_HOME", "/proc/none")
	if status, _, stderr := runHere(t, "servers", "test", "script", "--trust"); status != ran || !strings.Contains(stderr, "for this command only") {
		t.Errorf("status %d: %s", status, stderr)
	}
	h.do(os.RemoveAll(h.traces))
	h.do(os.Mkdir(h.traces, 0o700))
	if status, _, stderr := runHere(t, "servers", "test", "script"); status != exitWaiting || h.harmed() {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func attackRestoredProject(t *testing.T) {
	h := newClone(t)
	h.small()
	h.trust()
	h.do(os.CopyFS(h.beside("backup"), os.DirFS(h.dir)))
	h.do(os.RemoveAll(h.dir))
	h.do(os.Rename(h.beside("backup"), h.dir))
	h.t.Chdir(h.dir)
	if status, _, stderr := runHere(t, "servers", "test", "script"); status != ran || !h.harmed() {
		t.Errorf("the same bytes at the same place are not trusted: %d %s", status, stderr)
	}
}

// TestAttackOddFiles checks that special files, such as pipes and sockets, neither block tenon nor count as agreed to.
func TestAttackOddFiles(t *testing.T) {
	for name, do := range map[string]func(h *clone){
		"tenon.yaml is a socket": func(h *clone) { h.do(os.Remove("tenon.yaml")); h.socket("tenon.yaml") },
		"tenon.yaml is a device": func(h *clone) { h.do(os.Remove("tenon.yaml")); h.do(os.Symlink("/dev/null", "tenon.yaml")) },
		"tenon.yaml is stdin":    func(h *clone) { h.do(os.Remove("tenon.yaml")); h.do(os.Symlink("/dev/stdin", "tenon.yaml")) },
		"the script is a socket": func(h *clone) { h.do(os.Remove("run.sh")); h.socket("run.sh") },
		"the script is a device": func(h *clone) { h.do(os.Remove("run.sh")); h.do(os.Symlink("/dev/null", "run.sh")) },
		"the script is stdin":    func(h *clone) { h.write("tenon.yaml", "servers: {script: {command: sh, args: [/dev/stdin]}}\n") },
		"env_file is stdin": func(h *clone) {
			h.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh], env_file: /dev/stdin}}\n")
		},
		"env_file is a socket": func(h *clone) {
			h.socket("s.env")
			h.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh], env_file: s.env}}\n")
		},
		".env is a socket": func(h *clone) { h.do(os.RemoveAll(".env")); h.socket(".env") },
		".env is a folder": func(h *clone) { h.do(os.RemoveAll(".env")); h.do(os.Mkdir(".env", 0o700)) },
		".env is a loop":   func(h *clone) { h.do(os.RemoveAll(".env")); h.do(os.Symlink(".env", ".env")) },
		"a link in a circle": func(h *clone) {
			h.do(os.Remove("tenon.yaml"))
			h.do(os.Symlink("b.yaml", "tenon.yaml"))
			h.do(os.Symlink("tenon.yaml", "b.yaml"))
		},
		"the process's memory": func(h *clone) {
			h.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh], env_file: /proc/self/environ}}\n")
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.small()
			do(h)
			status, stdout, stderr := runHere(t, "servers", "test", "script")
			if h.harmed() || status == exitOK || len(h.trusted()) > 0 || strings.Contains(stdout+stderr, "my-own-token") {
				t.Errorf("status %d: %s%s", status, stdout, stderr)
			}
		})
	}
}

// socket makes a socket of the operating system in the project.
func (h *clone) socket(name string) {
	h.t.Helper()
	l, err := net.Listen("unix", name)
	if errors.Is(err, syscall.EINVAL) {
		h.t.Skip("the path is too long for a socket")
	}
	h.do(err)
	h.t.Cleanup(func() { _ = l.Close() })
}
