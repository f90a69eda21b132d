package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The largest permitted sizes of stripped binaries, in bytes: of Linux for amd64, which figure P12.bin measures, and of
// the other platforms. The same program is up to 700 kB larger for macOS and Windows.
const (
	maxBinary      = 55_000_000
	maxOtherBinary = 55_700_000
)

// released returns the folder with the release that make release-dry-run has made.
func released(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TENON_RELEASE")
	if dir == "" {
		t.Skip("make installs and make release-dry-run start it")
	}
	return dir
}

// needs fails the test if a program is missing. Skipping would hide that the release was not installed.
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

// command runs a program in a folder. Of the user's environment it keeps only PATH.
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

// wantWorks checks that an installed tenon prints its version and answers a question in an empty HOME.
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
		bound := int64(maxOtherBinary)
		if p.String() == "linux_amd64" {
			bound = maxBinary
		}
		if info.Size() > bound {
			t.Errorf("%s has %d bytes, bound %d", p, info.Size(), bound)
		}
	}
}

// TestReleaseReproducible builds the release of this platform once more, in another folder, and compares all bytes. If
// the release has another platform, its archive is made again, too.
func TestReleaseReproducible(t *testing.T) {
	dir := released(t)
	root := filepath.Join(t.TempDir(), "another place")
	command(t, t.TempDir(), "git", "clone", "-q", dir+"-clone", filepath.Join(root, "tree"))
	again := filepath.Join(root, "release")
	archive := the(t, dir, "tenon_*_"+here().String()+".tar.gz")
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archive), "tenon_"), "_"+here().String()+".tar.gz")
	if err := os.MkdirAll(filepath.Join(root, "tree/web/app"), 0o755); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("../../web/app/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(root, "tree/web/app/node_modules")); err != nil {
		t.Fatal(err)
	}
	b := build{root: filepath.Join(root, "tree"), version: version, to: again, nfpm: os.Getenv("TENON_NFPM"),
		hugo: os.Getenv("TENON_HUGO"), platforms: []platform{here()}}
	for _, p := range []platform{{"windows", "amd64"}, {"darwin", "arm64"}} { // a zip file, and one more tarball
		if _, err := os.Stat(filepath.Join(dir, "bin", p.String())); err == nil {
			b.platforms = append(b.platforms, p)
		}
	}
	if err := b.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	compared := 0
	err = filepath.WalkDir(again, func(path string, d os.DirEntry, err error) error {
		name, relErr := filepath.Rel(again, path)
		if err != nil || relErr != nil || d.IsDir() || name == "checksums.txt" || partial(name, b.platforms) {
			return errors.Join(err, relErr)
		}
		second, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if first, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs between two builds of one commit: %v", name, err)
		}
		compared++
		return nil
	})
	if err != nil || compared < 10 {
		t.Errorf("%d files compared, %v", compared, err)
	}
	t.Logf("%d files of %v are the same bytes", compared, b.platforms)
}

// partial reports that a file names all platforms of a release, and so differs in a release of fewer.
func partial(name string, built []platform) bool {
	if len(built) == 1 && os.Getenv("TENON_RELEASE_ALL") == "" {
		return false
	}
	return strings.HasPrefix(name, "image") || strings.HasPrefix(filepath.Base(name), "tenon-") &&
		strings.HasSuffix(name, ".tgz") || filepath.Base(name) == "server.json"
}

// TestReleaseArchive verifies the checksums as a user does, and runs the program in the archive.
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

// TestReleaseWheel installs the wheel of this platform from the folder of the release into a new environment.
func TestReleaseWheel(t *testing.T) {
	dir := released(t)
	env := filepath.Join(t.TempDir(), "env")
	if out, err := exec.Command("python3", "-m", "venv", env).CombinedOutput(); err != nil {
		t.Fatalf("needs python3 with venv to install the release: %v: %s", err, out)
	}
	command(t, env, filepath.Join(env, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "--no-index",
		"--pre", "--find-links", filepath.Join(dir, "pypi"), wheelName)
	wantWorks(t, filepath.Join(env, "bin", "tenon"))
	wantWorks(t, filepath.Join(env, "bin", wheelName))
}

// TestReleaseUV has uv run the wheel of this platform, as uvx does, and install it as a tool, with the flags of
// docs/guide/operating.md.
func TestReleaseUV(t *testing.T) {
	dir, uv, home := released(t), os.Getenv("TENON_UV"), t.TempDir()
	if uv == "" {
		t.Fatal("needs TENON_UV, the program uv, to install the release")
	}
	flags := []string{"--prerelease", "allow", "--no-index", "--find-links", filepath.Join(dir, "pypi")}
	run := append(append([]string{"tool", "run"}, flags...), "--from", wheelName, "tenon", "demo")
	if got := command(t, home, uv, run...); !strings.Contains(got, "15°C") {
		t.Errorf("uvx: %s", got)
	}
	command(t, home, uv, append(append([]string{"tool", "install"}, flags...), wheelName)...)
	wantWorks(t, filepath.Join(home, ".local", "bin", "tenon"))
	wantWorks(t, filepath.Join(home, ".local", "bin", wheelName))
}

// TestReleaseNPM installs this platform's npm packages from the folder of the release into an empty folder.
func TestReleaseNPM(t *testing.T) {
	dir := released(t)
	needs(t, "npm")
	to, here := t.TempDir(), npmNames[runtime.GOOS]+"-"+npmNames[runtime.GOARCH]
	command(t, to, "npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", to,
		the(t, dir, "npm", "tenonhq-tenon-"+here+"-*.tgz"), the(t, dir, "npm", "tenon-*.tgz"))
	wantWorks(t, filepath.Join(to, "node_modules", ".bin", "tenon"))
}

// TestReleaseSBOM compares the bill of materials with what the go command says about the binary, and with what npm
// installed for the workbench.
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
	web, err := webPackages("../../web/app")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range web {
		if !got[p.name+" "+p.version] {
			t.Errorf("no component for %s %s", p.name, p.version)
		}
	}
	if modules < 10 || len(web) < 10 || len(got) != modules+len(web) {
		t.Errorf("%d components for %d modules and %d packages of npm", len(got), modules, len(web))
	}
}

// TestReleaseMCPB unpacks this platform's MCP bundle and checks that its gateway answers a client.
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

// TestReleaseInstallScript signs the checksums of the release, and installs the release with install.sh from a local
// server.
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
