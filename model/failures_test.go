package model

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// overflows are errors of providers about a conversation that is too long: status and body.
var overflows = []struct {
	name   string
	status int
	body   string
}{
	{"anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}`},
	{"anthropic output", 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000\"}}"},
	{"anthropic size", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`},
	{"openai", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
	{"openai code", 400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`},
	{"openai string", 400, `{"error":{"message":"Invalid 'input': string too long","code":"string_above_max_length"}}`},
	{"openai responses", 0, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","code":"invalid_prompt"}}`},
	{"openai tokens per minute", 429, `{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}`},
	{"gemini", 400, `{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`},
	{"gemini count", 400, `{"error":{"code":400,"message":"The input exceeds the maximum number of tokens allowed.","status":"INVALID_ARGUMENT"}}`},
	{"xai", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`},
	{"groq", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages"}}`},
	{"groq tokens per minute", 413, "{\"error\":{\"message\":\"Request too large for model `x` in organization `y` on tokens per minute (TPM): Limit 6000, Requested 9000\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}"},
	{"openrouter", 400, `{"error":{"code":400,"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens"}}`},
	{"openrouter cause", 400, `{"error":{"code":400,"message":"Provider returned error","metadata":{"provider_name":"Chutes","raw":"{\"error\":{\"message\":\"prompt is too long\"}}"}}}`},
	{"deepseek", 400, `{"error":{"message":"This model's maximum context length is 65536 tokens. However, you requested 70000 tokens","type":"invalid_request_error"}}`},
	{"ollama", 400, `{"error":"prompt too long; exceeded max context length by 42 tokens (ref: x)"}`},
	{"ollama older", 400, `{"error":"prompt too long; exceeded context length"}`},
	{"ollama prompt", 400, `{"error":"the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the context length in settings, or use a model with a longer context length"}`},
	{"ollama input", 500, `{"error":"the input length exceeds the context length"}`},
	{"perplexity", 400, `{"error":{"message":"too much","type":"too_many_prompt_tokens","code":400}}`},
	{"perplexity words", 400, `{"error":{"message":"The total length of all messages is too long.","code":400}}`},
	{"perplexity tokens", 400, `{"error":{"message":"User input tokens exceeds 131072 tokens","code":400}}`},
	{"mistral", 400, `{"object":"error","message":"Prompt contains 300000 tokens, too large for model with 131072 maximum context","type":"invalid_request_error"}`},
	{"together", 422, "{\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000\"}}"},
	{"together input", 400, `{"error":{"message":"The input (5000 tokens) is longer than the model's context length (4096 tokens)."}}`},
	{"llama.cpp", 500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`},
	{"GPUStack", 500, `{"error":{"message":"failed to decode, try again, increasing context size or reducing parallel"}}`},
	{"hugging face", 422, "{\"error\":\"Input validation error: `inputs` must have less than 1024 tokens. Given: 2000\"}"},
	{"fireworks", 400, `{"error":{"message":"The prompt is too long: 221782, model maximum context length: 202752"}}`},
	{"vllm", 400, `{"object":"error","message":"The decoder prompt (length 5951) is longer than the maximum model length of 4096.","type":"BadRequestError"}`},
	{"vllm fit", 400, `{"message":"The prompt (total length 25938) is too long to fit into the model (context length 4096)."}`},
	{"vllm only", 400, `{"message":"You passed 5000 input tokens. However, the model's context length is only 4096 tokens"}`},
	{"sglang", 400, `{"message":"The input exceeds the maximum allowed input length of 4096 tokens"}`},
	{"llama.cpp", 400, `{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error"}}`},
	{"llama.cpp type", 400, `{"error":{"code":400,"message":"no","type":"exceed_context_size_error"}}`},
	{"llama.cpp batch", 500, `{"error":{"code":500,"message":"input is too large to process. increase the physical batch size","type":"server_error"}}`},
	{"lm studio", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}`},
	{"lm studio first", 400, `{"error":"Trying to keep the first 9000 tokens when context the overflows."}`},
	{"bedrock", 400, `{"message":"Input is too long for requested model."}`},
	{"bedrock tokens", 400, `{"message":"Too many input tokens. Max input tokens: 4096"}`},
	{"bedrock nova", 0, `{"message":"The number of input tokens exceeds maximum length."}`},
	{"cloudflare", 413, `{"error":{"message":"The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8192)."}}`},
	{"deepinfra", 400, `{"error":{"message":"Requested input length 9000 exceeds maximum input length 8192"}}`},
	{"opencode", 400, `{"error":{"message":"The request is too large for the model's configured input limit"}}`},
	{"cohere", 400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}`},
	{"databricks", 400, `{"message":"5000 tokens in request more than max tokens allowed"}`},
	{"github models", 413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`},
	{"github models words", 400, `{"error":{"message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`},
	{"github copilot", 400, `{"error":{"message":"prompt token count of 150000 exceeds the limit of 128000"}}`},
	{"github copilot code", 400, `{"error":{"message":"no","code":"model_max_prompt_tokens_exceeded"}}`},
	{"minimax", 400, `{"error":{"message":"invalid params, context window exceeds limit"}}`},
	{"moonshot", 400, `{"error":{"message":"Your request exceeded model token limit: 262144 (requested: 300000)","type":"invalid_request_error"}}`},
	{"alibaba", 400, `{"error":{"message":"Range of input length should be [1, 129024]"}}`},
	{"z.ai", 400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`},
	{"z.ai code", 0, `{"error":{"code":"model_context_window_exceeded","message":"no"}}`},
	{"a proxy", 500, `{"error":{"message":"context length exceeded"}}`},
	{"a proxy with a code", 500, `{"error":{"message":"upstream: context_length_exceeded"}}`},
	{"another proxy", 400, `{"error":{"message":"the request exceeds the model's context"}}`},
	{"vertex", 400, `{"error":{"code":400,"message":"Unable to submit request because the input token count is 1500000 but model only supports up to 1048576. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}`},
	{"vllm negative", 400, `{"object":"error","message":"max_tokens must be at least 1, got -186.","type":"BadRequestError","code":400}`},
	{"llama-cpp-python", 500, `{"error":{"message":"Requested tokens (5000) exceed context window of 4096","type":"internal_server_error"}}`},
	{"sglang length", 400, `{"message":"Input length (9000 tokens) exceeds the maximum allowed length (8191 tokens). Use a shorter input or enable --allow-auto-truncate."}`},
	{"tensorrt-llm", 400, `{"error":{"message":"Prompt length (5000) exceeds maximum input length (4096)."}}`},
	{"tensorrt-llm sequence", 400, `{"error":{"message":"Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)"}}`},
	{"cohere size", 400, `{"message":"too many tokens: size limit exceeded by 10 tokens. Try using shorter or fewer inputs."}`},
	{"lm studio generation", 400, `{"error":"Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not currently support mid-generation context overflow."}`},
	{"bedrock length", 400, `{"message":"Malformed input request: expected maxLength: 300000, actual: 400000, please reformat your input and try again."}`},
	{"watsonx", 400, `{"errors":[{"code":"invalid_input_argument","message":"Invalid input argument for Model: the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model"}],"message":"the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model"}`},
	{"mlc", 400, `{"object":"error","message":"Request prompt has 38726 tokens in total, larger than the model input length limit 8192."}`},
	{"a proxy with a window", 400, `{"error":{"message":"Context window exceeded"}}`},
	{"a short text", 400, `{"error":{"message":"prompt too long"}}`},
	{"a prompt with many tokens", 400, `{"error":{"message":"Too many tokens in prompt"}}`},
	{"no body", 413, ``},
}

// others are errors of other kinds, with the code, the kind, and whether a retry may help.
var others = []struct {
	name   string
	status int
	body   string
	code   tenon.Code
	kind   Kind
	retry  bool
}{
	{"groq call", 400, `{"error":{"message":"x","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=get>"}}`, tenon.CodeModel, KindBadCall, false},
	{"groq call in a stream", 0, `{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error"}}`, tenon.CodeModel, KindBadCall, false},
	{"groq output", 400, `{"error":{"message":"Parsing failed. The model generated output that could not be parsed. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"output_parse_failed","failed_generation":"x"}}`, tenon.CodeModel, KindBadCall, false},
	{"groq output by its code", 400, `{"error":{"message":"x","code":"output_parse_failed"}}`, tenon.CodeModel, KindBadCall, false},
	{"a description of a tool", 400, `{"error":{"message":"Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024","code":"string_above_max_length"}}`, tenon.CodeModel, KindRefused, false},
	{"groq arguments", 400, `{"error":{"message":"Failed to parse tool call arguments as JSON"}}`, tenon.CodeModel, KindBadCall, false},
	{"groq validation", 400, `{"error":{"message":"tool call validation failed: attempted to call tool 'x' which was not in request.tools"}}`, tenon.CodeModel, KindBadCall, false},
	{"ollama call", 500, `{"error":"error parsing tool call: raw='{', err=unexpected end of JSON input"}`, tenon.CodeModel, KindBadCall, false},
	{"gemini key", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, tenon.CodeAuth, KindAuth, false},
	{"gemini old key", 400, `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`, tenon.CodeAuth, KindAuth, false},
	{"gemini reason", 400, `{"error":{"code":400,"message":"API_KEY_INVALID","status":"INVALID_ARGUMENT"}}`, tenon.CodeAuth, KindAuth, false},
	{"xai key", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***bc. You can obtain an API key from https://console.x.ai."}`, tenon.CodeAuth, KindAuth, false},
	{"another key", 400, `{"error":"Invalid API key"}`, tenon.CodeAuth, KindAuth, false},
	{"anthropic balance", 400, `{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, tenon.CodeModel, KindQuota, false},
	{"deepseek balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, tenon.CodeModel, KindQuota, false},
	{"z.ai balance", 429, `{"error":{"code":"1113","message":"Your account is in arrears, please recharge and try again"}}`, tenon.CodeModel, KindQuota, false},
	{"openrouter balance", 402, `{"error":{"code":402,"message":"This request requires more credits"}}`, tenon.CodeModel, KindQuota, false},
	{"xai balance", 403, `{"code":"x","error":"Your team has used all available credits"}`, tenon.CodeModel, KindQuota, false},
	{"openai quota", 429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, tenon.CodeModel, KindQuota, false},
	{"openai limit", 400, `{"error":{"message":"x","code":"billing_hard_limit_reached"}}`, tenon.CodeModel, KindQuota, false},
	{"anthropic billing", 0, `{"error":{"message":"x","type":"billing_error"}}`, tenon.CodeModel, KindQuota, false},
	{"anthropic auth", 0, `{"error":{"message":"x","type":"authentication_error"}}`, tenon.CodeAuth, KindAuth, false},
	{"anthropic permission", 0, `{"error":{"message":"x","type":"permission_error"}}`, tenon.CodeAuth, KindAuth, false},
	{"openai auth", 0, `{"error":{"message":"x","code":"invalid_api_key"}}`, tenon.CodeAuth, KindAuth, false},
	{"anthropic request", 400, `{"error":{"message":"x","type":"invalid_request_error"}}`, tenon.CodeModel, KindRefused, false},
	{"anthropic model", 404, `{"error":{"message":"x","type":"not_found_error"}}`, tenon.CodeModel, KindRefused, false},
	{"openai model", 404, `{"error":{"message":"x","code":"model_not_found"}}`, tenon.CodeModel, KindRefused, false},
	{"anthropic rate", 0, `{"error":{"message":"x","type":"rate_limit_error"}}`, tenon.CodeRateLimited, KindRate, true},
	{"openai rate", 429, `{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","code":"rate_limit_exceeded"}}`, tenon.CodeRateLimited, KindRate, true},
	{"gemini rate", 0, `{"error":{"message":"x","status":"RESOURCE_EXHAUSTED"}}`, tenon.CodeRateLimited, KindRate, true},
	{"bedrock throttling", 429, `{"message":"Too many tokens, please wait before trying again."}`, tenon.CodeRateLimited, KindRate, true},
	{"bedrock throttling in a stream", 0, `{"error":{"message":"x","type":"ThrottlingException"}}`, tenon.CodeRateLimited, KindRate, true},
	{"bedrock not ready", 0, `{"error":{"message":"x","type":"ModelNotReadyException"}}`, tenon.CodeRateLimited, KindRate, true},
	{"bedrock quota", 400, `{"error":{"message":"x","type":"ServiceQuotaExceededException"}}`, tenon.CodeModel, KindQuota, false},
	{"bedrock unavailable", 0, `{"error":{"message":"x","type":"ServiceUnavailableException"}}`, tenon.CodeModel, KindOverload, true},
	{"bedrock internal", 0, `{"error":{"message":"x","type":"InternalServerException"}}`, tenon.CodeModel, KindOverload, true},
	{"bedrock model failed", 0, `{"error":{"message":"x","type":"ModelStreamErrorException"}}`, tenon.CodeModel, KindOverload, true},
	{"bedrock time", 0, `{"error":{"message":"x","type":"ModelTimeoutException"}}`, tenon.CodeTimeout, KindTimeout, true},
	{"bedrock request", 400, `{"error":{"message":"x","type":"ValidationException"}}`, tenon.CodeModel, KindRefused, false},
	{"bedrock access", 403, `{"error":{"message":"x","type":"AccessDeniedException"}}`, tenon.CodeAuth, KindAuth, false},
	{"bedrock client", 400, `{"error":{"message":"x","type":"UnrecognizedClientException"}}`, tenon.CodeAuth, KindAuth, false},
	{"bedrock token", 400, `{"error":{"message":"x","type":"ExpiredTokenException"}}`, tenon.CodeAuth, KindAuth, false},
	{"bedrock signature", 403, `{"error":{"message":"x","type":"InvalidSignatureException"}}`, tenon.CodeAuth, KindAuth, false},
	{"anthropic time", 0, `{"error":{"message":"x","type":"timeout_error"}}`, tenon.CodeTimeout, KindTimeout, true},
	{"anthropic api", 0, `{"error":{"message":"x","type":"api_error"}}`, tenon.CodeModel, KindOverload, true},
	{"anthropic overload", 0, `{"error":{"message":"x","type":"overloaded_error"}}`, tenon.CodeModel, KindOverload, true},
	{"openai server", 0, `{"error":{"message":"x","code":"server_error"}}`, tenon.CodeModel, KindOverload, true},
	{"gemini unavailable", 0, `{"error":{"message":"x","status":"UNAVAILABLE"}}`, tenon.CodeModel, KindOverload, true},
	{"gemini internal", 0, `{"error":{"message":"x","status":"INTERNAL"}}`, tenon.CodeModel, KindOverload, true},
	{"a maximum of output tokens", 400, `{"error":{"message":"max_tokens is too large: 9000. This model supports at most 4096 completion tokens"}}`, tenon.CodeModel, KindRefused, false},
	{"another text", 418, `{"error":{"message":"I am a teapot"}}`, tenon.CodeModel, KindRefused, false},
}

// TestFailures checks that each row of the table of failures has an example, and that each example is classified
// correctly.
func TestFailures(t *testing.T) {
	hit := map[*failureRow]bool{}
	read := func(status int, body string) *Failure {
		f := ErrorObject(status, []byte(body))
		if r := f.wording(); r != nil {
			hit[r] = true
		}
		if r := f.known(); r != nil {
			hit[r] = true
		}
		return f
	}
	for _, tt := range overflows {
		t.Run("MD-1_"+strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			if f := read(tt.status, tt.body); f.Code != tenon.CodeTooLarge || f.Retry || f.kindOf() != KindTooLong {
				t.Errorf("%s: code %s, kind %s, retry %v", tt.body, f.Code, f.kindOf(), f.Retry)
			}
		})
	}
	for _, tt := range others {
		t.Run("MD-1_"+strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			f := read(tt.status, tt.body)
			if f.Code != tt.code || f.Retry != tt.retry || f.kindOf() != tt.kind {
				t.Errorf("%s: code %s, kind %s, retry %v; want %s, %s, %v", tt.body, f.Code, f.kindOf(), f.Retry, tt.code,
					tt.kind, tt.retry)
			}
		})
	}
	for _, table := range [][]failureRow{wordings, errorTypes} {
		for i := range table {
			if r := &table[i]; !hit[r] {
				t.Errorf("no answer tests the row %s %s %q", r.provider, r.typ, r.words)
			} else if r.source == "" || r.provider == "" {
				t.Errorf("row %d has no source", i)
			}
		}
	}
}

// TestFailureOfGateway checks that an error of the provider behind a model gateway reaches the user.
func TestFailureOfGateway(t *testing.T) {
	for i, tt := range []struct{ body, want string }{
		{`{"error":{"code":400,"message":"Provider returned error","metadata":{"provider_name":"xAI","raw":"{\"code\":\"x\",\"error\":\"no such voice\"}"}}}`, "Provider returned error (xAI: no such voice)"},
		{`{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"upstream went away"}}}`, "Provider returned error (its cause: upstream went away)"},
		{`{"error":{"code":400,"message":"Provider returned error","metadata":{"provider_name":"A","raw":{"error":{"message":"deep"}}}}}`, "Provider returned error (A: deep)"},
		{`{"error":{"code":400,"message":"x","metadata":{"raw":""}}}`, "x"},
		{`{"error":{"code":400,"message":"x","metadata":{"raw":null}}}`, "x"},
	} {
		t.Run("MD-3_"+strconv.Itoa(i), func(t *testing.T) {
			if f := ErrorObject(400, []byte(tt.body)); f.Message != tt.want {
				t.Errorf("%q, want %q", f.Message, tt.want)
			}
		})
	}
}
