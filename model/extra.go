package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// ownMembers are those of a request that tenon sets, on any wire.
var ownMembers = []string{"model", "messages", "input", "contents", "stream", "stream_options", "tools", "tool_choice", "toolConfig", "system",
	"systemInstruction", "instructions", "max_tokens", "max_completion_tokens", "max_output_tokens", "temperature", "top_p", "store", "include",
	"cache_control", "response_format", "text", "output_config", "generationConfig"}

// maxExtra bounds what is added to each request.
const maxExtra = 256 << 10

// checkExtra says what is wrong with the additional members of requests.
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

// AppendExtra appends the additional members of requests, each with a comma before it.
func AppendExtra(dst []byte, raw json.RawMessage) []byte {
	for k, v := range rawjson.Fields(raw) {
		dst = rawjson.AppendString(append(dst, ','), string(k))
		dst = append(append(dst, ':'), v...)
	}
	return dst
}
