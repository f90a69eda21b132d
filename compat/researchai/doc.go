// Package researchai converts ResearchAI's list of servers.
//
// An entry has an id, which becomes the name of the server, a name, which becomes its title, a transport, and a command
// or a URL. An import can be given the ids of the enabled servers ([compat.Conversion], Enabled); they count in place
// of what the file says.
//
// The export writes stdio, sse and websocket, the transports that ResearchAI has. Authorization becomes a header. The
// file is read by an import only: it cannot be loaded as it is.
//
// Package config calls the [Format]: Recognise for files whose program is not named, Convert for an import, and Export.
package researchai
