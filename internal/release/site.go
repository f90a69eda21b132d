package main

import (
	"context"
	"os"
	"path/filepath"
)

// siteURL is the address at which .github/workflows/site.yaml publishes the documentation.
const siteURL = "https://tenonhq.github.io/tenon/"

// siteName returns the name of the archive with the documentation site.
func siteName(version string) string { return "tenon_" + version + "_docs.tar.gz" }

// site has internal/docsite build the documentation site of the checkout root with the program hugo, and packs it: a
// folder with the name of the version, and the page and the list that lead to it. Archives of several versions unpacked
// into one folder are a site of them all after docsite -list.
func (p packaging) site(ctx context.Context, hugo, root string) error {
	hugo, err := filepath.Abs(hugo)
	if err != nil {
		return err
	}
	made, err := os.MkdirTemp("", "tenon-site-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if _, err := output(ctx, root, "go", "run", "./internal/docsite", "-hugo", hugo, "-version", "v"+p.version, "-url",
		siteURL, made); err != nil {
		return err
	}
	var entries []entry
	err = filepath.WalkDir(made, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(made, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		entries = append(entries, entry{filepath.ToSlash(name), text, 0o644})
		return err
	})
	if err != nil {
		return err
	}
	packed, err := p.tarball("", entries)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(p.to, siteName(p.version)), packed)
}
