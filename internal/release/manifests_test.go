package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// manifestsOf returns the manifests of a release with stand-ins of archives, and the checksums of the archives.
func manifestsOf(t *testing.T, notarized bool) (texts map[string]string, p packaging) {
	t.Helper()
	p = packaging{version: "1.2.3", to: t.TempDir(), made: time.Unix(1e9, 0).UTC()}
	for _, pl := range platforms {
		if err := writeFile(filepath.Join(p.to, archiveName("1.2.3", pl)), []byte(pl.String())); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.checksums("../.."); err != nil {
		t.Fatal(err)
	}
	if err := p.manifests(notarized); err != nil {
		t.Fatal(err)
	}
	texts = map[string]string{}
	for _, m := range managerFiles {
		text, err := os.ReadFile(filepath.Join(p.to, "manifests", filepath.FromSlash(m.path)))
		if err != nil {
			t.Fatal(err)
		}
		texts[m.path] = string(text)
	}
	return texts, p
}

// wantArchive checks the address and the checksum of an archive.
func (p packaging) wantArchive(t *testing.T, pl platform, url, sum string) {
	t.Helper()
	name := archiveName(p.version, pl)
	if want := "https://github.com/tenonhq/tenon/releases/download/v1.2.3/" + name; url != want {
		t.Errorf("%s: address %q, want %q", pl, url, want)
	}
	if want, err := p.sumOf(name); err != nil || sum != want || len(sum) != 64 {
		t.Errorf("%s: checksum %q, want %q, %v", pl, sum, want, err)
	}
}

// TestREL_scoop parses the manifest of Scoop.
func TestREL_scoop(t *testing.T) {
	texts, p := manifestsOf(t, false)
	var m struct {
		Version, License, Bin string
		Architecture          map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal([]byte(texts["scoop/tenon.json"]), &m); err != nil {
		t.Fatal(err)
	}
	if m.Version != "1.2.3" || m.License != "Apache-2.0" || m.Bin != "tenon.exe" || len(m.Architecture) != 2 {
		t.Errorf("%+v", m)
	}
	p.wantArchive(t, platform{"windows", "amd64"}, m.Architecture["64bit"].URL, m.Architecture["64bit"].Hash)
	p.wantArchive(t, platform{"windows", "arm64"}, m.Architecture["arm64"].URL, m.Architecture["arm64"].Hash)
}

// TestREL_winget parses the three files of winget.
func TestREL_winget(t *testing.T) {
	texts, p := manifestsOf(t, false)
	for path, kind := range map[string]string{"winget/tenonhq.tenon.yaml": "version",
		"winget/tenonhq.tenon.locale.en-US.yaml": "defaultLocale", "winget/tenonhq.tenon.installer.yaml": "installer"} {
		var m struct {
			ID         string                                                    `yaml:"PackageIdentifier"`
			Version    string                                                    `yaml:"PackageVersion"`
			Kind       string                                                    `yaml:"ManifestType"`
			Format     string                                                    `yaml:"ManifestVersion"`
			Short      string                                                    `yaml:"ShortDescription"`
			Nested     []struct{ RelativeFilePath, PortableCommandAlias string } `yaml:"NestedInstallerFiles"`
			Installers []struct {
				Architecture string `yaml:"Architecture"`
				URL          string `yaml:"InstallerUrl"`
				Sum          string `yaml:"InstallerSha256"`
			} `yaml:"Installers"`
		}
		if err := yaml.Unmarshal([]byte(texts[path]), &m); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if m.ID != "tenonhq.tenon" || m.Version != "1.2.3" || m.Kind != kind || m.Format != "1.6.0" {
			t.Errorf("%s: %+v", path, m)
		}
		if kind == "defaultLocale" && (m.Short == "" || len(m.Short) > 256) {
			t.Errorf("a short description of %d characters", len(m.Short))
		}
		if kind != "installer" {
			continue
		}
		if len(m.Installers) != 2 || m.Installers[0].Architecture != "x64" || m.Installers[1].Architecture != "arm64" {
			t.Fatalf("installers: %+v", m.Installers)
		}
		p.wantArchive(t, platform{"windows", "amd64"}, m.Installers[0].URL, m.Installers[0].Sum)
		p.wantArchive(t, platform{"windows", "arm64"}, m.Installers[1].URL, m.Installers[1].Sum)
	}
}

// TestREL_cask reads Homebrew's cask. Where Ruby is installed, it checks the syntax.
func TestREL_cask(t *testing.T) {
	for _, notarized := range []bool{false, true} {
		texts, p := manifestsOf(t, notarized)
		cask := texts["homebrew/Casks/tenon.rb"]
		found := regexp.MustCompile(`url "(.*)"\n +sha256 "(.*)"`).FindAllStringSubmatch(cask, -1)
		if len(found) != 4 {
			t.Fatalf("%d archives in\n%s", len(found), cask)
		}
		for i, pl := range []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}} {
			p.wantArchive(t, pl, found[i][1], found[i][2])
		}
		words := strings.Fields(cask)
		count := func(word string) (n int) {
			for _, w := range words {
				if w == word {
					n++
				}
			}
			return n
		}
		if opened := count("do") + count("if"); opened != count("end") || opened < 7 {
			t.Errorf("%d blocks begin, %d end:\n%s", opened, count("end"), cask)
		}
		if got := strings.Contains(cask, "com.apple.quarantine"); got == notarized {
			t.Errorf("notarized: %v; hook that removes the quarantine: %v", notarized, got)
		}
		if ruby, err := exec.LookPath("ruby"); err == nil {
			command(t, p.to, ruby, "-c", "manifests/homebrew/Casks/tenon.rb")
		}
	}
}

