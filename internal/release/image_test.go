package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// imageConfig is the part of an image's configuration that the tests read.
type imageConfig struct {
	OS, Architecture string
	Config           struct {
		User            string
		Entrypoint, Cmd []string
		Env             []string
	}
	Rootfs struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

// image is one image of an OCI layout.
type image struct {
	config imageConfig
	layer  []byte // plain tar
}

// blobText reads a blob and checks its size and digest.
func blobText(t *testing.T, dir string, d descriptor) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "blobs", strings.ReplaceAll(d.Digest, ":", "/")))
	if err != nil {
		t.Fatal(err)
	}
	if digestOf(text) != d.Digest || len(text) != d.Size {
		t.Errorf("blob %s has the digest %s and %d bytes, want %d", d.Digest, digestOf(text), len(text), d.Size)
	}
	return text
}

// readImages reads an OCI layout. It checks that every blob is referenced and has the right digest.
func readImages(t *testing.T, dir string) map[string]image {
	t.Helper()
	into := func(text []byte, v any) {
		t.Helper()
		if err := json.Unmarshal(text, v); err != nil {
			t.Fatal(err)
		}
	}
	var top, all imageManifest
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	into(text, &top)
	into(blobText(t, dir, top.Manifests[0]), &all)
	images, blobs := map[string]image{}, 1
	for _, d := range all.Manifests {
		var m imageManifest
		var i image
		into(blobText(t, dir, d), &m)
		into(blobText(t, dir, *m.Config), &i.config)
		z, err := gzip.NewReader(bytes.NewReader(blobText(t, dir, m.Layers[0])))
		if err != nil {
			t.Fatal(err)
		}
		if i.layer, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
		if got := digestOf(i.layer); len(m.Layers) != 1 || !cmp.Equal(i.config.Rootfs.DiffIDs, []string{got}) {
			t.Errorf("diff_ids %v, want %s", i.config.Rootfs.DiffIDs, got)
		}
		if i.config.OS != d.Platform.OS || i.config.Architecture != d.Platform.Architecture {
			t.Errorf("platform %+v, configuration %s/%s", d.Platform, i.config.OS, i.config.Architecture)
		}
		images[d.Platform.OS+"_"+d.Platform.Architecture] = i
		blobs += 3
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256")); err != nil || len(entries) != blobs {
		t.Errorf("%d blobs, want %d: %v", len(entries), blobs, err)
	}
	return images
}

// TestREL_image writes an OCI layout twice. Both times the bytes are the same, and there is one image for each Linux
// platform. It needs no root rights.
func TestREL_image(t *testing.T) {
	if _, err := authorities(); err != nil {
		t.Skip(err)
	}
	dist := fakeDist(t)
	var builds [2]string
	for i := range builds {
		builds[i] = t.TempDir()
		p := packaging{version: "1.2.3", dist: dist, to: builds[i], made: time.Unix(1e9, 0).UTC()}
		if err := writeImage(p); err != nil {
			t.Fatal(err)
		}
	}
	images := readImages(t, builds[0])
	if len(images) != 2 {
		t.Errorf("%d images, want linux_amd64 and linux_arm64", len(images))
	}
	for _, name := range []string{"index.json", "blobs/sha256"} {
		a, _ := filepath.Glob(filepath.Join(builds[0], name, "*"))
		for _, file := range append(a, filepath.Join(builds[0], "index.json")) {
			other := strings.Replace(file, builds[0], builds[1], 1)
			first, err := os.ReadFile(file)
			again, err2 := os.ReadFile(other)
			if err := errors.Join(err, err2); err != nil || !bytes.Equal(first, again) {
				t.Errorf("%s differs between two builds: %v", file, err)
			}
		}
	}
	for name, i := range images {
		if i.config.Config.User != "65532:65532" || i.config.Config.Entrypoint[0] != "/usr/bin/tenon" {
			t.Errorf("%s: configuration %+v", name, i.config.Config)
		}
		modes, r := map[string]int64{}, tar.NewReader(bytes.NewReader(i.layer))
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			modes[h.Name] = h.Mode
			if own := h.Name == "var/lib/tenon/"; own != (h.Uid == imageUser) || !own && h.Uid != 0 {
				t.Errorf("%s: %s belongs to %d", name, h.Name, h.Uid)
			}
			if h.Mode&0o6000 != 0 || h.Mode&0o022 != 0 && h.Name != "tmp/" {
				t.Errorf("%s: %s has the mode %o", name, h.Name, h.Mode)
			}
		}
		if modes["usr/bin/tenon"] != 0o755 || modes["etc/ssl/certs/ca-certificates.crt"] != 0o644 {
			t.Errorf("%s: files %v", name, modes)
		}
	}
}

// unpackRoot unpacks a layer into a new folder that every user may enter.
func unpackRoot(t *testing.T, layer []byte) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("images are for Linux")
	}
	root, err := os.MkdirTemp("", "tenon-image-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return root
		} else if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			text, rerr := io.ReadAll(r)
			err = errors.Join(rerr, writeFile(to, text))
		}
		if err == nil {
			err = os.Chmod(to, h.FileInfo().Mode())
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(to, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
