package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// licenceTexts maps licences to sentences that identify them, in the order of the search. Only modules under one of
// these licences may be linked. The licences allow distribution in a binary under another licence if the notice is
// included.
var licenceTexts = []struct{ id, text string }{
	{"Apache-2.0", "apache license version 2.0"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"BSD-3-Clause", "neither the name of"},
	{"BSD-3-Clause", "names of its contributors may be used"},
	{"BSD-2-Clause", "redistribution and use in source and binary forms"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose"},
	{"public domain", "the author disclaims copyright to this source code"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// refused matches licences of modules that must not be linked, even if the text also contains one of the sentences
// above.
var refused = regexp.MustCompile(`gnu (affero |lesser )?general public license|server side public license|` +
	`business source license|commons clause|elastic license`)

// licenceOf returns the licences in a folder, or "" if none is known. If a licence is refused, bad contains its first
// words.
func licenceOf(dir string) (id, bad string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", "", err
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", "", err
		}
		marks := strings.NewReplacer(", version", " version", "* ", "", "// ", "")
		plain := strings.Join(strings.Fields(marks.Replace(strings.ToLower(string(text)))), " ")
		if found := refused.FindString(plain); found != "" {
			bad = e.Name() + ": " + found
		}
		for _, l := range licenceTexts {
			if id == "" && strings.Contains(plain, l.text) {
				id = l.id
			}
		}
	}
	return id, bad, nil
}
