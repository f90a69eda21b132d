package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/longtest"
)

// fakeDist writes files that replace the binaries of all platforms. The one for this platform prints its arguments and
// exits with status 7.
func fakeDist(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range platforms {
		text := "#!/bin/sh\necho \"binary: $*\"\nexit 7\n"
		if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
			text = "for " + p.String()
		}
		path := filepath.Join(dir, p.String(), p.binary())
		if err := writeFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

// TestReproducible checks that packages of the same version have the same bytes, and which packages exist.
func TestReproducible(t *testing.T) {
	dist := fakeDist(t)
	tests := []struct {
		name  string
		write func(packaging) error
		files []string
	}{
		{"npm", writeNPM, []string{"tenon-1.2.3-rc.1.tgz", "tenonhq-tenon-darwin-arm64-1.2.3-rc.1.tgz",
			"tenonhq-tenon-darwin-x64-1.2.3-rc.1.tgz", "tenonhq-tenon-linux-arm64-1.2.3-rc.1.tgz",
			"tenonhq-tenon-linux-x64-1.2.3-rc.1.tgz", "tenonhq-tenon-win32-arm64-1.2.3-rc.1.tgz",
			"tenonhq-tenon-win32-x64-1.2.3-rc.1.tgz"}},
		{"wheels", writeWheels, []string{"tenon_mcp-1.2.3rc1-py3-none-macosx_12_0_arm64.whl",
			"tenon_mcp-1.2.3rc1-py3-none-macosx_12_0_x86_64.whl",
			"tenon_mcp-1.2.3rc1-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
			"tenon_mcp-1.2.3rc1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
			"tenon_mcp-1.2.3rc1-py3-none-win_amd64.whl", "tenon_mcp-1.2.3rc1-py3-none-win_arm64.whl"}},
		{"mcp", writeMCP, []string{"server.json", "tenon_1.2.3-rc.1_darwin_amd64.mcpb",
			"tenon_1.2.3-rc.1_darwin_arm64.mcpb", "tenon_1.2.3-rc.1_linux_amd64.mcpb",
			"tenon_1.2.3-rc.1_linux_arm64.mcpb", "tenon_1.2.3-rc.1_windows_amd64.mcpb",
			"tenon_1.2.3-rc.1_windows_arm64.mcpb"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var builds [2]map[string]string
			for i := range builds {
				p := packaging{version: "v1.2.3-rc.1", dist: dist, to: t.TempDir(), made: time.Unix(1e9, 0).UTC()}
				if err := tt.write(p); err != nil {
					t.Fatal(err)
				}
				builds[i] = contents(t, p.to)
			}
			if diff := cmp.Diff(tt.files, slices.Sorted(maps.Keys(builds[0]))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			for name, text := range builds[0] {
				if text != builds[1][name] {
					t.Errorf("%s differs between two builds", name)
				}
			}
		})
	}
}

func TestVersions(t *testing.T) {
	tests := []struct{ version, npm, python, apk, arch, deb string }{
		{"v1.2.3", "1.2.3", "1.2.3", "1.2.3", "1.2.3", "1.2.3"},
		{"1.2.3-rc.1", "1.2.3-rc.1", "1.2.3rc1", "1.2.3_rc1", "1.2.3rc.1", "1.2.3~rc.1"},
		{"0.1.0-dev.7", "0.1.0-dev.7", "0.1.0.dev7", "0.1.0_pre7", "0.1.0dev.7", "0.1.0~dev.7"},
		{"0.1.0-next.1", "0.1.0-next.1", "", "0.1.0_pre1", "0.1.0next.1", "0.1.0~next.1"},
		{version: "1.2"},
		{version: "1.2.3 ; rm"},
	}
	for _, tt := range tests {
		npm, err := plainVersion(tt.version)
		python, _ := pythonVersion(tt.version)
		if (npm != tt.npm && tt.npm != "") || python != tt.python {
			t.Errorf("%s: %q, %q; want %q, %q", tt.version, npm, python, tt.npm, tt.python)
		}
		if (err != nil) != (tt.npm == "") {
			t.Errorf("%s: error %v", tt.version, err)
		}
		for format, want := range map[string]string{"apk": tt.apk, "archlinux": tt.arch, "deb": tt.deb, "rpm": tt.deb} {
			if got := distributionVersion(format, npm); want != "" && got != want {
				t.Errorf("%s: %q for %s, want %q", tt.version, got, format, want)
			}
		}
	}
}

func TestSourceDate(t *testing.T) {
	for text, want := range map[string]string{"": "1980-01-01", "0": "1980-01-01", "1000000000": "2001-09-09"} {
		if got, err := sourceDate(text); err != nil || got.Format(time.DateOnly) != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
	if _, err := sourceDate("soon"); err == nil {
		t.Error("no error for soon")
	}
}

func TestVerbsIn(t *testing.T) {
	page := ".TH x\n.SH VERBS\n.TP\n.B a\\-b\nText of a.\n.TP\n.B c\n.B bold\n.SH OPTIONS\n.TP\n.B d\n"
	if diff := cmp.Diff([]string{"a-b", "c"}, verbsIn(page)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNoticesNeedLicence checks that a release with a part that has no licence is refused.
func TestNoticesNeedLicence(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	if err := (part{name: "example.com/x", dir: dir}).write(&b); err == nil {
		t.Error("no error without a licence")
	}
	for _, name := range []string{"LICENSE", "LICENCE.md", "COPYING", "NOTICE.txt", "SQLITE-LICENSE", "license_bsd"} {
		if err := writeFile(filepath.Join(dir, name), []byte("terms of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeFile(filepath.Join(dir, "licensing.go"), []byte("package x")); err != nil {
		t.Fatal(err)
	}
	if err := (part{name: "example.com/x", version: "v1", dir: dir}).write(&b); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), "terms of "); got != 6 {
		t.Errorf("%d of 6 licences in:\n%s", got, &b)
	}
	if strings.Contains(b.String(), "package x") {
		t.Error("a Go file is in the notices")
	}
}

// TestInstallWheel installs this platform's wheel without network access and runs the installed program.
func TestInstallWheel(t *testing.T) {
	longtest.Skip(t)
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs python3 with venv")
	}
	p := packaging{version: "1.2.3", dist: fakeDist(t), to: t.TempDir()}
	if err := writeWheels(p); err != nil {
		t.Fatal(err)
	}
	env := filepath.Join(t.TempDir(), "env")
	if out, err := exec.Command(python, "-m", "venv", env).CombinedOutput(); err != nil {
		t.Skipf("python3 -m venv: %v: %s", err, out)
	}
	pip := exec.Command(filepath.Join(env, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "--no-index",
		"--find-links", p.to, wheelName)
	if out, err := pip.CombinedOutput(); err != nil {
		t.Fatalf("pip install: %v\n%s", err, out)
	}
	wantRun(t, filepath.Join(env, "bin", "tenon"))
	wantRun(t, filepath.Join(env, "bin", wheelName))
}

// TestInstallNPM installs this platform's npm packages without network access and runs the installed program.
func TestInstallNPM(t *testing.T) {
	longtest.Skip(t)
	npm, err := exec.LookPath("npm")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs npm")
	}
	p := packaging{version: "1.2.3", dist: fakeDist(t), to: t.TempDir()}
	if err := writeNPM(p); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	here := npmNames[runtime.GOOS] + "-" + npmNames[runtime.GOARCH]
	install := exec.Command(npm, "install", "--offline", "--no-audit", "--no-fund", "--cache", filepath.Join(dir, "cache"),
		"--prefix", dir, filepath.Join(p.to, "tenonhq-tenon-"+here+"-1.2.3.tgz"), filepath.Join(p.to, "tenon-1.2.3.tgz"))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	wantRun(t, filepath.Join(dir, "node_modules", ".bin", "tenon"))
}

func wantRun(t *testing.T, program string) {
	t.Helper()
	cmd := exec.Command(program, "version", "-o", "json")
	out, _ := cmd.Output()
	if got := string(out); got != "binary: version -o json\n" {
		t.Errorf("it printed %q", got)
	}
	if got := cmd.ProcessState.ExitCode(); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
}

// execOutput runs a command and returns its output, whatever its exit status.
func execOutput(words []string) (string, error) {
	out, err := exec.Command(words[0], words[1:]...).Output()
	return string(out), err
}
