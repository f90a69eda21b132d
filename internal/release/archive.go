package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// archiveName returns the name of a platform's archive: a zip file for Windows, whose explorer opens nothing else.
func archiveName(version string, pl platform) string {
	name := "tenon_" + version + "_" + pl.String()
	if pl.os == "windows" {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// archive packs the binary of a platform, files of a checkout, and the folder that writeFiles wrote.
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
	var packed []byte
	if pl.os == "windows" {
		packed, err = p.zipped(sorted(entries))
	} else {
		packed, err = p.tarball("", entries)
	}
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(p.to, archiveName(p.version, pl)), packed)
}

// formats are the formats of nfpm.
var formats = []string{"deb", "rpm", "apk", "archlinux"}

// distributions has nfpm make packages of Linux distributions in these formats: packaging/nfpm.yaml of the checkout
// root. nfpm names each file by the rules of its distribution.
func (p packaging) distributions(ctx context.Context, nfpm string, pl platform, root, files string,
	formats ...string) error {
	binary, err := filepath.Abs(filepath.Join(p.dist, pl.String(), pl.binary()))
	if err != nil {
		return err
	}
	if files, err = filepath.Abs(files); err != nil {
		return err
	}
	to, err := filepath.Abs(p.to)
	if err != nil {
		return err
	}
	// The scripts in an apk have the times of their files.
	scripts, err := filepath.Glob(filepath.Join(root, "packaging", "scripts", "*"))
	if err != nil {
		return err
	}
	for _, file := range scripts {
		if err := os.Chtimes(file, p.made, p.made); err != nil {
			return err
		}
	}
	for _, format := range formats {
		cmd := exec.CommandContext(ctx, nfpm, "package", "--config", "packaging/nfpm.yaml", "--packager", format,
			"--target", to+string(filepath.Separator))
		cmd.Dir = root
		version := distributionVersion(format, p.version)
		cmd.Env = append(os.Environ(), "TENON_ARCH="+pl.arch, "TENON_VERSION="+version, "TENON_BINARY="+binary,
			"TENON_FILES="+files, "SOURCE_DATE_EPOCH="+strconv.FormatInt(p.made.Unix(), 10))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nfpm package %s for %s: %w: %s", format, pl, err, out)
		}
	}
	return nil
}

// preRelease matches the pre-release of a version, such as rc.1.
var preRelease = regexp.MustCompile(`-([a-z]+)\.?(\d+)$`)

// distributionVersion returns a version as a format writes it, such that 1.2.3-rc.1 is older than 1.2.3 there:
// 1.2.3~rc.1 for deb and rpm, 1.2.3rc.1 for Arch (vercmp(8)), and 1.2.3_rc1 for Alpine (apk-package(5)), which knows
// alpha, beta, pre and rc only. There, others such as dev.1 become pre1.
func distributionVersion(format, version string) string {
	switch format {
	case "apk":
		return preRelease.ReplaceAllStringFunc(version, func(text string) string {
			m := preRelease.FindStringSubmatch(text)
			if !slices.Contains([]string{"alpha", "beta", "pre", "rc"}, m[1]) {
				m[1] = "pre"
			}
			return "_" + m[1] + m[2]
		})
	case "archlinux":
		release, pre, _ := strings.Cut(version, "-")
		return release + strings.ReplaceAll(pre, "-", "_") // a hyphen begins the number of the packaging
	}
	return strings.Replace(version, "-", "~", 1)
}

// checksums writes checksums.txt of all archives and packages in the release's folder and of the install script, which
// it copies from the checkout root.
func (p packaging) checksums(root string) error {
	script, err := os.ReadFile(filepath.Join(root, "packaging", "install.sh"))
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(p.to, "install.sh"), script); err != nil {
		return err
	}
	entries, err := os.ReadDir(p.to) // sorted by name
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, e := range entries {
		if e.IsDir() || e.Name() == "checksums.txt" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.to, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(text), e.Name())
	}
	return writeFile(filepath.Join(p.to, "checksums.txt"), []byte(list.String()))
}

// sumOf returns the checksum of a file in checksums.txt of the release's folder.
func (p packaging) sumOf(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(p.to, "checksums.txt"))
	if err != nil {
		return "", err
	}
	lines := strings.Split(string(text), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasSuffix(l, "  "+name) })
	if at < 0 {
		return "", fmt.Errorf("checksums.txt has no line for %s", name)
	}
	sum, _, _ := strings.Cut(lines[at], " ")
	return sum, nil
}
