package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// bom is a bill of materials in CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/). It has no serial number, so that
// it is a function of the binary.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   bomMetadata `json:"metadata"`
	Components []component `json:"components"`
}

type bomMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

// component is a module, Go's standard library, or a package of npm.
type component struct {
	Type       string        `json:"type"`
	Ref        string        `json:"bom-ref"`
	Name       string        `json:"name"`
	Version    string        `json:"version"`
	PURL       string        `json:"purl"` // https://github.com/package-url/purl-spec
	Properties []bomProperty `json:"properties,omitempty"`
}

type bomProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// writeSBOM writes a bill of materials for the binary of each platform. It contains the modules that the Go toolchain
// listed in the binary, and the npm packages of the workbench, as the lock file of the checkout lists them.
func writeSBOM(p packaging) error {
	version, err := plainVersion(p.version)
	if err != nil {
		return err
	}
	found, err := p.binaries()
	if err != nil {
		return err
	}
	web, err := lockedPackages(filepath.Join(p.root, "web", "app"))
	if err != nil {
		return err
	}
	for pl, binary := range found {
		info, err := buildinfo.Read(bytes.NewReader(binary))
		if err != nil {
			return fmt.Errorf("%s: %w", pl, err)
		}
		name := "tenon_" + version + "_" + pl.String() + ".cdx.json"
		if err := writeJSON(filepath.Join(p.to, name), bomOf(info, web, version, p.made)); err != nil {
			return err
		}
	}
	return nil
}

// bomOf returns the bill of a binary.
func bomOf(info *debug.BuildInfo, web []locked, version string, made time.Time) *bom {
	b := &bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: bomMetadata{made.Format(time.RFC3339),
		moduleOf("application", info.Main.Path, version)}}
	b.Components = []component{moduleOf("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		c := moduleOf("library", m.Path, m.Version)
		if m.Sum != "" { // a hash of a list of hashes, for which CycloneDX has no form
			c.Properties = []bomProperty{{"go:sum", m.Sum}}
		}
		b.Components = append(b.Components, c)
	}
	for _, p := range web {
		purl := "pkg:npm/" + strings.ReplaceAll(p.Name, "@", "%40") + "@" + p.Version
		c := component{Type: "library", Ref: purl, Name: p.Name, Version: p.Version, PURL: purl}
		if p.Integrity != "" {
			c.Properties = []bomProperty{{"npm:integrity", p.Integrity}}
		}
		b.Components = append(b.Components, c)
	}
	return b
}

// moduleOf returns the component of a Go module.
func moduleOf(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}
