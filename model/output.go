package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// The values of [Quirks.OutputSchema].
const (
	SchemaAlways = "always"
	SchemaAlone  = "alone"
	SchemaNever  = "never"
)

// TakesSchema reports whether the provider is to hold the answer of a request to its
// schema.
func (q Quirks) TakesSchema(req *tenon.Request) bool {
	return len(req.Output) > 0 && (q.OutputSchema == SchemaAlways || q.OutputSchema == SchemaAlone && len(req.Tools) == 0)
}

// strictWords are the keywords that every provider takes which holds answers strictly
// to a schema (OpenAI's strict mode, Anthropic's structured outputs).
var strictWords = []string{"$schema", "$defs", "definitions", "$ref", "title", "description", "type", "properties", "required",
	"additionalProperties", "items", "enum", "const", "anyOf"}

// IsStrict reports whether a schema is one that an answer can be held to strictly: its
// root is an object, all objects are closed and all their members required, and it has
// no keywords but the common ones.
func IsStrict(schema json.RawMessage) bool {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil || root["type"] != "object" {
		return false
	}
	return strict(root, 0)
}

func strict(v any, depth int) bool {
	s, ok := v.(map[string]any)
	if !ok || depth > 10 {
		return false
	}
	props, _ := s["properties"].(map[string]any)
	if s["type"] == "object" || props != nil {
		required, _ := s["required"].([]any)
		if s["additionalProperties"] != false || len(required) != len(props) {
			return false
		}
	}
	for k, v := range s {
		if !slices.Contains(strictWords, k) {
			return false
		}
		switch k {
		case "items":
			if !strict(v, depth+1) {
				return false
			}
		case "anyOf":
			list, _ := v.([]any)
			for _, e := range list {
				if !strict(e, depth+1) {
					return false
				}
			}
		case "properties", "$defs", "definitions":
			members, _ := v.(map[string]any)
			for _, e := range members {
				if !strict(e, depth+1) {
					return false
				}
			}
		}
	}
	return true
}

// structuresAnswers reports whether a model of Anthropic's holds answers to a schema,
// by its name: all from version 4.5 on, and Opus 4.1.
func structuresAnswers(name string) bool {
	return strings.HasPrefix(name, "claude-opus-4-1") || strings.HasPrefix(name, "claude-haiku-4-5") || refersToTools(name)
}

// schemaOfOpenAI reports whether a model of OpenAI's holds answers to a schema, by its
// name: all do but those before gpt-4o.
func schemaOfOpenAI(name string) bool {
	for _, old := range []string{"gpt-3", "gpt-4-", "o1-mini", "o1-preview", "gpt-4o-2024-05"} {
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return name != "gpt-4"
}

func olderGemini(name string) bool {
	name = strings.TrimPrefix(name, "models/")
	return strings.HasPrefix(name, "gemini-1") || strings.HasPrefix(name, "gemini-2")
}

// AppendSchema appends a schema without the white space of the file that it came from.
func AppendSchema(dst []byte, schema json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, schema) != nil {
		return append(dst, "{}"...)
	}
	return append(dst, b.Bytes()...)
}

// ContentOf returns a picture or a file of a message as a block, whose form on a wire is
// the same as that of a tool's result.
func ContentOf(p *tenon.Part) tenon.Content {
	c := tenon.Content{Type: tenon.ContentImage, MimeType: p.MimeType, Data: p.Data}
	if p.Type == tenon.PartFile {
		c.Type, c.URI = tenon.ContentResource, p.Text
		if strings.HasPrefix(strings.ToLower(p.MimeType), "audio/") {
			c.Type = tenon.ContentAudio
		}
	}
	return c
}

// DocumentOf returns the name and the base64 data if the block holds a PDF file.
func DocumentOf(c tenon.Content) (name, data string, ok bool) {
	if c.Type != tenon.ContentResource || c.Data == "" || !strings.EqualFold(c.MimeType, "application/pdf") {
		return "", "", false
	}
	name = c.URI
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	if name == "" {
		name = "document.pdf"
	}
	return Visible(name), c.Data, true
}
