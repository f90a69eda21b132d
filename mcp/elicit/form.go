// Package elicit reads what an MCP server asks a person during a call: elicitation/create in revisions 2025-06-18 to
// 2026-07-28, and the requests of an input_required result.
//
//	form, err := elicit.Parse(params)        // a form of fields, or a URL to visit
//	value, err := form.Fields[0].Parse(text) // what a person typed, as a value of the field
//	content, err := form.Fill(content)       // a whole answer, checked, with defaults
//
// The executor parses a form when a server asks, before a person sees it, and checks the answer before the server
// receives it. Terminal and workbench show forms from the same data. A server must not ask for secrets by a form, but
// some do: fields that seem to ask for one are marked, so that a surface can name the server that gets the answer.
//
// The package has no state and does no I/O.
package elicit

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/exactjson"
)

// The modes of a [Form].
const (
	ModeForm = "form"
	ModeURL  = "url"
)

// Form is a request of a server to a person: fields to fill in, or a URL to visit. All texts come from the server. They
// must be made visible (see [tenon.Visible]) before they are shown.
type Form struct {
	Mode    string
	Message string
	URL     string // for ModeURL
	Host    string // for ModeURL: the host of the URL
	Fields  []Field
	Secret  bool // at least one field is Secret
}

// Field is one property of a form's schema.
type Field struct {
	Name, Title, Description string
	Type                     string   // string, number, integer, boolean, array (of options)
	Options                  []Option // values of an enum; if empty, any value is allowed
	Default                  json.RawMessage
	Required                 bool
	// Sensitive marks a field whose name or title denotes a secret. Its value is redacted in logs and results.
	// Servers must not ask for secrets by a form (2025-11-25, elicitation).
	Sensitive bool
	// Secret marks a field that seems to ask for a secret, according to its texts or to the form's message. Surfaces
	// then name the server that receives the answer. A Sensitive field is not Secret if ordinary words are around the
	// one that denotes a secret, as in max_tokens.
	Secret               bool
	Format               string // email, uri, date and date-time are checked
	Pattern              string // a regular expression; ignored if it does not compile
	MinLength, MaxLength *int   // of a string, in characters
	Minimum, Maximum     *float64
	MinItems, MaxItems   *int
}

// Option is one value of an enum.
type Option struct{ Value, Title string }

// Label returns the option's text for a person: title and value.
func (o Option) Label() string {
	if o.Title == "" || o.Title == o.Value {
		return o.Value
	}
	return o.Title + " (" + o.Value + ")"
}

// Bounds of a form.
const (
	maxFields  = 64
	maxOptions = 500
)

// Parse reads the params of elicitation/create. Errors: protocol.
func Parse(params json.RawMessage) (Form, error) {
	var p struct {
		Mode            string `json:"mode"`
		Message         string `json:"message"`
		URL             string `json:"url"`
		RequestedSchema *struct {
			Type       string          `json:"type"`
			Properties json.RawMessage `json:"properties"`
			Required   []string        `json:"required"`
		} `json:"requestedSchema"`
	}
	if err := exactjson.DecodeOpen(params, &p); err != nil { // names must match exactly, as in the workbench
		return Form{}, badForm("it cannot be read: %v", err)
	}
	f := Form{Mode: p.Mode, Message: p.Message}
	switch p.Mode {
	case ModeURL:
		u, err := url.Parse(p.URL)
		if err != nil || strings.ContainsFunc(p.URL, isBlank) || u.Host == "" || u.User != nil ||
			u.Scheme != "https" && u.Scheme != "http" {
			return Form{}, badForm("its URL must be http or https, with a host and without a login: %q",
				clipText(p.URL))
		}
		f.URL, f.Host = p.URL, u.Hostname()
		return f, nil
	case "", ModeForm:
		f.Mode = ModeForm
	default:
		return Form{}, badForm("it has the unknown mode %q", clipText(p.Mode))
	}
	if p.RequestedSchema == nil || p.RequestedSchema.Type != "object" {
		return Form{}, badForm("requestedSchema must be a schema of type object")
	}
	var err error
	f.Fields, err = readFields(p.RequestedSchema.Properties, p.RequestedSchema.Required)
	asked := mentionsSecret(p.Message)
	for i := range f.Fields {
		field := &f.Fields[i]
		field.Secret = field.isTyped() && (asked || asksSecret(field.Name) || asksSecret(field.Title) ||
			!field.isSmall() && mentionsSecret(field.Description) || asksSecret(field.Format) ||
			mentionsKey(field.Pattern))
		f.Secret = f.Secret || field.Secret
	}
	return f, err
}

// isBlank reports whether a character could make a URL look like several URLs, or like another one.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || tenon.IsHidden(r) }

