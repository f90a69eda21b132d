package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/gemini"
)

// streamOf returns a streamed answer with the events.
func streamOf(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }

// answerTo parses a stream with the adapter of a wire format.
func answerTo(t *testing.T, wire, stream string) answered {
	t.Helper()
	a, err := generate(t.Context(), open(t, wire, "http://localhost",
		model.Env{Transport: fixed(func() io.Reader { return strings.NewReader(stream) })}), question)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// cited returns a line for each citation: the text that it supports, and its source.
func cited(m *tenon.Message) []string {
	var out []string
	text := m.Text()
	for _, c := range m.Citations() {
		out = append(out, fmt.Sprintf("%q: %s", text[c.Start:c.End], c.Label()))
	}
	return out
}

func TestCitations(t *testing.T) {
	const grounded = `"groundingMetadata":{"webSearchQueries":["x"],"groundingChunks":[{"web":{"uri":"https://a.example/1","title":"a.example"}},` +
		`{"retrievedContext":{"uri":"gs://b/2","title":"Two","text":"two is even"}},{"maps":{"uri":"https://maps.example/3","title":"Three"}}]`
	for name, c := range map[string]struct {
		wire, stream string
		want         []string
	}{
		"MD-4_anthropic": {"anthropic", streamOf(`{"type":"message_start","message":{"id":"m","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grün ist "}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","cited_text":"q","url":"https://a.example/","title":"A","encrypted_index":"E"}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"page_location","cited_text":"q","document_index":0,"document_title":"Doc","file_id":"file_1","start_page_number":1,"end_page_number":2}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"gut."}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":" Ja."}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":" Ende.","citations":[{"type":"search_result_location","source":"kb/7","title":"Seven","cited_text":"q"}]}}`, `{"type":"content_block_stop","index":2}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`),
			[]string{`"Grün ist gut.": A · https://a.example/`, `"Grün ist gut.": Doc · file_1`, `" Ende.": Seven · kb/7`}},
		"MD-4_chat_nested": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"content":"Grün [a]."}}]}`,
			`{"choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example/","title":"A","content":"q","start_index":5,"end_index":8}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example/","title":"A","content":"q","start_index":5,"end_index":8}},{"type":"url_citation","url_citation":{"url":"https://b.example/","title":"B","start_index":5,"end_index":800}}]},"finish_reason":"stop"}]}`, "[DONE]"),
			[]string{`"[a]": A · https://a.example/`, `"": B · https://b.example/`}},
		"MD-4_chat_flat": {"chat", streamOf(`{"choices":[{"index":0,"message":{"content":"See a.","annotations":[{"type":"url_citation","start_index":4,"end_index":5,"url":"https://a.example/","title":"A"}]},"finish_reason":"stop"}]}`, "[DONE]"),
			[]string{`"a": A · https://a.example/`}},
		"MD-4_chat_Perplexity": {"chat", streamOf(`{"citations":["https://a.example/"],"search_results":[{"title":"A","url":"https://a.example/","snippet":"q"}],"choices":[{"index":0,"delta":{"content":"Yes[1]"}}]}`,
			`{"citations":["https://a.example/","https://b.example/"],"search_results":[{"title":"A","url":"https://a.example/","snippet":"q"},{"title":"B","url":"https://b.example/"}],"choices":[{"index":0,"delta":{"content":"[2]."},"finish_reason":"stop"}]}`, "[DONE]"),
			[]string{`"": A · https://a.example/`, `"": B · https://b.example/`}},
		"MD-4_chat_xAI": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop"}]}`, `{"choices":[],"citations":["https://a.example/",7,null]}`, "[DONE]"),
			[]string{`"": https://a.example/`}},
		"MD-4_chat_Azure": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"role":"assistant","context":{"citations":[{"content":"q","title":"T","url":null,"filepath":"f.pdf","chunk_id":"0"}],"intent":"[]"}}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"Yes [doc1]"},"finish_reason":"stop"}]}`, "[DONE]"),
			[]string{`"": T · f.pdf`}},
		"MD-4_responses": {"responses", streamOf(`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"Grün.","annotations":[]},`+
			`{"type":"output_text","text":"Ö a b","annotations":[{"type":"url_citation","start_index":2,"end_index":3,"url":"https://a.example/","title":"A"},{"type":"file_citation","index":5,"file_id":"file-1","filename":"b.pdf"},`+
			`{"type":"container_file_citation","container_id":"c","file_id":"cfile_1","filename":"o.csv","start_index":4,"end_index":5},{"type":"hologram"}]}]}}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed"}}`),
			[]string{`"a": A · https://a.example/`, `"": b.pdf`, `"b": o.csv`}},
		"MD-4_gemini": {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"text":"Grün ist"}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":" zwei. Drei."}]},"finishReason":"STOP",`+
			grounded+`,"groundingSupports":[{"segment":{"endIndex":15,"text":"Grün ist zwei."},"groundingChunkIndices":[0,1]},{"segment":{"startIndex":900,"endIndex":910,"text":"Drei."},"groundingChunkIndices":[2,9]}]}}]}`),
			[]string{`"Grün ist zwei.": a.example · https://a.example/1`, `"Grün ist zwei.": Two · gs://b/2`, `"Drei.": Three · https://maps.example/3`}},
		"MD-4_gemini_no_supports": {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"text":"Zwei."}]},"finishReason":"STOP",` + grounded + `}}]}`),
			[]string{`"": a.example · https://a.example/1`, `"": Two · gs://b/2`, `"": Three · https://maps.example/3`}},
		"MD-4_gemini_recitation": {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"text":"To be or not"}]},"finishReason":"STOP","citationMetadata":{"citationSources":[{"startIndex":0,"endIndex":5,"uri":"https://h.example/"},{"startIndex":3}]}}]}`),
			[]string{`"To be": https://h.example/`}},
		"MD-4_no_text": {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP",` + grounded + `}}]}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, cited(answerTo(t, c.wire, c.stream).resp.Message)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCitationBounds checks that long lists and texts in citations of a provider are truncated before they reach the
// journal.
func TestCitationBounds(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var events []string
	for i := range 3000 {
		events = append(events, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":"x","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example/%d","title":"A"}}]}}]}`, i))
	}
	many := streamOf(append(events, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")...)
	for name, c := range map[string]struct {
		wire, stream string
		warned       bool
	}{
		"MD-4_bound_many":         {"chat", many, true},
		"MD-4_bound_url_citation": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"content":"x","annotations":[{"url_citation":{"url":"https://a/`+long+`","title":"`+long+`","content":"`+long+`"}}]},"finish_reason":"stop"}]}`, "[DONE]"), false},
		"MD-4_bound_web":          {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a/` + long + `","title":"` + long + `"}},{"retrievedContext":{"uri":"u","title":"t","text":"` + long + `"}}]}}]}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := answerTo(t, c.wire, c.stream).resp
			raw, err := json.Marshal(r.Message.Citations())
			if err != nil || len(raw) > 64<<10 || len(raw) < 100 {
				t.Errorf("the citations have %d bytes, %v", len(raw), err)
			}
			if got := len(r.Warnings) > 0; got != c.warned {
				t.Errorf("warnings: %q", r.Warnings)
			}
		})
	}
}

func TestSources(t *testing.T) {
	t.Run("MD-4_sources", func(t *testing.T) {
		got := tenon.Sources([]tenon.Citation{{URL: "https://a.example/"}, {Title: "A", URL: "https://a.example/", Quote: "q", End: 3}, {File: "f"}, {Title: "A"}, {Quote: "q"}})
		want := []tenon.Citation{{Title: "A", URL: "https://a.example/"}, {File: "f"}, {Title: "A"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		evil := tenon.Citation{Title: "a\x1b[31m\nb", URL: "https://x/\u202e"}
		if s := evil.Label(); strings.ContainsAny(s, "\x1b\n\u202e") {
			t.Errorf("the label is %q", s)
		}
	})
}

// TestRecordedCitations checks the citations in recorded answers.
func TestRecordedCitations(t *testing.T) {
	want := map[string]int{
		"vercel-ai/anthropic/anthropic-web-search-tool.1.chunks.txt#0":           1,
		"vercel-ai/openai/responses/openai-web-search-tool.1.chunks.txt#0":       1,
		"vercel-ai/openai/responses/openai-file-search-tool.1.chunks.txt#0":      1,
		"vercel-ai/openai/responses/openai-code-interpreter-tool.1.chunks.txt#0": 1,
		"fantasy/cassettes/TestAnthropicWebSearch/stream.yaml#0":                 1,
		"fantasy/cassettes/TestOpenAIWebSearch/stream.yaml#0":                    1,
	}
	for _, r := range recordings(t) {
		if want[r.name] == 0 {
			continue
		}
		delete(want, r.name)
		t.Run("MD-4_"+r.name, func(t *testing.T) {
			m := answerTo(t, r.wire, string(r.body)).resp.Message
			list := m.Citations()
			if len(list) == 0 {
				t.Fatal("there are no citations")
			}
			for _, c := range list {
				if text := m.Text(); c.Key() == "" || c.Start < 0 || c.End > len(text) || c.Start > c.End {
					t.Errorf("%+v in a text of %d bytes", c, len(text))
				}
			}
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			var again tenon.Message
			if err := json.Unmarshal(b, &again); err != nil || !cmp.Equal(again.Citations(), list) {
				t.Errorf("the journal has other citations: %v", err)
			}
		})
	}
	if len(want) > 0 {
		t.Errorf("not recorded: %v", want)
	}
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestGeneratedMedia(t *testing.T) {
	const wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA"
	end := `{"type":"response.completed","response":{"id":"r","status":"completed"}}`
	for name, c := range map[string]struct {
		wire, stream string
		want         string // "type MIME bytes" for each part that is not a text
		echo         string // part of the next request; "" if the media are not sent back
	}{
		"MD-4_image_gemini": {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"text":"Here: "},{"inlineData":{"mimeType":"image/png","data":"` + pixel + `"},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}`),
			"image image/png 70", `{"text":"Here: "},{"inlineData":{"mimeType":"image/png","data":"` + pixel + `"},"thoughtSignature":"c2ln"}`},
		"MD-4_image_responses": {"responses", streamOf(`{"type":"response.output_item.done","output_index":0,"item":{"type":"image_generation_call","id":"ig_1","status":"completed","output_format":"png","result":"`+pixel+`","size":"1x1"}}`, end),
			"image image/png 70", `{"type":"image_generation_call","id":"ig_1","status":"completed","output_format":"png","result":"` + pixel + `","size":"1x1"}`},
		"MD-4_image_OpenRouter": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"content":"","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+pixel+`"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+pixel+`"}}]},"finish_reason":"stop"}]}`, "[DONE]"),
			"image image/png 70", `{"role":"assistant","content":"","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}}]}`},
		"MD-4_image_and_text_OpenRouter": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"content":"Here.","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+pixel+`"}}]},"finish_reason":"stop"}]}`, "[DONE]"),
			"image image/png 70", `{"role":"assistant","content":"Here.","images":[{`},
		"MD-4_audio_id": {"chat", streamOf(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"audio":{"id":"audio_1","expires_at":%d,"transcript":"Hi","data":"UklGRiQAAABXQVZFZm10IBAAAAABAAEA"}},"finish_reason":"stop"}]}`, time.Now().Add(time.Hour).Unix()), "[DONE]"),
			"file audio/wave 24", `{"role":"assistant","audio":{"id":"audio_1"}}`},
		"MD-4_audio_id_expired": {"chat", streamOf(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"audio":{"id":"audio_1","expires_at":%d,"transcript":"Hi","data":"UklGRiQAAABXQVZFZm10IBAAAAABAAEA"}},"finish_reason":"stop"}]}`, time.Now().Add(-time.Hour).Unix()), "[DONE]"),
			"file audio/wave 24", `{"role":"assistant","content":"Hi"}`},
		"MD-4_audio_chat": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"audio":{"id":"audio_1","transcript":"Hel"}}}]}`, `{"choices":[{"index":0,"delta":{"audio":{"data":"UklGRiQAAABXQVZF"}}}]}`,
			`{"choices":[{"index":0,"delta":{"audio":{"transcript":"lo","data":"Zm10IBAAAAABAAEA"}},"finish_reason":"stop"}]}`, "[DONE]"),
			"file audio/wave 24", `{"role":"assistant","content":"Hello"}`},
		"MD-4_audio_stream": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"audio":{"transcript":"Hi","data":"AQA="}}}]}`, `{"choices":[{"index":0,"delta":{"audio":{"data":"AgA="}},"finish_reason":"stop"}]}`, "[DONE]"),
			"file audio/pcm 4", `{"role":"assistant","content":"Hi"}`},
		"MD-4_not_base64": {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"text":"x"},{"inlineData":{"mimeType":"audio/wav","data":"!"}}]},"finishReason":"STOP"}]}`), " [generated data that is not base64 is omitted]", ""},
		"MD-4_at_an_address": {"chat", streamOf(`{"choices":[{"index":0,"delta":{"content":"x","images":[{"type":"image_url","image_url":{"url":"https://a.example/i.png"}}]},"finish_reason":"stop"}]}`, "[DONE]"),
			" [a generated image is at an address and is not fetched: https://a.example/i.png]", ""},
		"MD-4_audio_gemini": {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"` + wav + `"}}]},"finishReason":"STOP"}]}`),
			"file audio/l16;rate=24000 24", `{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"` + wav + `"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []byte
			m := open(t, c.wire, "http://localhost", model.Env{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				sent, _ = io.ReadAll(r.Body)
				return fixed(func() io.Reader { return strings.NewReader(c.stream) }).RoundTrip(&http.Request{Body: http.NoBody})
			})})
			a, err := generate(t.Context(), m, question)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for _, p := range a.resp.Message.Parts {
				if p.Data != "" {
					got += fmt.Sprintf("%s %s %d", p.Type, p.MimeType, model.Size(p.Data))
					if bytes.Contains(p.Raw, []byte(p.Data)) {
						t.Error("the journal has the data twice")
					}
				}
			}
			for _, w := range a.resp.Warnings {
				got += " [" + w + "]"
			}
			if got != c.want {
				t.Errorf("the parts are %q, not %q", got, c.want)
			}
			next := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("hi"), a.resp.Message, tenon.UserMessage("again")}}
			if _, err := generate(t.Context(), m, next); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(sent), c.echo) {
				t.Errorf("the next request is %s, without %s", sent, c.echo)
			}
			if !json.Valid(sent) {
				t.Errorf("the next request is not JSON: %s", sent)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestMediaOfOtherModels checks that media that another model has generated are not sent as part of an assistant
// message, because providers refuse this.
func TestMediaOfOtherModels(t *testing.T) {
	made := &tenon.Message{Role: tenon.RoleAssistant, By: "gemini/image", Parts: []tenon.Part{{Type: tenon.PartImage, MimeType: "image/png", Data: pixel,
		Wire: "gemini", Raw: json.RawMessage(`{"inlineData":{"mimeType":"image/png","data":""}}`)}}}
	for _, wire := range []string{"anthropic", "chat", "responses"} {
		t.Run("MD-4_"+wire, func(t *testing.T) {
			sent := settingsSent(t, wire, model.Config{}, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("hi"), made, tenon.UserMessage("again")}})
			if strings.Contains(sent, pixel) || !strings.Contains(sent, "[generated image/png, 70 bytes]") {
				t.Error(sent)
			}
		})
	}
}

func FuzzGrounding(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"Grün"},{"functionCall":{"name":"f"}},{"text":"b"}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[{"segment":{"startIndex":1,"endIndex":3,"text":"x"},"groundingChunkIndices":[0]}]},"citationMetadata":{"citations":[{"startIndex":-4,"endIndex":2,"uri":"u"}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		once := true
		r, err := gemini.Parse(func() ([]byte, error) {
			if once {
				once = false
				return data, nil
			}
			return nil, io.EOF
		}, func(tenon.Delta) bool { return true })
		if err != nil {
			return
		}
		text := r.Message.Text()
		for _, c := range r.Message.Citations() {
			if c.Start < 0 || c.End > len(text) || c.Start > c.End {
				t.Errorf("%+v in a text of %d bytes", c, len(text))
			}
		}
	})
}
