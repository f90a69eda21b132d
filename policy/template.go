package policy

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/tenonhq/tenon"
)

// The limits of a template: its size, its expressions and the size of its result.
const (
	maxTemplate    = 64 << 10
	maxExpressions = 100
	maxRendered    = 4 << 20
)

// Escape is the encoding of a value in a text.
type Escape int

// The ways to insert a value into a text.
const (
	EscapeNone Escape = iota // a text unchanged, any other value as JSON
	EscapeURL                // percent-encoded; the result of urlencode is inserted unchanged
	EscapeJSON               // escaped within a JSON string, elsewhere a JSON value
)

// Template is a text with CEL expressions between {{ and }}, over the variable args. Besides CEL's own functions
// there are urlencode(text), json(value) and base64(text). It is safe for concurrent use.
type Template struct {
	pieces []piece
	uses   uses
}

// piece is a text, or an expression.
type piece struct {
	text    string
	program cel.Program
	source  string
	secret  string // the name of a secret to insert
	encoded bool   // the expression calls urlencode
	quoted  bool   // the piece is inside a JSON string
}

// Templates compiles templates. It is safe for concurrent use.
type Templates struct{ env *cel.Env }

// NewTemplates returns a compiler of templates over the variable args.
func NewTemplates() (*Templates, error) { return newTemplates("args") }

func newTemplates(variables ...string) (*Templates, error) {
	text := func(name string, f func(string) string) cel.EnvOption {
		return cel.Function(name, cel.Overload(name+"_text", []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				s, ok := v.Value().(string)
				if !ok {
					return types.NewErr("%s takes a text", name)
				}
				return types.String(f(s))
			})))
	}
	options := []cel.EnvOption{cel.ParserExpressionSizeLimit(maxConditionSize),
		cel.ParserRecursionLimit(maxConditionDepth),
		text("urlencode", escapeURL),
		text("base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
		cel.Function("json", cel.Overload("json_any", []*cel.Type{cel.DynType}, cel.StringType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				b, err := encodeValue(v, false)
				if err != nil {
					return types.NewErr("json: %v", err)
				}
				return types.String(b)
			})))}
	for _, v := range variables {
		typ := cel.DynType
		if v == "args" {
			typ = cel.MapType(cel.StringType, cel.DynType)
		}
		options = append(options, cel.Variable(v, typ))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the expression language cannot be set up: %w", err)
	}
	return &Templates{env}, nil
}

// escapeURL encodes a text for use in one segment of a path, or in a query.
func escapeURL(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// Compile compiles a template. secrets says whether it may contain {{ secrets.NAME }}. The error has code config and
// says which expression is wrong.
func (t *Templates) Compile(text string, secrets bool) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, tenon.Errorf(tenon.CodeConfig, "the template has more than %d bytes", maxTemplate)
	}
	out := &Template{}
	quotes := false // inside a JSON string
	for n := 0; text != ""; n++ {
		before, rest, found := strings.Cut(text, "{{")
		if before != "" {
			out.pieces = append(out.pieces, piece{text: before})
			quotes = inQuotes(before, quotes)
		}
		if !found {
			break
		}
		source, after, closed := cutExpression(rest)
		source = strings.TrimSpace(source)
		switch {
		case !closed:
			return nil, tenon.Errorf(tenon.CodeConfig, "'{{' without '}}'")
		case source == "":
			return nil, tenon.Errorf(tenon.CodeConfig, "there is nothing between '{{' and '}}'")
		case n >= maxExpressions:
			return nil, tenon.Errorf(tenon.CodeConfig, "there are more than %d expressions", maxExpressions)
		}
		text = after
		if name, ok := strings.CutPrefix(source, "secrets."); ok {
			if !secrets {
				return nil, tenon.Errorf(tenon.CodeConfig, "'%s': secrets are allowed in headers only", source)
			}
			out.pieces = append(out.pieces, piece{source: source, secret: name})
			continue
		}
		tree, program, err := t.compile(source)
		if err != nil {
			return nil, err
		}
		used := usesOf(tree)
		out.uses.all = append(out.uses.all, used.all...)
		out.uses.whole = append(out.uses.whole, used.whole...)
		e := tree.NativeRep().Expr()
		encoded := e.AsCall() != nil && e.AsCall().FunctionName() == "urlencode"
		out.pieces = append(out.pieces, piece{program: program, source: source, encoded: encoded, quoted: quotes})
	}
	return out, nil
}

// compile compiles one expression.
func (t *Templates) compile(source string) (*cel.Ast, cel.Program, error) {
	tree, issues := t.env.Compile(source)
	if issues != nil && issues.Err() != nil {
		e := issues.Errors()[0]
		return nil, nil, tenon.Errorf(tenon.CodeConfig, "'%s' is not a CEL expression: %s", source,
			firstLine(e.Message))
	}
	program, err := t.env.Program(tree, cel.CostLimit(maxConditionCost), cel.EvalOptions(cel.OptOptimize),
		mixedNumbers())
	if err != nil {
		return nil, nil, tenon.Errorf(tenon.CodeConfig, "'%s' cannot be used: %w", source, err)
	}
	return tree, program, nil
}

