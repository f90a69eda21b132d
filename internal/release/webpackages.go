package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// written are the tools of the workbench's build whose code is in web/dist: the base style of Tailwind CSS, and Vite's
// loader of modules.
var written = []string{"tailwindcss", "vite"}

// webPackages returns the npm packages that the workbench may contain: the dependencies in its package.json, their
// dependencies, and the tools in written. They have to be installed.
func webPackages(app string) ([]part, error) {
	type manifest struct {
		Version      string            `json:"version"`
		Dependencies map[string]string `json:"dependencies"`
	}
	read := func(dir string) (m manifest, err error) {
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if errors.Is(err, fs.ErrNotExist) {
			return m, fmt.Errorf("%s is not installed; run make install", dir)
		}
		if err != nil {
			return m, err
		}
		return m, json.Unmarshal(text, &m)
	}
	top, err := read(app)
	if err != nil {
		return nil, err
	}
	found := map[string]part{}
	waiting := append(slices.Sorted(maps.Keys(top.Dependencies)), written...)
	for ; len(waiting) > 0; waiting = waiting[1:] {
		name := waiting[0]
		if _, ok := found[name]; ok {
			continue
		}
		dir := filepath.Join(app, "node_modules", filepath.FromSlash(name))
		m, err := read(dir)
		if err != nil {
			return nil, err
		}
		found[name] = part{name: name, version: m.Version, dir: dir}
		if !slices.Contains(written, name) { // what a tool depends on runs at the build only
			waiting = append(waiting, slices.Sorted(maps.Keys(m.Dependencies))...)
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

// locked is an npm package in web/app/package-lock.json (lockfileVersion 3).
type locked struct {
	Name         string            `json:"-"`
	Version      string            `json:"version"`
	Licence      string            `json:"license"`   // an SPDX expression
	Integrity    string            `json:"integrity"` // of the package that npm installs: "sha512-" and base64
	Dependencies map[string]string `json:"dependencies"`
}

// lockedPackages returns the packages of webPackages as the lock file has them, sorted by name. Nothing has to be
// installed.
func lockedPackages(app string) ([]locked, error) {
	text, err := os.ReadFile(filepath.Join(app, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Version  int               `json:"lockfileVersion"`
		Packages map[string]locked `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("package-lock.json: %w", err)
	}
	if lock.Version != 3 {
		return nil, fmt.Errorf("package-lock.json has version %d, want 3", lock.Version)
	}
	found := map[string]locked{}
	waiting := append(slices.Sorted(maps.Keys(lock.Packages[""].Dependencies)), written...)
	for ; len(waiting) > 0; waiting = waiting[1:] {
		name := waiting[0]
		if _, ok := found[name]; ok {
			continue
		}
		p, ok := lock.Packages["node_modules/"+name]
		if !ok {
			return nil, fmt.Errorf("package-lock.json has no package %s", name)
		}
		p.Name = name
		found[name] = p
		if !slices.Contains(written, name) {
			waiting = append(waiting, slices.Sorted(maps.Keys(p.Dependencies))...)
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b locked) int { return strings.Compare(a.Name, b.Name) }), nil
}

// npmLicences are the licences of npm packages in the workbench. Like licenceTexts, they allow distribution with the
// notice.
var npmLicences = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}
