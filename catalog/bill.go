package catalog

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon"
)

// Tokens estimates the tokens of a tool's definition in a model's context: a quarter of the bytes of its name,
// description and schema, rounded up. Providers count differently; real use calibrates the estimate.
func Tokens(t *tenon.Tool) int {
	return (len(t.Name) + len(t.Description) + len(t.Input) + 3) / 4
}

// Bill is the estimated cost of a server's tools.
type Bill struct {
	Server string `json:"server"`
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"`
}

// Bills returns the bill of each server, the most expensive first.
func (s *Snapshot) Bills() []Bill {
	at := map[string]int{}
	bills := []Bill{}
	for _, t := range s.tools {
		n, ok := at[t.Server]
		if !ok {
			n = len(bills)
			at[t.Server], bills = n, append(bills, Bill{Server: t.Server})
		}
		bills[n].Tools++
		bills[n].Tokens += Tokens(t)
	}
	slices.SortFunc(bills, func(a, b Bill) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Server, b.Server))
	})
	return bills
}

// Parameter is one argument of a tool as it is shown to a person.
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// Parameters returns the arguments of a tool in the order of its schema. The result is never nil. An argument whose
// schema does not have exactly one type has the type "any".
func Parameters(t *tenon.Tool) []Parameter {
	root, _ := parseObject(t.Input)
	props, _ := parseObject(root.get("properties"))
	required := texts(root.get("required"))
	list := make([]Parameter, 0, len(props))
	for _, p := range props {
		s, _ := parseObject(p.value)
		one := Parameter{Name: p.key, Type: "any", Required: slices.Contains(required, p.key)}
		if json.Unmarshal(s.get("type"), &one.Type) != nil {
			one.Type = "any"
		}
		if json.Unmarshal(s.get("description"), &one.Description) != nil {
			one.Description = ""
		}
		list = append(list, one)
	}
	return list
}
