package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// older returns a folder with packages of an older version in some formats, with the binary of the release.
func older(t *testing.T, dir string, formats ...string) string {
	t.Helper()
	nfpm := os.Getenv("TENON_NFPM")
	if nfpm == "" {
		t.Fatal("needs TENON_NFPM, the program that makes packages")
	}
	p := packaging{version: "0.0.0-dev.0", dist: filepath.Join(dir, "bin"), to: t.TempDir(), made: time.Unix(1e9, 0)}
	err := p.distributions(t.Context(), nfpm, here(), dir+"-clone", filepath.Join(dir, "files"), formats...)
	if err != nil {
		t.Fatal(err)
	}
	return p.to
}

// TestReleaseDistributions unpacks the packages of all formats: each has the same files as the deb, with the same modes
// and bytes, of the owner root. Only the folder of zsh has another name on Debian.
func TestReleaseDistributions(t *testing.T) {
	dir := released(t)
	for _, program := range []string{"dpkg-deb", "rpm2cpio", "cpio", "tar", "zstd"} {
		needs(t, program)
	}
	arch := distributionArch[runtime.GOARCH]
	tests := []struct{ name, file, unpack string }{
		{"deb", "tenon_*_" + runtime.GOARCH + ".deb", `dpkg-deb --extract "$1" .`},
		{"rpm", "tenon-*." + arch + ".rpm", `rpm2cpio "$1" | cpio --quiet -id`},
		{"apk", "tenon_*_" + arch + ".apk", `tar -xzf "$1" 2>/dev/null; rm -f .PKGINFO .pre-* .post-*`},
		{"archlinux", "tenon-*-" + arch + ".pkg.tar.zst", `tar --zstd -xf "$1"; rm -f .PKGINFO .MTREE .INSTALL`},
	}
	var deb map[string]string
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := t.TempDir()
			command(t, to, "sh", "-euc", tt.unpack, "sh", the(t, dir, tt.file))
			got := tree(t, to)
			if tt.name == "deb" {
				got["usr/share/zsh/site-functions/_tenon"] = got["usr/share/zsh/vendor-completions/_tenon"]
				delete(got, "usr/share/zsh/vendor-completions/_tenon")
			}
			if deb == nil {
				deb = got
				for _, name := range []string{"usr/bin/tenon", "etc/tenon/tenon.yaml", "usr/lib/systemd/system/tenon.service",
					"usr/lib/systemd/system/tenon.socket", "usr/share/man/man1/tenon-serve.1.gz",
					"usr/share/zsh/site-functions/_tenon"} {
					if got[name] == "" {
						t.Errorf("no file %s", name)
					}
				}
				return
			}
			if diff := cmp.Diff(deb, got); diff != "" {
				t.Errorf("files (-deb +%s):\n%s", tt.name, diff)
			}
		})
	}
}

