package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pacmanConfig has pacman install packages of files, which nobody signed.
const pacmanConfig = "[options]\nArchitecture = auto\nSigLevel = Never\nLocalFileSigLevel = Never\n"

// tried installs, upgrades and removes a package in a root with this system's programs, in which systemctl only writes
// down its arguments. It prints what systemctl was told after each step, and what is left of the configuration.
const tried = `mount -t overlay -o "lowerdir=/usr,upperdir=$PWD/upper,workdir=$PWD/work" overlay root/usr
mount --bind packages root/opt
step() {
  echo "$1:"; shift
  chroot root /usr/bin/env -i HOME=/root PATH=/usr/bin:/usr/sbin sh -euc "$*" >output 2>&1 || { cat output; exit 1; }
  [ ! -e root/told ] || { cat root/told; rm root/told; }
}
step install "$INSTALL"
echo '# of the operator' >>root/etc/tenon/tenon.yaml
step upgrade "$UPGRADE"
tail -n 1 root/etc/tenon/tenon.yaml
step query "$QUERY >/told"
step remove "$REMOVE"
ls root/etc/tenon
test ! -e root/usr/bin/tenon
`

// TestReleasePackageManagers has rpm and pacman install, upgrade and remove packages with a stand-in of the binary: an
// upgrade restarts a running service and keeps the operator's file, and a removal stops the service.
func TestReleasePackageManagers(t *testing.T) {
	nfpm := os.Getenv("TENON_NFPM")
	if nfpm == "" || os.Getuid() != 0 {
		t.Skip("needs TENON_NFPM, the program that makes packages, and root; make installs has both")
	}
	const first = "install:\ndaemon-reload\ntry-restart tenon.service\n"
	const last = "remove:\ndisable --now tenon.socket tenon.service\ndaemon-reload\n"
	for _, tt := range []struct{ format, program, install, upgrade, query, remove, want string }{
		{"rpm", "rpm", "rpm --install --nodeps /opt/tenon-1.2.3~rc.9*.rpm",
			"rpm --upgrade --nodeps /opt/tenon-1.2.3~rc.10*.rpm", "rpm --query tenon", "rpm --erase tenon",
			first + "upgrade:\ndaemon-reload\ntry-restart tenon.service\ndaemon-reload\n# of the operator\nquery:\n" +
				"tenon-1.2.3~rc.10-1." + distributionArch[runtime.GOARCH] + "\n" + last + "tenon.yaml.rpmsave\n"},
		{"archlinux", "pacman", "pacman --upgrade --noconfirm /opt/tenon-1.2.3rc.9*.zst",
			"pacman --upgrade --noconfirm /opt/tenon-1.2.3rc.10*.zst", "pacman --query tenon",
			"pacman --remove --noconfirm tenon", first + "upgrade:\ndaemon-reload\ntry-restart tenon.service\n" +
				"# of the operator\nquery:\ntenon 1.2.3rc.10-1\n" + last + "tenon.yaml.pacsave\n"},
	} {
		t.Run(tt.format, func(t *testing.T) {
			needs(t, tt.program)
			dir := standIns(t, nfpm, tt.format)
			got := command(t, dir, "env", "INSTALL="+tt.install, "UPGRADE="+tt.upgrade, "QUERY="+tt.query,
				"REMOVE="+tt.remove,
				"unshare", "--mount", "sh", "-euc", tried)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// standIns makes a folder with packages of two versions, with stand-ins of all files that are built, and the folders of
// a root.
func standIns(t *testing.T, nfpm, format string) string {
	t.Helper()
	dir, dist := t.TempDir(), fakeDist(t)
	texts := map[string]string{"root/etc/pacman.conf": pacmanConfig, "files/NOTICES.txt": "notices",
		"files/man/tenon.1.gz": "manual", "files/completions/tenon.bash": "bash", "files/completions/_tenon": "zsh",
		"files/completions/tenon.fish": "fish", "upper/bin/systemctl": "#!/bin/sh\necho \"$*\" >>/told\n"}
	for name, text := range texts {
		if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "upper/bin/systemctl"), 0o755); err != nil {
		t.Fatal(err)
	}
	// sh of Fedora and Arch is bash, and nfpm's script for pacman is no script of another shell.
	if err := os.Symlink("bash", filepath.Join(dir, "upper/bin/sh")); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields("root/usr root/opt root/root root/tmp root/run/systemd/system work packages " +
		"root/var/lib/pacman root/var/cache/pacman/pkg root/proc root/dev") {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(dir, "root", name)); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "tree") // a copy: distributions changes the times of files
	if err := os.CopyFS(filepath.Join(root, "packaging"), os.DirFS(packagingDir)); err != nil {
		t.Fatal(err)
	}
	licence, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(root, "LICENSE"), licence); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1.2.3-rc.9", "1.2.3-rc.10"} {
		p := packaging{version: version, dist: dist, to: filepath.Join(dir, "packages"), made: time.Unix(1e9, 0)}
		if err := p.distributions(t.Context(), nfpm, here(), root, filepath.Join(dir, "files"), format); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
