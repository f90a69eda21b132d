package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Failure is a failed attempt, before it becomes a [tenon.Error]. It contains the provider's error
// and whether a retry may help.
type Failure struct {
	Status  int    // HTTP status; 0 without a response, or if the answer had begun
	Type    string // the provider's error type, such as overloaded_error or insufficient_quota
	Message string // the provider's message, or tenon's about the connection
	Param   string // the request member that the provider names
	Request string // the provider's request id
	Code    tenon.Code
	Retry   bool
	Wait    time.Duration // the pause that the provider asks for; 0 if it does not
	Err     error
	Kind    Kind // if "", it follows from the other fields
	// Generation is the text of the model that the provider could not read as a call. It may be empty.
	Generation string
	// Remedied means that the message says what to do.
	Remedied bool
}

// Error returns only the message. [Client] adds the provider and a remedy.
func (f *Failure) Error() string { return f.Message }

// CallError describes a call that the provider could not read, for the question to the model.
func (f *Failure) CallError() string {
	if f.Generation == "" {
		return f.Message
	}
	return f.Message + ": " + excerpt([]byte(f.Generation))
}

// Unwrap returns the cause, or nil.
func (f *Failure) Unwrap() error { return f.Err }

// Broken returns the failure for an answer that violates the protocol. A retry would not help.
func Broken(format string, args ...any) *Failure {
	return &Failure{Code: tenon.CodeProtocol, Message: fmt.Sprintf(format, args...)}
}

// NotJSON returns the failure for an event that is not JSON. This is usually the last event of a
// truncated stream.
func NotJSON(data []byte) *Failure {
	return &Failure{Code: tenon.CodeProtocol, Retry: true,
		Message: "an event of the answer is not JSON: " + excerpt(data)}
}

// CutOff returns the failure for a stream that ended before its end mark. A retry may help.
func CutOff(mark string) *Failure {
	return &Failure{Code: tenon.CodeProtocol, Retry: true, Kind: KindCutOff,
		Message: fmt.Sprintf("the answer was cut off: the stream ended before %s", mark)}
}

// ErrorObject reads a provider's error object. The object comes from a response with an error
// status, or from an event in a stream (status 0):
//
//	{"type":"error","error":{"type","message"},"request_id"}    Anthropic
//	{"error":{"message","type","param","code"}}                 OpenAI and others
//	{"error":{"code","message","status","details":[...]}}       Google's form
//
// For other forms, the message is the beginning of the text.
func ErrorObject(status int, body []byte) *Failure {
	f := &Failure{Status: status}
	if json.Valid(body) {
		f.read(body)
	}
	if f.Message == "" {
		f.Message = excerpt(body)
	}
	f.classify()
	return f
}

func (f *Failure) read(body []byte) {
	object := body
	for k, v := range rawjson.Fields(body) {
		switch string(k) {
		case "error":
			object = v
		case "request_id":
			f.Request = rawjson.String(v)
		}
	}
	if object[0] == '"' { // {"error":"text"}: Ollama, llama.cpp; {"code":"…","error":"text"}: xAI
		f.Message = rawjson.String(object)
		return
	}
	var code, typ, status, name, coral string
	var raw []byte
	for k, v := range rawjson.Fields(object) {
		switch string(k) {
		case "message", "detail":
			f.Message = rawjson.String(v)
		case "type":
			typ = rawjson.String(v)
		case "code":
			code = rawjson.String(v)
			if n, ok := rawjson.Int(v); ok && f.Status == 0 && n >= 400 && n < 600 {
				f.Status = n
			}
		case "status":
			status = rawjson.String(v)
		case "__type": // AWS: com.amazon.coral.service#ExpiredTokenException
			coral = rawjson.String(v)
			coral = coral[strings.LastIndexByte(coral, '#')+1:]
		case "param":
			f.Param = rawjson.String(v)
		case "metadata": // OpenRouter: the error of the provider behind it
			raw, name = rawjson.Field(v, "raw"), rawjson.String(rawjson.Field(v, "provider_name"))
		case "failed_generation": // Groq: the text that should be a call
			f.Generation = rawjson.String(v)
		case "details":
			for d := range rawjson.Elements(v) {
				if delay := rawjson.Field(d, "retryDelay"); delay != nil {
					f.Wait, _ = time.ParseDuration(rawjson.String(delay))
				}
			}
		}
	}
	f.addCause(name, raw)
	for _, t := range []string{code, typ, status, coral} {
		if t != "" {
			f.Type = t
			break
		}
	}
	// If the code only repeats the status, the type is more specific.
	if strings.HasSuffix(typ, "_error") && f.Type == code && code != "" && f.known() == nil {
		f.Type = typ
	}
}

