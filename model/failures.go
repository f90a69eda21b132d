package model

import (
	"net/http"
	"strings"

	"github.com/tenonhq/tenon"
)

// failureRow is a row of the table of failures. A row applies if all of its conditions hold.
type failureRow struct {
	provider string
	status   int      // HTTP status; 0 matches any
	typ      string   // the error object's code, type or status; "" matches any
	words    []string // lower-case texts that occur in the message in this order

	code   tenon.Code
	retry  bool
	kind   Kind   // if "", it follows from the code
	source string // where the wording is from
}

// The sources of the table.
const (
	srcAnthropic = "docs.anthropic.com/en/api/errors"
	srcOpenAI    = "platform.openai.com/docs/guides/error-codes"
	srcGoogle    = "ai.google.dev/gemini-api/docs/troubleshooting"
	srcOpenCode  = "sst/opencode: packages/llm, provider-error"
	srcPi        = "badlogic/pi-mono: packages/ai, overflow tests against the providers"
	srcGroq      = "console.groq.com/docs/errors, docs/tool-use"
	srcOllama    = "ollama/ollama: server routes, tool parser, llm/llama_server.go"
	srcLlama     = "ggml-org/llama.cpp: tools/server"
	srcVLLM      = "vllm-project/vllm: entrypoints, pull 36197, issue 12165"
	srcTGI       = "huggingface/text-generation-inference: validation"
	srcSymfony   = "symfony/ai: Perplexity bridge, tests"
	srcAWS       = "repost.aws/knowledge-center/bedrock-validation-exception-errors"
	srcConverse  = "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html, CommonErrors"
	srcRouter    = "openrouter.ai/docs/api-reference/errors"
	srcDeepSeek  = "api-docs.deepseek.com/quick_start/error_codes"
	srcLiteLLM   = "BerriAI/litellm: exceptions of xAI"
	srcZai       = "docs.z.ai/api-reference/api-code"
	srcRuby      = "crmne/ruby_llm: recorded answer of GPUStack"
	srcSpec      = "issue 21 of tenon: recorded answers"
)

const (
	auth     = tenon.CodeAuth
	tooLarge = tenon.CodeTooLarge
	refused  = tenon.CodeModel
	rate     = tenon.CodeRateLimited
)

