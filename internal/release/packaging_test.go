package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const packagingDir = "../../packaging"

// unitKeys returns the values of each key in the systemd unit.
func unitKeys(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packagingDir, "tenon.service"))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || key != strings.TrimSpace(key) {
			t.Fatalf("tenon.service: not a key and a value: %q", line)
		}
		keys[key] = append(keys[key], value)
	}
	return keys
}

// TestUnit checks the settings of the systemd unit. It does not need systemd.
func TestUnit(t *testing.T) {
	keys := unitKeys(t)
	for key, want := range map[string]string{"DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict",
		"ProtectHome": "yes", "CapabilityBoundingSet": "", "StateDirectory": "tenon", "CacheDirectory": "tenon",
		"UMask": "0077", "WantedBy": "multi-user.target"} {
		if diff := cmp.Diff([]string{want}, keys[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if _, ok := keys["MemoryDenyWriteExecute"]; ok {
		t.Error("MemoryDenyWriteExecute is set: no server of Node starts")
	}
	start := strings.Fields(strings.Join(keys["ExecStart"], " "))
	for _, word := range []string{"/usr/bin/tenon", "serve", "/etc/tenon/tenon.yaml", "--no-input"} {
		if !slices.Contains(start, word) {
			t.Errorf("ExecStart lacks %s: %s", word, start)
		}
	}
}

// TestUnitOfSystemd lets systemd-analyze check the unit. The exposure that it computes must be at most 2.0.
func TestUnitOfSystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	text, err := os.ReadFile(filepath.Join(packagingDir, "tenon.service"))
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "tenon.service")
	installed := strings.ReplaceAll(string(text), "/usr/bin/tenon", "/bin/sh") // systemd-analyze requires an existing program
	if err := os.WriteFile(unit, []byte(installed), 0o644); err != nil {
		t.Fatal(err)
	}
	socket, err := os.ReadFile(filepath.Join(packagingDir, "tenon.socket")) // systemd expects the service next to it
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(unit), "tenon.socket"), socket, 0o644); err != nil {
		t.Fatal(err)
	}
	both := []string{"verify", "--man=no", unit, filepath.Join(filepath.Dir(unit), "tenon.socket")}
	if out, err := exec.Command(analyze, both...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=true", unit).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-analyze security: %v\n%s", err, out)
	}
	m := regexp.MustCompile(`exposure level for tenon.service: ([\d.]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no exposure level in:\n%s", out)
	}
	if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level >= 2 {
		t.Errorf("exposure level %s, want below 2.0\n%s", m[1], out)
	}
}

// TestREL_nfpm checks that the files of the tree that the configuration of packages names exist.
func TestREL_nfpm(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(packagingDir, "nfpm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`packaging/[\w./-]+`).FindAllString(string(text), -1)
	if len(found) < 6 {
		t.Errorf("only %q", found)
	}
	for _, name := range found {
		if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
			t.Error(err)
		}
	}
}

// TestScripts parses the scripts of the packages, and runs them as package managers do on a system without systemd.
func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("systemd runs here: the scripts would act on its services")
	}
	for _, args := range [][]string{{"postinstall.sh", "configure"}, {"preremove.sh", "upgrade"}, {"preremove.sh", "1"},
		{"preremove.sh", "remove"}, {"preremove.sh"}, {"postremove.sh", "remove"}} {
		args[0] = filepath.Join(packagingDir, "scripts", args[0])
		if out, err := exec.Command("sh", append([]string{"-eu"}, args...)...).CombinedOutput(); err != nil ||
			len(out) > 0 {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// TestREL_scriptsOfSystemd runs the scripts as package managers do on a system with systemd, with a stand-in of
// systemctl that writes down its arguments, and can fail.
func TestREL_scriptsOfSystemd(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	const restarted, disabled = "daemon-reload\ntry-restart tenon.service\n", "disable --now tenon.socket tenon.service\n"
	for _, tt := range []struct {
		name, args, fails, want, stderr string
	}{
		{"dpkg configures", "postinstall.sh configure 1.2.2", "", restarted, ""},
		{"the restart fails", "postinstall.sh configure 1.2.2", "try-restart", restarted, "systemctl status tenon.service"},
		{"the reload fails", "postinstall.sh configure 1.2.2", "daemon-reload", restarted, "systemctl daemon-reload"},
		{"dpkg upgrades", "preremove.sh upgrade 1.2.3", "", "", ""},
		{"the old script failed", "preremove.sh failed-upgrade 1.2.2 1.2.3", "", "", ""},
		{"another package comes", "preremove.sh deconfigure in-favour x 1", "", "", ""},
		{"dpkg removes", "preremove.sh remove", "", disabled, ""},
		{"rpm upgrades", "preremove.sh 1", "", "", ""},
		{"rpm removes", "preremove.sh 0", "", disabled, ""},
		{"pacman removes", "preremove.sh 1.2.3-1", "", disabled, ""},
		{"the service does not stop", "preremove.sh remove", "disable", disabled, "systemctl status tenon.service"},
		{"dpkg has upgraded", "postremove.sh upgrade 1.2.3", "", "daemon-reload\n", ""},
		{"the reload fails at an upgrade", "postremove.sh upgrade 1.2.3", "daemon-reload", "daemon-reload\n",
			"systemctl daemon-reload"},
		{"the reload fails for rpm", "postremove.sh 1", "daemon-reload", "daemon-reload\n", "systemctl daemon-reload"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, args := t.TempDir(), strings.Fields(tt.args)
			text, err := os.ReadFile(filepath.Join(packagingDir, "scripts", args[0]))
			if err != nil {
				t.Fatal(err)
			}
			here := strings.ReplaceAll(string(text), "/run/systemd/system", dir) // as if systemd ran
			stand := "#!/bin/sh\necho \"$*\" >>'" + dir + "/told'\n[ \"$1\" != \"$FAILS\" ]\n"
			for name, text := range map[string]string{args[0]: here, "systemctl": stand} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sh", append([]string{filepath.Join(dir, args[0])}, args[1:]...)...)
			cmd.Env = []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH"), "FAILS=" + tt.fails}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), tt.stderr) || tt.stderr == "" && len(out) > 0 {
				t.Errorf("it ended with %v and said %q", err, out)
			}
			if told, _ := os.ReadFile(filepath.Join(dir, "told")); string(told) != tt.want {
				t.Errorf("systemctl was told %q, want %q", told, tt.want)
			}
		})
	}
}