// distributionArch maps Go's names of processors to those of rpm, apk and Arch.
var distributionArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// tree returns the mode and the checksum of each file in a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	out := command(t, dir, "sh", "-euc", `find . -type f | while read -r f; do
		printf '%s %s\n' "$(stat -c '%a %U' "$f")" "$(sha256sum "$f")"
	done`)
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) != 4 {
			t.Fatalf("not a mode, an owner, a sum and a name: %q", line)
		}
		files[strings.TrimPrefix(words[3], "./")] = strings.Join(words[:3], " ")
	}
	return files
}

// TestReleaseScripts compares the scripts in the packages with those of the tree.
func TestReleaseScripts(t *testing.T) {
	dir := released(t)
	needs(t, "rpm")
	to := t.TempDir()
	command(t, to, "dpkg-deb", "--control", the(t, dir, "tenon_*_"+runtime.GOARCH+".deb"), to)
	for file, script := range map[string]string{"postinst": "postinstall.sh", "prerm": "preremove.sh",
		"postrm": "postremove.sh"} {
		want, err := os.ReadFile(filepath.Join(packagingDir, "scripts", script))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(to, file)); err != nil || string(got) != string(want) {
			t.Errorf("deb: %s is not %s: %v", file, script, err)
		}
		info, err := os.Stat(filepath.Join(to, file))
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("deb: %s: %v, %v", file, info.Mode(), err)
		}
	}
	file := the(t, dir, "tenon-*."+distributionArch[runtime.GOARCH]+".rpm")
	scripts := command(t, to, "rpm", "-qp", "--scripts", file)
	for _, kind := range []string{"postinstall", "preuninstall", "postuninstall"} {
		if !strings.Contains(scripts, kind+" scriptlet") {
			t.Errorf("rpm: no script %s in\n%s", kind, scripts)
		}
	}
	if got := command(t, to, "rpm", "-qp", "--configfiles", file); strings.TrimSpace(got) != "/etc/tenon/tenon.yaml" {
		t.Errorf("rpm: configuration files are %q", got)
	}
	if host := command(t, to, "rpm", "-qp", "--queryformat", "%{BUILDHOST}", file); host != "tenon" {
		t.Errorf("rpm: it names the machine %q", host)
	}
	conffiles, err := os.ReadFile(filepath.Join(to, "conffiles"))
	if err != nil || strings.TrimSpace(string(conffiles)) != "/etc/tenon/tenon.yaml" {
		t.Errorf("deb: conffiles are %q, %v", conffiles, err)
	}
}

// TestReleaseDeb installs the package of an older version into an empty root, changes its configuration, upgrades it,
// removes it and purges it.
func TestReleaseDeb(t *testing.T) {
	dir := released(t)
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 {
		t.Skip("needs dpkg and root")
	}
	deb, root := the(t, dir, "tenon_*_"+runtime.GOARCH+".deb"), t.TempDir()
	for _, name := range []string{"updates", "info", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"status", "available"} {
		if err := writeFile(filepath.Join(root, "var/lib/dpkg", name), nil); err != nil {
			t.Fatal(err)
		}
	}
	// The scripts run with this system's shell. systemd does not run where tests run: TestScripts.
	dpkg := func(args ...string) string {
		return command(t, root, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless",
			"--force-confold", "--log=" + filepath.Join(root, "dpkg.log")}, args...)...)
	}
	data := filepath.Join(root, "var/lib/private/tenon/store/tenon.db")
	if err := writeFile(data, []byte("runs")); err != nil {
		t.Fatal(err)
	}
	dpkg("--install", the(t, older(t, dir, "deb"), "tenon_*_"+runtime.GOARCH+".deb"))
	for _, name := range []string{"usr/lib/systemd/system/tenon.service", "usr/lib/systemd/system/tenon.socket",
		"usr/share/man/man1/tenon.1.gz",
		"usr/share/bash-completion/completions/tenon", "usr/share/doc/tenon/copyright", "etc/tenon/tenon.yaml"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	tenon := filepath.Join(root, "usr/bin/tenon")
	wantWorks(t, tenon)
	file := filepath.Join(root, "etc/tenon/tenon.yaml")
	command(t, root, tenon, "config", "validate", "-c", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text) + "# of the operator\n"
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := dpkg("--install", deb); !strings.Contains(got, "over (0.0.0~dev.0)") {
		t.Errorf("no upgrade: %s", got)
	}
	wantWorks(t, tenon)
	dpkg("--remove", "tenon")
	if got, err := os.ReadFile(file); err != nil || string(got) != changed {
		t.Errorf("an upgrade or a removal changed the operator's file: %v\n%s", err, got)
	}
	if _, err := os.Stat(tenon); !os.IsNotExist(err) {
		t.Errorf("the binary is still there: %v", err)
	}
	if _, err := os.Stat(data); err != nil {
		t.Errorf("a removal takes the store away: %v", err)
	}
	dpkg("--purge", "tenon")
	if _, err := os.Stat(filepath.Dir(filepath.Dir(data))); !os.IsNotExist(err) {
		t.Errorf("a purge leaves the store: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("a purge leaves /etc/tenon: %v", err)
	}
}
