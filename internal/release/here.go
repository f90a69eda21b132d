package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// buildFlags are the build flags. TestREL_buildFlags checks that .goreleaser.yaml has the same flags.
var buildFlags = []string{"-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid="}

// writeHere writes a release of the commit of the checkout root, for this platform, into a new folder: bin, the
// archive with its checksum, and the packages of npm, PyPI and MCP clients. It builds a
// clone, next to the folder with -clone in its name, so that files outside the commit change nothing. Only the system
// packages and manifests that goreleaser makes are missing.
func writeHere(ctx context.Context, root, version, to string) error {
	version, err := plainVersion(version)
	if err != nil {
		return err
	}
	here, clone := platform{runtime.GOOS, runtime.GOARCH}, to+"-clone"
	if _, err := output(ctx, root, "git", "clone", "-q", "--shared", ".", clone); err != nil {
		return err
	}
	made, err := commitTime(ctx, clone)
	if err != nil {
		return err
	}
	binary := filepath.Join(to, "bin", here.String(), here.binary())
	if err := buildBinary(ctx, clone, binary); err != nil {
		return err
	}
	p := packaging{version: version, dist: filepath.Join(to, "bin"), made: made}
	writers := map[string]func(packaging) error{"npm": writeNPM, "pypi": writeWheels, "mcp": writeMCP,
		"sbom": writeSBOM}
	if here.os == "linux" {
		writers["image"] = writeImage
	}
	for folder, write := range writers {
		p.to = filepath.Join(to, folder)
		if err := write(p); err != nil {
			return err
		}
	}
	// The notices of the workbench's packages are in node_modules. A clone has no such folder.
	if err := writeFilesOf(ctx, binary, root, filepath.Join(to, "files")); err != nil {
		return err
	}
	p.to = to
	return p.archive(here, clone, filepath.Join(to, "files"))
}

// commitTime returns the time of the last commit of a checkout.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	text, err := output(ctx, root, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("git log: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// buildBinary builds tenon from a checkout for this platform, as goreleaser does.
func buildBinary(ctx context.Context, root, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	args := append(append([]string{"build"}, buildFlags...), "-o", to, "./cmd/tenon")
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir, build.Stderr = root, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build ./cmd/tenon: %w", err)
	}
	return nil
}

// archive packs the binary of a platform, files of a checkout, and the folder that writeFiles wrote. It also writes the
// checksum of the archive.
func (p packaging) archive(pl platform, root, files string) error {
	entries := []entry{}
	add := func(name, path string, mode int64) error {
		text, err := os.ReadFile(path)
		entries = append(entries, entry{name, text, mode})
		return err
	}
	if err := add(pl.binary(), filepath.Join(p.dist, pl.String(), pl.binary()), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "packaging/tenon.service",
		"packaging/tenon.socket"} {
		if err := add(filepath.Base(name), filepath.Join(root, filepath.FromSlash(name)), 0o644); err != nil {
			return err
		}
	}
	err := filepath.WalkDir(files, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(files, path)
		if err != nil {
			return err
		}
		return add(filepath.ToSlash(name), path, 0o644)
	})
	if err != nil {
		return err
	}
	packed, err := p.tarball("", entries)
	if err != nil {
		return err
	}
	name := "tenon_" + p.version + "_" + pl.String() + ".tar.gz"
	if err := writeFile(filepath.Join(p.to, name), packed); err != nil {
		return err
	}
	sum := fmt.Sprintf("%x  %s\n", sha256.Sum256(packed), name)
	return writeFile(filepath.Join(p.to, "checksums.txt"), []byte(sum))
}
