package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestAttacksOnKeys hides a second amount deeper than TestLookalikeKeys does. Each row is tried twice: with the
// lookalike, which must be refused, and with another key in its place, which must be accepted.
func TestAttacksOnKeys(t *testing.T) {
	const amount = `{"type":"object","properties":{"amount":{"type":"number"}}}`
	for name, c := range map[string]struct {
		schema, args string // args contains KEY where the lookalike is inserted
		key, real    string // the lookalike, and the real key that it imitates
	}{
		"objects in nested arrays":      {`{"properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"array","items":` + amount + `}}}}}`, `{"l":[[[{"amount":1}],[{KEY:2}]]]}`, "Amount", "other"},
		"a reference in items":          {`{"properties":{"l":{"items":{"$ref":"#/$defs/a"}}},"$defs":{"a":` + amount + `}}`, `{"l":[{KEY:2}]}`, "AMOUNT", "amount"},
		"a chain of references":         {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/c"}]},"c":` + amount + `}}`, `{KEY:2}`, "Amount", "amount"},
		"definitions of draft 7":        {`{"properties":{"in":{"$ref":"#/definitions/a"}},"definitions":{"a":` + amount + `}}`, `{"in":{KEY:2}}`, "Amount", "amount"},
		"a reference with siblings":     {`{"properties":{"in":{"$ref":"#/$defs/a","properties":{"to":{}}}},"$defs":{"a":` + amount + `}}`, `{"in":{KEY:2}}`, "Amount", "amount"},
		"oneOf within items":            {`{"properties":{"l":{"items":{"oneOf":[{"type":"string"},` + amount + `]}}}}`, `{"l":["x",{KEY:2}]}`, "Amount", "amount"},
		"else":                          {`{"if":{"required":["x"]},"then":{},"else":` + amount + `}`, `{KEY:2}`, "Amount", "amount"},
		"contains":                      {`{"properties":{"l":{"contains":` + amount + `}}}`, `{"l":[{KEY:2}]}`, "Amount", "amount"},
		"unevaluatedItems":              {`{"properties":{"l":{"prefixItems":[{}],"unevaluatedItems":` + amount + `}}}`, `{"l":[1,{KEY:2}]}`, "Amount", "amount"},
		"dependentRequired":             {`{"dependentRequired":{"to":["amount"]}}`, `{"to":1,KEY:2}`, "Amount", "amount"},
		"additionalProperties in items": {`{"properties":{"l":{"items":{"additionalProperties":` + amount + `}}}}`, `{"l":[{"any":{KEY:2}}]}`, "Amount", "amount"},
		"a combining grapheme joiner":   {amount, `{KEY:2}`, "amount\u034f", "amount"},
		"a zero width joiner within":    {amount, `{KEY:2}`, "amo\u200dunt", "amount"},
		"a zero width non-joiner":       {amount, `{KEY:2}`, "amo\u200cunt", "amount"},
		"a word joiner":                 {amount, `{KEY:2}`, "amount\u2060", "amount"},
		"an invisible times":            {amount, `{KEY:2}`, "amount\u2062", "amount"},
		"an interlinear mark":           {amount, `{KEY:2}`, "amount\ufff9", "amount"},
		"a Hangul filler of half width": {amount, `{KEY:2}`, "amount\uffa0", "amount"},
		"a blank of Braille":            {amount, `{KEY:2}`, "amount\u2800", "amount"},
		"an ideographic space":          {amount, `{KEY:2}`, "\u3000amount", "amount"},
		"a thin space":                  {amount, `{KEY:2}`, "amount\u2009", "amount"},
		"a tab":                         {amount, `{KEY:2}`, "amount\t", "amount"},
		"a delete":                      {amount, `{KEY:2}`, "amount\u007f", "amount"},
		"a next line":                   {amount, `{KEY:2}`, "amount\u0085", "amount"},
		"small capitals by width":       {amount, `{KEY:2}`, "ＡＭＯＵＮＴ", "amount"},
		"circled letters":               {amount, `{KEY:2}`, "ⓐⓜⓞⓤⓝⓣ", "amount"},
		"bold letters":                  {amount, `{KEY:2}`, "𝐚𝐦𝐨𝐮𝐧𝐭", "amount"},
		"a dotless i of Turkish":        {`{"properties":{"limit":{}}}`, `{KEY:2}`, "lımıt", "limit"},
		"a dotted I of Turkish":         {`{"properties":{"limit":{}}}`, `{KEY:2}`, "LİMİT", "limit"},
		"a Kelvin sign":                 {`{"properties":{"bank":{}}}`, `{KEY:2}`, "ban\u212a", "bank"},
		"an Angstrom sign":              {`{"properties":{"å":{}}}`, `{KEY:2}`, "\u212b", "å"},
		"a long s":                      {`{"properties":{"address":{}}}`, `{KEY:2}`, "addreſs", "address"},
		"a ligature of fi":              {`{"properties":{"file":{}}}`, `{KEY:2}`, "\ufb01le", "file"},
		"a ligature of st":              {`{"properties":{"cost":{}}}`, `{KEY:2}`, "co\ufb06", "cost"},
		"a final sigma":                 {`{"properties":{"λόγος":{}}}`, `{KEY:2}`, "ΛΌΓΟΣ", "λόγος"},
		"a decomposed accent":           {`{"properties":{"montant_payé":{}}}`, `{KEY:2}`, "montant_paye\u0301", "montant_payé"},
		"figures of full width":         {`{"properties":{"1":{}}}`, `{KEY:2}`, "１", "1"},
		"a superscript":                 {`{"properties":{"1":{}}}`, `{KEY:2}`, "¹", "1"},
		"a key of a megabyte":           {amount, `{KEY:2}`, "amount" + strings.Repeat("\u200d", 1<<18), "amount"},
	} {
		t.Run("SEC-F8_"+name, func(t *testing.T) {
			s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{{Remote: "x", Input: json.RawMessage(c.schema)}}}})
			if len(s.Tools()) == 0 {
				t.Fatalf("the tool is withheld: %v", s.Withheld())
			}
			s = s.With(func(t *tenon.Tool) { t.Rules.Validate = ValidateOff })
			with := func(key string) error {
				quoted, err := json.Marshal(key)
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Prepare(&tenon.ToolCall{Name: "x", Arguments: json.RawMessage(strings.ReplaceAll(c.args, "KEY", string(quoted)))}, nil)
				return err
			}
			if err := with(c.key); tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Errorf("the lookalike passes: %v", err)
			} else if len(err.Error()) > 4000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if err := with(c.real); err != nil {
				t.Errorf("the key itself is refused: %v", err)
			}
		})
	}
}
