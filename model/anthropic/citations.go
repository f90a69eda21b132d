package anthropic

import (
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// citations returns the citations of a text block. They support the whole text of the block. The kinds are
// char_location, page_location, content_block_location, web_search_result_location and search_result_location
// (anthropic-sdk-go, TextCitationUnion).
func (b *block) citations(text string) []tenon.Citation {
	start := rawjson.Field(b.start, "citations")
	grown := b.find("citations")
	if rawjson.IsNull(start) && grown == nil {
		return nil
	}
	all := start
	if grown != nil {
		all = grown.value(start)
	}
	var list model.Citations
	for raw := range rawjson.Elements(all) {
		x := tenon.Citation{End: len(text)}
		for k, v := range rawjson.Fields(raw) {
			switch string(k) {
			case "cited_text":
				x.Quote = rawjson.String(v)
			case "url":
				x.URL = rawjson.String(v)
			case "title", "document_title":
				x.Title = rawjson.String(v)
			case "source": // of a search result; an address or a name
				x.File = rawjson.String(v)
			case "file_id":
				x.File = rawjson.String(v)
			}
		}
		list.Add(x)
	}
	return list.In(text)
}
