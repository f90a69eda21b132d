package openai

import (
	"bytes"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// turnMarks is the number of messages with a mark, besides the stable prefix: the end of this turn, and the end of the
// turn before, where the prefix ends that the previous request has written to the cache.
const turnMarks = 2

// markLast marks the last text of a message for the prompt cache, for Claude behind OpenRouter. Only texts in a list
// can have a mark, so it makes a list of a single text. Sources: "Prompt caching" of OpenRouter's guides;
// ChatContentText and ChatToolMessage of its API reference. A message that ends with an image or a file, and an empty
// text, cannot be marked.
func markLast(m *tenon.Message, form []byte) [][]byte {
	head, ok := bytes.CutSuffix(form, []byte(`"}`))
	if !ok {
		if i := len(m.Parts) - 1; i < 0 || m.Parts[i].Type != tenon.PartText || m.Parts[i].Text == "" {
			return nil
		}
		return model.MarkEnd(form, "}]}")
	}
	const member = `"content":` // quotation marks in a text are escaped
	at := bytes.LastIndex(head, []byte(member+`"`))
	if at < 0 || at+len(member)+1 == len(head) {
		return nil
	}
	at += len(member)
	return [][]byte{form[:at], []byte(`[{"type":"text","text":`), form[at : len(form)-1],
		[]byte(model.CacheMark + "}]}")}
}
