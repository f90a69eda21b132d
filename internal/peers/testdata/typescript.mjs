// One MCP server made with version 2 of the official TypeScript SDK:
// typescript.mjs MODULES stdio|http [PORT]. MODULES is the folder node_modules.
import { createServer } from 'node:http';
import { join } from 'node:path';

const [modules, how, port] = process.argv.slice(2);
const load = (name, file) => import(join(modules, '@modelcontextprotocol', name, 'dist', file));
const { McpServer, createMcpHandler, fromJsonSchema } = await load('server', 'index.mjs');

const text = (text, more) => ({ content: [{ type: 'text', text }], ...more });
const strings = (...names) => fromJsonSchema({
  type: 'object', required: names, properties: Object.fromEntries(names.map((n) => [n, { type: 'string' }])),
});

function make() {
  const server = new McpServer({ name: 'peer', version: '1' });
  server.registerTool('echo', { description: 'Returns the text.', inputSchema: strings('text') }, async (args) => text(args.text));
  server.registerTool('fail', { description: 'Fails.' }, async () => { throw new Error('it went wrong'); });
  server.registerTool('grow', { description: 'Adds two tools.', inputSchema: strings('name'), annotations: { readOnlyHint: true } },
    async ({ name }) => {
      for (const n of [1, 2]) server.registerTool(`grown_${name}_${n}`, { description: 'Came later.' }, async () => text('here'));
      return text('grown');
    });
  server.registerPrompt('greet', { description: 'Greets somebody.', argsSchema: strings('name') },
    async ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${name}` } }] }));
  server.registerResource('note', 'peer://note', { mimeType: 'text/plain' },
    async (uri) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'grüezi' }] }));
  return server;
}

if (how === 'stdio') {
  const { serveStdio } = await load('server', 'stdio.mjs');
  serveStdio(make);
} else {
  const { toNodeHandler } = await load('node', 'index.mjs');
  createServer(toNodeHandler(createMcpHandler(make))).listen(Number(port), '127.0.0.1');
}
