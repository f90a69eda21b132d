package bedrock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/bedrock"
)

// reply is one scripted answer of the service.
type reply struct {
	status int
	kind   string // media type of the content; "" is the binary stream
	errtyp string
	body   []byte
}

// cloud answers a sequence of requests, and records them.
type cloud struct {
	replies []reply
	urls    []string
	headers []http.Header
	bodies  []string
}

func (c *cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.urls, c.headers, c.bodies = append(c.urls, r.URL.String()), append(c.headers, r.Header), append(c.bodies, string(body))
	a := c.replies[min(len(c.urls), len(c.replies))-1]
	h := http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}, "X-Amzn-Requestid": {"req-1"}}
	if a.kind != "" || a.status != 0 {
		h.Set("Content-Type", "application/json")
	}
	if a.errtyp != "" {
		h.Set("X-Amzn-Errortype", a.errtyp)
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

const claude = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"

// open opens a model with the credentials in the environment.
func open(t *testing.T, c *cloud, env map[string]string, change func(*model.Config)) *bedrock.Model {
	t.Helper()
	none := 0
	cfg := model.Config{Name: "main", Provider: "bedrock", Model: claude, Retries: &none}
	if change != nil {
		change(&cfg)
	}
	if env == nil {
		env = map[string]string{"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-west-1"}
	}
	env["AWS_EC2_METADATA_DISABLED"] = "true"
	m, err := bedrock.New(cfg, model.Env{Transport: c, LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask returns a one-line description of a model's answer.
func ask(t *testing.T, m tenon.Model, req *tenon.Request) string {
	t.Helper()
	var b strings.Builder
	for d, err := range m.Generate(t.Context(), req) {
		switch {
		case err != nil:
			return fmt.Sprintf("%s%s: %v", b.String(), tenon.ErrorCode(err), err)
		case d.Response == nil:
			fmt.Fprintf(&b, "%s:%s ", d.Kind, d.Text)
		default:
			r := d.Response
			fmt.Fprintf(&b, "| %s(%s)", r.Stop, r.RawStop)
			for _, p := range r.Message.Parts {
				switch {
				case p.Call != nil:
					fmt.Fprintf(&b, " %s%s%s", p.Call.Name, p.Call.Arguments, p.Call.Malformed)
				case p.Data != "":
					fmt.Fprintf(&b, " %s:%s %s", p.Type, p.MimeType, p.Data)
				case len(p.Raw) > 0:
					fmt.Fprintf(&b, " %s", p.Raw)
				default:
					fmt.Fprintf(&b, " %s:%q", p.Type, p.Text)
				}
				for _, c := range p.Citations {
					fmt.Fprintf(&b, " %v", c)
				}
			}
			if u := r.Usage; u != nil {
				fmt.Fprintf(&b, " %d/%d r%d w%d", u.Input, u.Output, u.CacheRead, u.CacheWrite)
			}
			fmt.Fprintf(&b, " %s", r.ID)
			for _, w := range r.Warnings {
				fmt.Fprintf(&b, " [%s]", w)
			}
		}
	}
	return b.String()
}

var hello = &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("Hi")}}

// Test_MD10_BedrockStream checks answers of ConverseStream, which are streamed, and of Converse, which are a document.
func Test_MD10_BedrockStream(t *testing.T) {
	const usage = `{"usage":{"inputTokens":11,"outputTokens":7,"totalTokens":18,"cacheReadInputTokens":5,"cacheWriteInputTokens":2},"metrics":{"latencyMs":3}}`
	text := []string{"messageStart", `{"role":"assistant","p":"abc"}`, "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hel"}}`,
		"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"lo"}}`, "contentBlockStop", `{"contentBlockIndex":0}`}
	call := []string{"contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t1","name":"add"}}}`,
		"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"a\":900719925"}}}`,
		"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":"4740993}"}}}`}
	end := func(reason string) []string {
		return []string{"contentBlockStop", `{"contentBlockIndex":1}`, "messageStop", `{"stopReason":"` + reason + `"}`, "metadata", usage}
	}
	join := func(lists ...[]string) []byte {
		var all []string
		for _, l := range lists {
			all = append(all, l...)
		}
		return stream(all...)
	}
	for name, c := range map[string]struct {
		model string
		reply reply
		want  string
	}{
		"text": {"", reply{body: join(text, end("end_turn"))}, `text:Hel text:lo | stop(end_turn) text:"Hello" 18/7 r5 w2 req-1`},
		"call": {"", reply{body: join(text, call, end("tool_use"))},
			`text:Hel text:lo call:add | tool_use(tool_use) text:"Hello" add{"a":9007199254740993} 18/7 r5 w2 req-1`},
		"call without arguments": {"", reply{body: join(call[:2], end("tool_use"))}, `call:add | tool_use(tool_use) add{} 18/7 r5 w2 req-1`},
		"half a call":            {"", reply{body: join(call[:4], end("max_tokens"))}, `call:add | max_tokens(max_tokens) 18/7 r5 w2 req-1 [the call of add was cut off and is omitted]`},
		"reasoning": {"", reply{body: stream("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm \"x\""}}}`,
			"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}`, "contentBlockStop", `{"contentBlockIndex":0}`,
			"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"ZW5j"}}}`, "contentBlockStop", `{"contentBlockIndex":1}`,
			"contentBlockDelta", `{"contentBlockIndex":2,"delta":{"reasoningContent":{"signature":"b25seQ=="}}}`, "contentBlockStop", `{"contentBlockIndex":2}`,
			"messageStop", `{"stopReason":"end_turn"}`)},
			`thinking:Hm "x" | stop(end_turn) {"reasoningContent":{"reasoningText":{"text":"Hm \"x\"","signature":"c2ln"}}} ` +
				`{"reasoningContent":{"redactedContent":"ZW5j"}} {"reasoningContent":{"reasoningText":{"text":"","signature":"b25seQ=="}}} req-1`},
		"cached tokens of OpenAI's models": {"openai.gpt-5.6", reply{body: stream("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"x"}}`,
			"messageStop", `{"stopReason":"end_turn"}`, "metadata", `{"usage":{"inputTokens":4995,"outputTokens":12,"cacheWriteInputTokens":4993}}`)},
			`text:x | stop(end_turn) text:"x" 4995/12 r0 w4993 req-1`},
		"MD-4_citations": {"", reply{body: stream("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Yes."}}`,
			"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"citation":{"title":"T","source":"s.pdf","sourceContent":[{"text":"q"}],"location":{"documentPage":{"documentIndex":0,"start":1,"end":2}}}}}`,
			"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"citation":{"location":{"web":{"url":"https://a.example/","domain":"a.example"}}}}}`,
			"messageStop", `{"stopReason":"end_turn"}`)}, `text:Yes. | stop(end_turn) text:"Yes." {T  s.pdf q 0 4} { https://a.example/   0 4}`},
		"MD-4_image": {"", reply{body: stream("contentBlockStart", `{"contentBlockIndex":0,"start":{"image":{"format":"png"}}}`,
			"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"image":{"source":{"bytes":"iVBORw0KGgo="}}}}`,
			"messageStop", `{"stopReason":"end_turn"}`)}, `| stop(end_turn) image:image/png iVBORw0KGgo=`},
		"guardrail":          {"", reply{body: join(text, end("guardrail_intervened"))}, `| content_filter(guardrail_intervened)`},
		"malformed call":     {"", reply{body: join(text, end("malformed_tool_use"))}, `| bad_call(malformed_tool_use)`},
		"RP-1_no call":       {"", reply{body: join(text, end("tool_use"))}, `| tool_use(tool_use)`},
		"context is full":    {"", reply{body: join(text, end("model_context_window_exceeded"))}, `| context_full(`},
		"unknown end":        {"", reply{body: join(text, end("whatever_next"))}, `| error(whatever_next)`},
		"no end":             {"", reply{body: join(text)}, "protocol: bedrock/" + claude + ": the answer was cut off: the stream ended before messageStop"},
		"throttled":          {"", reply{body: join(text, []string{"!throttlingException", `{"message":"Too many tokens"}`})}, "text:Hel text:lo rate_limited: "},
		"too long in stream": {"", reply{body: stream("!validationException", `{"message":"Input is too long for requested model."}`)}, "too_large: "},
		"model failed": {"", reply{body: stream("!modelStreamErrorException", `{"message":"broke","originalStatusCode":500,"originalMessage":"cuda"}`)},
			"model_error: bedrock/" + claude + ": ModelStreamErrorException: broke (cuda) (request req-1)"},
		"document": {"", reply{kind: "json", body: []byte(`{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"cw=="}}},` +
			`{"text":"Hello"},{"toolUse":{"toolUseId":"t","name":"add","input":{"a":1}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":2}}`)},
			`thinking:hm text:Hello call:add | tool_use(tool_use) {"reasoningContent":{"reasoningText":{"text":"hm","signature":"cw=="}}} text:"Hello" add{"a":1} 1/2 r0 w0 req-1`},
		"access": {"", reply{status: 403, errtyp: "AccessDeniedException:http://internal", body: []byte(`{"message":"You don't have access to the model with the specified model ID."}`)},
			"auth_required: bedrock/" + claude + ": HTTP 403: AccessDeniedException: You don't have access to the model with the specified model ID. (request req-1); check that the credentials"},
		"profile is needed": {"", reply{status: 400, errtyp: "ValidationException", body: []byte(`{"message":"Invocation of model ID x with on-demand throughput isn’t supported."}`)},
			"such as us.MODEL"},
		"too long": {"", reply{status: 400, errtyp: "ValidationException", body: []byte(`{"message":"The model returned the following errors: Input is too long for requested model."}`)}, "too_large: "},
		"quota":    {"", reply{status: 400, errtyp: "ServiceQuotaExceededException", body: []byte(`{"message":"limit"}`)}, "check plan and billing"},
		"no model": {"", reply{status: 404, errtyp: "ResourceNotFoundException", body: []byte(`{"message":"Could not resolve the foundation model"}`)}, "check models.main.model and models.main.region"},
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, &cloud{replies: []reply{c.reply}}, nil, func(cfg *model.Config) {
				if c.model != "" {
					cfg.Model = c.model
				}
			})
			if got := ask(t, m, hello); !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Test_MD10_BedrockCutAnywhere cuts a stream at every byte. The result is an error, or, after the end mark, the answer.
