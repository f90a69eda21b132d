// Package config reads tenon.yaml. It is the first station of the way through
// the house: a file becomes a [Config], package host wires servers, catalog,
// agent and engine from it. Only host and the command line import it; the
// structs that it is composed of live with the packages that use them
// ([servers.Config], [model.Config], [agent.Config], [policy.Config]) and know
// nothing of files.
//
// [Load] chooses the project's file and reads it with the files of the user and the
// administrator, the more trusted layers. It combines their values as [DirectionOf]
// declares, decodes them by the yaml tags of those structs, expands variables and
// checks what goes beyond types. The rules of each layer stay apart: see [Config.Rules].
// It finds all errors in one pass, each with file, line, column, path and a
// hint, and returns them as [Errors]. It starts nothing and opens no socket.
// Secrets are references until [Config.Server] or [Config.Model] resolves them.
//
// The doc comments on the struct fields are the user's documentation: the JSON
// Schema (tenon.schema.json, embedded, see [Schema]) and docs/reference/config.md
// are generated from them by go test ./config -update, and a test keeps both
// fresh.
package config
