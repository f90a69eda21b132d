package tenon

import (
	"cmp"
	"strings"
)

// Citation is a source that a model names for its text, such as a search result, a page, a passage of a document, or a
// file. Citations of all wire formats have this form.
type Citation struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url,omitempty"`
	File  string `json:"file,omitempty"`  // the provider's file id, or a document's name
	Quote string `json:"quote,omitempty"` // the cited passage, if the provider sends it
	// Start and End are byte offsets in the text of the [Part]. The source supports the text between them. If both are
	// 0, the provider does not report this text.
	Start int `json:"start,omitempty"`
	End   int `json:"end,omitempty"`
}

// Citations returns the citations of all text parts in order. Start and End are byte offsets in [Message.Text].
func (m *Message) Citations() []Citation {
	var list []Citation
	at := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type != PartText {
			continue
		}
		for _, c := range p.Citations {
			if c.End > 0 {
				c.Start, c.End = c.Start+at, c.End+at
			}
			list = append(list, c)
		}
		at += len(p.Text)
	}
	return list
}

// Sources returns the distinct sources of citations, in the order of their first citation. Two citations have the same
// source if they have the same URL. Without a URL, the file is compared, and without a file the title. The result has
// the first title of each source. Its Start and End are 0, and it has no quotes.
func Sources(list []Citation) []Citation {
	var out []Citation
	seen := map[string]int{}
	for _, c := range list {
		key := c.Key()
		if key == "" {
			continue
		}
		if i, ok := seen[key]; ok {
			if out[i].Title == "" {
				out[i].Title = c.Title
			}
			continue
		}
		seen[key] = len(out)
		out = append(out, Citation{Title: c.Title, URL: c.URL, File: c.File})
	}
	return out
}

// Key identifies the source of a citation.
func (c *Citation) Key() string {
	switch {
	case c.URL != "":
		return "url " + c.URL
	case c.File != "":
		return "file " + c.File
	case c.Title != "":
		return "title " + c.Title
	}
	return ""
}

// Label describes a source on one line for a person: its title and its address, file or passage. Control characters are
// escaped.
func (c *Citation) Label() string {
	where := cmp.Or(c.URL, c.File)
	title := Visible(Shorten(c.Title, maxTitle))
	where = Visible(strings.Join(strings.Fields(where), " "))
	switch {
	case title == "" || title == where:
		return where
	case where == "":
		return title
	}
	return title + " · " + where
}

// maxTitle bounds the title in a label, in characters.
const maxTitle = 200
