package script

import _ "embed"

//go:embed demo.yaml
var demoYAML []byte

// Demo returns the built-in script. It answers "What is the weather in London?", "And in Paris?"
// and "Count one up." with calls of the test server's tools, if these are available. It answers
// everything else with instructions for connecting a model. It needs no file, no key and no
// network.
func Demo() *Model {
	m, err := Parse("demo", demoYAML)
	if err != nil {
		panic(err) // the script is embedded and tested
	}
	return m
}
