package main

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReleaseImage unpacks the container image of this platform. It runs tenon serve with the image's root folder, user
// and configuration. If the test itself does not run as root, it runs tenon serve as the current user, without changing
// the root folder.
func TestReleaseImage(t *testing.T) {
	dir := released(t)
	i, ok := readImages(t, filepath.Join(dir, "image"))["linux_"+runtime.GOARCH]
	if !ok {
		t.Fatalf("no image for %s", runtime.GOARCH)
	}
	root := unpackRoot(t, i.layer)
	config, err := os.ReadFile("../../deploy/chart/files/tenon.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(root, "etc/tenon/tenon.yaml"), config); err != nil {
		t.Fatal(err)
	}
	start := func(args ...string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command(i.config.Config.Entrypoint[0], args...)
		cmd.Env = append(i.config.Config.Env, "TENON_SERVE_TOKEN="+strings.Repeat("a", 40),
			"TENON_STORE_KEY="+strings.Repeat("b", 40))
		cmd.Dir = "/var/lib/tenon"
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root,
				Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser, NoSetGroups: false}}
			return cmd
		}
		t.Log("not root: it runs outside of its root")
		cmd.Path, cmd.Dir = root+cmd.Path, root+cmd.Dir
		for k := range cmd.Args {
			if strings.HasPrefix(cmd.Args[k], "/") {
				cmd.Args[k] = root + cmd.Args[k]
			}
		}
		for k := range cmd.Env {
			cmd.Env[k] = strings.Replace(cmd.Env[k], "=/", "="+root+"/", 1)
		}
		return cmd
	}
	if out, err := start("version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "tenon ") {
		t.Fatalf("version: %v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	serve := start(append(append([]string{}, i.config.Config.Cmd...), "--listen", address)...)
	var log bytes.Buffer
	serve.Stdout, serve.Stderr = &log, &log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	ready := false
	deadline := time.Now().Add(2 * time.Minute)
	for ; !ready && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if res, err := http.Get("http://" + address + "/readyz"); err == nil {
			ready = res.StatusCode == http.StatusOK
			_ = res.Body.Close()
		}
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := serve.Wait(); err != nil || !ready {
		t.Errorf("ready %t, end: %v\n%s", ready, err, &log)
	}
	if _, err := os.Stat(filepath.Join(root, "var/lib/tenon/store/tenon.db")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(root, "tmp")); err != nil || len(entries) > 0 {
		t.Errorf("left in /tmp: %v, %v", entries, err)
	}
}
