// An MCP client made with the official TypeScript SDK, against the gateway of tenon:
// mcpclient.mjs MODULES sdk|client URL TOKEN, or mcpclient.mjs MODULES sdk|client stdio COMMAND [ARG…].
// MODULES is the folder node_modules; sdk is version 1 of the SDK and client version 2, modern is client in the era of
// 2026-07-28. TENON_PEER_QUIET has the place of an endpoint whose tools do not change, in the same form as JSON. Prints
// what it got as JSON.
import { join } from 'node:path';

const [modules, version, where, ...rest] = process.argv.slice(2);
const load = (...file) => import(join(modules, '@modelcontextprotocol', ...file));
const old = version === 'sdk';
const { Client } = old ? await load('sdk', 'dist', 'esm', 'client', 'index.js') : await load('client', 'dist', 'index.mjs');

async function transport(where, rest) {
  if (where === 'stdio') {
    const { StdioClientTransport } = old ? await load('sdk', 'dist', 'esm', 'client', 'stdio.js') : await load('client', 'dist', 'stdio.mjs');
    return new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: 'inherit' });
  }
  const { StreamableHTTPClientTransport } = old ? await load('sdk', 'dist', 'esm', 'client', 'streamableHttp.js')
    : await load('client', 'dist', 'index.mjs');
  return new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } } });
}

// connect counts the changes of the list of tools in changes.count.
async function connect(changes, where, ...rest) {
  const tools = { autoRefresh: false, debounceMs: 0, onChanged: () => { changes.count += 1; changes.first?.(); } };
  const client = new Client({ name: `peer-typescript-${version}`, version: '1' },
    { listChanged: { tools }, ...(version === 'modern' && { versionNegotiation: { mode: 'auto' } }) });
  await client.connect(await transport(where, rest));
  return client;
}

const changes = { count: 0 };
const changed = new Promise((resolve) => { changes.first = resolve; });
const client = await connect(changes, where, ...rest);
const names = async (c) => (await c.listTools()).tools.map((t) => t.name).sort();
const out = { tools: (await names(client)).filter((n) => !n.startsWith('grow')) };
const call = async (name, args, options) => {
  const params = { name, arguments: args };
  return old ? client.callTool(params, undefined, options) : client.callTool(params, options);
};
out.echo = (await call('echo', { text: 'grüezi' })).content[0].text;
const failed = await call('fail', {});
out.failed = failed.isError === true;
out.failure = failed.content[0].text;
out.progress = 0;
out.counted = (await call('count', { to: 3 }, { onprogress: () => { out.progress += 1; } })).content[0].text;
out.resource = (await client.readResource({ uri: 'peer://note' })).contents[0].text;
out.resources = (await client.listResources()).resources.map((r) => r.uri);
out.prompts = (await client.listPrompts()).prompts.map((p) => p.name);
out.prompt = (await client.getPrompt({ name: 'greet', arguments: { name: 'Ann' } })).messages[0].content.text;
try {
  await call('nosuch', {});
} catch (e) {
  out.unknown = e.code;
}
const quietly = { count: 0 };
const quiet = await connect(quietly, ...JSON.parse(process.env.TENON_PEER_QUIET));
await names(quiet); // clients are notified of changes of lists that they have read
const mine = `${version}_${process.pid}`;
await call('grow', { name: mine });
const late = setTimeout(changes.first, 30_000);
await changed;
clearTimeout(late); // it would keep the process
await new Promise((resolve) => { setTimeout(resolve, 1000); }); // for more notifications than there should be
out.grown = (await names(client)).filter((n) => n.startsWith(`grown_${mine}_`)).length;
out.changes = changes.count;
out.quiet = quietly.count;
await quiet.close();
await client.close();
console.log(JSON.stringify(out));
