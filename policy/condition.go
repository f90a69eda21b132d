package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// The bounds of a condition: its characters, its nesting, and the steps of one evaluation. Without the last bound, a
// model could send arguments with which a condition runs for a long time.
const (
	maxConditionSize  = 4096
	maxConditionDepth = 50
	maxConditionCost  = 1_000_000
)

// Arguments with more values or a greater depth are decoded by encoding/json, which is slower for small ones (figure
// P10.decide).
const (
	directValues = 10_000
	directDepth  = 32
)

// Facts are the values that conditions evaluate. They are made for one call, whose conditions are evaluated one after
// another.
type Facts struct {
	Tool      *tenon.Tool
	Identity  string          // identity of the tool's server; if empty, the server's name
	Server    Server          // the tool's server
	Arguments json.RawMessage // a JSON object; empty means {}
	Agent     string
	Principal string
	State     string

	decoded map[string]any // the arguments, once a condition has used them
	broken  error
	same    *Facts // other facts about the same call, so that the arguments are decoded once
	names   *names // replaces the tool's names; see Condition.Any
}

// ID returns the identity of the tool, which is the key of its rules.
func (f *Facts) ID() ID { return ID{cmp.Or(f.Identity, f.Tool.Server), f.Tool.Remote} }

// variables are the variables of conditions about a call.
type variables struct{ *Facts }

// ResolveName returns the value of a variable.
func (v variables) ResolveName(name string) (any, bool) {
	switch name {
	case "agent":
		return v.Agent, true
	case "principal":
		return v.Principal, true
	case "state":
		return v.State, true
	case "args":
		return v.args(), true
	case "server":
		return serverValue{&v.Server}, true
	case "tool":
		return toolValue{v.Facts}, v.Tool != nil
	}
	return nil, false
}

// Parent returns nil, as no activation has other variables.
func (variables) Parent() cel.Activation { return nil }

// args returns the arguments for conditions. They are decoded once, and only if a condition uses them.
func (f *Facts) args() any {
	if f.same != nil {
		return f.same.args()
	}
	if f.decoded == nil && f.broken == nil {
		f.decoded, f.broken = decode(f.Arguments)
	}
	if f.broken != nil {
		return types.NewErr("the arguments are not a JSON object: %v", f.broken)
	}
	return f.decoded
}

// Language compiles conditions. They are expressions in CEL, the Common
// Expression Language (github.com/google/cel-spec), over the variables
//
//	tool       server, identity, remote_name, exposed, name, kind, title, description, groups,
//	           annotations{read_only, destructive, idempotent, open_world}
//	server     host, command, args: what the tool's server is, under any entry name
//	args       the arguments of the call; a key that is missing is an error, so has(args.x)
//	agent, principal, state   texts
//
// and the function under(path, root), which resolves paths in this machine's file system:
// see [Under].
//
// Annotations are always there, with the protocol's defaults where the server
// says nothing. A Language is safe for concurrent use.
type Language struct{ env *cel.Env }

// NewLanguage returns the language of policy rules: all variables.
func NewLanguage() (*Language, error) {
	return newLanguage("tool", "server", "args", "agent", "principal", "state")
}

// NewToolLanguage returns the language of conditions about a tool, without a call. Its variables are tool and server.
func NewToolLanguage() (*Language, error) { return newLanguage("tool", "server") }

// NewArgumentLanguage returns the language of conditions about a call's arguments. Its only variable is args.
func NewArgumentLanguage() (*Language, error) { return newLanguage("args") }

func newLanguage(variables ...string) (*Language, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the expression language cannot be set up: %w", err)
	}
	known := map[string]*cel.Type{"tool": celTool, "server": celServer,
		"args":  cel.MapType(cel.StringType, cel.DynType),
		"agent": cel.StringType, "principal": cel.StringType, "state": cel.StringType}
	options := []cel.EnvOption{cel.CustomTypeProvider(&provider{registry}), cel.CustomTypeAdapter(registry),
		cel.ParserExpressionSizeLimit(maxConditionSize), cel.ParserRecursionLimit(maxConditionDepth), withUnder()}
	for _, v := range variables {
		options = append(options, cel.Variable(v, known[v]))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the expression language cannot be set up: %w", err)
	}
	return &Language{env: env}, nil
}

