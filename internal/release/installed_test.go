package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// maxBinary bounds the size of a stripped binary, in bytes.
const maxBinary = 55_000_000

// released returns the folder with a release, which make release-dry-run made.
func released(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TENON_RELEASE")
	if dir == "" {
		t.Skip("make installs and make release-dry-run start it")
	}
	return dir
}

// needs fails if a program is missing: a release that was not installed was not tried.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("needs %s to install the release", program)
	}
}

// the returns the only file that matches a pattern.
func the(t *testing.T, pattern ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %d files, %v", filepath.Join(pattern...), len(found), err)
	}
	return found[0]
}

// command runs a program in a folder with nothing of this user's environment but PATH.
func command(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// wantWorks has a tenon say what it is and answer a question in an empty HOME.
func wantWorks(t *testing.T, tenon string) {
	t.Helper()
	home := t.TempDir()
	var v struct {
		Revision string
		Time     string
		Modified bool
	}
	text := command(t, home, tenon, "version", "-o", "json")
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(v.Revision) != 40 || v.Time == "" || v.Modified {
		t.Errorf("not the version of a clean checkout: %s", text)
	}
	command(t, home, tenon, "init")
	if got := command(t, home, tenon, "run", "-q", "What is the weather in London?"); !strings.Contains(got, "15°C") {
		t.Errorf("it answered %q", got)
	}
}

func TestReleaseBinaries(t *testing.T) {
	dir := released(t)
	for _, p := range platforms {
		info, err := os.Stat(filepath.Join(dir, "bin", p.String(), p.binary()))
		if os.IsNotExist(err) {
			t.Logf("%s was not built", p)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", p, info.Size())
		if info.Size() > maxBinary {
			t.Errorf("%s has %d bytes, bound %d", p, info.Size(), maxBinary)
		}
	}
}

// TestReleaseReproducible builds the commit once more, in another folder, and compares the bytes.
func TestReleaseReproducible(t *testing.T) {
	dir := released(t)
	clone := filepath.Join(t.TempDir(), "another place")
	command(t, t.TempDir(), "git", "clone", "-q", dir+"-clone", clone)
	if err := buildBinary(t.Context(), clone, filepath.Join(clone, "again")); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(dir, "bin", runtime.GOOS+"_"+runtime.GOARCH, "tenon"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(clone, "again"))
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(again) {
		t.Errorf("two builds of one commit differ: %d and %d bytes", len(first), len(again))
	}
}

// TestReleaseArchive checks the checksums as a user does, and uses what is in the archive.
func TestReleaseArchive(t *testing.T) {
	dir := released(t)
	command(t, dir, "sha256sum", "--check", "--quiet", "checksums.txt")
	to := t.TempDir()
	command(t, to, "tar", "-xzf", the(t, dir, "tenon_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	for _, name := range []string{"LICENSE", "NOTICES.txt", "README.md", "CHANGELOG.md", "tenon.service", "tenon.socket",
		"man/tenon.1.gz", "man/tenon-tools-call.1.gz", "completions/tenon.bash", "completions/_tenon"} {
		if _, err := os.Stat(filepath.Join(to, name)); err != nil {
			t.Error(err)
		}
	}
	wantWorks(t, filepath.Join(to, "tenon"))
}

// TestReleaseDeb installs the package into an empty root, changes its configuration, installs it once more as an
// upgrade does, removes it and purges it.
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
	dpkg("--install", deb)
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
	dpkg("--install", deb)
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

// TestReleaseWheel installs the wheel of this platform from the folder of the release into a new environment.
func TestReleaseWheel(t *testing.T) {
	dir := released(t)
	env := filepath.Join(t.TempDir(), "env")
	if out, err := exec.Command("python3", "-m", "venv", env).CombinedOutput(); err != nil {
		t.Fatalf("needs python3 with venv to install the release: %v: %s", err, out)
	}
	command(t, env, filepath.Join(env, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "--no-index",
		"--pre", "--find-links", filepath.Join(dir, "pypi"), "tenon")
	wantWorks(t, filepath.Join(env, "bin", "tenon"))
}

// TestReleaseNPM installs the packages of this platform from the folder of the release into an empty folder.
func TestReleaseNPM(t *testing.T) {
	dir := released(t)
	needs(t, "npm")
	to, here := t.TempDir(), npmNames[runtime.GOOS]+"-"+npmNames[runtime.GOARCH]
	command(t, to, "npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", to,
		the(t, dir, "npm", "tenonhq-tenon-"+here+"-*.tgz"), the(t, dir, "npm", "tenon-*.tgz"))
	wantWorks(t, filepath.Join(to, "node_modules", ".bin", "tenon"))
}

// TestReleaseSBOM compares the bill of materials with what the go command says about the binary.
func TestReleaseSBOM(t *testing.T) {
	dir, here := released(t), runtime.GOOS+"_"+runtime.GOARCH
	text, err := os.ReadFile(the(t, dir, "sbom", "tenon_*_"+here+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, c := range b.Components {
		got[c.Name+" "+c.Version] = true
	}
	out, err := execOutput([]string{"go", "version", "-m", the(t, dir, "bin", here, "tenon*")})
	if err != nil {
		t.Fatal(err)
	}
	modules := 1 // the standard library
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "dep" {
			modules++
			if !got[words[1]+" "+words[2]] {
				t.Errorf("no component for %s %s", words[1], words[2])
			}
		}
	}
	if modules < 10 || len(got) != modules {
		t.Errorf("%d components for %d modules", len(got), modules)
	}
}

// TestReleaseMCPB unpacks the bundle of this platform and has its gateway answer a client.
func TestReleaseMCPB(t *testing.T) {
	dir := released(t)
	unpackedTo := unpacked(t, the(t, dir, "mcp", "tenon_*_"+runtime.GOOS+"_"+runtime.GOARCH+".mcpb"))
	home := t.TempDir()
	config := filepath.Join(home, "tenon.yaml")
	words := bundleCommand(t, unpackedTo, config)
	command(t, home, words[0], "init")
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":` +
		`"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"serverInfo"`) {
		t.Errorf("%v: the gateway answered %q", err, out)
	}
}

// TestReleaseInstallScript signs the release's checksums and installs it with install.sh from a server on this machine.
func TestReleaseInstallScript(t *testing.T) {
	dir := released(t)
	i := newInstalled(t)
	archive := the(t, dir, "tenon_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
	version := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(archive), "_"+runtime.GOOS+"_"+runtime.GOARCH+
		".tar.gz"), "tenon_")
	i.version, i.files = version, map[string]string{}
	for _, file := range []string{archive, filepath.Join(dir, "checksums.txt")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		i.files[filepath.Base(file)] = string(text)
	}
	i.sign()
	if out, err := i.run("--to", filepath.Join(i.home, "bin")); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantWorks(t, filepath.Join(i.home, "bin", "tenon"))
}
