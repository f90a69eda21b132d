package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// ownMembers are the request members that tenon sets on any wire.
var ownMembers = []string{
	"model", "messages", "input", "contents", "stream", "stream_options", "tools", "tool_choice", "toolConfig",
	"system", "systemInstruction", "instructions", "max_tokens", "max_completion_tokens", "max_output_tokens",
	"temperature", "top_p", "store", "include", "cache_control", "response_format", "text", "output_config",
	"generationConfig", "inferenceConfig", "toolConfig",
}

// maxExtra bounds the bytes of [Config.Extra].
const maxExtra = 256 << 10

// checkExtra checks the additional members of requests.
func checkExtra(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > maxExtra {
		return fmt.Errorf("it has more than %d KiB", maxExtra>>10)
	}
	if !json.Valid(raw) || raw[0] != '{' {
		return errors.New("it is not a map")
	}
	for k := range rawjson.Fields(raw) {
		if slices.Contains(ownMembers, string(k)) {
			return fmt.Errorf("'%s' is set by tenon itself", k)
		}
	}
	return nil
}

// AppendExtra appends the additional members of requests, each with a comma before it. Members of over, which are
// written in the same form, replace them: they come from the question.
func AppendExtra(dst []byte, raw json.RawMessage, over []byte) []byte {
	set := map[string]bool{}
	if len(over) > 0 {
		for k := range rawjson.Fields(append([]byte{'{'}, append(over[1:len(over):len(over)], '}')...)) {
			set[string(k)] = true
		}
	}
	for k, v := range rawjson.Fields(raw) {
		if set[string(k)] {
			continue
		}
		dst = rawjson.AppendString(append(dst, ','), string(k))
		dst = append(append(dst, ':'), v...)
	}
	return dst
}
