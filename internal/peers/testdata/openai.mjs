// openai.mjs MODULE URL TOKEN: counts the effects of single calls of OpenAI's SDK, with its default retries.
const [, , module, url, token] = process.argv;
const { default: OpenAI } = await import(module);
const client = new OpenAI({ baseURL: url + '/v1', apiKey: token });

async function count() {
  const headers = { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' };
  const res = await fetch(url + '/api/v1/tools/counter/call', { method: 'POST', headers, body: '{}' });
  return Number((await res.json()).result.content[0].text.match(/\d+/)[0]);
}

async function effects(call) {
  const before = await count();
  let found;
  try {
    found = await call();
  } catch (e) {
    if (!(e instanceof OpenAI.APIError)) throw e;
    found = { status: e.status ?? 424 };
  }
  return { ...found, effects: (await count()) - before - 1 };
}

const messages = [{ role: 'user', content: 'count' }];
const ask = (model, stream) => client.chat.completions.create({ model, messages, stream });
const whole = async (model) => {
  const { choices } = await ask(model, false);
  return { finish: choices[0].finish_reason, text: choices[0].message.content };
};
const streamed = async (model) => {
  for await (const _ of await ask(model, true));
};
console.log(JSON.stringify({
  limit: await effects(() => whole('limit')),
  failure: await effects(() => whole('failure')),
  stream: await effects(() => streamed('failure')),
}));
