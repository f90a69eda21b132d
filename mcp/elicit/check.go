package elicit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Fill checks the content of an answer against the form and adds the defaults of missing fields. Empty content means an
// empty object. Errors: invalid; the message lists all invalid fields.
func (f Form) Fill(content json.RawMessage) (json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(content)) > 0 {
		if _, twice := rawjson.Twice(content); twice && json.Valid(content) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the answer is ambiguous: it has a key twice")
		}
		if err := json.Unmarshal(content, &given); err != nil || given == nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the answer must be a JSON object with the form's fields")
		}
	}
	var wrong []string
	out := []byte{'{'}
	for _, field := range f.Fields {
		v, ok := given[field.Name]
		delete(given, field.Name)
		if !ok {
			v = field.Default
		}
		switch {
		case v == nil && field.Required:
			wrong = append(wrong, fmt.Sprintf("%q is required", field.Name))
		case v == nil:
		default:
			if err := field.Check(v); err != nil {
				wrong = append(wrong, fmt.Sprintf("%q %v", field.Name, err))
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, tenon.EventData(field.Name)...), ':'), v...)
		}
	}
	for name := range given {
		wrong = append(wrong, fmt.Sprintf("%q is no field of the form", clipText(name)))
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return nil, tenon.Errorf(tenon.CodeInvalid, "the answer does not fit the form: %s", strings.Join(wrong, "; "))
	}
	return append(out, '}'), nil
}

// Parse converts the input of a person to a value of the field. The text of an error continues a sentence that begins
// with the field's name, such as "must be a number".
func (f Field) Parse(text string) (json.RawMessage, error) {
	var v json.RawMessage
	switch f.Type {
	case "boolean":
		switch strings.ToLower(text) {
		case "y", "yes", "true":
			v = json.RawMessage("true")
		case "n", "no", "false":
			v = json.RawMessage("false")
		}
	case "integer", "number":
		v = json.RawMessage(text)
		if !json.Valid(v) {
			v = nil
		}
	case "array":
		list := []string{}
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				list = append(list, f.option(word))
			}
		}
		v = tenon.EventData(list)
	default:
		v = tenon.EventData(f.option(text))
	}
	return v, f.Check(v)
}

// option returns the value of the option that the word selects by its value, title or number. If there is none, it
// returns the word.
func (f Field) option(word string) string {
	for _, o := range f.Options {
		if o.Value == word {
			return word
		}
	}
	for _, o := range f.Options {
		if strings.EqualFold(o.Title, word) || strings.EqualFold(o.Value, word) {
			return o.Value
		}
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(f.Options) {
		return f.Options[n-1].Value
	}
	return word
}

// Check checks a value against the field's schema. The text of an error continues a sentence that begins with the
// field's name.
func (f Field) Check(v json.RawMessage) error {
	switch f.Type {
	case "boolean":
		if s := string(bytes.TrimSpace(v)); s != "true" && s != "false" {
			return fmt.Errorf("must be true or false")
		}
	case "integer", "number":
		return f.checkNumber(string(bytes.TrimSpace(v)))
	case "array":
		var list []string
		if json.Unmarshal(v, &list) != nil || list == nil {
			return fmt.Errorf("must be a list of %s", f.labels())
		}
		return f.checkList(list)
	default:
		var s *string
		if json.Unmarshal(v, &s) != nil || s == nil {
			return fmt.Errorf("must be a text")
		}
		return f.checkText(*s)
	}
	return nil
}

func (f Field) checkNumber(s string) error {
	var n json.Number
	if len(s) == 0 || s[0] == '"' || json.Unmarshal([]byte(s), &n) != nil || n == "" {
		return fmt.Errorf("must be %s", map[bool]string{true: "a whole number", false: "a number"}[f.Type == "integer"])
	}
	x, err := n.Float64()
	switch {
	case err != nil:
		return fmt.Errorf("is out of range")
	case f.Type == "integer" && strings.ContainsAny(s, ".eE"):
		return fmt.Errorf("must be a whole number")
	case f.Minimum != nil && x < *f.Minimum:
		return fmt.Errorf("must be at least %v", *f.Minimum)
	case f.Maximum != nil && x > *f.Maximum:
		return fmt.Errorf("must be at most %v", *f.Maximum)
	}
	return nil
}

func (f Field) checkList(list []string) error {
	for i, s := range list {
		switch {
		case !f.has(s):
			return fmt.Errorf("must be some of %s", f.labels())
		case slices.Contains(list[:i], s):
			return fmt.Errorf("must not hold %q twice", clipText(s))
		}
	}
	switch {
	case f.MinItems != nil && len(list) < *f.MinItems:
		return fmt.Errorf("must hold at least %d", *f.MinItems)
	case f.MaxItems != nil && len(list) > *f.MaxItems:
		return fmt.Errorf("must hold at most %d", *f.MaxItems)
	}
	return nil
}

func (f Field) checkText(s string) error {
	n := utf8.RuneCountInString(s)
	switch {
	case len(f.Options) > 0 && !f.has(s):
		return fmt.Errorf("must be one of %s", f.labels())
	case f.MinLength != nil && n < *f.MinLength:
		return fmt.Errorf("must have at least %d characters", *f.MinLength)
	case f.MaxLength != nil && n > *f.MaxLength:
		return fmt.Errorf("must have at most %d characters", *f.MaxLength)
	}
	if f.Pattern != "" && len(f.Pattern) <= 1000 {
		if re, err := regexp.Compile(f.Pattern); err == nil && !re.MatchString(s) {
			return fmt.Errorf("must match %s", clipText(f.Pattern))
		}
	}
	return checkFormat(f.Format, s)
}

func checkFormat(format, s string) error {
	var err error
	switch format {
	case "email":
		var a *mail.Address
		if a, err = mail.ParseAddress(s); err == nil && a.Address != s {
			err = fmt.Errorf("more than an address")
		}
	case "uri":
		var u *url.URL
		if u, err = url.Parse(s); err == nil && !u.IsAbs() {
			err = fmt.Errorf("relative")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, s)
	case "date-time":
		_, err = time.Parse(time.RFC3339, s)
	}
	if err != nil {
		return fmt.Errorf("must be %s", map[string]string{"email": "an email address", "uri": "a URI with its scheme",
			"date": "a date such as 2026-11-21", "date-time": "a time such as 2026-11-21T08:30:00Z"}[format])
	}
	return nil
}

func (f Field) has(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}

// labels lists at most 20 options.
func (f Field) labels() string {
	var list []string
	for _, o := range f.Options {
		list = append(list, clipText(o.Value))
	}
	if len(list) > 20 {
		list = append(list[:20], "…")
	}
	return strings.Join(list, ", ")
}