// addCause adds the error of the provider behind a gateway to the message. The error is an object, an object in a text,
// or a text.
func (f *Failure) addCause(name string, raw []byte) {
	if rawjson.IsNull(raw) {
		return
	}
	if raw[0] == '"' {
		raw = []byte(rawjson.String(raw))
	}
	inner := Failure{}
	if json.Valid(raw) && len(raw) > 0 && raw[0] == '{' {
		inner.read(raw)
	}
	text := cmp.Or(inner.Message, excerpt(raw))
	if text == "" || strings.Contains(f.Message, text) {
		return
	}
	f.Generation = inner.Generation
	f.Message += fmt.Sprintf(" (%s: %s)", cmp.Or(Visible(name), "its cause"), text)
}

func excerpt(body []byte) string {
	s := strings.Join(strings.Fields(string(body)), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return Visible(s)
}

// remedy returns advice for the user, or "".
func (c *Client) remedy(f *Failure) string {
	key, env := c.cfg.key("api_key"), c.provider.KeyEnv
	switch {
	case f.Remedied:
		return ""
	case f.billing():
		return "check plan and billing at the provider"
	case strings.Contains(f.Message, "on-demand throughput isn"):
		return fmt.Sprintf("set %s to the id or ARN of an inference profile, such as us.MODEL", c.cfg.key("model"))
	case c.misplaced(f) != "":
		return c.misplaced(f)
	case f.Code == tenon.CodeAuth && c.tokens != nil:
		return "check that the credentials belong to the right account, and that it may use the model"
	case f.Code == tenon.CodeAuth && c.provider.Own && c.cfg.APIKey.IsZero():
		return "check that the credentials belong to the right account, may use the model, and that the account has " +
			"access to it in this region: " + c.cfg.key("profile") + ", " + c.cfg.key("region")
	case f.Code == tenon.CodeAuth && c.cfg.APIKey.IsZero():
		if env != "" {
			return fmt.Sprintf("set %s or %s, or keep a key with tenon models login %s", env, key, c.provider.Name)
		}
		return "set " + key
	case f.Code == tenon.CodeAuth && env != "":
		return fmt.Sprintf("the key is not accepted; check %s or %s", env, key)
	case f.Code == tenon.CodeAuth:
		return "the key is not accepted; check " + key
	case f.Status == http.StatusNotFound && c.provider.Name == providerOllama:
		return fmt.Sprintf("download it with tenon models pull %s, or check %s", c.cfg.Model, c.cfg.key("base_url"))
	case f.Status == http.StatusNotFound && c.provider.Own:
		return fmt.Sprintf("check %s and %s", c.cfg.key("model"), c.cfg.key("region"))
	case f.Status == http.StatusNotFound:
		return fmt.Sprintf("check %s and %s", c.cfg.key("model"), c.cfg.key("base_url"))
	case c.lacksModel(f):
		return fmt.Sprintf("check %s and %s", c.cfg.key("model"), c.cfg.key("base_url"))
	case f.Param == "temperature" || f.Param == "top_p":
		return "remove " + c.cfg.key(f.Param)
	case c.setting(f.Param) != "":
		return "remove " + c.cfg.key(c.setting(f.Param))
	case c.cfg.Reasoning != "" && strings.Contains(f.Message, "does not support effort level"): // Anthropic
		return "change " + c.cfg.key("reasoning")
	case f.Param == "max_tokens" && f.Type == "unsupported_parameter":
		return fmt.Sprintf("set %s to max_completion_tokens", c.cfg.key("quirks.max_tokens_field"))
	case f.Param == "stream_options":
		return fmt.Sprintf("set %s to false", c.cfg.key("quirks.stream_options"))
	case f.Code == tenon.CodeTooLarge && c.cfg.Wire() == WireOllama:
		return "raise " + c.cfg.key("num_ctx") + ", shorten the conversation or offer fewer tools"
	case c.cfg.Wire() == WireOllama && strings.Contains(f.Message, "does not support thinking"):
		return "remove " + c.cfg.key("reasoning")
	case f.Code == tenon.CodeTooLarge && f.Status != 0:
		return "shorten the conversation or offer fewer tools"
	case f.Code == tenon.CodeUnreachable && c.provider.Name == providerOllama:
		return "start it with `ollama serve`, or check " + c.cfg.key("base_url")
	case f.Code == tenon.CodeUnreachable && c.provider.Own && c.cfg.BaseURL == c.provider.BaseURL:
		return "check the network and " + c.cfg.key("region") + ", because each region has its own address"
	case f.Code == tenon.CodeUnreachable:
		return "check the network and " + c.cfg.key("base_url")
	case errors.Is(f.Err, errIdle):
		return "raise " + c.cfg.key("timeout")
	case f.Wait > maxWait:
		return fmt.Sprintf("the provider asks for a pause of %s; try again then", f.Wait.Round(time.Second))
	case f.Code == tenon.CodeRateLimited:
		return "try again later"
	}
	return ""
}

// lacksModel reports whether the provider says that there is no such model. Many report this with status 400. Sources:
// recorded answers (OpenAI's Responses, Mistral, OpenRouter), deepseek-ai/DeepSeek-V3's API ("Model Not Exist"),
// Perplexity (invalid_model).
func (c *Client) lacksModel(f *Failure) bool {
	types := []string{"model_not_found", "invalid_model", "model_not_available"}
	if f.Param == "model" || slices.Contains(types, f.Type) {
		return true
	}
	text := strings.ToLower(f.Message)
	return slices.ContainsFunc([]string{"model not exist", "is not a valid model", "invalid model", "unknown model"},
		func(w string) bool { return strings.Contains(text, w) })
}

// setting returns the key of a setting by the name of its member in requests, if the configuration sets it, or "".
func (c *Client) setting(param string) string {
	wire := c.cfg.Wire()
	for i := range settings {
		if s := &settings[i]; param != "" && s.isSet(c.cfg) && (s.key == param || s.paths[wire] == param) {
			return s.key
		}
	}
	w := samplingWires[wire]
	switch {
	case param == "":
	case len(c.cfg.Stop) > 0 && param == w.stop:
		return "stop"
	case c.cfg.Seed != nil && param == w.seed:
		return "seed"
	case c.cfg.Reasoning != "" && (param == effortSetting || param == "reasoning" || param == "reasoning.effort"):
		return "reasoning"
	}
	return ""
}

// misplaced names the key with a wrong region, deployment or version of an API, if the provider's words tell which of
// them is wrong. Otherwise it returns "". Sources of the wordings: egoist/chatwise-releases, issue 992, and
// langchain-ai/langchain, issue 13284 (Azure: API version, resource); infiniflow/ragflow, issue 2728 (Azure:
// deployment); langchain-ai/open_deep_research, issue 224, and cline/cline, issue 689 (Bedrock); pydantic/pydantic-ai,
// issue 5002 (Vertex AI). Those about locations and regions of other providers are from knowledge.
func (c *Client) misplaced(f *Failure) string {
	text := strings.ToLower(f.Type + " " + f.Message)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	azure := c.cfg.ResolvedQuirks().KeyHeader || strings.Contains(c.cfg.BaseURL, "api-version=")
	switch {
	case azure && has("api-version", "api version"):
		return "correct the query ?api-version= of " + c.cfg.key("base_url")
	case azure && f.Status == http.StatusNotFound && has("resource not found"):
		return "correct the path or the query ?api-version= of " + c.cfg.key("base_url")
	case c.provider.Name == providerVertex && f.Status == http.StatusNotFound:
		return fmt.Sprintf("check %s, and whether %s and %s have it", c.cfg.key("model"), c.cfg.key("region"),
			c.cfg.key("project"))
	case f.Status == http.StatusForbidden && has("access to the model", "permission 'aiplatform") &&
		(c.provider.Name == providerVertex || c.provider.Own && !c.cfg.APIKey.IsZero()):
		keys := c.cfg.key("model") + " and " + c.cfg.key("region")
		if c.provider.Name == providerVertex {
			keys = c.cfg.key("model") + ", " + c.cfg.key("region") + " and " + c.cfg.key("project")
		}
		return "give the account access to the model, or check " + keys
	case c.provider.Name == "gemini" && has("user location is not supported"):
		return "use provider vertex with a region: " + c.cfg.key("provider") + ", " + c.cfg.key("region")
	case has("deploymentnotfound", "api deployment for this resource does not exist"):
		if strings.Contains(c.cfg.BaseURL, "/deployments/") {
			return "correct the name of the deployment in " + c.cfg.key("base_url")
		}
		return "set " + c.cfg.key("model") + " to the name of a deployment of this resource"
	case has("operationnotsupported", "operation does not work with the specified model"):
		return "the model has another API; change " + c.cfg.key("api") + " or " + c.cfg.key("model")
	case has("model identifier is invalid", "model id is invalid"):
		return fmt.Sprintf("check %s, and whether %s has it", c.cfg.key("model"), c.cfg.key("region"))
	case has("user location is not supported", "unsupported region", "is not supported in this region",
		"not available in this region"):
		if c.provider.Own {
			return "set " + c.cfg.key("region") + " to a region that has the model"
		}
	}
	return ""
}

// fail returns the error for a failure.
func (c *Client) fail(f *Failure, attempts int) *tenon.Error {
	var b strings.Builder
	b.WriteString(c.Name())
	if f.Status != 0 {
		fmt.Fprintf(&b, ": HTTP %d", f.Status)
	}
	b.WriteString(": ")
	if f.Type != "" && !strings.Contains(f.Message, f.Type) {
		b.WriteString(f.Type + ": ")
	}
	b.WriteString(f.Message)
	if f.Request != "" {
		fmt.Fprintf(&b, " (request %s)", f.Request)
	}
	if attempts > 1 {
		fmt.Fprintf(&b, "; %d attempts", attempts)
	}
	if r := c.remedy(f); r != "" {
		b.WriteString("; " + r)
	}
	return &tenon.Error{Code: f.Code, Message: c.hide(b.String()), Err: &cause{f.kindOf(), hiddenCause(f.Err)}}
}

// hide removes the key and the secrets in headers from a text of the provider. Some providers
// repeat what they received.
func (c *Client) hide(s string) string {
	if k := c.key.Load().Reveal(); len(k) >= 4 {
		s = strings.ReplaceAll(s, k, "***")
	}
	for _, v := range c.cfg.Headers {
		if len(v) >= 8 {
			s = strings.ReplaceAll(s, strings.TrimPrefix(v, "Bearer "), "***")
		}
	}
	return s
}

// hiddenCause returns the cause of an error if it is one of causes. It hides all other causes, because their text may
// contain an address or a header.
func hiddenCause(err error) error {
	for _, e := range causes {
		if errors.Is(err, e) {
			return e
		}
	}
	return nil
}
