// Package docs holds the pages of the guide and of the reference, as the program prints them.
//
//	guide/      explains, by examples that a test runs
//	reference/  is complete: keys, formats, routes
//	Pages       lists both
//	Index       lists both for programs (llms.txt)
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

// Index returns the list of pages in the form of llms.txt (https://llmstxt.org): a title, a summary, and a link with a
// sentence for each page. The links are relative to the folder docs.
func Index() string {
	var b strings.Builder
	b.WriteString("# tenon\n\n> tenon connects agents to tools: an MCP host in Go, one binary and one library.\n")
	for _, part := range []struct{ heading, dir string }{{"Guide", "guide"}, {"Reference", "reference"}} {
		b.WriteString("\n## " + part.heading + "\n\n")
		for _, p := range Pages() {
			name, guide := strings.CutPrefix(p.Name, "guide/")
			if guide == (part.dir == "guide") {
				b.WriteString("- [" + p.Title + "](" + part.dir + "/" + name + ".md): " + firstSentence(p.Text) + "\n")
			}
		}
	}
	return b.String()
}

// firstSentence returns the first sentence of a page's first paragraph, in one line.
func firstSentence(text string) string {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		line := strings.Join(strings.Fields(paragraph), " ")
		if line == "" || strings.ContainsAny(line[:1], "#<|`-") {
			continue
		}
		if sentence, _, ok := strings.Cut(line, ". "); ok {
			return sentence + "."
		}
		return line
	}
	return ""
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
