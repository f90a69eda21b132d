// fetchretry.mjs MODULE URL TOKEN: counts the effects of single requests of fetch-retry, which repeats them after
// network errors and after the statuses of retryOn.
import { createRequire } from 'node:module';

const [, , module, url, token] = process.argv;
const retries = 3;
const retryOn = [408, 409, 425, 429, 500, 502, 503, 504];
const fetchRetry = createRequire(import.meta.url)(module)(fetch, { retries, retryDelay: 10, retryOn });
const headers = { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' };

async function count() {
  const res = await fetch(url + '/api/v1/tools/counter/call', { method: 'POST', headers, body: '{}' });
  return Number((await res.json()).result.content[0].text.match(/\d+/)[0]);
}

async function effects(path, body) {
  const before = await count();
  const res = await fetchRetry(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const answer = await res.text();
  const found = { status: res.status };
  if (res.ok) found.finish = JSON.parse(answer).choices[0].finish_reason;
  return { ...found, effects: (await count()) - before - 1 };
}

const messages = [{ role: 'user', content: 'count' }];
console.log(JSON.stringify({
  chat: await effects('/chat', { message: 'count' }),
  failure: await effects('/v1/chat/completions', { model: 'failure', messages }),
  limit: await effects('/v1/chat/completions', { model: 'limit', messages }),
}));
