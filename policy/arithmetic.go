package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// mixedNumbers lets the operators +, -, * and / combine an int and a double; the result is a double. CEL refuses such
// operands, although it compares them. In JSON a number can be either: a price that is 3 today and 3.5 tomorrow would
// be an error on one of these days.
func mixedNumbers() cel.ProgramOption {
	return cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || len(call.Args()) != 2 {
			return i, nil
		}
		function := call.Function()
		switch function {
		case operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
			return interpreter.NewCall(call.ID(), function, call.OverloadID(), call.Args(),
				func(args ...ref.Val) ref.Val {
					return calculate(function, args[0], args[1])
				}), nil
		}
		return i, nil
	})
}

// calculate returns the result of a CEL operator for two values of the same type.
func calculate(operator string, a, b ref.Val) ref.Val {
	if a.Type() != b.Type() && isNumber(a) && isNumber(b) {
		a, b = a.ConvertToType(types.DoubleType), b.ConvertToType(types.DoubleType)
	}
	switch operator {
	case operators.Add:
		if x, ok := a.(traits.Adder); ok {
			return x.Add(b)
		}
	case operators.Subtract:
		if x, ok := a.(traits.Subtractor); ok {
			return x.Subtract(b)
		}
	case operators.Multiply:
		if x, ok := a.(traits.Multiplier); ok {
			return x.Multiply(b)
		}
	case operators.Divide:
		if x, ok := a.(traits.Divider); ok {
			return x.Divide(b)
		}
	}
	return types.MaybeNoSuchOverloadErr(a)
}

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Int, types.Uint, types.Double:
		return true
	}
	return false
}
