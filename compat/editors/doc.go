// Package editors converts the files of Claude, Cursor and VS Code, which list MCP servers for an editor.
//
// [Claude] is the form with mcpServers, which Cursor and many other clients share: .mcp.json, mcp.json and settings
// that have other keys, too. [VSCode] is .vscode/mcp.json: the same entries under servers, and inputs, the values that
// the editor asks for, which become entries of secrets. Variables of the editors, such as ${env:NAME} and
// ${workspaceFolder}, become variables of tenon or paths; an export writes them back.
//
// Files of these forms are also loaded without an import; then unknown keys are warnings. [Server] converts a single
// entry, for a server that a person gives as JSON.
//
// Package config calls all of them: Recognise for files whose program is not named, Convert, and Export.
package editors
