// clienttools.mjs MODULE URL TOKEN: OpenAI's SDK executes its own tool while tenon executes the agent's.
const [, , module, url, token] = process.argv;
const { default: OpenAI } = await import(module);
const client = new OpenAI({ baseURL: url + '/v1', apiKey: token });

async function count() {
  const headers = { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' };
  const res = await fetch(url + '/api/v1/tools/counter/call', { method: 'POST', headers, body: '{}' });
  return Number((await res.json()).result.content[0].text.match(/\d+/)[0]);
}

const rooms = [];
const parameters = { type: 'object', properties: { room: { type: 'string' } }, required: ['room'] };
const sensor = ({ room }) => { rooms.push(room); return '21 degrees'; };
const tools = [{ type: 'function', function: { name: 'sensor', description: 'Reads', parameters, parse: JSON.parse, function: sensor } }];
const request = { model: 'sensing', messages: [{ role: 'user', content: 'How warm?' }], tools };

async function runner(stream) {
  const before = await count();
  rooms.length = 0;
  const run = client.chat.completions.runTools({ ...request, stream });
  const text = await run.finalContent();
  return { text, rooms: rooms.join(' '), effects: (await count()) - before - 1 };
}

async function repeated() {
  const plain = tools.map(({ function: { name, description, parameters } }) => ({ type: 'function', function: { name, description, parameters } }));
  const before = await count();
  const first = await client.chat.completions.create({ ...request, tools: plain });
  const { message, finish_reason } = first.choices[0];
  const results = message.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: '21 degrees' }));
  const next = { ...request, tools: plain, messages: [...request.messages, message, ...results] };
  const one = await client.chat.completions.create(next);
  const two = await client.chat.completions.create(next);
  return { finish: finish_reason, same: one.choices[0].message.content === two.choices[0].message.content && one.id === first.id,
    effects: (await count()) - before - 1 };
}

async function refused() {
  try {
    await client.chat.completions.create({ ...request, tools: [], modalities: ['text', 'audio'] });
  } catch (e) {
    return { status: e.status, named: e.message.includes('modalities') };
  }
}

console.log(JSON.stringify({ runner: await runner(false), stream: await runner(true), repeated: await repeated(), refused: await refused() }));