// cutExpression finds the end of an expression; strings in it may contain braces.
func cutExpression(s string) (expression, rest string, closed bool) {
	var quote byte
	depth := 0 // depth of the braces of the expression itself
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case strings.HasPrefix(s[i:], "}}"):
			return s[:i], s[i+2:], true
		}
	}
	return "", "", false
}

// inQuotes reports whether a JSON string is open after a text.
func inQuotes(s string, open bool) bool {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && open:
			i++
		case s[i] == '"':
			open = !open
		}
	}
	return open
}

// Secrets returns the names of the secrets in the template.
func (t *Template) Secrets() []string {
	var names []string
	for _, p := range t.pieces {
		if p.secret != "" {
			names = append(names, p.secret)
		}
	}
	return names
}

// Fixed returns the text before the first expression, and reports whether the template has no expression.
func (t *Template) Fixed() (text string, whole bool) {
	for _, p := range t.pieces {
		if p.text == "" {
			return text, false
		}
		text += p.text
	}
	return text, true
}

// Render inserts the values. secret returns a secret by its name. The error has code invalid (a missing argument, a
// value that JSON cannot express, a result that is too long), or is the error of secret.
func (t *Template) Render(args json.RawMessage, how Escape, secret func(name string) (string, error)) (string, error) {
	values, err := decode(args)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "the arguments are not a JSON object: %w", err)
	}
	return t.render(map[string]any{"args": values}, how, secret)
}

// Uses returns the variables that the template uses.
func (t *Template) Uses() []Use { return t.uses.all }

// Whole is as for [Expression.Whole].
func (t *Template) Whole() []Use { return t.uses.whole }

// Fill inserts values unchanged. vars is as for [Expression.Value]. It returns the errors of Render.
func (t *Template) Fill(vars map[string]any) (string, error) {
	return t.render(vars, EscapeNone, nil)
}

func (t *Template) render(vars map[string]any, how Escape, secret func(name string) (string, error)) (_ string,
	err error) {
	var b strings.Builder
	for _, p := range t.pieces {
		text := p.text
		switch {
		case p.secret != "":
			if text, err = secret(p.secret); err != nil {
				return "", err
			}
		case p.program != nil:
			v, _, err := p.program.Eval(vars)
			if err != nil {
				return "", tenon.Errorf(tenon.CodeInvalid, "'%s' has no value: %w", p.source, explained(err))
			}
			if text, err = p.put(v, how); err != nil {
				return "", tenon.Errorf(tenon.CodeInvalid, "'%s' cannot be written: %w", p.source, err)
			}
		}
		if b.Len()+len(text) > maxRendered {
			return "", tenon.Errorf(tenon.CodeInvalid, "the text has more than %d bytes", maxRendered)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// put encodes a value for the text.
func (p *piece) put(v ref.Val, how Escape) (string, error) {
	if v.Type() == types.TimestampType || v.Type() == types.DurationType {
		v = v.ConvertToType(types.StringType)
	}
	s, isText := v.Value().(string)
	isText = isText && v.Type() == types.StringType
	if how == EscapeJSON && !p.quoted {
		if isText && json.Valid([]byte(s)) && strings.HasPrefix(p.source, "json(") {
			return s, nil
		}
		return encodeValue(v, false)
	}
	if !isText {
		var err error
		if s, err = encodeValue(v, false); err != nil {
			return "", err
		}
	}
	switch {
	case how == EscapeURL && !p.encoded:
		return escapeURL(s), nil
	case how == EscapeJSON:
		b, err := json.Marshal(s)
		return strings.TrimSuffix(strings.TrimPrefix(string(b), `"`), `"`), err
	}
	return s, nil
}

// encodeValue encodes a CEL value as JSON. Ints keep all their digits. If typed is true, a whole double is written as
// 5.0 instead of 5.
func encodeValue(v ref.Val, typed bool) (string, error) {
	switch v.Type() {
	case types.ErrType, types.UnknownType:
		return "", tenon.Errorf(tenon.CodeInvalid, "%v", v)
	case types.StringType:
		s, _ := v.Value().(string)
		if !utf8.ValidString(s) {
			return "", tenon.Errorf(tenon.CodeInvalid, "a text that is not UTF-8")
		}
	}
	b, err := json.Marshal(native(v, typed))
	return string(b), err
}

// native converts a CEL value to a value that encoding/json can encode.
func native(v any, typed bool) any {
	if r, ok := v.(ref.Val); ok {
		switch r.Type() {
		case types.NullType:
			return nil
		case types.DurationType:
			return r.ConvertToType(types.StringType).Value()
		}
		v = r.Value()
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = native(e, typed)
		}
		return out
	case map[ref.Val]ref.Val:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[keyOf(k)] = native(e, typed)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = native(e, typed)
		}
		return out
	case []ref.Val:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = native(e, typed)
		}
		return out
	case float64:
		if typed && v == math.Trunc(v) && math.Abs(v) < 1e21 { // for larger values encoding/json writes an exponent
			return json.RawMessage(strconv.FormatFloat(v, 'f', 1, 64))
		}
	}
	return v
}

// keyOf converts the key of a map to a JSON key, which is a string.
func keyOf(k ref.Val) string {
	s, _ := k.ConvertToType(types.StringType).Value().(string)
	return s
}
