package model

import (
	"bytes"
	"cmp"
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

// TakesSchema reports whether the provider enforces the output schema of a request.
func (q Quirks) TakesSchema(req *tenon.Request) bool {
	always, alone := q.OutputSchema == SchemaAlways, q.OutputSchema == SchemaAlone
	return len(req.Output) > 0 && (always || alone && len(req.Tools) == 0)
}

// TakesObject reports whether a request is sent with the JSON mode of OpenAI's formats. Servers that enforce no schemas
// refuse this mode together with tools.
func (q Quirks) TakesObject(req *tenon.Request) bool {
	return len(req.Output) > 0 && IsAnyObject(req.Output) && q.JSONObject && (q.TakesSchema(req) || len(req.Tools) == 0)
}

// IsAnyObject reports whether a schema accepts every object, as OpenAI's response_format json_object does. Wire formats
// then have a JSON mode, because some providers refuse an object schema without properties.
func IsAnyObject(schema json.RawMessage) bool {
	var s map[string]any
	return json.Unmarshal(schema, &s) == nil && len(s) == 1 && s["type"] == "object"
}

// strictWords are the schema keywords that all providers with strict schemas accept (OpenAI's
// strict mode, Anthropic's structured outputs).
var strictWords = []string{
	"$schema", "$defs", "definitions", "$ref", "title", "description", "type", "properties", "required",
	"additionalProperties", "items", "enum", "const", "anyOf",
}

// IsStrict reports whether providers can enforce a schema strictly. The root must be an object, all
// objects must be closed with all members required, and only common keywords are allowed.
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

// structuresAnswers reports whether an Anthropic model can enforce schemas. It decides by the name: Opus 4.1 and all
// models from version 4.5 on can.
func structuresAnswers(name string) bool {
	return strings.HasPrefix(name, "claude-opus-4-1") || strings.HasPrefix(name, "claude-haiku-4-5") ||
		refersToTools(name)
}

// structuresOnBedrock reports whether an Anthropic model can enforce schemas at Bedrock: all models from version 4.5 on
// (recorded answers of pydantic/pydantic-ai, test_native_output). Other makers' models need quirks.output_schema.
func structuresOnBedrock(name string) bool {
	return strings.HasPrefix(name, "claude-haiku-4-5") || refersToTools(name)
}

// schemaOfOpenAI reports whether an OpenAI model can enforce schemas. It decides by the name: models before gpt-4o
// cannot.
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

// AppendSchema appends a schema without white space.
func AppendSchema(dst []byte, schema json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, schema) != nil {
		return append(dst, "{}"...)
	}
	return append(dst, b.Bytes()...)
}

// ContentOf converts an image or file of a message to a content block, which has the same form on a
// wire as a block of a tool result.
func ContentOf(p *tenon.Part) tenon.Content {
	c := tenon.Content{Type: tenon.ContentImage, MimeType: p.MimeType, Data: p.Data, Remote: p.URI}
	if p.Type == tenon.PartFile {
		c.Type, c.URI = tenon.ContentResource, p.Text
		if strings.HasPrefix(strings.ToLower(p.MimeType), "audio/") {
			c.Type = tenon.ContentAudio
		}
	}
	return c
}

// DocumentOf returns the name and the base64 data of a PDF file. ok is false if the block is not a
// PDF file.
func DocumentOf(c tenon.Content) (name, data string, ok bool) {
	if c.Type != tenon.ContentResource || c.Data == "" || !strings.EqualFold(c.MimeType, "application/pdf") {
		return "", "", false
	}
	if data, ok = base64Of(c.Data); !ok {
		return "", "", false
	}
	name = c.URI
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = cmp.Or(name, "document.pdf")
	return Visible(name), data, true
}
