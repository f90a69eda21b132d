package host

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// FunctionServer is the server name, in rules and records, of the functions in [Config.Functions].
const FunctionServer = catalog.FunctionServer

// Function is a tool that a function of the program implements. Rules, approvals, the check of the arguments and the
// record apply to its calls as to those calling any other tool.
type Function struct {
	Name        string
	Description string
	// Annotations describe the effects. Unless they mark the function as read-only, its calls ask for approval.
	Annotations tenon.Annotations
	Input       json.RawMessage // JSON Schema of the arguments, which are an object

	call func(context.Context, json.RawMessage) (*tenon.Result, error)
	err  error
}

// NewFunction makes a tool from a function. The schema of the arguments is derived from In, a struct: names from its
// json tags, descriptions from its jsonschema tags. Fields without omitempty are required. The returned value becomes
// the result: a string is the text, a *tenon.Result is used unchanged, anything else becomes JSON. An error, a panic or
// a call of runtime.Goexit becomes a tool error that the model reads. Opening a host with the function reports defects
// of the types.
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
		t.err = tenon.Errorf(tenon.CodeConfig, "function '%s': its argument is of type %s, and has to be a struct: "+
			"its fields are the arguments", name, in)
		return t
	}
	if t.Input, t.err = catalog.Infer(in); t.err != nil {
		t.err = tenon.Errorf(tenon.CodeConfig, "function '%s': %w", name, t.err)
		return t
	}
	t.call = func(ctx context.Context, raw json.RawMessage) (*tenon.Result, error) {
		var args In
		if err := readArguments(raw, &args); err != nil {
			return tenon.ErrorResult(err.Error()), nil
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

// ReadOnly returns the function marked as read-only: it changes nothing, so its calls need no approval unless a rule
// asks for it.
func (f Function) ReadOnly() Function {
	yes := true
	f.Annotations.ReadOnly = &yes
	return f
}

// resultOf makes a result from the return value of a function.
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
		return nil, tenon.Errorf(tenon.CodeInternal, "function '%s': its return value cannot be written as JSON: %w",
			name, err)
	}
	r := &tenon.Result{Content: []tenon.Content{tenon.Text(string(raw))}}
	if len(raw) > 0 && raw[0] == '{' {
		r.Structured = raw
	}
	return r, nil
}

// functions is the toolset of the program's functions.
type functions struct {
	tools []tenon.Tool
	calls map[string]func(context.Context, json.RawMessage) (*tenon.Result, error)
}

// NewToolset makes a toolset of functions of the program, for [Tools.Add] and [Config.Toolsets]. Errors: config (a
// defect of a function, or two with one name).
func NewToolset(list ...Function) (tenon.Toolset, error) {
	return newFunctions(list)
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
		s.tools = append(s.tools, tenon.Tool{Remote: f.Name, Kind: tenon.KindFunction, Description: f.Description,
			Annotations: f.Annotations, Input: f.Input})
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
