package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// versionPages is a version of the site with its pages.
type versionPages struct {
	Name  string   `json:"name"`
	Pages []string `json:"pages"`
}

// writeVersions lists the versions in a folder, newest first. It makes index.html lead to the newest release, or to the
// unreleased pages if there is no release.
func writeVersions(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var all []versionPages
	for _, e := range entries {
		if !e.IsDir() || !versionName.MatchString(e.Name()) {
			continue
		}
		pages, err := readPages(filepath.Join(folder, e.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		v := versionPages{Name: e.Name()}
		for _, p := range pages {
			v.Pages = append(v.Pages, p.name)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return fmt.Errorf("%s has no folder of a version, such as v1.2.3", folder)
	}
	slices.SortFunc(all, func(a, b versionPages) int { return compareVersions(b.Name, a.Name) })
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	first := all[0].Name
	page := "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>tenon</title>\n" +
		"<meta http-equiv=\"refresh\" content=\"0; url=" + first + "/index.html\"></head>\n" +
		"<body><p><a href=\"" + first + "/index.html\">tenon " + first + "</a></p></body>\n</html>\n"
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "versions.js"), []byte("window.tenonVersions = "+string(text)+";\n"), 0o644),
		os.WriteFile(filepath.Join(folder, "index.html"), []byte(page), 0o644))
}

// compareVersions compares names of versions by semantic versioning (https://semver.org, clause 11). A pre-release is
// lower than its release, and unreleased pages are lower than all versions.
func compareVersions(a, b string) int {
	if a == devVersion || b == devVersion {
		return cmp.Compare(boolInt(a != devVersion), boolInt(b != devVersion))
	}
	aCore, aPre, aIs := strings.Cut(a[1:], "-")
	bCore, bPre, bIs := strings.Cut(b[1:], "-")
	if c := compareParts(aCore, bCore); c != 0 {
		return c
	}
	if aIs != bIs {
		return cmp.Compare(boolInt(!aIs), boolInt(!bIs))
	}
	return compareParts(aPre, bPre)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareParts compares identifiers that dots separate. Numbers are compared by value and are lower than words. Words
// are compared by their bytes.
func compareParts(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		m, errX := strconv.Atoi(x)
		n, errY := strconv.Atoi(y)
		switch {
		case errX == nil && errY == nil:
			return cmp.Compare(m, n)
		case errX == nil || errY == nil:
			return cmp.Compare(boolInt(errX != nil), boolInt(errY != nil))
		}
		return strings.Compare(x, y)
	})
}
