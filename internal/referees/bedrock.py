"""Asks a stub of Bedrock's runtime with botocore, and prints the answer as JSON. See aws_test.go."""

import base64
import json
import sys

import botocore.session
from botocore.config import Config

address, region, model, picture = sys.argv[1:]
client = botocore.session.get_session().create_client(
    "bedrock-runtime", region_name=region, endpoint_url=address, config=Config(retries={"total_max_attempts": 1})
)
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
answer = client.converse_stream(
    modelId=model,
    system=[{"text": "Be brief."}],
    inferenceConfig={"maxTokens": 100, "temperature": 0.5, "stopSequences": ["END"]},
    toolConfig={
        "toolChoice": {"any": {}},
        "tools": [
            {"toolSpec": {"name": "get_weather", "description": "The weather", "inputSchema": {"json": schema}}}
        ],
    },
    messages=[
        {
            "role": "user",
            "content": [
                {"text": 'Where is <this> & "that"? \u2603'},
                {"image": {"format": "png", "source": {"bytes": base64.b64decode(picture)}}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"text": "I look."},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "London"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "tooluse_1", "status": "error", "content": [{"text": "no such city"}]}}
            ],
        },
    ],
)
heard = {"Text": "", "Call": "", "Arguments": "", "Stop": "", "Input": 0, "Output": 0, "CacheRead": 0}
for event in answer["stream"]:
    for name, e in event.items():
        if name == "contentBlockStart" and "toolUse" in e["start"]:
            heard["Call"] = e["start"]["toolUse"]["name"]
        elif name == "contentBlockDelta":
            heard["Text"] += e["delta"].get("text", "")
            heard["Arguments"] += e["delta"].get("toolUse", {}).get("input", "")
        elif name == "messageStop":
            heard["Stop"] = e["stopReason"]
        elif name == "metadata":
            u = e["usage"]
            heard.update(Input=u["inputTokens"], Output=u["outputTokens"], CacheRead=u["cacheReadInputTokens"])
json.dump(heard, sys.stdout)
