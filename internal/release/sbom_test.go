package main

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestREL_sbom makes the software bill of materials for a binary with a module that was replaced.
func TestREL_sbom(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/tenonhq/tenon"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0+incompatible", Sum: "h1:x="},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}},
		}}
	want := &bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: bomMetadata{"2001-09-09T01:46:40Z", component{
		Type: "application", Ref: "pkg:golang/github.com/tenonhq/tenon@1.2.3", Name: "github.com/tenonhq/tenon",
		Version: "1.2.3", PURL: "pkg:golang/github.com/tenonhq/tenon@1.2.3"}},
		Components: []component{
			{Type: "library", Ref: "pkg:golang/std@1.26.8", Name: "std", Version: "1.26.8", PURL: "pkg:golang/std@1.26.8"},
			{Type: "library", Ref: "pkg:golang/example.com/a@v1.0.0%2Bincompatible", Name: "example.com/a",
				Version: "v1.0.0+incompatible", PURL: "pkg:golang/example.com/a@v1.0.0%2Bincompatible",
				Properties: []bomProperty{{"go:sum", "h1:x="}}},
			{Type: "library", Ref: "pkg:golang/example.com/c@v2.0.0", Name: "example.com/c", Version: "v2.0.0",
				PURL: "pkg:golang/example.com/c@v2.0.0"},
			{Type: "library", Ref: "pkg:npm/%40a/b@1.0.0", Name: "@a/b", Version: "1.0.0", PURL: "pkg:npm/%40a/b@1.0.0",
				Properties: []bomProperty{{"npm:integrity", "sha512-x"}}},
		}}
	web := []locked{{Name: "@a/b", Version: "1.0.0", Integrity: "sha512-x"}}
	if diff := cmp.Diff(want, bomOf(info, web, "1.2.3", time.Unix(1e9, 0).UTC())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