// TestREL_nix reads the Nix expression. Where Nix is installed, it checks the syntax.
func TestREL_nix(t *testing.T) {
	texts, p := manifestsOf(t, false)
	text := texts["nix/tenon.nix"]
	found := regexp.MustCompile(`(\S+) = \{\n +url = "(.*)";\n +sha256 = "(.*)";\n +\};`).FindAllStringSubmatch(text, -1)
	systems := map[string]platform{"x86_64-linux": {"linux", "amd64"}, "aarch64-linux": {"linux", "arm64"},
		"x86_64-darwin": {"darwin", "amd64"}, "aarch64-darwin": {"darwin", "arm64"}}
	if len(found) != len(systems) {
		t.Fatalf("%d archives in\n%s", len(found), text)
	}
	for _, m := range found {
		p.wantArchive(t, systems[m[1]], m[2], m[3])
	}
	var open []rune // brackets, outside texts
	pairs := map[rune]rune{'}': '{', ']': '[', ')': '('}
	plain := regexp.MustCompile(`(?s)''.*?''|"[^"]*"|#[^\n]*`).ReplaceAllString(text, "")
	for _, r := range plain {
		switch {
		case strings.ContainsRune("{[(", r):
			open = append(open, r)
		case pairs[r] != 0 && (len(open) == 0 || open[len(open)-1] != pairs[r]):
			t.Fatalf("%c closes nothing", r)
		case pairs[r] != 0:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 || strings.Contains(plain, `"`) {
		t.Errorf("open at the end: %q", string(open))
	}
	if nix, err := exec.LookPath("nix-instantiate"); err == nil {
		command(t, p.to, nix, "--parse", "manifests/nix/tenon.nix")
	}
}

// TestREL_notarize runs the script that signs for macOS with a stand-in of rcodesign.
func TestREL_notarize(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	dir := t.TempDir()
	script, err := filepath.Abs(filepath.Join(packagingDir, "scripts", "notarize.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rcodesign", "zip"} {
		text := "#!/bin/sh\necho \"" + name + " $*\" >>\"$NOTES\"\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(env ...string) (string, error) {
		cmd := exec.Command("sh", script, filepath.Join(dir, "tenon"))
		cmd.Env = append(env, "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "NOTES="+
			filepath.Join(dir, "notes"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err == nil || !strings.Contains(out, "TENON_APPLE_P12 has to name a readable file") {
		t.Errorf("without a certificate: %v, %s", err, out)
	}
	key := filepath.Join(dir, "key")
	if err := writeFile(key, []byte("x")); err != nil {
		t.Fatal(err)
	}
	out, err := run("TENON_APPLE_P12="+key, "TENON_APPLE_P12_PASS="+key, "TENON_APPLE_API_KEY="+key)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	notes, err := os.ReadFile(filepath.Join(dir, "notes"))
	if err != nil {
		t.Fatal(err)
	}
	want := `rcodesign sign .*--code-signature-flags runtime \S+/tenon\nzip .*/tenon.zip \S+/tenon\n` +
		`rcodesign notary-submit --api-key-file \S+/key --wait \S+/tenon.zip\n`
	if !regexp.MustCompile("^" + want + "$").Match(notes) {
		t.Errorf("it ran\n%s", notes)
	}
}
