package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestREL_archive packs an archive twice: the same bytes, with the files that users look for and their modes.
func TestREL_archive(t *testing.T) {
	dist, here := fakeDist(t), platform{runtime.GOOS, runtime.GOARCH}
	files := t.TempDir()
	for _, name := range []string{"NOTICES.txt", "man/tenon.1.gz", "completions/_tenon"} {
		if err := writeFile(filepath.Join(files, filepath.FromSlash(name)), []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	var builds [2]map[string]string
	for i := range builds {
		p := packaging{version: "1.2.3", dist: dist, to: t.TempDir(), made: time.Unix(1e9, 0).UTC()}
		for _, pl := range []platform{here, {"windows", "amd64"}} {
			if err := p.archive(pl, "../..", files); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.checksums("../.."); err != nil {
			t.Fatal(err)
		}
		builds[i] = contents(t, p.to)
		if runtime.GOOS != "windows" && i == 0 {
			command(t, p.to, "sha256sum", "--check", "--quiet", "checksums.txt")
			list := command(t, p.to, "tar", "-tzvf", "tenon_1.2.3_"+here.String()+".tar.gz")
			var got []string
			for line := range strings.Lines(list) {
				words := strings.Fields(line)
				got = append(got, words[0]+" "+words[len(words)-1])
			}
			want := []string{"-rw-r--r-- CHANGELOG.md", "-rw-r--r-- LICENSE", "-rw-r--r-- NOTICES.txt",
				"-rw-r--r-- README.md", "-rw-r--r-- completions/_tenon", "-rw-r--r-- man/tenon.1.gz",
				"-rwxr-xr-x " + here.binary(), "-rw-r--r-- tenon.service", "-rw-r--r-- tenon.socket"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff(builds[0], builds[1]); diff != "" {
		t.Error("two archives of the same files differ")
	}
}
