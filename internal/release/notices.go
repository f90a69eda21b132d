package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenceFile matches the names of files with licences and notices in the root of a module or a package.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$|-licen[cs]e(\.\w+)?$`)

// part is third-party software that the binary contains.
type part struct{ name, version, dir string }

// notices returns the licences of everything that is linked into tenon on any platform of the releases: Go itself, the
// modules, and the packages of npm in the workbench.
func notices(ctx context.Context, root string) ([]byte, error) {
	parts, err := modules(ctx, root)
	if err != nil {
		return nil, err
	}
	web, err := webPackages(filepath.Join(root, "web", "app"))
	if err != nil {
		return nil, err
	}
	goroot, err := output(ctx, root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	parts = append(parts, part{name: "Go", dir: strings.TrimSpace(string(goroot))})
	parts = append(parts, web...)
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	b.WriteString("tenon contains the following works of others.\n")
	for _, p := range parts {
		if err := p.write(&b); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// write appends the licences of a part. It returns an error for a part without a licence, because such a part must not
// be published.
func (p part) write(b *bytes.Buffer) error {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.dir, e.Name()))
		if err != nil {
			return err
		}
		title := strings.TrimSpace(p.name + " " + p.version)
		fmt.Fprintf(b, "\n%s\n%s (%s)\n\n%s\n", strings.Repeat("=", 80), title, e.Name(), bytes.TrimSpace(text))
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no file with its licence in %s", p.name, p.dir)
	}
	return nil
}

// modules returns the modules that are linked into cmd/tenon on any of the platforms.
func modules(ctx context.Context, root string) ([]part, error) {
	found := map[string]part{}
	for _, p := range platforms {
		text, err := output(ctx, root, "env", "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0",
			"go", "list", "-deps", "-json=Module", "./cmd/tenon")
		if err != nil {
			return nil, err
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		for {
			var k struct {
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := dec.Decode(&k); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if m := k.Module; m != nil && !m.Main {
				found[m.Path] = part{name: m.Path, version: m.Version, dir: m.Dir}
			}
		}
	}
	return slices.Collect(maps.Values(found)), nil
}
