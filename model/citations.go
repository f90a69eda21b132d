package model

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// The bounds of the citations of an answer. Further citations are dropped, and longer texts are shortened. A provider
// can send a long list with each chunk, and the journal keeps the citations of every turn.
const (
	maxCitations = 256
	maxCited     = 1 << 10 // maximum size of a title or a file name
	maxQuote     = 2 << 10 // bytes of a passage
	maxURL       = 4 << 10 // bytes; a longer address is dropped, because a part of one leads elsewhere
)

// Citations collects the citations of an answer, within bounds. The zero value is ready to use.
type Citations struct {
	list    []tenon.Citation
	dropped bool
}

// Add adds a citation. It ignores a citation that has no source or that was added before.
func (c *Citations) Add(x tenon.Citation) {
	x.Title, x.File, x.Quote = cut(x.Title, maxCited), cut(x.File, maxCited), cut(x.Quote, maxQuote)
	if len(x.URL) > maxURL {
		x.URL = ""
	}
	if x.URL == "" && x.File == "" && x.Title == "" {
		return
	}
	for i := range c.list {
		if c.list[i] == x {
			return
		}
	}
	if len(c.list) >= maxCitations {
		c.dropped = true
		return
	}
	c.list = append(c.list, x)
}

// Warning returns a warning if citations were dropped, else "".
func (c *Citations) Warning() string {
	if !c.dropped {
		return ""
	}
	return "the answer has too many citations; only the first are kept"
}

// In returns the citations of a text. A range outside of the text is replaced by 0, 0.
func (c *Citations) In(text string) []tenon.Citation {
	for i := range c.list {
		if x := &c.list[i]; x.Start < 0 || x.End <= x.Start || x.End > len(text) {
			x.Start, x.End = 0, 0
		}
	}
	return c.list
}

func cut(s string, most int) string {
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Offset returns the byte offset of the nth character of a text, or -1 if the text is shorter. OpenAI's positions count
// characters.
func Offset(text string, n int) int {
	if n < 0 {
		return -1
	}
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	if n > 0 {
		return -1
	}
	return at
}

// Annotation reads an annotation of OpenAI's APIs: url_citation, file_citation, container_file_citation or file_path.
// The members of the citation are in the annotation or in its member with the name of its type. Other servers omit the
// type. text is the text to which the positions refer, and at is the offset of text in the part.
func (c *Citations) Annotation(raw []byte, text string, at int) {
	if inner := rawjson.Field(raw, "url_citation"); inner != nil {
		raw = inner
	}
	var x tenon.Citation
	var name, id string
	first, last := -1, -1
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "title":
			x.Title = rawjson.String(v)
		case "url":
			x.URL = rawjson.String(v)
		case "content", "quote", "cited_text":
			x.Quote = rawjson.String(v)
		case "filename", "filepath":
			name = rawjson.String(v)
		case "file_id":
			id = rawjson.String(v)
		case "start_index":
			first, _ = rawjson.Int(v)
		case "end_index":
			last, _ = rawjson.Int(v)
		}
	}
	x.File = id
	x.File = cmp.Or(name, x.File)
	if first >= 0 && last > first {
		if s, e := Offset(text, first), Offset(text, last); s >= 0 && e > s {
			x.Start, x.End = at+s, at+e
		}
	}
	c.Add(x)
}

// SourceList reads a list of sources without positions in a text: addresses, or objects with an address and a title.
// Perplexity, xAI and Azure send such lists next to the answer.
func (c *Citations) SourceList(raw []byte) {
	for v := range rawjson.Elements(raw) {
		if rawjson.StringBody(v) != nil {
			c.Add(tenon.Citation{URL: rawjson.String(v)})
			continue
		}
		var x tenon.Citation
		for k, v := range rawjson.Fields(v) {
			switch string(k) {
			case "title":
				x.Title = rawjson.String(v)
			case "url":
				x.URL = rawjson.String(v)
			case "snippet", "content":
				x.Quote = rawjson.String(v)
			case "filepath":
				x.File = rawjson.String(v)
			}
		}
		c.Add(x)
	}
}
