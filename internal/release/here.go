package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// buildFlags are the build flags. The toolchain writes version, revision and time from the tag and the commit:
// internal/cli/version.go.
var buildFlags = []string{"-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid="}

// build describes a release that is made of the commit of a checkout.
type build struct {
	root      string // the checkout
	version   string // 1.2.3, with or without v
	to        string // a new folder
	nfpm      string // program that makes packages of Linux distributions; without it there are none
	hugo      string // program that builds the documentation site; without it there is none
	sign      string // program that signs and notarizes a binary of macOS, which is its argument; may be empty
	platforms []platform
}

// write makes the release: bin, the archives, the packages of distributions, npm, PyPI and MCP clients, the images, the
// bills of materials, the documentation site, the manifests of package managers, and the checksums of downloads. It
// builds a clone, next to the folder with -clone in its name, so that files outside the commit change nothing.
func (b build) write(ctx context.Context) error {
	version, err := plainVersion(b.version)
	if err != nil {
		return err
	}
	clone := b.to + "-clone"
	if _, err := output(ctx, b.root, "git", "clone", "-q", "--shared", ".", clone); err != nil {
		return err
	}
	made, err := commitTime(ctx, clone)
	if err != nil {
		return err
	}
	p := packaging{version: version, dist: filepath.Join(b.to, "bin"), to: b.to, made: made, root: clone}
	linux := false
	for _, pl := range b.platforms {
		if err := buildBinary(ctx, clone, pl, filepath.Join(p.dist, pl.String(), pl.binary())); err != nil {
			return err
		}
		if pl.os == "darwin" && b.sign != "" { // before it is packed
			if _, err := output(ctx, "", b.sign, filepath.Join(p.dist, pl.String(), pl.binary())); err != nil {
				return err
			}
		}
		linux = linux || pl.os == "linux"
	}
	writers := map[string]func(packaging) error{"npm": writeNPM, "pypi": writeWheels, "mcp": writeMCP,
		"sbom": writeSBOM}
	if linux {
		writers["image"] = writeImage
	}
	for folder, write := range writers {
		in := p
		in.to = filepath.Join(b.to, folder)
		if err := write(in); err != nil {
			return err
		}
	}
	// The program of this machine prints its pages. The notices of the workbench's packages are in node_modules, which
	// a clone does not have.
	files := filepath.Join(b.to, "files")
	runs := filepath.Join(p.dist, here().String(), here().binary())
	if _, err := os.Stat(runs); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the platforms have to contain %s, whose binary prints the manual pages", here())
	}
	if err := writeFilesOf(ctx, runs, b.root, files); err != nil {
		return err
	}
	for _, pl := range b.platforms {
		if err := p.archive(pl, clone, files); err != nil {
			return err
		}
		if pl.os == "linux" && b.nfpm != "" {
			if err := p.distributions(ctx, b.nfpm, pl, clone, files, formats...); err != nil {
				return err
			}
		}
	}
	if b.hugo != "" {
		if err := p.site(ctx, b.hugo, clone); err != nil {
			return err
		}
	}
	if err := p.checksums(clone); err != nil || len(b.platforms) < len(platforms) {
		return err
	}
	return p.manifests(b.sign != "")
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

// buildBinary builds tenon from a checkout for a platform.
func buildBinary(ctx context.Context, root string, pl platform, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	args := append(append([]string{"build"}, buildFlags...), "-o", to, "./cmd/tenon")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+pl.os, "GOARCH="+pl.arch)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build ./cmd/tenon for %s: %w", pl, err)
	}
	return nil
}
