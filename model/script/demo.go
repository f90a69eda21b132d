package script

import _ "embed"

//go:embed demo.yaml
var demoYAML []byte

// Demo returns the built-in script: it answers "What is the weather in
// London?" with a call of get_weather, and every other question with how to
// connect a model. It needs no file, no key and no network.
func Demo() *Model {
	m, err := Parse("demo", demoYAML)
	if err != nil {
		panic(err) // embedded, so a test sees it first
	}
	return m
}
