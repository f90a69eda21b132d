package host

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// FunctionServer is the server whose tools the functions of [Config.Functions] are, in
// rules and records.
const FunctionServer = catalog.FunctionServer

// Function is a tool that is a function of the program. Its calls go the way of any
// tool: rules, approval, checks of the arguments, the record.
type Function struct {
	Name        string
	Description string
	// Annotations say what it does; where they do not mark it as read-only its calls ask.
	Annotations tenon.Annotations
	Input       json.RawMessage // JSON Schema of the arguments, an object's

	call func(context.Context, json.RawMessage) (*tenon.Result, error)
	err  error
}

// NewFunction makes a tool of a function. The schema of its arguments is that of In, a
// struct: the names of its json tags, descriptions from tags jsonschema, required
// what has no omitempty. What it returns becomes the result: a string is its text,
// a *tenon.Result is taken as it is, anything else becomes JSON. An error is told to the
// model as the tool's own; a panic is one, too. What is wrong with the types is said when
// a host is opened with it.
func NewFunction[In, Out any](name, description string, f func(context.Context, In) (Out, error)) Function {
	t := Function{Name: name, Description: description}
	if f == nil {
		t.err = tenon.Errorf(tenon.CodeConfig, "function '%s' is nil", name)
		return t
	}
	in := reflect.TypeFor[In]()
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct {
		t.err = tenon.Errorf(tenon.CodeConfig, "function '%s': its argument is of type %s, and has to be a struct: its fields are the arguments", name, in)
		return t
	}
	if t.Input, t.err = catalog.Infer(in); t.err != nil {
		t.err = tenon.Errorf(tenon.CodeConfig, "function '%s': %w", name, t.err)
		return t
	}
	t.call = func(ctx context.Context, raw json.RawMessage) (*tenon.Result, error) {
		var args In
		if err := json.Unmarshal(raw, &args); err != nil {
			return tenon.ErrorResult("the arguments cannot be read: " + err.Error()), nil
		}
		out, err := f(ctx, args)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, tenon.Errorf(tenon.CodeCancelled, "function '%s': %w", name, err)
		case err != nil:
			return tenon.ErrorResult(err.Error()), nil
		}
		return resultOf(name, out)
	}
	return t
}

// resultOf makes a result of what a function returned.
func resultOf(name string, out any) (*tenon.Result, error) {
	switch out := out.(type) {
	case string:
		return &tenon.Result{Content: []tenon.Content{tenon.Text(out)}}, nil
	case *tenon.Result:
		if out == nil {
			return &tenon.Result{}, nil
		}
		return out, nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "function '%s': what it returned cannot be written as JSON: %w", name, err)
	}
	r := &tenon.Result{Content: []tenon.Content{tenon.Text(string(raw))}}
	if len(raw) > 0 && raw[0] == '{' {
		r.Structured = raw
	}
	return r, nil
}

// functions is the toolset of a program's functions.
type functions struct {
	tools []tenon.Tool
	calls map[string]func(context.Context, json.RawMessage) (*tenon.Result, error)
}

func newFunctions(list []Function) (*functions, error) {
	s := &functions{calls: map[string]func(context.Context, json.RawMessage) (*tenon.Result, error){}}
	for _, f := range slices.Clone(list) {
		switch _, twice := s.calls[f.Name]; {
		case f.err != nil:
			return nil, f.err
		case f.Name == "" || f.call == nil:
			return nil, tenon.Errorf(tenon.CodeConfig, "function '%s' is empty: make it with NewFunction", f.Name)
		case twice:
			return nil, tenon.Errorf(tenon.CodeConfig, "there are two functions '%s'", f.Name)
		}
		s.calls[f.Name] = f.call
		s.tools = append(s.tools, tenon.Tool{Remote: f.Name, Kind: tenon.KindFunction, Description: f.Description, Annotations: f.Annotations, Input: f.Input})
	}
	return s, nil
}

// Tools implements [tenon.Toolset].
func (s *functions) Tools(context.Context) ([]tenon.Tool, error) { return s.tools, nil }

// Call implements [tenon.Toolset].
func (s *functions) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	call, ok := s.calls[c.Tool]
	if !ok {
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no function '%s'", c.Tool)
	}
	return call(ctx, c.Arguments)
}

var _ tenon.Toolset = (*functions)(nil)