func Test_MD10_BedrockCutAnywhere(t *testing.T) {
	body := stream("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello"}}`, "contentBlockStop", `{"contentBlockIndex":0}`,
		"messageStop", `{"stopReason":"end_turn"}`)
	end := len(body)
	body = append(body, stream("metadata", `{"usage":{"inputTokens":1,"outputTokens":2}}`)...)
	for n := range len(body) {
		m := open(t, &cloud{replies: []reply{{body: body[:n]}}}, nil, nil)
		if got := ask(t, m, hello); strings.Contains(got, "|") != (n == end) {
			t.Fatalf("%d bytes: %s", n, got)
		}
	}
}

// Test_MD10_BedrockAddress checks addresses, regions and authorization.
func Test_MD10_BedrockAddress(t *testing.T) {
	ok := reply{body: stream("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"x"}}`, "messageStop", `{"stopReason":"end_turn"}`)}
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "secret"}
	for name, c := range map[string]struct {
		env    map[string]string
		change func(*model.Config)
		want   string // the address and authorization, or the error
	}{
		"region of the environment": {nil, nil,
			"https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream AWS4-HMAC-SHA256 Credential=AK/"},
		"region of the entry": {nil, func(c *model.Config) { c.Region = "cn-north-1" }, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/"},
		"region of an ARN": {keys, func(c *model.Config) { c.Model = "arn:aws:bedrock:us-west-2:1:inference-profile/us.anthropic.claude-x" },
			"https://bedrock-runtime.us-west-2.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-west-2%3A1%3Ainference-profile%2Fus.anthropic.claude-x/converse-stream "},
		"no region":      {keys, nil, "config: bedrock/" + claude + ": there is no AWS region"},
		"no credentials": {map[string]string{"AWS_REGION": "eu-west-1"}, nil, "auth_required: bedrock/" + claude + ": AWS credentials: none in the environment"},
		"key":            {nil, func(c *model.Config) { c.APIKey = tenon.NewSecret("bedrock-key") }, "converse-stream Bearer bedrock-key"},
		"own address":    {nil, func(c *model.Config) { c.BaseURL = "https://vpc.example" }, "https://vpc.example/model/"},
		"not streamed":   {nil, func(c *model.Config) { off := false; c.Quirks.Stream = &off }, "/converse AWS4"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{}
			for k, v := range c.env {
				env[k] = v
			}
			if c.env == nil {
				env = nil
			}
			web := &cloud{replies: []reply{ok}}
			got := ask(t, open(t, web, env, c.change), hello)
			if len(web.urls) > 0 {
				got = web.urls[0] + " " + web.headers[0].Get("Authorization")
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Test_MD10_BedrockRenews checks that expired credentials are read again once, and that the request is not repeated a
// second time.
func Test_MD10_BedrockRenews(t *testing.T) {
	expired := reply{status: 403, errtyp: "ExpiredTokenException", body: []byte(`{"message":"The security token included in the request is expired"}`)}
	ok := reply{body: stream("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"x"}}`, "messageStop", `{"stopReason":"end_turn"}`)}
	env := map[string]string{"AWS_ACCESS_KEY_ID": "OLD", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-1"}
	for name, c := range map[string]struct {
		replies []reply
		want    string
		asked   int
	}{
		"once": {[]reply{expired, ok}, "| stop(end_turn)", 2},
		"in the body, with status 400": {[]reply{{status: 400, body: []byte(`{"__type":"com.amazon.coral.service#` +
			`ExpiredTokenException","message":"The security token included in the request is expired"}`)}, ok}, "| stop(end_turn)", 2},
		"for ever": {[]reply{expired, expired}, "auth_required: ", 2},
	} {
		web := &cloud{replies: c.replies}
		if got := ask(t, open(t, web, env, nil), hello); !strings.Contains(got, c.want) || len(web.urls) != c.asked {
			t.Errorf("%s: %d requests: %s", name, len(web.urls), got)
		}
	}
}

// Test_MD10_BedrockRequest checks the form of requests.
func Test_MD10_BedrockRequest(t *testing.T) {
	add := tenon.Tool{Name: "add", Description: "Adds", Input: json.RawMessage(`{"type":"object"}`)}
	turn := []*tenon.Message{
		tenon.UserMessage("Add"),
		{Role: tenon.RoleAssistant, Parts: []tenon.Part{
			{Type: tenon.PartThinking, Text: "hm", Wire: "bedrock", Raw: json.RawMessage(`{"reasoningContent":{"reasoningText":{"text":"hm","signature":"cw=="}}}`)},
			{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "t:1", Name: "add", Arguments: json.RawMessage(`{"a":1}`)}}}},
		{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "t:1", Name: "add", IsError: true,
			Content: []tenon.Content{{Type: tenon.ContentText, Text: "no"}, {Type: tenon.ContentImage, MimeType: "image/png", Data: "aGk="}}}}}},
		tenon.UserMessage("Again"),
	}
	nova, mistral := "amazon.nova-2-lite-v1:0", "mistral.mistral-large-2407-v1:0"
	const settings = `"inferenceConfig":{"maxTokens":4096}`
	for name, c := range map[string]struct {
		model string
		req   tenon.Request
		want  string
	}{
		"plain": {mistral, tenon.Request{System: "Be", Messages: turn[:1]},
			`{` + settings + `,"system":[{"text":"Be"}],"messages":[{"role":"user","content":[{"text":"Add"}]}]}`},
		"settings": {mistral, tenon.Request{Messages: turn[:1], Sampling: tenon.Sampling{MaxTokens: 9, Stop: []string{"END"}}},
			`{"inferenceConfig":{"maxTokens":9,"stopSequences":["END"]},"messages":[{"role":"user","content":[{"text":"Add"}]}]}`},
		"tools and marks": {claude, tenon.Request{System: "Be", Messages: turn, Tools: []tenon.Tool{add}, ToolChoice: "add"},
			`{` + settings + `,"toolConfig":{"tools":[{"toolSpec":{"name":"add","description":"Adds","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default"}}],` +
				`"toolChoice":{"tool":{"name":"add"}}},"system":[{"text":"Be"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"Add"}]},` +
				`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"cw=="}}},{"toolUse":{"toolUseId":"t_1","name":"add","input":{"a":1}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"t_1","status":"error","content":[{"text":"no"},{"image":{"format":"png","source":{"bytes":"aGk="}}}]}},` +
				`{"text":"Again"},{"cachePoint":{"type":"default"}}]}]}`},
		"a bridge": {mistral, tenon.Request{Messages: turn, Tools: []tenon.Tool{add}, ToolChoice: "any"},
			`{` + settings + `,"toolConfig":{"tools":[{"toolSpec":{"name":"add","description":"Adds","inputSchema":{"json":{"type":"object"}}}}],"toolChoice":{"any":{}}},` +
				`"messages":[{"role":"user","content":[{"text":"Add"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"cw=="}}},` +
				`{"toolUse":{"toolUseId":"t_1","name":"add","input":{"a":1}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t_1","status":"error","content":[{"text":"no"},` +
				`{"image":{"format":"png","source":{"bytes":"aGk="}}}]}}]},{"role":"assistant","content":[{"text":"I have the results."}]},{"role":"user","content":[{"text":"Again"}]}]}`},
		"no tools any more": {nova, tenon.Request{Messages: turn[:3]},
			`{` + settings + `,"messages":[{"role":"user","content":[{"text":"Add"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"cw=="}}},` +
				`{"text":"[called add with {\"a\":1}]"}]},{"role":"user","content":[{"text":"[result of add]\nno\n[image image/png 2 bytes omitted: this model does not take it]"},` +
				`{"cachePoint":{"type":"default"}}]}]}`},
		"effort": {nova, tenon.Request{Messages: turn[:1], Sampling: tenon.Sampling{Effort: "low"}},
			`{` + settings + `,"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"low"}},"messages":[{"role":"user","content":[{"text":"Add"},` +
				`{"cachePoint":{"type":"default"}}]}]}`},
		"nothing but reasoning": {mistral, tenon.Request{Messages: []*tenon.Message{turn[0],
			{Role: tenon.RoleAssistant, Parts: turn[1].Parts[:1]}, turn[3]}},
			`{` + settings + `,"messages":[{"role":"user","content":[{"text":"Add"},{"text":"Again"}]}]}`},
		"a document": {mistral, tenon.Request{Messages: []*tenon.Message{{Role: tenon.RoleUser,
			Parts: []tenon.Part{{Type: tenon.PartFile, MimeType: "application/pdf", Text: "a_b.pdf", Data: "aGk="}}}}},
			`{` + settings + `,"messages":[{"role":"user","content":[{"document":{"format":"pdf","name":"a b pdf","source":{"bytes":"aGk="}}},{"text":"The document."}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bedrock.EncodeRequest(c.model, &c.req)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, string(got)); d != "" {
				t.Errorf("-want +got:\n%s\ngot %s", d, got)
			}
			if !json.Valid(got) {
				t.Error("the request is not JSON")
			}
		})
	}
}

// FuzzParse checks that no events make the parser panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t","name":"n"}}}}` + "\n" + `{"messageStop":{"stopReason":"x"}}`))
	f.Add([]byte(`{"converse":{"output":{"message":{"content":[{"text":"x"},{"image":{}}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bytes.Split(data, []byte("\n"))
		_, _ = bedrock.Parse(func() ([]byte, error) {
			if len(lines) == 0 {
				return nil, io.EOF
			}
			line := lines[0]
			lines = lines[1:]
			if !json.Valid(line) {
				return nil, model.NotJSON(line)
			}
			return bytes.Clone(line), nil
		}, func(tenon.Delta) bool { return true })
	})
}

// Test_MD10_BedrockList lists the models and the inference profiles of a region, and renews expired credentials.
func Test_MD10_BedrockList(t *testing.T) {
	doc := func(s string) reply { return reply{kind: "json", body: []byte(s)} }
	web := &cloud{replies: []reply{{status: 403, errtyp: "ExpiredTokenException", body: []byte(`{"message":"expired"}`)},
		doc(`{"modelSummaries":[{"modelId":"b.m","modelName":"M","providerName":"B"}]}`),
		doc(`{"inferenceProfileSummaries":[{"inferenceProfileId":"a.b.m","inferenceProfileName":"A M"}]}`)}}
	env := map[string]string{"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-1"}
	list, err := bedrock.List(t.Context(), model.Config{Provider: "bedrock"}, model.Env{Transport: web,
		LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }})
	if got := fmt.Sprint(list, err); got != "[{a.b.m A M  0} {b.m M B 0}] <nil>" {
		t.Error(got)
	}
	const base = "https://bedrock.eu-west-1.amazonaws.com/"
	want := []string{base + "foundation-models", base + "foundation-models", base + "inference-profiles?maxResults=1000"}
	if d := cmp.Diff(want, web.urls); d != "" {
		t.Error(d)
	}
}
