package script_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model/script"
)

// TestMistakes checks that the errors of invalid scripts use the terms of a script.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"steps: [{txt: a}]":                                "step 1: line 1: unknown key 'txt'; did you mean 'text'?",
		"steps: [{hologram: a}]":                           "unknown key 'hologram'; known keys: expect, expect_tools,",
		"steps: [{text: a, text: b}]":                      "key 'text' is already in line 1",
		"steps:\n  - text: [a]":                            "step 1: line 2: must be a text, is a list",
		"steps: 3":                                         "line 1: must be a list of steps, is '3'",
		"steps: [3]":                                       "step 1: line 1: must be a map, is '3'",
		"stepps: []":                                       "unknown key 'stepps'; did you mean 'steps'?",
		"conversations: [{mach: x}]":                       "unknown key 'mach'; did you mean 'match'?",
		"steps: [{calls: {name: x}}]":                      "must be a list of calls, is a map",
		"steps: [{calls: [{nam: x}]}]":                     "unknown key 'nam'; did you mean 'name'?",
		"steps: [{usage: {tokens: 3}}]":                    "unknown key 'tokens'; known keys: input_tokens, output_tokens",
		"steps: [{error: {cod: x}}]":                       "unknown key 'cod'; did you mean 'code'?",
		"steps: [{chunk: x}]":                              "must be a whole number, is 'x'",
		"steps: [{delay: 5}]":                              "must be a duration such as 300ms, is '5'",
		"steps: [{expect: {a: 1}}]":                        "must be a text or a list of texts, is a map",
		"steps: [{repeat: often}]":                         "step 1: line 1: repeat must be a count from 1 or forever, not 'often'",
		"steps: [{text: a}]\nconversations: [{steps: []}]": "both steps and conversations",
	} {
		_, err := script.Parse("s.yaml", []byte(text))
		if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.HasPrefix(err.Error(), "script s.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "script.") || strings.Contains(err.Error(), "!!") || strings.Contains(err.Error(), "line 1: line 1")) {
			t.Errorf("%q: the library's words: %v", text, err)
		}
	}
}

// TestOtherFiles checks that the error about a file that is no script quotes nothing of it: it can hold secrets.
func TestOtherFiles(t *testing.T) {
	for name, text := range map[string]string{
		"text": "s3cret:x:0:0:root\n", "word": "s3cret", "list": "- s3cret\n", "keys": "s3cret: {a: 1}\n",
		"not_yaml": "s3cret: [\n*s3cret\n", "json": `{"s3cret": "s3cret"}`, "twice": "s3cret: 1\ns3cret: 2\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := script.Parse("s.yaml", []byte(text))
			if tenon.ErrorCode(err) != tenon.CodeConfig || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v", err)
			}
		})
	}
}
