package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machine is a booted system without a network: this system's programs and libraries under a systemd of its own, with
// empty /etc and /var. systemd-nspawn runs it; what is installed into it stays in a folder of the test.
type machine struct {
	t      *testing.T
	root   string
	leader string // process of its systemd
}

// accounts are the users of a machine, as a new Debian has them.
var accounts = map[string]string{
	"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" +
		"ann:x:1000:1000:Ann:/home/ann:/bin/sh\n",
	"etc/group":           "root:x:0:\nnogroup:x:65534:\nann:x:1000:\n",
	"etc/nsswitch.conf":   "passwd: files systemd\ngroup: files systemd\nhosts: files\n",
	"etc/hosts":           "127.0.0.1 localhost\n",
	"etc/machine-id":      "0123456789abcdef0123456789abcdef\n", // otherwise systemd asks questions at the first boot
	"etc/os-release":      "ID=debian\nNAME=\"tenon's test\"\n",
	"etc/pam.d/other":     "auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n",
	"var/lib/dpkg/status": "", "var/lib/dpkg/available": "",
	"etc/pam.d/systemd-user": "account required pam_permit.so\nsession required pam_permit.so\n" +
		"session optional pam_systemd.so\n",
}

// newMachine boots a machine with more files, by their paths. The test is skipped where no systemd can run.
func newMachine(t *testing.T, files map[string]string) *machine {
	t.Helper()
	nspawn, err := exec.LookPath("systemd-nspawn")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs systemd-nspawn and root to run a systemd")
	}
	m := &machine{t: t, root: filepath.Join(t.TempDir(), "root")}
	for _, dir := range []string{"usr", "proc", "sys", "dev", "run", "tmp", "root", "opt", "var/lib/dpkg/updates",
		"var/lib/dpkg/info", "var/lib/dpkg/triggers", "home/ann"} {
		if err := os.MkdirAll(filepath.Join(m.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(m.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, list := range []map[string]string{accounts, files} {
		for name, text := range list {
			if err := writeFile(filepath.Join(m.root, name), []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chown(filepath.Join(m.root, "home/ann"), 1000, 1000); err != nil {
		t.Fatal(err)
	}
	m.boot(nspawn)
	return m
}

// boot starts the machine's systemd and waits until it is ready, which nspawn says as services do (sd_notify(3)).
func (m *machine) boot(nspawn string) {
	m.t.Helper()
	socket := filepath.Join(m.root, "..", "notify")
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		m.t.Fatal(err)
	}
	defer ready.Close()
	upper, log := filepath.Join(m.root, "..", "usr"), filepath.Join(m.root, "..", "log")
	if err := os.Mkdir(upper, 0o755); err != nil {
		m.t.Fatal(err)
	}
	out, err := os.Create(log)
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(nspawn, "--quiet", "--directory="+m.root, "--machine=tenon-test-"+strconv.Itoa(os.Getpid()),
		"--register=no", "--keep-unit", "--private-network", "--notify-ready=yes", "--overlay=/usr:"+upper+":/usr",
		"--boot", "systemd.unit=multi-user.target")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		_ = ready.SetReadDeadline(time.Now())
		close(ended)
	}()
	m.t.Cleanup(func() {
		if m.leader != "" {
			_, _ = m.try("systemctl", "poweroff", "--force", "--force")
		} else {
			_ = cmd.Process.Kill()
		}
		<-ended
		out.Close()
	})
	_ = ready.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for said := ""; !strings.Contains(said, "READY=1"); {
		b := make([]byte, 4096)
		n, err := ready.Read(b)
		if err != nil {
			text, _ := os.ReadFile(log)
			m.t.Skipf("systemd does not run here: %v\n%s", err, text)
		}
		said = string(b[:n])
		if pid := regexp.MustCompile(`X_NSPAWN_LEADER_PID=(\d+)`).FindStringSubmatch(said); pid != nil {
			m.leader = pid[1]
		}
	}
}

// try runs a program on the machine as root, within two minutes.
func (m *machine) try(program string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	words := append([]string{"--target=" + m.leader, "--all", "/usr/bin/env", "--ignore-environment",
		"PATH=/usr/local/bin:/usr/bin:/usr/sbin", "HOME=/root", program}, args...)
	out, err := exec.CommandContext(ctx, "nsenter", words...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// sh runs lines of the shell as root and returns what they print. The first that fails ends the test.
func (m *machine) sh(t *testing.T, lines string) string {
	t.Helper()
	out, err := m.try("/bin/sh", "-euc", lines)
	if err != nil {
		journal, _ := m.try("journalctl", "--no-pager", "--lines=40")
		t.Fatalf("%v\n%s", err, journal)
	}
	return out
}
