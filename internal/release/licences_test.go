package main

import (
	"path/filepath"
	"testing"
)

// mentions are modules whose licence names a refused licence, with the reason why it is allowed.
var mentions = map[string]string{
	"modernc.org/sqlite": "it has the MPL-2.0, which names the GPL as a secondary licence",
}

// TestREL_licences checks the licence of every module that is linked on any platform.
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

// TestREL_licenceTexts recognizes licences, and refuses what may not be linked.
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
