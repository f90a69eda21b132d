package host

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// The modes of a [Form].
const (
	ModeForm = "form"
	ModeURL  = "url"
)

// Form is what a server asks a person (MCP, elicitation/create, revisions
// 2025-06-18 to 2026-07-28): to fill in fields, or to visit a URL. Its texts are
// the server's: make them safe before they are shown.
type Form struct {
	Mode    string
	Message string
	URL     string // ModeURL: the whole of it
	Host    string // ModeURL: where it leads to
	Fields  []FormField
}

// FormField is one property of a form's schema.
type FormField struct {
	Name, Title, Description string
	Type                     string   // string, number, integer, boolean, array (of options)
	Options                  []Option // of an enum; empty: any value
	Default                  json.RawMessage
	Required                 bool
	// Sensitive says that the name speaks of a secret. A server must not ask for
	// one by a form (2025-11-25, elicitation); what is answered nevertheless is
	// masked in logs and results.
	Sensitive            bool
	Format               string // email, uri, date, date-time; others are not checked
	Pattern              string // a regular expression; one that does not compile is not checked
	MinLength, MaxLength *int   // of a string, in characters
	Minimum, Maximum     *float64
	MinItems, MaxItems   *int
}

// Option is one value of an enum.
type Option struct{ Value, Title string }

// Label is what a person knows the option by.
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

// ParseForm reads the params of elicitation/create. Errors: protocol, with what
// is wrong with the form.
func ParseForm(params json.RawMessage) (Form, error) {
	var p struct {
		Mode, Message, URL string
		RequestedSchema    *struct {
			Type       string
			Properties json.RawMessage
			Required   []string
		}
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return Form{}, badForm("it cannot be read: %v", err)
	}
	f := Form{Mode: p.Mode, Message: p.Message}
	switch p.Mode {
	case ModeURL:
		u, err := url.Parse(p.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
			return Form{}, badForm("its URL must be http or https, with a host and without a login: %q", clipText(p.URL))
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
	return f, err
}

func badForm(format string, args ...any) error {
	return tenon.Errorf(tenon.CodeProtocol, "the server's question is not one of the protocol: "+format, args...)
}

func clipText(s string) string { return shorten(s, 120) }

// readFields keeps the order in which the server lists the properties.
func readFields(properties json.RawMessage, required []string) ([]FormField, error) {
	if len(properties) == 0 || string(properties) == "null" {
		properties = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(properties))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, badForm("properties must be an object")
	}
	var list []FormField
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
		if err == nil && slices.ContainsFunc(list, func(f FormField) bool { return f.Name == key }) {
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
		if !slices.ContainsFunc(list, func(f FormField) bool { return f.Name == name }) {
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

func readField(name string, raw json.RawMessage) (FormField, error) {
	var p struct {
		Type, Title, Description, Format, Pattern string
		Default                                   json.RawMessage
		Enum, EnumNames                           []string
		OneOf                                     []choice
		Items                                     struct {
			Enum         []string
			AnyOf, OneOf []choice
		}
		MinLength, MaxLength, MinItems, MaxItems *int
		Minimum, Maximum                         *float64
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return FormField{}, badForm("field %q cannot be read: %v", clipText(name), err)
	}
	f := FormField{Name: name, Title: p.Title, Description: p.Description, Type: p.Type, Default: p.Default, Format: p.Format, Pattern: p.Pattern,
		MinLength: p.MinLength, MaxLength: p.MaxLength, Minimum: p.Minimum, Maximum: p.Maximum, MinItems: p.MinItems, MaxItems: p.MaxItems,
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
		return f, badForm("field %q has the type %q; a form has string, number, integer, boolean and lists of options", clipText(name), clipText(p.Type))
	}
	if len(f.Options) > maxOptions {
		return f, badForm("field %q has more than %d options", clipText(name), maxOptions)
	}
	if f.Default != nil && f.Check(f.Default) != nil {
		f.Default = nil // a default that does not fit is none
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

// isSensitive reports whether a name speaks of a secret.
func isSensitive(name string) bool {
	name = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	for _, word := range []string{"password", "passwort", "passphrase", "passwd", "secret", "apikey", "accesskey", "privatekey", "token", "credential", "cardnumber", "cvv"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
