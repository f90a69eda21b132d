"""Talks to a tenon serve as programs of others do.

openai URL TOKEN   OpenAI's own SDK: models, an answer, a stream with usage, a call
                   that waits for an approval and goes on, errors; sync and async
retries URL TOKEN  OpenAI's own SDK with its default retries: the effects of single calls
clienttools URL TOKEN  OpenAI's own SDK executes its tool; pictures, files, a schema
urllib3 URL TOKEN  urllib3 that retries POST requests, too
metrics URL TOKEN  the parser of prometheus-client over /metrics

Each prints what it found as JSON.
"""
import asyncio
import json
import sys
import urllib.request

import openai
import urllib3
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


def counting(url, token):
    def count():
        req = urllib.request.Request(
            url + "/api/v1/tools/counter/call", data=b"{}", headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        )
        with urllib.request.urlopen(req) as res:
            return int("".join(c for c in json.load(res)["result"]["content"][0]["text"] if c.isdigit()))

    def effects(call):
        before = count()
        found = call()
        return {**found, "effects": count() - before - 1}

    return effects


def retries(url, token):
    client = openai.OpenAI(base_url=url + "/v1", api_key=token)
    effects = counting(url, token)
    ask = [{"role": "user", "content": "count"}]

    def whole(model, stream=False):
        try:
            res = client.chat.completions.create(model=model, messages=ask, stream=stream)
            if stream:
                return {"chunks": [c for c in res]}
            return {"finish": res.choices[0].finish_reason, "text": res.choices[0].message.content}
        except openai.APIStatusError as e:
            return {"status": e.status_code}
        except openai.APIError:
            return {"status": 424}

    return {
        "limit": effects(lambda: whole("limit")),
        "failure": effects(lambda: whole("failure")),
        "stream": effects(lambda: whole("failure", True)),
    }


def client_tools(url, token):
    client = openai.OpenAI(base_url=url + "/v1", api_key=token)
    effects = counting(url, token)
    ask = [{"role": "user", "content": "How warm?"}]
    parameters = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}
    tools = [{"type": "function", "function": {"name": "sensor", "parameters": parameters}}]

    def loop(stream):
        messages, rooms, reasons = list(ask), [], []
        while True:
            if stream:
                with client.chat.completions.stream(model="sensing", messages=messages, tools=tools) as chunks:
                    choice = chunks.get_final_completion().choices[0]
            else:
                choice = client.chat.completions.create(model="sensing", messages=messages, tools=tools).choices[0]
            reasons.append(choice.finish_reason)
            if choice.finish_reason != "tool_calls":
                return {"text": choice.message.content, "rooms": " ".join(rooms), "reasons": reasons}
            messages.append(choice.message.to_dict())
            for call in choice.message.tool_calls:
                rooms.append(json.loads(call.function.arguments)["room"])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "21 degrees"})

    png = "data:image/png;base64,iVBORw0KGgowMDAw"
    parts = [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": png}},
        {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="}},
    ]
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "required": ["a"]}}}
    formed = client.chat.completions.create(
        model="forming", messages=[{"role": "user", "content": parts}], response_format=schema, stop=["END"], reasoning_effort="low", seed=7
    )
    try:
        client.chat.completions.create(model="forming", messages=ask, modalities=["text", "audio"])
        refused = "none"
    except openai.BadRequestError as e:
        refused = "modalities" in str(e)
    return {
        "loop": effects(lambda: loop(False)),
        "stream": effects(lambda: loop(True)),
        "formed": json.loads(formed.choices[0].message.content),
        "refused": refused,
    }


def with_urllib3(url, token):
    policy = urllib3.Retry(total=3, backoff_factor=0, allowed_methods=None, status_forcelist=[408, 409, 425, 429, 500, 502, 503, 504])
    pool = urllib3.PoolManager(retries=policy)
    effects = counting(url, token)
    headers = {"Authorization": "Bearer " + token}

    def post(path, body):
        return {"status": pool.request("POST", url + path, json=body, headers=headers).status}

    return {
        "chat": effects(lambda: post("/chat", {"message": "count"})),
        "completions": effects(lambda: post("/v1/chat/completions", {"model": "failure", "messages": [{"role": "user", "content": "count"}]})),
    }


print(json.dumps({"openai": with_openai, "retries": retries, "clienttools": client_tools, "urllib3": with_urllib3, "metrics": metrics}[sys.argv[1]](*sys.argv[2:])))
