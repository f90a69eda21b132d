package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	if !slices.Contains(b.platforms, here()) {
		return fmt.Errorf("the platforms have to contain %s, whose binary prints the manual pages", here())
	}
	clone := b.to + "-clone"
	if _, err := output(ctx, b.root, "git", "clone", "-q", "--shared", ".", clone); err != nil {
		return err
	}
	made, err := commitTime(ctx, clone)
	if err != nil {
		return err
	}
	p := packaging{version: version, dist: filepath.Join(b.to, "bin"), to: b.to, made: made, root: clone,
		texts: &deflated{}}
	var builds []func() error
	for _, pl := range b.platforms {
		builds = append(builds, func() error { return b.binary(ctx, p, pl) })
	}
	if err := twoAtOnce(builds); err != nil {
		return err
	}
	// The program of this machine prints its pages. The notices of the workbench's packages are in node_modules, which
	// a clone does not have.
	files := filepath.Join(b.to, "files")
	runs := filepath.Join(p.dist, here().String(), here().binary())
	if err := writeFilesOf(ctx, runs, b.root, files); err != nil {
		return err
	}
	if err := p.readLicences(files); err != nil {
		return err
	}
	if err := twoAtOnce(b.packages(ctx, p, files)); err != nil {
		return err
	}
	if err := p.checksums(clone); err != nil || len(b.platforms) < len(platforms) {
		return err
	}
	return p.manifests(b.sign != "")
}

// readLicences reads the texts that each package contains, of the checkout and of the folder that writeFiles wrote.
func (p *packaging) readLicences(files string) error {
	text, err := os.ReadFile(filepath.Join(files, "NOTICES.txt"))
	if err != nil {
		return err
	}
	p.licences, err = packageTexts(p.root, text)
	return err
}

// binary builds the binary of a platform, has it signed, and compresses it for all packages.
func (b build) binary(ctx context.Context, p packaging, pl platform) error {
	begin, file := time.Now(), filepath.Join(p.dist, pl.String(), pl.binary())
	if err := buildBinary(ctx, p.root, pl, file); err != nil {
		return err
	}
	if pl.os == "darwin" && b.sign != "" {
		if _, err := output(ctx, "", b.sign, file); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = p.texts.of(text)
	fmt.Fprintf(os.Stderr, "release: %s was built in %d s\n", pl, int(time.Since(begin).Seconds()))
	return err
}

// packages returns what makes the packages of all binaries, each independent of the others.
func (b build) packages(ctx context.Context, p packaging, files string) []func() error {
	in := func(folder string, write func(packaging) error) func() error {
		p := p
		p.to = filepath.Join(b.to, folder)
		return func() error { return write(p) }
	}
	todo := []func() error{in("npm", writeNPM), in("pypi", writeWheels), in("mcp", writeMCP), in("sbom", writeSBOM)}
	linux := false
	for _, pl := range b.platforms {
		todo = append(todo, func() error { return p.archive(pl, p.root, files) })
		if pl.os == "linux" && b.nfpm != "" {
			todo = append(todo, func() error { return p.distributions(ctx, b.nfpm, pl, p.root, files, formats...) })
		}
		linux = linux || pl.os == "linux"
	}
	if linux {
		todo = append(todo, in("image", writeImage))
	}
	if b.hugo != "" {
		todo = append(todo, func() error { return p.site(ctx, b.hugo, p.root) })
	}
	return todo
}

// twoAtOnce calls functions, two at a time: a build ends with the linker, and packages are compressed, on one processor
// each. None begins after an error. It returns all errors.
func twoAtOnce(todo []func() error) error {
	var wait sync.WaitGroup
	var failed atomic.Bool
	errs, free := make([]error, len(todo)), make(chan struct{}, 2)
	for i, f := range todo {
		free <- struct{}{}
		if failed.Load() {
			break
		}
		wait.Go(func() {
			errs[i] = f()
			if errs[i] != nil {
				failed.Store(true)
			}
			<-free
		})
	}
	wait.Wait()
	return errors.Join(errs...)
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
