package main

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/model/anthropic"
)

// The size of the results of web searches in a measured response.
const (
	searchBlocks  = 4
	searchResults = 10
	searchContent = 26 << 10 // bytes of encrypted_content of a result
)

// measureWebSearch compares the parsing of an answer of Anthropic with web searches with decoding the same events into
// structs by encoding/json. The results are about a megabyte.
func measureWebSearch(s *session) error {
	w := measuredWire{"websearch", "Anthropic Messages", anthropic.Parse, searchEvents(), into[searchEvent]}
	size := 0
	for _, e := range w.events {
		size += len(e)
	}
	if size < 1<<20 {
		return fmt.Errorf("websearch: the events have %d bytes, want 1 MiB", size)
	}
	var ratios []float64
	for range s.rounds {
		r, err := w.ratio(func() error {
			resp, err := w.response()
			if err == nil && len(resp.Message.Parts) != 3*searchBlocks {
				err = fmt.Errorf("websearch: the response has %d parts, want %d", len(resp.Message.Parts),
					3*searchBlocks)
			}
			return err
		})
		if err != nil {
			return err
		}
		ratios = append(ratios, r)
	}
	s.add("P13.websearch", "parsing an answer of Anthropic with 1 MiB of web search results against encoding/json "+
		"on the same events", "ratio", ratios)
	return nil
}

type searchEvent struct {
	anthropicEvent
	ContentBlock struct {
		Type, ID, Name, Text string
		ToolUseID            string `json:"tool_use_id"`
		Content              []struct {
			Type, URL, Title string
			Encrypted        string `json:"encrypted_content"`
			Age              string `json:"page_age"`
		}
	} `json:"content_block"`
}

// searchEvents returns the events of an answer in which each text has a search in front of it.
func searchEvents() [][]byte {
	content := strings.Repeat("EqgfCioIARgBIiQ3YTAwMjY1Mi1mZjM5LTQ1NGUtODgxNC1kNjNjNTk1ZWI3Y", searchContent/62)
	var s stream
	s.add(`{"type":"message_start","message":{"id":"msg_0123456789","type":"message","role":"assistant",` +
		`"model":"claude","content":[],"usage":{"input_tokens":502,"output_tokens":1}}}`)
	for i := range searchBlocks {
		n := 3 * i
		s.add(`{"type":"content_block_start","index":%d,"content_block":{"type":"server_tool_use","id":"srvtoolu_%d",`+
			`"name":"web_search","input":{}}}`, n, i)
		s.add(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta",`+
			`"partial_json":"{\"query\": \"weather\"}"}}`, n)
		s.add(`{"type":"content_block_stop","index":%d}`, n)
		var results []string
		for k := range searchResults {
			results = append(results, fmt.Sprintf(`{"type":"web_search_result","title":"Page %d","url":"https://example.com/%d",`+
				`"encrypted_content":%q,"page_age":"3 days ago"}`, k, k, content))
		}
		s.add(`{"type":"content_block_start","index":%d,"content_block":{"type":"web_search_tool_result",`+
			`"tool_use_id":"srvtoolu_%d","content":[%s]}}`, n+1, i, strings.Join(results, ","))
		s.add(`{"type":"content_block_stop","index":%d}`, n+1)
		s.add(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, n+2)
		s.add(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":"It is cloudy."}}`, n+2)
		s.add(`{"type":"content_block_stop","index":%d}`, n+2)
	}
	s.add(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},` +
		`"usage":{"output_tokens":137}}`)
	s.add(`{"type":"message_stop"}`)
	return s
}
