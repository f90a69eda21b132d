package gemini

import (
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// maxChunks bounds the sources of a grounded answer.
const maxChunks = 1024

// cite adds the citations of the answer to its text parts: the sources of grounding, and the passages that the model
// recites. The positions of citations are byte offsets in the whole text. In a streamed answer, the parts counted by
// the metadata differ from the received parts. So if the metadata contains the cited text, the position is found by
// searching for that text.
func (a *answer) cite(parts []tenon.Part) {
	if a.grounding == nil && a.cited == nil {
		return
	}
	text := ""
	last := -1
	for i, p := range parts {
		if p.Type == tenon.PartText {
			text += p.Text
			last = i
		}
	}
	if last < 0 {
		return
	}
	var c model.Citations
	a.ground(&c, text)
	for k, v := range rawjson.Fields(a.cited) {
		if string(k) != "citationSources" && string(k) != "citations" {
			continue
		}
		for s := range rawjson.Elements(v) {
			c.Add(citationSource(s))
		}
	}
	if w := c.Warning(); w != "" {
		a.warn("%s", w)
	}
	for _, x := range c.In(text) {
		place(parts, last, x)
	}
}

// place adds a citation to the part in which the cited text begins. A citation without a position is added to the last
// text part.
func place(parts []tenon.Part, last int, x tenon.Citation) {
	if x.End == 0 {
		parts[last].Citations = append(parts[last].Citations, x)
		return
	}
	at := 0
	for i := range parts {
		p := &parts[i]
		if p.Type != tenon.PartText {
			continue
		}
		if x.Start < at+len(p.Text) {
			x.Start, x.End = x.Start-at, min(x.End-at, len(p.Text))
			p.Citations = append(p.Citations, x)
			return
		}
		at += len(p.Text)
	}
}

// ground reads groundingMetadata: sources, and the texts that they support. If there are no such texts, the citations
// have no position.
func (a *answer) ground(c *model.Citations, text string) {
	var chunks []tenon.Citation
	var supports []byte
	for k, v := range rawjson.Fields(a.grounding) {
		switch string(k) {
		case "groundingChunks":
			for chunk := range rawjson.Elements(v) {
				if len(chunks) < maxChunks {
					chunks = append(chunks, groundingChunk(chunk))
				}
			}
		case "groundingSupports":
			supports = v
		}
	}
	from := 0
	for s := range rawjson.Elements(supports) {
		start, end := segment(rawjson.Field(s, "segment"), text, from)
		if end > 0 {
			from = start
		}
		for n := range rawjson.Elements(rawjson.Field(s, "groundingChunkIndices")) {
			if i, ok := rawjson.Int(n); ok && i >= 0 && i < len(chunks) {
				x := chunks[i]
				x.Start, x.End = start, end
				c.Add(x)
			}
		}
	}
	if supports == nil {
		for _, x := range chunks {
			c.Add(x)
		}
	}
}

// maxQueries bounds the searches that are counted in an answer.
const maxQueries = 256

// searched records the web searches in groundingMetadata, which chunks of a stream repeat.
func (a *answer) searched(grounding []byte) {
	for q := range rawjson.Elements(rawjson.Field(grounding, "webSearchQueries")) {
		if a.queries == nil {
			a.queries = map[string]bool{}
		}
		if len(a.queries) < maxQueries {
			a.queries[string(q)] = true
		}
	}
}

// searches returns the number of searches that Google charges: each query, or with models before Gemini 3 one for all
// queries of a request. Source: the price list of the Gemini API, as of September 2026.
func (a *answer) searches() int {
	if strings.HasPrefix(a.model, "gemini-1") || strings.HasPrefix(a.model, "gemini-2") {
		return min(len(a.queries), 1)
	}
	return len(a.queries)
}

// groundingChunk reads a source: a web page, an entry of a document store, or a place on a map.
func groundingChunk(chunk []byte) (x tenon.Citation) {
	for _, source := range rawjson.Fields(chunk) {
		for k, v := range rawjson.Fields(source) {
			switch string(k) {
			case "uri":
				x.URL = rawjson.String(v)
			case "title":
				x.Title = rawjson.String(v)
			case "text":
				x.Quote = rawjson.String(v)
			case "documentName", "fileSearchStore":
				x.File = rawjson.String(v)
			}
		}
	}
	return x
}

// segment returns the byte range of a text that a source supports. It returns 0, 0 if the range is not known.
func segment(raw []byte, text string, from int) (start, end int) {
	quoted := ""
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "startIndex":
			start, _ = rawjson.Int(v)
		case "endIndex":
			end, _ = rawjson.Int(v)
		case "text":
			quoted = rawjson.String(v)
		}
	}
	inside := start >= 0 && end > start && end <= len(text)
	if quoted == "" || inside && text[start:end] == quoted {
		return start, end
	}
	if i := strings.Index(text[from:], quoted); i >= 0 {
		return from + i, from + i + len(quoted)
	}
	if i := strings.Index(text, quoted); i >= 0 {
		return i, i + len(quoted)
	}
	return 0, 0
}

// citationSource reads a passage that the model recites.
func citationSource(raw []byte) (x tenon.Citation) {
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "uri":
			x.URL = rawjson.String(v)
		case "title":
			x.Title = rawjson.String(v)
		case "startIndex":
			x.Start, _ = rawjson.Int(v)
		case "endIndex":
			x.End, _ = rawjson.Int(v)
		}
	}
	return x
}