// isTyped reports whether a person types the value. Otherwise the person chooses it.
func (f Field) isTyped() bool { return f.Type != "boolean" && len(f.Options) == 0 }

// isSmall reports whether the value is one of at most a hundred numbers. Such a field cannot hold a secret, even if its
// description mentions one ("do not give us your phone number or PIN").
func (f Field) isSmall() bool {
	const most = 100
	return f.Type == "integer" && f.Minimum != nil && f.Maximum != nil && *f.Maximum-*f.Minimum < most
}

func badForm(format string, args ...any) error {
	return tenon.Errorf(tenon.CodeProtocol, "the server's question is not one of the protocol: "+format, args...)
}

func clipText(s string) string { return tenon.Shorten(s, 120) }

// readFields returns the fields in the server's order.
func readFields(properties json.RawMessage, required []string) ([]Field, error) {
	if len(properties) == 0 || string(properties) == "null" {
		properties = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(properties))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, badForm("properties must be an object")
	}
	var list []Field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, badForm("%v", err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, badForm("%v", err)
		}
		key, _ := name.(string)
		f, err := readField(key, raw)
		if err == nil && slices.ContainsFunc(list, func(f Field) bool { return f.Name == key }) {
			err = badForm("it has the field %q twice", clipText(key))
		}
		if err != nil {
			return nil, err
		}
		f.Required = slices.Contains(required, key)
		if list = append(list, f); len(list) > maxFields {
			return nil, badForm("it has more than %d fields", maxFields)
		}
	}
	for _, name := range required {
		if !slices.ContainsFunc(list, func(f Field) bool { return f.Name == name }) {
			return nil, badForm("it requires %q and has no such field", clipText(name))
		}
	}
	return list, nil
}

// choice is one value of an enum with titles.
type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// fieldSchema is the JSON Schema of a field, restricted by the protocol.
type fieldSchema struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Format      string          `json:"format"`
	Pattern     string          `json:"pattern"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	OneOf       []choice        `json:"oneOf"`
	Items       struct {
		Enum  []string `json:"enum"`
		AnyOf []choice `json:"anyOf"`
		OneOf []choice `json:"oneOf"`
	} `json:"items"`
	MinLength *int     `json:"minLength"`
	MaxLength *int     `json:"maxLength"`
	MinItems  *int     `json:"minItems"`
	MaxItems  *int     `json:"maxItems"`
	Minimum   *float64 `json:"minimum"`
	Maximum   *float64 `json:"maximum"`
}

func readField(name string, raw json.RawMessage) (Field, error) {
	var p fieldSchema
	if err := exactjson.DecodeOpen(raw, &p); err != nil {
		return Field{}, badForm("field %q cannot be read: %v", clipText(name), err)
	}
	f := Field{Name: name, Title: p.Title, Description: p.Description, Type: p.Type, Default: p.Default,
		Format: p.Format, Pattern: p.Pattern, MinLength: p.MinLength, MaxLength: p.MaxLength, Minimum: p.Minimum,
		Maximum: p.Maximum, MinItems: p.MinItems, MaxItems: p.MaxItems,
		Sensitive: isSensitive(name + " " + p.Title + " " + p.Format)}
	if string(f.Default) == "null" {
		f.Default = nil
	}
	switch p.Type {
	case "string":
		f.Options = options(p.Enum, p.EnumNames, p.OneOf)
	case "array":
		if f.Options = options(p.Items.Enum, nil, append(p.Items.AnyOf, p.Items.OneOf...)); len(f.Options) == 0 {
			return f, badForm("field %q is a list of something else than options", clipText(name))
		}
	case "boolean", "integer", "number":
	default:
		return f, badForm("field %q has the type %q; a form has string, number, integer, boolean and lists of options",
			clipText(name), clipText(p.Type))
	}
	if len(f.Options) > maxOptions {
		return f, badForm("field %q has more than %d options", clipText(name), maxOptions)
	}
	if f.Default != nil && f.Check(f.Default) != nil {
		f.Default = nil // an invalid default is ignored
	}
	return f, nil
}

func options(values, titles []string, choices []choice) []Option {
	var list []Option
	for i, v := range values {
		o := Option{Value: v}
		if i < len(titles) {
			o.Title = titles[i]
		}
		list = append(list, o)
	}
	for _, c := range choices {
		list = append(list, Option{c.Const, c.Title})
	}
	return list
}

// sensitiveWords are parts of the names of secrets.
var sensitiveWords = []string{"password", "passwort", "passphrase", "passwd", "secret", "apikey", "accesskey",
	"privatekey", "token", "credential", "cardnumber", "cvv"}

// isSensitive reports whether a name contains one of the sensitiveWords.
func isSensitive(name string) bool {
	name = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	return slices.ContainsFunc(sensitiveWords, func(word string) bool { return strings.Contains(name, word) })
}
