package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// imageUser is the user id in the image. Many distroless images use this id for the user nonroot.
const imageUser = 65532

// certificateFiles are the paths of CA certificates on the systems that build releases.
var certificateFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
}

// Media types of https://github.com/opencontainers/image-spec/blob/v1.1.1/media-types.md
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor refers to a blob of the layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"` // sha256:HEX
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

// imageManifest is the manifest of an image for one platform. If Manifests is set, it is the index of the images for
// all platforms.
type imageManifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        *descriptor       `json:"config,omitempty"`
	Layers        []descriptor      `json:"layers,omitempty"`
	Manifests     []descriptor      `json:"manifests,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// writeImage writes the images of Linux as an OCI layout (https://github.com/opencontainers/image-spec), which skopeo,
// crane and podman copy into a registry: skopeo copy --all oci:FOLDER:VERSION docker://…. An image has the static
// binary, the certificates of the machine that builds it, and two folders that its user may write. It has no shell.
func writeImage(p packaging) error {
	version, err := plainVersion(p.version)
	if err != nil {
		return err
	}
	found, err := p.binaries()
	if err != nil {
		return err
	}
	certificates, err := authorities()
	if err != nil {
		return err
	}
	all := imageManifest{SchemaVersion: 2, MediaType: typeIndex, Annotations: p.imageTexts(version)}
	for _, pl := range platforms {
		binary, ok := found[pl]
		if !ok || pl.os != "linux" {
			continue
		}
		d, err := p.imageOf(pl, version, binary, certificates)
		if err != nil {
			return err
		}
		all.Manifests = append(all.Manifests, d)
	}
	if len(all.Manifests) == 0 {
		return fmt.Errorf("%s has no binary for Linux", p.dist)
	}
	d, err := p.blobOf(typeIndex, all)
	if err != nil {
		return err
	}
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": version}
	top := imageManifest{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{d}}
	if err := writeJSON(filepath.Join(p.to, "index.json"), top); err != nil {
		return err
	}
	return writeFile(filepath.Join(p.to, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`))
}

// authorities returns the CA certificates of this machine.
func authorities() ([]byte, error) {
	for _, file := range certificateFiles {
		text, err := os.ReadFile(file)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	return nil, fmt.Errorf("no certificates of authorities in %v: install the package ca-certificates",
		certificateFiles)
}

// imageTexts are the annotations of images.
func (p packaging) imageTexts(version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title": "tenon", "org.opencontainers.image.description": summary,
		"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": licence,
		"org.opencontainers.image.source": homepage, "org.opencontainers.image.created": p.made.Format(time.RFC3339),
	}
}

// imageOf writes the image of a platform.
func (p packaging) imageOf(pl platform, version string, binary, certificates []byte) (descriptor, error) {
	none := descriptor{}
	plain := sha256.New()
	packed, err := p.texts.gzipped(func(w io.Writer) error {
		return p.layer(io.MultiWriter(w, plain), binary, certificates)
	})
	if err != nil {
		return none, err
	}
	sum := "sha256:" + hex.EncodeToString(plain.Sum(nil))
	layer, err := p.blob(typeLayer, packed)
	if err != nil {
		return none, err
	}
	config, err := p.blobOf(typeConfig, map[string]any{
		"created": p.made.Format(time.RFC3339), "os": pl.os, "architecture": pl.arch,
		"config": map[string]any{
			"User":       fmt.Sprintf("%d:%d", imageUser, imageUser),
			"Entrypoint": []string{"/usr/bin/tenon"},
			"Cmd": []string{"serve", "--config", "/etc/tenon/tenon.yaml", "--home", "/var/lib/tenon/store",
				"--no-input"},
			"Env": []string{"PATH=/usr/bin", "HOME=/var/lib/tenon", "XDG_STATE_HOME=/var/lib/tenon/state",
				"XDG_CACHE_HOME=/tmp"},
			"WorkingDir": "/var/lib/tenon",
			"Volumes":    map[string]any{"/var/lib/tenon": struct{}{}},
			"StopSignal": "SIGTERM",
			"Labels":     p.imageTexts(version),
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{sum}},
		"history": []any{map[string]any{"created": p.made.Format(time.RFC3339),
			"created_by": "internal/release image"}},
	})
	if err != nil {
		return none, err
	}
	d, err := p.blobOf(typeManifest, imageManifest{SchemaVersion: 2, MediaType: typeManifest, Config: &config,
		Layers: []descriptor{layer}})
	d.Platform = &imagePlatform{pl.os, pl.arch}
	return d, err
}

// layer writes the root file system as tar.
func (p packaging) layer(to io.Writer, binary, certificates []byte) error {
	users := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/var/lib/tenon:/sbin/nologin\n",
		imageUser, imageUser)
	groups := fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", imageUser)
	w := tar.NewWriter(to)
	type file struct {
		name string
		mode int64
		user int
		text []byte // nil for a folder
	}
	all := []file{
		{"etc/", 0o755, 0, nil}, {"etc/group", 0o644, 0, []byte(groups)}, {"etc/passwd", 0o644, 0, []byte(users)},
		{"etc/ssl/", 0o755, 0, nil}, {"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, certificates},
		{"etc/tenon/", 0o755, 0, nil}, {"tmp/", 0o1777, 0, nil}, {"usr/", 0o755, 0, nil}, {"usr/bin/", 0o755, 0, nil},
		{"usr/bin/tenon", 0o755, 0, binary}, {"usr/share/", 0o755, 0, nil}, {"usr/share/doc/", 0o755, 0, nil},
		{"usr/share/doc/tenon/", 0o755, 0, nil}, {"var/", 0o755, 0, nil}, {"var/lib/", 0o755, 0, nil},
		{"var/lib/tenon/", 0o700, imageUser, nil},
	}
	for _, e := range p.licences {
		all = append(all, file{"usr/share/doc/tenon/" + e.name, e.mode, 0, e.text})
	}
	for _, e := range all {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.text)), Mode: e.mode, Uid: e.user,
			Gid: e.user, ModTime: p.made, Format: tar.FormatUSTAR}
		if e.text == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(e.text); err != nil {
			return err
		}
	}
	return w.Close()
}

// blobOf writes a value as JSON into the layout.
func (p packaging) blobOf(kind string, v any) (descriptor, error) {
	text, err := json.Marshal(v) // the keys of maps are sorted
	if err != nil {
		return descriptor{}, err
	}
	return p.blob(kind, text)
}

// blob writes a blob under its digest.
func (p packaging) blob(kind string, text []byte) (descriptor, error) {
	digest := digestOf(text)
	err := writeFile(filepath.Join(p.to, "blobs", "sha256", digest[len("sha256:"):]), text)
	return descriptor{MediaType: kind, Digest: digest, Size: len(text)}, err
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
