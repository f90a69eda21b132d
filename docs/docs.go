// Package docs holds the pages of the guide and of the reference, as the program prints them.
//
//	guide/      explains, by examples that a test runs
//	reference/  is complete: keys, formats, routes
//	Pages       lists both
//
// A binary is often installed without the repository, and its help names these pages; with them inside, tenon docs
// prints the ones that belong to its version. The reference of the command line (reference/cli) is left out: tenon help
// has the same text. The generated page of all keys is included, because tenon config explain prints one key at a time.
//
// The pages are Markdown, printed as they are: their tables and examples are readable without a viewer, and can be
// piped into one.
package docs

import (
	"embed"
	"path"
	"strings"
)

//go:embed guide/*.md reference/*.md
var files embed.FS

// Page is one page.
type Page struct {
	Name  string `json:"name"`  // such as scripts, or guide/servers
	Title string `json:"title"` // its heading
	Text  string `json:"text,omitempty"`
}

// Pages returns all pages with their texts: the guide's, then the reference's, each by name.
func Pages() []Page {
	var list []Page
	for _, dir := range []string{"guide", "reference"} {
		entries, _ := files.ReadDir(dir) // the folders are embedded
		for _, e := range entries {
			name := strings.TrimSuffix(e.Name(), ".md")
			if name == "README" {
				continue
			}
			text, _ := files.ReadFile(path.Join(dir, e.Name()))
			if dir == "guide" {
				name = "guide/" + name
			}
			list = append(list, Page{Name: name, Title: title(string(text)), Text: string(text)})
		}
	}
	return list
}

// title returns the first heading of a page.
func title(text string) string {
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			return strings.Trim(strings.TrimSpace(heading), "`")
		}
	}
	return ""
}
