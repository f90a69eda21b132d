package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/anthropic"
	"github.com/tenonhq/tenon/model/bedrock"
	"github.com/tenonhq/tenon/model/openai"
)

// measureFrames compares the reading of Bedrock's binary frames with decoding the payloads of the same events into
// structs by encoding/json.
func measureFrames(s *session) error {
	w := measuredWire{name: "bedrock", decode: into[bedrockEvent]}
	var body []byte
	for _, e := range bedrockEvents() {
		w.events = append(w.events, e.payload)
		body = appendFrame(body, e.name, e.payload)
	}
	var ratios []float64
	for range s.rounds {
		r, err := w.ratio(func() error {
			next, n := bedrock.Frames(bytes.NewReader(body)), 0
			for {
				switch _, err := next(); {
				case errors.Is(err, io.EOF) && n == len(w.events):
					return nil
				case err != nil:
					return fmt.Errorf("bedrock: after %d of %d events: %w", n, len(w.events), err)
				}
				n++
			}
		})
		if err != nil {
			return err
		}
		ratios = append(ratios, r)
	}
	s.add("P13.bedrock", "reading the frames of a streamed answer of Bedrock against encoding/json on the same events",
		"ratio", ratios)
	return nil
}

type frameOf struct {
	name    string
	payload []byte
}

type bedrockEvent struct {
	ContentBlockIndex int
	Role, StopReason  string
	Start             struct {
		ToolUse struct{ ToolUseID, Name string }
	}
	Delta struct {
		Text    string
		ToolUse struct{ Input string }
	}
	Usage struct{ InputTokens, OutputTokens int }
}

func bedrockEvents() []frameOf {
	var list []frameOf
	add := func(name, format string, args ...any) {
		list = append(list, frameOf{name, fmt.Appendf(nil, format, args...)})
	}
	add("messageStart", `{"role":"assistant","p":"abcdefgh"}`)
	started := false
	pieces(func(p string) {
		add("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"%s"},"p":"abcdefghijklmnop"}`, p)
	}, func(p string) {
		if !started {
			started = true
			add("contentBlockStop", `{"contentBlockIndex":0,"p":"abcdefgh"}`)
			add("contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"name":"get_weather",`+
				`"toolUseId":"tooluse_0123456789"}},"p":"abcdefgh"}`)
		}
		add("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":"%s"}},"p":"abcdefgh"}`, p)
	})
	add("contentBlockStop", `{"contentBlockIndex":1,"p":"abcdefgh"}`)
	add("messageStop", `{"stopReason":"tool_use","p":"abcdefgh"}`)
	add("metadata", `{"metrics":{"latencyMs":1234},"usage":{"inputTokens":502,"outputTokens":137,"totalTokens":639}}`)
	return list
}

// appendFrame appends the frame of an event.
func appendFrame(dst []byte, name string, payload []byte) []byte {
	var h []byte
	for _, x := range [][2]string{{":event-type", name}, {":content-type", "application/json"},
		{":message-type", "event"}} {
		h = append(append(h, byte(len(x[0]))), x[0]...)
		h = append(binary.BigEndian.AppendUint16(append(h, 7), uint16(len(x[1]))), x[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(h)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return append(dst, binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))...)
}

// cacheTurns is the number of turns of a request with caching marks.
const cacheTurns = 200

// measureCacheMarks compares the encoding of a whole conversation with marks for the provider's cache with the same
// conversation without marks. The value is the worst of the wire formats that have marks.
func measureCacheMarks(s *session) error {
	type encoder interface {
		EncodedLen(req *tenon.Request) (int64, error)
	}
	open := func(name string, marks bool) (encoder, error) {
		c := model.Config{APIKey: tenon.NewSecret("k"), Region: "us-east-1", Quirks: model.QuirkConfig{Cache: &marks}}
		switch name {
		case "anthropic":
			c.Provider, c.Model, c.Region = "anthropic", "claude-sonnet-4-5", ""
			return anthropic.New(c, model.Env{})
		case "vertex":
			c.Provider, c.Model = "vertex", "claude-sonnet-4-5"
			return anthropic.New(c, model.Env{})
		case "bedrock":
			c.Provider, c.Model = "bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
			return bedrock.New(c, model.Env{})
		}
		c.Provider, c.Model, c.Region = "openrouter", "anthropic/claude-sonnet-4.5", ""
		return openai.New(c, model.Env{})
	}
	var worst []float64
	for range s.rounds {
		most := 0.0
		for _, name := range []string{"anthropic", "chat", "vertex", "bedrock"} {
			var took [2]time.Duration
			// Each of the two is first as often as it is second: the second pays for the garbage of the first.
			for n := 0; took[0]+took[1] < parseTime || n%2 != 0; n++ {
				for _, i := range []int{n % 2, 1 - n%2} {
					e, err := open(name, i == 1)
					if err != nil {
						return err
					}
					req := markedRequest()
					start := time.Now()
					if _, err := e.EncodedLen(req); err != nil {
						return err
					}
					took[i] += time.Since(start)
				}
			}
			most = max(most, float64(took[1])/float64(took[0]))
		}
		worst = append(worst, most)
	}
	s.add("P13.cache", "encoding a request of 200 turns with caching marks against the same request without, the "+
		"worst of the wire formats", "ratio", worst)
	return nil
}

// markedRequest returns a conversation whose messages were never encoded.
func markedRequest() *tenon.Request {
	req := &tenon.Request{System: "Be brief.", Tools: []tenon.Tool{{Name: "get_weather", Description: "Weather",
		Input: json.RawMessage(`{"type":"object","properties":{"location":{"type":"string"}}}`)}},
		Messages: []*tenon.Message{tenon.UserMessage("do it")}}
	text := strings.Repeat("result of a tool ", 60)
	for i := range cacheTurns {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages, &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{
			{Type: tenon.PartText, Text: "next"},
			{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: id, Name: "get_weather",
				Arguments: json.RawMessage(`{"location":"London"}`)}}}},
			&tenon.Message{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult, Result: &tenon.ToolResult{
				ID: id, Name: "get_weather", Content: []tenon.Content{tenon.Text(text)}}}}})
	}
	return req
}