// wordings are the rows with words of a message. They apply to every status, because providers and the proxies in front
// of them use 400, 413, 422, 429 and 500 for the same failure. The first matching row applies.
var wordings = []failureRow{
	// A tool is described at too much length. A shorter conversation does not help.
	{"OpenAI", 0, "string_above_max_length", []string{"invalid 'tools"}, refused, false, "", srcSpec},

	// One request exceeds a limit per minute. Waiting does not help, but a shorter conversation does.
	{"OpenAI, Groq", 0, "", []string{"request too large for", "tokens per min"}, tooLarge, false, "", srcOpenAI},

	// The conversation exceeds the context.
	{"Anthropic", 0, "", []string{"prompt is too long"}, tooLarge, false, "", srcAnthropic},
	{"Anthropic", 0, "", []string{"input length and `max_tokens` exceed"}, tooLarge, false, "", srcAnthropic},
	{"OpenAI", 0, "", []string{"exceeds the context window"}, tooLarge, false, "", srcOpenAI},
	{"OpenAI, Azure, DeepSeek, OpenRouter, vLLM, SambaNova", 0, "", []string{"maximum context length"}, tooLarge, false,
		"", srcOpenCode},
	{"Gemini", 0, "", []string{"exceeds the maximum number of tokens"}, tooLarge, false, "", srcGoogle},
	{"xAI", 0, "", []string{"maximum prompt length is"}, tooLarge, false, "", srcLiteLLM},
	{"Groq, Cerebras", 0, "", []string{"reduce the length of the messages"}, tooLarge, false, "", srcGroq},
	{"Mistral", 0, "", []string{"too large for model with"}, tooLarge, false, "", srcPi},
	{"Ollama", 0, "", []string{"exceeded max context length"}, tooLarge, false, "", srcOllama},
	{"Ollama", 0, "", []string{"exceeded context length"}, tooLarge, false, "", srcOpenCode},
	{"Ollama", 0, "", []string{"input length exceeds", "context length"}, tooLarge, false, "", srcOllama},
	{"Ollama", 0, "", []string{"prompt is longer than the context length"}, tooLarge, false, "", srcOllama},
	{"llama.cpp", 0, "", []string{"the available context size"}, tooLarge, false, "", srcLlama},
	{"llama.cpp", 0, "", []string{"input is too large to process"}, tooLarge, false, "", srcLlama},
	{"llama.cpp", 0, "", []string{"context size has been exceeded"}, tooLarge, false, "", srcLlama},
	{"GPUStack", 0, "", []string{"failed to decode", "increasing context size"}, tooLarge, false, "", srcRuby},
	{"LM Studio", 0, "", []string{"greater than the context length"}, tooLarge, false, "", srcPi},
	{"LM Studio", 0, "", []string{"when context the overflows"}, tooLarge, false, "", srcPi},
	{"vLLM", 0, "", []string{"longer than the maximum model length"}, tooLarge, false, "", srcVLLM},
	{"vLLM", 0, "", []string{"too long to fit into the model"}, tooLarge, false, "", srcVLLM},
	{"vLLM", 0, "", []string{"context length is only"}, tooLarge, false, "", srcOpenCode},
	{"Together", 0, "", []string{"longer than the model's context length"}, tooLarge, false, "", srcOpenCode},
	{"Together, Hugging Face", 0, "", []string{"`max_new_tokens` must be <="}, tooLarge, false, "", srcTGI},
	{"Hugging Face", 0, "", []string{"`inputs` must have less than"}, tooLarge, false, "", srcTGI},
	{"SGLang", 0, "", []string{"exceeds the maximum allowed input length"}, tooLarge, false, "", srcOpenCode},
	{"Bedrock", 0, "", []string{"input is too long"}, tooLarge, false, "", srcAWS},
	{"Bedrock", 0, "", []string{"too many input tokens"}, tooLarge, false, "", srcAWS},
	{"Bedrock", 0, "", []string{"number of input tokens exceeds maximum length"}, tooLarge, false, "", srcOpenCode},
	{"Cloudflare", 0, "", []string{"exceeded this model context window limit"}, tooLarge, false, "", srcOpenCode},
	{"DeepInfra", 0, "", []string{"requested input length", "exceeds maximum input length"}, tooLarge, false, "",
		srcOpenCode},
	{"OpenCode", 0, "", []string{"too large for the model's configured input limit"}, tooLarge, false, "", srcOpenCode},
	{"Perplexity", 0, "", []string{"length of all messages is too long"}, tooLarge, false, "", srcSymfony},
	{"Perplexity", 0, "", []string{"user input tokens exceeds"}, tooLarge, false, "", srcSymfony},
	{"Cohere", 0, "", []string{"total number of tokens in the prompt cannot exceed"}, tooLarge, false, "", srcOpenCode},
	{"Databricks", 0, "", []string{"tokens in request more than max tokens allowed"}, tooLarge, false, "", srcOpenCode},
	{"GitHub Models", 0, "", []string{"request body too large for"}, tooLarge, false, "", srcOpenCode},
	{"GitHub Copilot", 0, "", []string{"prompt token count of", "exceeds the limit of"}, tooLarge, false, "", srcPi},
	{"MiniMax", 0, "", []string{"context window exceeds limit"}, tooLarge, false, "", srcPi},
	{"Moonshot", 0, "", []string{"exceeded model token limit"}, tooLarge, false, "", srcPi},
	{"Alibaba", 0, "", []string{"range of input length should be"}, tooLarge, false, "", srcOpenCode},
	{"Z.ai", 0, "", []string{"prompt exceeds max length"}, tooLarge, false, "", srcOpenCode},
	{"others", 0, "", []string{"context length exceeded"}, tooLarge, false, "", srcOpenCode},
	{"others", 0, "", []string{"context_length_exceeded"}, tooLarge, false, "", srcOpenCode},
	{"others", 0, "", []string{"exceeds the model's context"}, tooLarge, false, "", srcOpenCode},
	{"Vertex AI", 0, "", []string{"input token count is", "only supports up to"}, tooLarge, false, "",
		"google-gemini/gemini-cli: issue 19727"},
	{"vLLM", 0, "", []string{"max_tokens must be at least 1, got -"}, tooLarge, false, "",
		"vllm-project/vllm: issue 4667"},
	{"llama-cpp-python", 0, "", []string{"exceed context window of"}, tooLarge, false, "",
		"abetlen/llama-cpp-python: llama.py"},
	{"SGLang", 0, "", []string{"input length", "exceeds the maximum allowed length"}, tooLarge, false, "",
		"mmcdermott/MEDS_EIC_AR: pull 172 (sglang 0.5.9)"},
	{"TensorRT-LLM", 0, "", []string{"prompt length", "exceeds maximum input length"}, tooLarge, false, "",
		"triton-inference-server/tensorrtllm_backend: issue 565"},
	{"TensorRT-LLM", 0, "", []string{"prompt length", "exceeds maximum sequence length"}, tooLarge, false, "",
		"triton-inference-server/tensorrtllm_backend: issue 141"},
	{"Cohere", 0, "", []string{"too many tokens: size limit exceeded"}, tooLarge, false, "", srcSpec},
	{"LM Studio", 0, "", []string{"reached context length of"}, tooLarge, false, "",
		"lmstudio-ai/lmstudio-bug-tracker: issue 1251"},
	{"Bedrock", 0, "", []string{"expected maxlength:", "actual:"}, tooLarge, false, "", srcSpec},
	{"watsonx", 0, "", []string{"number of input tokens", "cannot exceed the total tokens limit"}, tooLarge, false, "",
		srcSpec},
	{"MLC LLM", 0, "", []string{"larger than the model input length limit"}, tooLarge, false, "",
		"mlc-ai/mlc-llm: issue 2692"},
	{"others", 0, "", []string{"context window exceeded"}, tooLarge, false, "", srcSpec},
	{"others", 0, "", []string{"prompt too long"}, tooLarge, false, "", srcSpec},
	{"others", 0, "", []string{"too many tokens in prompt"}, tooLarge, false, "", srcSpec},

	// The provider could not read the call that the model wrote.
	{"Groq", 0, "", []string{"failed to call a function"}, refused, false, KindBadCall, srcGroq},
	{"Groq", 0, "", []string{"failed to parse tool call arguments"}, refused, false, KindBadCall, srcGroq},
	{"Groq", 0, "", []string{"tool call validation failed"}, refused, false, KindBadCall, srcGroq},
	{"Groq", 0, "", []string{"model generated output that could not be parsed"}, refused, false, KindBadCall, srcSpec},
	{"Ollama", 0, "", []string{"error parsing tool call"}, refused, false, KindBadCall, srcOllama},

	// Refused keys that are reported with status 400.
	{"Gemini", 400, "", []string{"api key not valid"}, auth, false, "", srcGoogle},
	{"Gemini", 400, "", []string{"api key expired"}, auth, false, "", srcGoogle},
	{"Gemini", 400, "", []string{"api_key_invalid"}, auth, false, "", srcGoogle},
	{"xAI", 400, "", []string{"incorrect api key"}, auth, false, "", srcLiteLLM},
	{"others", 400, "", []string{"invalid api key"}, auth, false, "", srcSpec},

	// The balance is used up. Providers report this with status 400, 402, 403 or 429.
	{"Anthropic", 0, "", []string{"credit balance is too low"}, refused, false, KindQuota, srcAnthropic},
	{"DeepSeek", 0, "", []string{"insufficient balance"}, refused, false, KindQuota, srcDeepSeek},
	{"Z.ai", 0, "", []string{"account is in arrears"}, refused, false, KindQuota, srcZai},
	{"OpenRouter", http.StatusPaymentRequired, "", []string{"credits"}, refused, false, KindQuota, srcRouter},
	{"xAI", 0, "", []string{"used all available credits"}, refused, false, KindQuota, srcLiteLLM},
}

