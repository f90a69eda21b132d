package httpapi

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// completionRequest is the body of POST /v1/chat/completions, as far as it says
// something to us. What would change the answer and is not supported is refused; what
// only hints (user, metadata, store, seed, service_tier and the like) is not read.
type completionRequest struct {
	Model       string            `json:"model"`
	Messages    []json.RawMessage `json:"messages"`
	Stream      bool              `json:"stream"`
	Options     *streamOptions    `json:"stream_options"`
	MaxTokens   int               `json:"max_tokens"`
	MaxComplete int               `json:"max_completion_tokens"`
	Temperature *float64          `json:"temperature"`
	TopP        *float64          `json:"top_p"`

	N          *int            `json:"n"`
	Tools      json.RawMessage `json:"tools"`
	Functions  json.RawMessage `json:"functions"`
	Stop       json.RawMessage `json:"stop"`
	Logprobs   *bool           `json:"logprobs"`
	Format     *openFormat     `json:"response_format"`
	Modalities []string        `json:"modalities"`
	Presence   *float64        `json:"presence_penalty"`
	Frequency  *float64        `json:"frequency_penalty"`

	question, system string
	history          []*tenon.Message
}

type streamOptions struct {
	Usage bool `json:"include_usage"`
}

type openFormat struct {
	Type string `json:"type"`
}

func (q *completionRequest) sampling() *agent.Sampling {
	s := agent.Sampling{MaxTokens: q.MaxTokens, Temperature: q.Temperature, TopP: q.TopP}
	if q.MaxComplete > 0 {
		s.MaxTokens = q.MaxComplete
	}
	if s == (agent.Sampling{}) {
		return nil
	}
	return &s
}

// isSet reports whether a value says something: it is there, and not null or empty.
func isSet(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && string(raw) != "null" && string(raw) != "[]" && string(raw) != `""`
}

// unsupported is the first thing of a request that we would have to ignore.
func (q *completionRequest) unsupported() string {
	nonZero := func(f *float64) bool { return f != nil && *f != 0 }
	switch {
	case q.N != nil && *q.N != 1:
		return "n other than 1"
	case isSet(q.Tools), isSet(q.Functions):
		return "tools of the client: the agent's own tools run on this side"
	case isSet(q.Stop):
		return "stop"
	case q.Logprobs != nil && *q.Logprobs:
		return "logprobs"
	case q.Format != nil && q.Format.Type != "" && q.Format.Type != "text":
		return "response_format " + q.Format.Type
	case len(q.Modalities) > 0 && (len(q.Modalities) > 1 || q.Modalities[0] != "text"):
		return "modalities other than text"
	case nonZero(q.Presence), nonZero(q.Frequency):
		return "penalties"
	}
	return ""
}

// readCompletion reads the body: what the user says last is the question, what was said
// before it the conversation.
func (c *call) readCompletion() (*completionRequest, error) {
	q := &completionRequest{}
	if err := c.decode(q, false); err != nil {
		return nil, err
	}
	if what := q.unsupported(); what != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "not supported: %s", what)
	}
	if _, err := c.openAgent(q.Model); err != nil {
		return nil, err
	}
	var before []json.RawMessage
	for i, raw := range q.Messages {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "messages[%d] is no message: %s", i, err)
		}
		switch last := i == len(q.Messages)-1; {
		case m.Role == "system" || m.Role == "developer":
			text, err := textOf(m.Content)
			if err != nil {
				return nil, tenon.Errorf(tenon.CodeInvalid, "messages[%d]: %w", i, err)
			}
			q.system = strings.TrimSpace(q.system + "\n\n" + text)
			if last {
				return nil, tenon.Errorf(tenon.CodeInvalid, "the last message must be the user's")
			}
		case last && m.Role != "user":
			return nil, tenon.Errorf(tenon.CodeInvalid, "the last message must be the user's, not that of '%s'", m.Role)
		case last:
			text, err := textOf(m.Content)
			if err != nil {
				return nil, tenon.Errorf(tenon.CodeInvalid, "messages[%d]: %w", i, err)
			}
			q.question = text
		default:
			before = append(before, raw)
		}
	}
	if strings.TrimSpace(q.question) == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "messages must end with what the user says")
	}
	if len(before) == 0 {
		return q, nil
	}
	b, err := encode(before)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the messages cannot be read: %w", err)
	}
	q.history, err = host.ReadConversation(bytes.NewReader(b))
	return q, err
}

// textOf reads the content of a message: a text, or parts that are all texts.
func textOf(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "content must be a text or a list of parts")
	}
	for _, p := range parts {
		if p.Type != "text" {
			return "", tenon.Errorf(tenon.CodeInvalid, "a part of type '%s' is not supported in a question", p.Type)
		}
		text += p.Text
	}
	return text, nil
}
