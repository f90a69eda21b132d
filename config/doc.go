// Package config reads tenon.yaml. A file becomes a [Config], from which package host creates servers, catalog, agent
// and engine. Only host and the command line import this package. The structs inside a Config belong to the packages
// that use them ([servers.Config], [model.Config], [agent.Config], [policy.Config]) and do not depend on files.
//
// [Load] chooses the project's file and reads it with the files of the user and the administrator, the more trusted
// layers. It combines their values as [DirectionOf] declares, decodes them by the yaml tags of those structs, expands
// variables and makes the checks that types cannot express. The rules of each layer stay separate: see
// [Config.Rules]. Load finds all errors in one pass, each with file, line, column, path and a hint, and returns them
// as [Errors]. It starts nothing and opens no socket. Secrets are references until [Config.Server] or [Config.Model]
// resolves them.
//
// The doc comments on the struct fields are the user's documentation: go test ./config -update generates the JSON
// Schema (tenon.schema.json, embedded, see [Schema]) and docs/reference/config.md from them, and a test checks that
// both are up to date.
package config
