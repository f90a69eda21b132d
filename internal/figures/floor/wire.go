package floor

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tenonhq/tenon/internal/figures/bench"
)

// The parts of a tools/call (MCP 2025-11-25) that an echo needs.
type (
	request struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      int64           `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	response struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      int64           `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   *failure        `json:"error,omitempty"`
	}
	failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	callParams struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	}
	arguments struct {
		Text string `json:"text"`
	}
	callResult struct {
		Content []content `json:"content"`
	}
	content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
)

// encodeCall encodes a request.
func encodeCall(id int64, tool, text string) ([]byte, error) {
	params, err := json.Marshal(callParams{Name: tool, Arguments: arguments{Text: text}})
	if err != nil {
		return nil, err
	}
	return json.Marshal(request{JSONRPC: "2.0", ID: id, Method: "tools/call", Params: params})
}

// handle is the server: it returns the encoded response to an encoded request.
func handle(message []byte) ([]byte, error) {
	var req request
	if err := json.Unmarshal(message, &req); err != nil {
		return nil, fmt.Errorf("floor: decoding a request: %w", err)
	}
	resp := response{JSONRPC: "2.0", ID: req.ID}
	var p callParams
	if err := json.Unmarshal(req.Params, &p); err != nil {
		resp.Error = &failure{Code: -32602, Message: err.Error()}
	} else if text, err := bench.Answer(p.Name, p.Arguments.Text); err != nil {
		resp.Error = &failure{Code: -32602, Message: err.Error()}
	} else if resp.Result, err = json.Marshal(callResult{Content: []content{{Type: "text", Text: text}}}); err != nil {
		return nil, err
	}
	return json.Marshal(resp)
}

// text returns the text of a response.
func (r *response) text() (string, error) {
	if r.Error != nil {
		return "", fmt.Errorf("floor: the server returned error %d: %s", r.Error.Code, r.Error.Message)
	}
	var res callResult
	if err := json.Unmarshal(r.Result, &res); err != nil {
		return "", fmt.Errorf("floor: a result that is no JSON: %w", err)
	}
	if len(res.Content) == 0 {
		return "", errors.New("floor: a result without content")
	}
	return res.Content[0].Text, nil
}
