package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// packed returns the names and texts of the files in a zip file or a compressed tar file.
func packed(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	if !strings.HasSuffix(path, ".tgz") {
		z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil {
				t.Fatal(err)
			}
			files[f.Name] = string(text)
		}
		return files
	}
	plain, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	text, err = io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return tarFiles(t, text)
}

func tarFiles(t *testing.T, text []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// TestREL_packedLicences: every package that holds the binary has the licence, and the notices of what is in it.
func TestREL_packedLicences(t *testing.T) {
	files, dist := t.TempDir(), fakeDist(t)
	if err := writeFile(filepath.Join(files, "NOTICES.txt"), []byte("notices")); err != nil {
		t.Fatal(err)
	}
	p := packaging{version: "1.2.3", dist: dist, to: t.TempDir(), made: time.Unix(1e9, 0).UTC(), root: "../.."}
	if err := p.readLicences(files); err != nil {
		t.Fatal(err)
	}
	for _, write := range []func(packaging) error{writeNPM, writeWheels, writeMCP} {
		if err := write(p); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name, folder string, got map[string]string) {
		if !strings.Contains(got[folder+"LICENSE"], "Apache License") || got[folder+"NOTICES.txt"] != "notices" {
			t.Errorf("%s has no LICENSE or no NOTICES.txt in %s", name, folder)
		}
	}
	count := 0
	for kind, folder := range map[string]string{"*.tgz": "package/", "*.mcpb": "",
		"*.whl": "tenon_mcp-1.2.3.dist-info/licenses/"} {
		list, err := filepath.Glob(filepath.Join(p.to, kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range list {
			count++
			got := packed(t, file)
			check(filepath.Base(file), folder, got)
			about := got["tenon_mcp-1.2.3.dist-info/METADATA"]
			if kind == "*.whl" && len(regexp.MustCompile(`(?m)^License-File: `).FindAllString(about, -1)) != 2 {
				t.Errorf("%s: METADATA does not name both files:\n%s", filepath.Base(file), about)
			}
		}
	}
	if count != 3*len(platforms)+1 {
		t.Errorf("%d packages", count)
	}
	var layer bytes.Buffer
	if err := p.layer(&layer, []byte("binary"), []byte("certificates")); err != nil {
		t.Fatal(err)
	}
	check("the image", "usr/share/doc/tenon/", tarFiles(t, layer.Bytes()))
}