// Condition is a compiled expression that is true or false. It is safe for
// concurrent use.
type Condition struct {
	text    string
	ast     *cel.Ast
	program cel.Program
	// The names that the condition uses: tool.name, tool.exposed.
	name, exposed bool
}

// assignment returns the position of the first = outside of strings that is not part of ==, !=, <= or >=. line is 0
// if there is none.
func assignment(text string) (line, column int) {
	line, column = 1, 0
	quote, before := rune(0), rune(0)
	for i, r := range text {
		column++
		switch {
		case r == '\n':
			line, column = line+1, 0
		case quote != 0 && before == '\\':
			r = 0 // the escaped character does not escape the next one
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
		case r == '"' || r == '\'':
			quote = r
		case r == '=' && !strings.ContainsRune("=!<>", before) && !strings.HasPrefix(text[i+1:], "="):
			return line, column
		}
		before = r
	}
	return 0, 0
}

// Condition compiles an expression. The error has code config and contains the position of the mistake in the text.
func (l *Language) Condition(text string) (*Condition, error) {
	ast, issues := l.env.Compile(text)
	if issues != nil && issues.Err() != nil {
		if line, column := assignment(text); line > 0 {
			return nil, tenon.Errorf(tenon.CodeConfig, "not a CEL expression: '=' is no operator; write == to "+
				"compare (line %d, column %d)", line, column)
		}
		e := issues.Errors()[0]
		return nil, tenon.Errorf(tenon.CodeConfig, "not a CEL expression: %s (line %d, column %d)",
			firstLine(e.Message), e.Location.Line(), e.Location.Column()+1)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, tenon.Errorf(tenon.CodeConfig, "the expression gives %s, not true or false", t)
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), mixedNumbers()}
	// Without a loop, the size of the expression bounds its steps, and counting them takes longer than the steps.
	if loops(ast) {
		options = append(options, cel.CostLimit(maxConditionCost), costOfUnder())
	}
	program, err := l.env.Program(ast, options...)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "the expression cannot be used: %w", err)
	}
	c := &Condition{text: text, ast: ast, program: program}
	c.name, c.exposed = len(c.selections("name")) > 0, len(c.selections("exposed")) > 0
	return c, nil
}

// String returns the text of the expression.
func (c *Condition) String() string { return c.text }

// Holds evaluates the condition. The error has code invalid: a key is missing in the arguments, values cannot be
// compared, the evaluation takes too long, or the result is neither true nor false.
func (c *Condition) Holds(f *Facts) (bool, error) {
	v, _, err := c.program.Eval(variables{f})
	if err != nil {
		return false, tenon.Errorf(tenon.CodeInvalid, "the condition '%s' cannot be decided: %w", c.text,
			explained(err))
	}
	yes, ok := v.Value().(bool)
	if !ok {
		return false, tenon.Errorf(tenon.CodeInvalid, "the condition '%s' gives %v, not true or false", c.text,
			v.Type())
	}
	return yes, nil
}

// decode decodes arguments for CEL. A whole number that fits is an int, so that it keeps its exact value; any other
// number is a double.
func decode(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	if rawjson.IsObject(raw) && rawjson.Check(raw, rawjson.Rules{Values: directValues, Depth: directDepth}) == nil {
		return object(raw), nil
	}
	args := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return nil, err
	}
	for k, v := range args {
		args[k] = numbers(v)
	}
	return args, nil
}

// object decodes a valid JSON object. It skips each value once for each level above it, so the depth must be small.
func object(raw []byte) map[string]any {
	m := map[string]any{}
	for key, v := range rawjson.Members(raw) {
		m[string(key)] = value(v)
	}
	return m
}

// value decodes a valid JSON value.
func value(raw []byte) any {
	switch raw[0] {
	case '{':
		return object(raw)
	case '[':
		list := []any{}
		for e := range rawjson.Elements(raw) {
			list = append(list, value(e))
		}
		return list
	case '"':
		return rawjson.String(raw)
	case 't', 'f':
		return raw[0] == 't'
	case 'n':
		return nil
	}
	return number(string(raw))
}

// numbers replaces the numbers in a value that encoding/json decoded.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
	case map[string]any:
		for k, e := range v {
			v[k] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	}
	return v
}

func number(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	f, _ := new(big.Float).SetString(text)
	if f == nil {
		return text
	}
	x, _ := f.Float64()
	return x
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
