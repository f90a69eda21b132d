package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// mentions lists modules whose licence text names a licence that is not permitted, with the reason why the module is
// still permitted.
var mentions = map[string]string{
	"modernc.org/sqlite": "it has the MPL-2.0, which names the GPL as a secondary licence",
}

// TestREL_licences checks the licences of all modules that are linked on any platform.
func TestREL_licences(t *testing.T) {
	parts, err := modules(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) < 10 {
		t.Fatalf("only %d modules", len(parts))
	}
	for _, p := range parts {
		id, bad, err := licenceOf(p.dir)
		switch {
		case err != nil:
			t.Errorf("%s: %v", p.name, err)
		case bad != "" && mentions[p.name] == "":
			t.Errorf("%s %s must not be linked: %s", p.name, p.version, bad)
		case id == "":
			t.Errorf("%s %s has no licence that is known and allowed, in %s", p.name, p.version, p.dir)
		}
		t.Logf("%s %s: %s", p.name, p.version, id)
	}
}

// TestREL_licenceTexts checks that licences are recognized by their texts, and that licences that are not permitted are
// refused.
func TestREL_licenceTexts(t *testing.T) {
	tests := []struct{ name, text, id, bad string }{
		{"MIT", "MIT License\n\nPermission is hereby granted, free of charge, to any person\nobtaining a copy", "MIT", ""},
		{"Apache", "        Apache License\n     Version 2.0, January 2004", "Apache-2.0", ""},
		{"BSD", "Redistribution and use in source and binary forms, with\nor without", "BSD-2-Clause", ""},
		{"GPL", "GNU GENERAL PUBLIC LICENSE\nVersion 3", "", "LICENSE: gnu general public license"},
		{"AGPL", "GNU AFFERO GENERAL PUBLIC LICENSE", "", "LICENSE: gnu affero general public license"},
		{"unknown", "All rights reserved.", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := writeFile(filepath.Join(dir, "LICENSE"), []byte(tt.text)); err != nil {
				t.Fatal(err)
			}
			id, bad, err := licenceOf(dir)
			if id != tt.id || bad != tt.bad || err != nil {
				t.Errorf("%q, %q, %v; want %q, %q", id, bad, err, tt.id, tt.bad)
			}
		})
	}
}

// TestREL_webLicences checks the licence of every npm package in the workbench. Where the packages are installed, their
// texts are compared with what the lock file says.
func TestREL_webLicences(t *testing.T) {
	const app = "../../web/app"
	found, err := lockedPackages(app)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages", len(found))
	}
	for _, p := range found {
		if !slices.Contains(npmLicences, p.Licence) {
			t.Errorf("%s %s must not be in the workbench: its licence is %q", p.Name, p.Version, p.Licence)
		}
		if p.Version == "" || p.Integrity == "" {
			t.Errorf("%s: version %q, integrity %q", p.Name, p.Version, p.Integrity)
		}
	}
	if _, err := os.Stat(filepath.Join(app, "node_modules", "ready")); err != nil {
		t.Log("npm's packages are not installed: no text was compared")
		return
	}
	parts, err := webPackages(app)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, p := range parts {
		id, bad, err := licenceOf(p.dir)
		if err != nil || bad != "" {
			t.Errorf("%s: %s, %v", p.name, bad, err)
		}
		texts[p.name+" "+p.version] = id
	}
	for _, p := range found {
		got := texts[p.Name+" "+p.Version]
		if p.Name == "vite" && got != "" { // its file also has the licences of what its program bundles
			continue
		}
		if got != p.Licence {
			t.Errorf("%s %s: the text of its licence is of %q, the lock file says %q", p.Name, p.Version, got, p.Licence)
		}
	}
	if len(texts) != len(found) {
		t.Errorf("%d packages are installed, %d are in the lock file", len(texts), len(found))
	}
}
