package tenon

import "strings"

// Citation is a source that a model names for its text: a search result, a page, a passage of a document, a file. All
// wire formats have the same form here.
type Citation struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url,omitempty"`
	File  string `json:"file,omitempty"`  // the provider's id of a file, or the name of a document
	Quote string `json:"quote,omitempty"` // the passage of the source, as far as the provider sends it
	// Start and End are the bytes of the text that the source supports, in the text of the [Part]. If both are 0, the
	// provider does not say which text it supports.
	Start int `json:"start,omitempty"`
	End   int `json:"end,omitempty"`
}

// Citations returns the citations of all text parts in order. Start and End are bytes of [Message.Text].
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

// Sources returns the different sources of citations in the order of their first citation. A source is its URL, or its
// file, or its title. Start and End are 0. The first title counts, and no quotes are returned.
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

// Label returns a source as one line for a person: its title and its address, file or passage. Control characters are
// visible.
func (c *Citation) Label() string {
	where := c.URL
	if where == "" {
		where = c.File
	}
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