// errorTypes are the rows with types of an error object. If the failure has a status, the status decides about retries.
var errorTypes = []failureRow{
	{"Anthropic, OpenAI", 0, "invalid_request_error", nil, refused, false, "", srcAnthropic},
	{"Anthropic", 0, "authentication_error", nil, auth, false, "", srcAnthropic},
	{"OpenAI", 0, "invalid_api_key", nil, auth, false, "", srcOpenAI},
	{"Anthropic", 0, "permission_error", nil, auth, false, "", srcAnthropic},
	{"Anthropic", 0, "billing_error", nil, refused, false, KindQuota, srcAnthropic},
	{"OpenAI", 0, "insufficient_quota", nil, refused, false, KindQuota, srcOpenAI},
	{"OpenAI", 0, "billing_hard_limit_reached", nil, refused, false, KindQuota, srcOpenAI},
	{"Anthropic", 0, "not_found_error", nil, refused, false, "", srcAnthropic},
	{"OpenAI", 0, "model_not_found", nil, refused, false, "", srcOpenAI},
	{"Anthropic", 0, "request_too_large", nil, tooLarge, false, "", srcAnthropic},
	{"OpenAI, Cerebras", 0, "context_length_exceeded", nil, tooLarge, false, "", srcOpenAI},
	{"OpenAI", 0, "string_above_max_length", nil, tooLarge, false, "", srcOpenAI},
	{"llama.cpp", 0, "exceed_context_size_error", nil, tooLarge, false, "", srcLlama},
	{"Perplexity", 0, "too_many_prompt_tokens", nil, tooLarge, false, "", srcSymfony},
	{"GitHub Models", 0, "tokens_limit_reached", nil, tooLarge, false, "", srcOpenCode},
	{"GitHub Copilot", 0, "model_max_prompt_tokens_exceeded", nil, tooLarge, false, "", srcPi},
	{"Z.ai", 0, "model_context_window_exceeded", nil, tooLarge, false, "", srcPi},
	{"Groq", 0, "output_parse_failed", nil, refused, false, KindBadCall, srcSpec},
	{"Groq", 0, "tool_use_failed", nil, refused, false, KindBadCall, srcGroq},
	{"Anthropic", 0, "rate_limit_error", nil, rate, true, "", srcAnthropic},
	{"OpenAI, Groq", 0, "rate_limit_exceeded", nil, rate, true, "", srcOpenAI},
	{"Gemini", 0, "RESOURCE_EXHAUSTED", nil, rate, true, "", srcGoogle},
	{"Anthropic", 0, "timeout_error", nil, tenon.CodeTimeout, true, "", srcAnthropic},
	{"Anthropic", 0, "api_error", nil, refused, true, "", srcAnthropic},
	{"OpenAI", 0, "server_error", nil, refused, true, "", srcOpenAI},
	{"Anthropic", 0, "overloaded_error", nil, refused, true, "", srcAnthropic},
	{"Bedrock", 0, "ThrottlingException", nil, rate, true, "", srcConverse},
	{"Bedrock", 0, "ModelNotReadyException", nil, rate, true, "", srcConverse},
	{"Bedrock", 0, "ServiceQuotaExceededException", nil, refused, false, KindQuota, srcConverse},
	{"Bedrock", 0, "ServiceUnavailableException", nil, refused, true, "", srcConverse},
	{"Bedrock", 0, "InternalServerException", nil, refused, true, "", srcConverse},
	{"Bedrock", 0, "ModelStreamErrorException", nil, refused, true, "", srcConverse},
	{"Bedrock", 0, "ModelTimeoutException", nil, tenon.CodeTimeout, true, "", srcConverse},
	{"Bedrock", 0, "ValidationException", nil, refused, false, "", srcConverse},
	{"Bedrock", 0, "AccessDeniedException", nil, auth, false, "", srcConverse},
	{"Bedrock", 0, "UnrecognizedClientException", nil, auth, false, "", srcConverse},
	{"Bedrock", 0, "ExpiredTokenException", nil, auth, false, "", srcConverse},
	{"Bedrock", 0, "InvalidSignatureException", nil, auth, false, "", srcConverse},
	{"Gemini", 0, "UNAVAILABLE", nil, refused, true, "", srcGoogle},
	{"Gemini", 0, "INTERNAL", nil, refused, true, "", srcGoogle},
}

