package history

import (
	"encoding/json"
	"fmt"
	"strings"
)

// block is a content block of the Messages API.
type block struct {
	Type, Text, ID, Name string
	Input                json.RawMessage
	ToolUseID            string `json:"tool_use_id"`
	Content              json.RawMessage
	Signature, Data      string
	Source               struct {
		MediaType string `json:"media_type"`
		Data      string
	}
}

// turn holds consecutive messages of one role, which the API joins.
type turn struct {
	role   string
	where  string
	blocks []block
}

// anthropic checks a Messages request. The first and last turn are the user's. The results of a turn's calls
// are at the start of the next message.
func (c *checker) anthropic(r *request) {
	if r.MaxTokens <= 0 {
		c.bad("max_tokens is missing")
	}
	turns := c.turns(r.Messages)
	if len(turns) == 0 {
		c.bad("there are no messages")
		return
	}
	if turns[0].role != "user" {
		c.bad("the first message is the assistant's")
	}
	if turns[len(turns)-1].role != "user" {
		c.bad("the last message is the assistant's: most models refuse prefilled answers")
	}
	open := c.calls("")
	for _, t := range turns {
		if t.role == "user" {
			c.results(t, open)
			continue
		}
		open = c.calls(t.where)
		c.blocks(t, open)
	}
	open.end()
}

func (c *checker) turns(msgs []message) []turn {
	var turns []turn
	for i, m := range msgs {
		where := fmt.Sprintf("messages[%d]", i)
		if m.Role != "user" && m.Role != "assistant" {
			c.bad("%s: role %q", where, m.Role)
		}
		var blocks []block
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			blocks = []block{{Type: "text", Text: text}}
		} else if err := json.Unmarshal(m.Content, &blocks); err != nil {
			c.bad("%s: content: %w", where, err)
		}
		if len(blocks) == 0 {
			c.bad("%s: no content", where)
		}
		for _, b := range blocks {
			if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
				c.bad("%s: an empty text", where)
			}
		}
		if n := len(turns); n > 0 && turns[n-1].role == m.Role {
			turns[n-1].blocks = append(turns[n-1].blocks, blocks...)
			continue
		}
		turns = append(turns, turn{m.Role, where, blocks})
	}
	return turns
}

func (c *checker) results(t turn, open *pending) {
	first := true
	for _, b := range t.blocks {
		switch b.Type {
		case "tool_result":
			open.result(t.where, b.ToolUseID)
			if !first {
				c.bad("%s: a result follows other blocks", t.where)
			}
		case "tool_use", "thinking", "redacted_thinking":
			c.bad("%s: a %s block of the user", t.where, b.Type)
		case "image":
			if b.Source.MediaType == "" || b.Source.Data == "" {
				c.bad("%s: an image without data", t.where)
			}
			first = false
		default:
			first = false
		}
	}
	open.end()
}

func (c *checker) blocks(t turn, open *pending) {
	for _, b := range t.blocks {
		switch b.Type {
		case "tool_use":
			open.call(b.ID)
			c.named(t.where, b.Name)
			if !id.MatchString(b.ID) {
				c.bad("%s: %q is not an id of a call", t.where, b.ID)
			}
			if !isObject(string(b.Input)) {
				c.bad("%s: the input of %s is not an object: %s", t.where, b.ID, b.Input)
			}
		case "thinking":
			if b.Signature == "" {
				c.bad("%s: a thinking block without a signature", t.where)
			}
		case "tool_result":
			c.bad("%s: a result of the assistant", t.where)
		}
	}
}

type content struct {
	Role  string
	Parts []struct {
		Text             *string
		ThoughtSignature string
		FunctionCall     *struct {
			ID, Name string
			Args     json.RawMessage
		}
		FunctionResponse *struct {
			ID, Name string
			Response json.RawMessage
		}
		InlineData *struct{ MimeType, Data string }
	}
}

// gemini checks a generateContent request. The turn after calls contains their results, equal in number and
// order. Models since Gemini 3 require a signature on the first call of every step since the last user
// message.
func (c *checker) gemini(path string, r *request) {
	if len(r.Contents) == 0 {
		c.bad("there are no contents")
		return
	}
	if r.Contents[0].Role != "user" {
		c.bad("the first message is the model's")
	}
	if r.Contents[len(r.Contents)-1].Role != "user" {
		c.bad("the last message is the model's")
	}
	_, model, _ := strings.Cut(path, "/models/")
	signed := !strings.HasPrefix(model, "gemini-1") && !strings.HasPrefix(model, "gemini-2")
	type call struct{ id, name string }
	var open []call
	for i, turn := range r.Contents {
		where := fmt.Sprintf("contents[%d]", i)
		if turn.Role != "user" && turn.Role != "model" {
			c.bad("%s: role %q", where, turn.Role)
		}
		if len(turn.Parts) == 0 {
			c.bad("%s: no content", where)
		}
		if turn.Role == "model" && i > 0 && r.Contents[i-1].Role == "model" {
			c.bad("%s: two consecutive messages of the model", where)
		}
		var calls []call
		for _, p := range turn.Parts {
			if f := p.FunctionCall; f != nil {
				c.named(where, f.Name)
				if turn.Role != "model" {
					c.bad("%s: a call of the user", where)
				}
				if len(f.Args) > 0 && !isObject(string(f.Args)) {
					c.bad("%s: the arguments of %s are not an object: %s", where, f.Name, f.Args)
				}
				if signed && len(calls) == 0 && p.ThoughtSignature == "" {
					c.bad("%s: the call of %s has no signature", where, f.Name)
				}
				calls = append(calls, call{f.ID, f.Name})
			}
			if f := p.FunctionResponse; f != nil {
				switch {
				case turn.Role != "user" || len(open) == 0:
					c.bad("%s: the result of %s has no call", where, f.Name)
				case open[0] != call{f.ID, f.Name}:
					c.bad("%s: the result of %s %q is in the place of the result of %s %q", where, f.Name, f.ID,
						open[0].name, open[0].id)
					open = open[1:]
				default:
					open = open[1:]
				}
				if !isObject(string(f.Response)) {
					c.bad("%s: the result of %s is not an object", where, f.Name)
				}
			}
			if d := p.InlineData; d != nil && (d.MimeType == "" || d.Data == "") {
				c.bad("%s: inline data without bytes or type", where)
			}
		}
		for _, o := range open {
			c.bad("%s: the call of %s %q has no result here", where, o.name, o.id)
		}
		open = calls
	}
	for _, o := range open {
		c.bad("the call of %s %q has no result", o.name, o.id)
	}
}
