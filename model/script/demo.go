package script

import _ "embed"

//go:embed demo.yaml
var demoYAML []byte

// Demo returns the built-in script: it answers "What is the weather in
// London?", "And in Paris?" and "Count one up." with calls of the test server's tools
// where these are on offer, and everything else with how to connect a model. It needs
// no file, no key and no network.
func Demo() *Model {
	m, err := Parse("demo", demoYAML)
	if err != nil {
		panic(err) // embedded, so a test sees it first
	}
	return m
}
