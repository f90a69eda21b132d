package config

import (
	_ "embed"
	"slices"
)

//go:generate go test . -run TestGenerated -update

//go:embed tenon.schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of tenon.yaml. It is generated from the config structs, their tags
// and their comments.
func Schema() []byte { return slices.Clone(schema) }
