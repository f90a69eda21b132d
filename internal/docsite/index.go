package main

import (
	"encoding/json"
	"os"
	"path"
	"strings"
)

// maxText bounds the text of a section in the index.
const maxText = 12 << 10

// writeIndex writes the index of the search. The index is a script, because a page that was opened from a file cannot
// fetch other files. It has a row for each section: address, title of the page, group, heading, text.
func writeIndex(file string, pages []page) error {
	var rows [][5]string
	for _, p := range pages {
		for _, s := range p.sections {
			address := p.name
			if s.id != "" {
				address += "#" + s.id
			}
			if len(s.text) > maxText {
				s.text = strings.ToValidUTF8(s.text[:maxText], "")
			}
			rows = append(rows, [5]string{address, p.title, group(p.name), s.heading, s.text})
		}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte("window.tenonIndex = "+string(text)+";\n"), 0o644)
}

// group returns the name of the part of the site to which a page belongs.
func group(name string) string {
	switch dir := path.Dir(name); dir {
	case ".":
		return "Overview"
	case "reference/cli":
		return "Command line"
	default:
		return strings.ToUpper(dir[:1]) + dir[1:]
	}
}
