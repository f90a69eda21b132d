package bedrock

import (
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// maxCited bounds the citations of a block.
const maxCited = 1024

// citations returns the citations of a text block. They support the whole text of the block. They have the form of
// the API's type Citation: title, source, sourceContent, and a location of one of several kinds.
func (b *block) citations(text string) []tenon.Citation {
	if len(b.cited) == 0 {
		return nil
	}
	var list model.Citations
	for _, raw := range b.cited {
		x := tenon.Citation{End: len(text)}
		for k, v := range rawjson.Fields(raw) {
			switch string(k) {
			case "title":
				x.Title = rawjson.String(v)
			case "source":
				x.File = rawjson.String(v)
			case "sourceContent":
				for c := range rawjson.Elements(v) {
					x.Quote += rawjson.String(rawjson.Field(c, "text"))
				}
			case "location":
				x.URL = rawjson.String(rawjson.Field(rawjson.Field(v, "web"), "url"))
			}
		}
		list.Add(x)
	}
	return list.In(text)
}
