"""Talks to a tenon serve as programs of others do.

openai URL TOKEN   OpenAI's own SDK: models, an answer, a stream with usage, a call
                   that waits for an approval and goes on, errors; sync and async
metrics URL TOKEN  the parser of prometheus-client over /metrics

Each prints what it found as JSON.
"""
import asyncio
import json
import sys
import urllib.request

import openai
from prometheus_client.parser import text_string_to_metric_families


def with_openai(url, token):
    client = openai.OpenAI(base_url=url + "/v1", api_key=token, max_retries=0)
    found = {"models": [m.id for m in client.models.list()]}
    found["model"] = client.models.retrieve("helper").owned_by
    ask = [{"role": "user", "content": "count"}]

    first = client.chat.completions.create(model="helper", messages=ask)
    found["waits"] = first.choices[0].message.content
    found["waits_state"] = first.model_extra["tenon"]["state"]
    approval = first.model_extra["tenon"]["approvals"][0]["id"]
    after = client.chat.completions.create(
        model="helper",
        messages=ask + [{"role": "assistant", "content": found["waits"]}, {"role": "user", "content": "approve " + approval}],
    )
    found["answer"] = after.choices[0].message.content
    found["finish"] = after.choices[0].finish_reason
    found["tokens"] = [after.usage.prompt_tokens, after.usage.completion_tokens, after.usage.total_tokens]

    text, usage, reasons = "", None, []
    for chunk in client.chat.completions.create(model="reader", messages=ask, stream=True, stream_options={"include_usage": True}):
        if chunk.usage:
            usage = chunk.usage.total_tokens
        for c in chunk.choices:
            text += c.delta.content or ""
            if c.finish_reason:
                reasons.append(c.finish_reason)
    found["streamed"], found["streamed_tokens"], found["reasons"] = text, usage, reasons

    async def both():
        a = openai.AsyncOpenAI(base_url=url + "/v1", api_key=token, max_retries=0)
        answers = await asyncio.gather(*(a.chat.completions.create(model="reader", messages=ask) for _ in range(8)))
        await a.close()
        return sorted({r.choices[0].message.content for r in answers})

    found["async"] = asyncio.run(both())

    found["errors"] = {}
    for name, call in {
        "no such model": lambda: client.chat.completions.create(model="nobody", messages=ask),
        "no messages": lambda: client.chat.completions.create(model="helper", messages=[]),
        "wrong token": lambda: openai.OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0).models.list(),
        "no such approval": lambda: client.chat.completions.create(model="helper", messages=[{"role": "user", "content": "approve run_none/1.0"}]),
    }.items():
        try:
            call()
            found["errors"][name] = "none"
        except openai.APIStatusError as e:
            found["errors"][name] = "%s %s" % (type(e).__name__, e.type)
    return found


def metrics(url, token):
    req = urllib.request.Request(url + "/metrics", headers={"Authorization": "Bearer " + token})
    with urllib.request.urlopen(req) as res:
        kind, text = res.headers["Content-Type"], res.read().decode()
    families = list(text_string_to_metric_families(text))
    return {
        "type": kind,
        "families": {f.name: f.type for f in families},
        "undocumented": [f.name for f in families if not f.documentation],
        "tools": {s.labels.get("tool"): s.value for f in families for s in f.samples if s.name == "tenon_tool_calls_total"},
        "buckets": all(
            [s.value for s in f.samples if s.name == f.name + "_bucket" and {k: v for k, v in s.labels.items() if k != "le"} == labels]
            == sorted(s.value for s in f.samples if s.name == f.name + "_bucket" and {k: v for k, v in s.labels.items() if k != "le"} == labels)
            for f in families
            if f.type == "histogram"
            for labels in [{k: v for k, v in s.labels.items() if k != "le"} for s in f.samples if s.name == f.name + "_bucket"]
        ),
    }


print(json.dumps({"openai": with_openai, "metrics": metrics}[sys.argv[1]](*sys.argv[2:])))