func (r *failureRow) matches(f *Failure, message string) bool {
	if r.status != 0 && r.status != f.Status || r.typ != "" && r.typ != f.Type {
		return false
	}
	for _, w := range r.words {
		_, rest, ok := strings.Cut(message, w)
		if !ok {
			return false
		}
		message = rest
	}
	return true
}

// wording returns the row for the words of the message, or nil.
func (f *Failure) wording() *failureRow {
	message := strings.ToLower(f.Message)
	for i := range wordings {
		if wordings[i].matches(f, message) {
			return &wordings[i]
		}
	}
	return nil
}

// known returns the row for the type of the error object, or nil.
func (f *Failure) known() *failureRow {
	for i := range errorTypes {
		if errorTypes[i].matches(f, "") {
			return &errorTypes[i]
		}
	}
	return nil
}

// classify sets Code, Kind and Retry from the status, the type of the error object and the words of the message. The
// status decides about retries, with two exceptions: a row with words decides by itself, and a used-up balance is never
// retried, although its status may be 429.
func (f *Failure) classify() {
	s := f.Status
	switch {
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		f.Code = auth
	case s == http.StatusRequestEntityTooLarge:
		f.Code = tooLarge
	case s == http.StatusTooManyRequests:
		f.Code, f.Retry = rate, true
	case s == http.StatusRequestTimeout:
		f.Code, f.Retry = tenon.CodeTimeout, true
	case s == http.StatusConflict, s >= 500:
		f.Code, f.Retry = refused, true
	default:
		f.Code = refused
	}
	if r := f.known(); r != nil {
		switch {
		case s == 0:
			f.Code, f.Retry = r.code, r.retry
		case r.code != refused && s < 500 && !(s == http.StatusRequestEntityTooLarge && r.code == rate):
			f.Code = r.code
		}
		if r.kind != "" {
			f.Code, f.Retry, f.Kind = r.code, false, r.kind
		}
	}
	if r := f.wording(); r != nil && f.Kind == "" {
		f.Code, f.Retry, f.Kind = r.code, r.retry, r.kind
	}
}

// billing reports whether the balance or the quota is used up.
func (f *Failure) billing() bool { return f.Kind == KindQuota }

// blocking contains lower-case parts of stop reasons that mean that a filter ended the answer. Examples are MODEL_ARMOR
// and IMAGE_PROHIBITED_CONTENT (Gemini), guardrail_intervened (Bedrock) and sensitive (Z.ai).
var blocking = []string{"armor", "safety", "block", "prohibit", "filter", "policy", "guard", "recitation", "refus",
	"sensitive", "moderat", "spii", "jailbreak", "violation"}

// NoFinish is the stop reason of an answer whose provider gave none. Such an answer may have been cut off: its text and
// its complete calls count, but nothing is added to a call that is not complete.
const NoFinish = "no finish reason"

// UnknownStop returns the reason for a stop reason that an adapter does not know. If its words mean that a filter ended
// the answer, it returns that reason, otherwise an error. It never returns an ordinary end.
func UnknownStop(raw string) tenon.StopReason {
	raw = strings.ToLower(raw)
	for _, word := range blocking {
		if strings.Contains(raw, word) {
			return tenon.StopContentFilter
		}
	}
	return tenon.StopError
}
