package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// installed runs packaging/install.sh in an empty HOME against a local server with releases.
type installed struct {
	t          *testing.T
	home, keys string // folders
	version    string
	files      map[string]string // files of the release, by name
	script     string
	env        []string
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	script, err := os.ReadFile(filepath.Join(packagingDir, "install.sh"))
	if err != nil {
		t.Fatal(err)
	}
	i := &installed{t: t, version: "1.2.3", home: t.TempDir(), keys: t.TempDir(), script: string(script), files: map[string]string{}}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	text := "#!/bin/sh\necho \"tenon 1.2.3, binary: $*\"\n"
	for name, text := range map[string]string{"LICENSE": "x", "tenon": text} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	name := "tenon_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	i.files[name] = b.String()
	i.files["checksums.txt"] = fmt.Sprintf("%x  other.tar.gz\n%x  %s\n", sha256.Sum256(nil), sha256.Sum256(b.Bytes()), name)
	return i
}

// archive returns the name of this platform's archive.
func (i *installed) archive() string {
	return "tenon_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
}

// sign makes a key, signs the checksums with it as a release does, and writes the file of signers.
func (i *installed) sign() {
	i.t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		i.t.Skip("needs ssh-keygen")
	}
	i.files["checksums.txt.sig"] = string(signed(i.t, i.keys, []byte(i.files["checksums.txt"])))
	i.env = []string{"TENON_SIGNERS=" + filepath.Join(i.keys, "signers")}
}

// signed generates a key in a folder, writes the file of allowed signers, and returns the signature of a text.
func signed(t *testing.T, dir string, text []byte) []byte {
	t.Helper()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "checksums.txt")
	command(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "release@tenon", "-f", key)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "ssh-keygen", "-Y", "sign", "-n", "tenon-release", "-f", key, file)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	line := "release@tenon namespaces=\"tenon-release\" " + string(public)
	if err := os.WriteFile(filepath.Join(dir, "signers"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run serves the files and pipes the script into sh, as users do.
func (i *installed) run(args ...string) (string, error) {
	i.t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch name, ok := strings.CutPrefix(r.URL.Path, "/download/v"+i.version+"/"); {
		case r.URL.Path == "/latest":
			http.Redirect(w, r, "/tag/v"+i.version, http.StatusFound)
		case r.URL.Path == "/tag/v"+i.version:
		case ok && i.files[name] != "":
			_, _ = w.Write([]byte(i.files[name]))
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	cmd := exec.Command("sh", append([]string{"-s", "--"}, args...)...)
	cmd.Stdin = strings.NewReader(i.script)
	cmd.Dir = i.home
	cmd.Env = append([]string{"HOME=" + i.home, "PATH=" + os.Getenv("PATH"), "TENON_DOWNLOADS=" + web.URL, "TMPDIR=" +
		i.t.TempDir(), "no_proxy=*"}, i.env...)
	out, err := cmd.CombinedOutput()
	left, _ := filepath.Glob(filepath.Join(i.home, "bin", ".tenon*"))
	if len(left) > 0 {
		i.t.Errorf("it leaves %v", left)
	}
	return string(out), err
}

// TestREL_installScript installs a complete release, and checks that damaged or incomplete ones are refused.
func TestREL_installScript(t *testing.T) {
	tests := []struct {
		name   string
		change func(*installed)
		args   []string
		want   string // in the output
		fails  bool
	}{
		{"signed", nil, []string{"--version", "v1.2.3"}, "tenon 1.2.3, binary: version is in ", false},
		{"latest", nil, nil, "is in ", false},
		{"version without v", nil, []string{"--version", "1.2.3"}, "export PATH=", false},
		{"without a key", func(i *installed) { i.env = nil }, nil, "no signature was checked: this script has no key", false},
		{"archive was changed", func(i *installed) { i.files[i.archive()] += "x" }, nil, "another checksum", true},
		{"checksums were changed", func(i *installed) { i.files["checksums.txt"] += "#\n" }, nil, "is not of a known key", true},
		{"no signature", func(i *installed) { delete(i.files, "checksums.txt.sig") }, nil, "checksums.txt.sig cannot be downloaded", true},
		{"signature of another", func(i *installed) {
			i.files["checksums.txt.sig"] = string(signed(i.t, i.t.TempDir(), []byte(i.files["checksums.txt"])))
		}, nil, "is not of a known key", true},
		{"no line of checksums", func(i *installed) { i.files["checksums.txt"], i.env = "x\n", nil }, nil, "has no line for", true},
		{"no such version", nil, []string{"--version", "v9.9.9"}, "cannot be downloaded", true},
		{"not a version", nil, []string{"--version", "v1/../../x"}, "is no version", true},
		{"unknown argument", nil, []string{"--force"}, "unknown argument --force", true},
		{"the script ends early", func(i *installed) {
			i.script = i.script[:strings.LastIndex(i.script, "printf")]
		}, nil, "", true},
		{"the last line is missing", func(i *installed) {
			i.script = strings.TrimSuffix(i.script, "main \"$@\"\n")
		}, nil, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newInstalled(t)
			i.sign()
			if tt.change != nil {
				tt.change(i)
			}
			program := filepath.Join(i.home, "bin", "tenon")
			if err := writeFile(program, []byte("old")); err != nil {
				t.Fatal(err)
			}
			out, err := i.run(append([]string{"--to", filepath.Join(i.home, "bin")}, tt.args...)...)
			if !strings.Contains(out, tt.want) || err != nil && !tt.fails {
				t.Errorf("%v: %q, want %q", err, out, tt.want)
			}
			text, readErr := os.ReadFile(program)
			if readErr != nil || (string(text) == "old") != tt.fails {
				t.Errorf("%v: the program is now %q", readErr, text)
			}
		})
	}
}

// TestREL_installScriptTools runs the script with alternatives to curl and sha256sum, which a system may not have.
func TestREL_installScriptTools(t *testing.T) {
	for _, without := range [][]string{{"curl"}, {"sha256sum", "shasum"}, {"curl", "wget"}} {
		t.Run(strings.Join(without, "_"), func(t *testing.T) {
			i := newInstalled(t)
			bin := t.TempDir()
			for _, name := range []string{"sh", "uname", "mktemp", "rm", "sed", "tail", "tr", "cut", "tar", "gzip", "mkdir", "mv",
				"chmod", "cat", "id", "cp", "curl", "wget", "sha256sum", "openssl"} {
				path, err := exec.LookPath(name)
				if err != nil || strings.Contains(" "+strings.Join(without, " ")+" ", " "+name+" ") {
					continue
				}
				if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
					t.Fatal(err)
				}
			}
			for _, needed := range []string{"wget", "openssl"} {
				if _, err := os.Lstat(filepath.Join(bin, needed)); err != nil && len(without) != 2 {
					t.Skipf("needs %s", needed)
				}
			}
			i.env = []string{"PATH=" + bin}
			out, err := i.run("--to", filepath.Join(i.home, "bin"))
			if len(without) == 2 && without[1] == "wget" {
				if err == nil || !strings.Contains(out, "curl or wget is needed") {
					t.Errorf("%v: %s", err, out)
				}
				return
			}
			if err != nil || !strings.Contains(out, "tenon 1.2.3") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
