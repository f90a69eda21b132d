package model_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// whole has the events of a correct answer in each wire format: a text in pieces, then two calls, the second with its
// arguments in pieces.
var whole = map[string][]string{
	"anthropic": {
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":17,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me "}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"look."}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"at\": 1}"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"pay","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"sum\": 1"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"00, \"to\": \"Ann\"}"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	},
	"chat": {
		`{"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Let me "}}]}`,
		`{"id":"c1","choices":[{"index":0,"delta":{"content":"look."}}]}`,
		`{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\": 1}"}}]}}]}`,
		`{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"pay","arguments":""}}]}}]}`,
		`{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"sum\": 1"}}]}}]}`,
		`{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"00, \"to\": \"Ann\"}"}}]}}]}`,
		`{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"id":"c1","choices":[],"usage":{"prompt_tokens":17,"completion_tokens":9}}`,
		`[DONE]`,
	},
	"responses": {
		`{"type":"response.created","response":{"id":"resp_1","model":"m","status":"in_progress"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"msg_1","delta":"Let me "}`,
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"msg_1","delta":"look."}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Let me look."}]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc_1","delta":"{\"at\": 1}"}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{\"at\": 1}","status":"completed"}}`,
		`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_2","call_id":"call_2","name":"pay","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc_2","delta":"{\"sum\": 1"}`,
		`{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc_2","delta":"00, \"to\": \"Ann\"}"}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_2","call_id":"call_2","name":"pay","arguments":"{\"sum\": 100, \"to\": \"Ann\"}","status":"completed"}}`,
		`{"type":"response.completed","response":{"id":"resp_1","model":"m","status":"completed","usage":{"input_tokens":17,"output_tokens":9}}}`,
	},
	"gemini": {
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Let me "}]},"index":0}],"modelVersion":"m","responseId":"r1"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"look."}]},"index":0}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"look","args":{"at": 1}}}]},"index":0}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"pay","willContinue":true}}]},"index":0}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.sum","numberValue":100}],"willContinue":true}}]},"index":0}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.to","stringValue":"Ann"}],"willContinue":true}}]},"index":0}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{}}]},"index":0}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":17,"candidatesTokenCount":9}}`,
	},
	"bedrock": {
		`{"messageStart":{"role":"assistant"}}`,
		`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"Let me "}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"look."}}}`,
		`{"contentBlockStop":{"contentBlockIndex":0}}`,
		`{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"call_1","name":"look"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"at\": 1}"}}}}`,
		`{"contentBlockStop":{"contentBlockIndex":1}}`,
		`{"contentBlockStart":{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"call_2","name":"pay"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"sum\": 1"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"toolUse":{"input":"00, \"to\": \"Ann\"}"}}}}`,
		`{"contentBlockStop":{"contentBlockIndex":2}}`,
		`{"messageStop":{"stopReason":"tool_use"}}`,
		`{"metadata":{"usage":{"inputTokens":17,"outputTokens":9,"totalTokens":26}}}`,
	},
	"ollama": {
		`{"model":"m","message":{"role":"assistant","content":"Let me "},"done":false}`,
		`{"model":"m","message":{"role":"assistant","content":"look."},"done":false}`,
		`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"look","arguments":{"at": 1}}}]},"done":false}`,
		`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_2","function":{"index":1,"name":"pay","arguments":{"sum": 100, "to": "Ann"}}}]},"done":false}`,
		`{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":17,"eval_count":9}`,
	},
}

// endMark is the number of events at the end of each wire's stream that mark the end. Without the
// last of them, an answer may still be complete.
var endMark = map[string]int{"anthropic": 1, "chat": 3, "responses": 1, "gemini": 1, "vertex": 1, "bedrock": 2, "ollama": 1}

// wholeOf returns the events of a correct answer. Vertex AI has Gemini's format.
func wholeOf(wire string) []string {
	if wire == "vertex" {
		wire = "gemini"
	}
	return whole[wire]
}

// fault is a kind of fault that a provider can have in an attempt.
type fault struct {
	name string
	// make returns the response of the attempt. It returns same if the answer is still correct, although a part is
	// missing whose loss cannot be detected. Then only the calls are compared.
	make func(r *rand.Rand, wire string, events []string) (body io.Reader, header http.Header, status int)
	same bool
	lost bool
	flip bool // a bit of a binary frame is wrong
}

func stream(events []string) io.Reader {
	var b bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return &b
}

type reading func([]byte) (int, error)

func (f reading) Read(p []byte) (int, error) { return f(p) }

// before returns a random position before the end of the answer.
func before(r *rand.Rand, wire string, events []string) int {
	return r.IntN(len(events) - endMark[wire] + 1)
}

func plainFault(name string, same, lost bool, change func(r *rand.Rand, wire string, events []string) []string) fault {
	return fault{name: name, same: same, lost: lost, make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return stream(change(r, wire, append([]string(nil), events...))), nil, 200
	}}
}

// member replaces a random member of a random event, at any depth.
func member(r *rand.Rand, events []string, with func(key string, old any) any) []string {
	for range 20 {
		i := r.IntN(len(events))
		var v any
		if json.Unmarshal([]byte(events[i]), &v) != nil {
			continue
		}
		var places []func()
		var walk func(v any)
		walk = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				for _, k := range sortedKeys(v) {
					places = append(places, func() { v[k] = with(k, v[k]) })
					walk(v[k])
				}
			case []any:
				for _, e := range v {
					walk(e)
				}
			}
		}
		walk(v)
		if len(places) == 0 {
			continue
		}
		places[r.IntN(len(places))]()
		b, _ := json.Marshal(v)
		events[i] = string(b)
		return events
	}
	return events
}

var faults = []fault{
	{name: "cut at an event", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return stream(events[:before(r, wire, events)]), nil, 200
	}},
	{name: "cut at a byte", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		b, _ := io.ReadAll(stream(events[:before(r, wire, events)]))
		return bytes.NewReader(b[:r.IntN(len(b)+1)]), nil, 200
	}},
	{name: "a wrong bit", flip: true, make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		if wire != "bedrock" { // only frames have check sums
			events = events[:before(r, wire, events)]
		}
		return stream(events), nil, 200
	}},
	{name: "connection reset", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return io.MultiReader(stream(events[:before(r, wire, events)]), reading(func([]byte) (int, error) { return 0, errors.New("connection reset by peer") })), nil, 200
	}},
	{name: "stall", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return io.MultiReader(stream(events[:before(r, wire, events)]), stalled{}), nil, 200
	}},
	{name: "endless comments", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return io.MultiReader(stream(events[:before(r, wire, events)]), reading(func(p []byte) (int, error) {
			time.Sleep(time.Second)
			return copy(p, ": still here\n"), nil
		})), nil, 200
	}},
	{name: "endless line", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return io.MultiReader(stream(events[:before(r, wire, events)]), strings.NewReader("data: "), reading(func(p []byte) (int, error) {
			return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
		})), nil, 200
	}},
	{name: "HTML with status 200", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return strings.NewReader("<html><body>Sign in</body></html>"), http.Header{"Content-Type": {"text/html; charset=utf-8"}}, 200
	}},
	{name: "HTML that says it is a stream", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return strings.NewReader("<html>\n<body>Sign in</body>\n</html>\n"), nil, 200
	}},
	{name: "JSON with status 200", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return strings.NewReader(`{"id":"x","choices":[]}`), http.Header{"Content-Type": {"application/json"}}, 200
	}},
	{name: "empty body", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		return strings.NewReader(""), nil, 200
	}},
	{name: "status", make: func(r *rand.Rand, wire string, events []string) (io.Reader, http.Header, int) {
		status := []int{400, 401, 403, 404, 408, 409, 413, 418, 429, 500, 502, 503, 504, 529}[r.IntN(14)]
		body := []string{`{"error":{"message":"no","type":"t"}}`, `{"error":"no"}`, `<html>`, ``, `[1`, `null`, `{"error":{"message":{}}}`}[r.IntN(7)]
		h := http.Header{"Content-Type": {"application/json"}}
		if r.IntN(2) == 0 {
			h.Set("Retry-After", []string{"1", "-1", "soon", "99999999999999999999", "Fri, 31 Dec 1999 23:59:59 GMT"}[r.IntN(5)])
		}
		return strings.NewReader(body), h, status
	}},
	plainFault("malformed event", false, false, func(r *rand.Rand, wire string, events []string) []string {
		i := before(r, wire, events)
		e := events[min(i, len(events)-1)]
		bad := []string{"{", "nul", e[:len(e)/2], "\x00\xff\xfe", "[" + e, e + "}", strings.Repeat("[", 100_000)}[r.IntN(7)]
		events[min(i, len(events)-endMark[wire]-1)] = bad
		return events
	}),
	plainFault("wrong type", false, true, func(r *rand.Rand, wire string, events []string) []string {
		other := []any{nil, true, -1, 1e300, "x", []any{}, map[string]any{}, []any{map[string]any{"a": 1}}}
		return member(r, events, func(string, any) any { return other[r.IntN(len(other))] })
	}),
	plainFault("member gone", false, true, func(r *rand.Rand, wire string, events []string) []string {
		return member(r, events, func(string, any) any { return nil })
	}),
	plainFault("index duplicated or gone", false, true, func(r *rand.Rand, wire string, events []string) []string {
		i := r.IntN(len(events))
		for _, k := range []string{`"index":`, `"output_index":`, `"contentBlockIndex":`} {
			events[i] = strings.Replace(events[i], k, []string{k + "0,\"x\":", k + "7,\"x\":", k + "-1,\"x\":", `"x":`}[r.IntN(4)], 1)
		}
		return events
	}),
	plainFault("event twice", false, true, func(r *rand.Rand, wire string, events []string) []string {
		i := r.IntN(len(events))
		return append(events[:i:i], append([]string{events[i]}, events[i:]...)...)
	}),
	plainFault("event missing", false, true, func(r *rand.Rand, wire string, events []string) []string {
		i := r.IntN(len(events))
		return append(events[:i:i], events[i+1:]...)
	}),
	plainFault("events swapped", false, true, func(r *rand.Rand, wire string, events []string) []string {
		i, j := r.IntN(len(events)), r.IntN(len(events))
		events[i], events[j] = events[j], events[i]
		return events
	}),
	plainFault("ids empty or equal", true, false, func(r *rand.Rand, wire string, events []string) []string {
		id := []string{"", "same"}[r.IntN(2)]
		if wire == "anthropic" {
			id = "same" // a block without an id is omitted with a warning: Test_RA12_IncompleteCall
		}
		for i := range events {
			for _, own := range []string{"toolu_1", "toolu_2", "call_1", "call_2"} {
				events[i] = strings.ReplaceAll(events[i], `"`+own+`"`, `"`+id+`"`)
			}
		}
		return events
	}),
	plainFault("unknown events", true, false, func(r *rand.Rand, wire string, events []string) []string {
		i := r.IntN(len(events) - endMark[wire])
		odd := []string{`{"type":"hologram","beam":1}`, `{}`, `{"type":"ping"}`, `{"object":"x","x":[[]]}`}[r.IntN(4)]
		return append(events[:i:i], append([]string{odd}, events[i:]...)...)
	}),
	plainFault("error in mid-answer", false, false, func(r *rand.Rand, wire string, events []string) []string {
		i := before(r, wire, events)
		return append(events[:min(i, len(events)-endMark[wire])], `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded","code":503}}`)
	}),
}

// stalled never answers. Its request is cancelled, which net/http converts to an error.
type stalled struct{}

func (stalled) Read([]byte) (int, error) { panic("wrapped by the transport") }

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	for i := range keys {
		for j := i; j > 0 && keys[j] < keys[j-1]; j-- {
			keys[j], keys[j-1] = keys[j-1], keys[j]
		}
	}
	return keys
}

// faulty answers the first attempts of a request with a fault and the last one correctly.
type faulty struct {
	r        *rand.Rand
	wire     string
	fault    fault
	attempts int // number of attempts with the fault
	made     int
}

// untilDone reads its body. If the body stalls, it waits for the end of the request.
type untilDone struct {
	io.Reader
	ctx context.Context
}

func (u untilDone) Read(p []byte) (n int, err error) {
	if u.ctx.Err() != nil {
		return 0, u.ctx.Err()
	}
	defer func() {
		if v := recover(); v != nil {
			<-u.ctx.Done()
			n, err = 0, u.ctx.Err()
		}
	}()
	return u.Reader.Read(p)
}

func (untilDone) Close() error { return nil }

// unframed reads the events of a stream as lines of JSON.
type unframed struct {
	r    *bufio.Reader
	rest []byte
	err  error
}

func (u *unframed) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.rest, u.err = u.r.ReadSlice('\n')
		if errors.Is(u.err, bufio.ErrBufferFull) { // a line without an end
			u.err = nil
		}
		u.rest = bytes.TrimPrefix(u.rest, []byte("data: "))
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

func (f *faulty) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	f.made++
	body, header, status := stream(wholeOf(f.wire)), http.Header(nil), 200
	if f.made <= f.attempts {
		body, header, status = f.fault.make(f.r, f.wire, wholeOf(f.wire))
	}
	if header == nil {
		header = http.Header{"Content-Type": {"text/event-stream"}}
		if f.wire == "ollama" {
			header.Set("Content-Type", "application/x-ndjson")
			body = &unframed{r: bufio.NewReader(body)}
		}
		if f.wire == "bedrock" {
			header.Set("Content-Type", "application/vnd.amazon.eventstream")
			body = &framed{r: bufio.NewReader(body), flip: f.made <= f.attempts && f.fault.flip, random: f.r}
		}
	}
	return &http.Response{StatusCode: status, Header: header, Body: untilDone{body, req.Context()}, Request: req}, nil
}

// TestProviderFaults injects 700 seeded faults of providers in all framings: event streams, lines of JSON (Ollama) and
// binary frames (Bedrock). Each ends with a meaningful error, or
// with the correct answer after retries within the policy. A truncated answer is never accepted,
// and no call has incomplete arguments.
func TestProviderFaults(t *testing.T) {
	args := map[string]string{"look": `{"at":1}`, "pay": `{"sum":100,"to":"Ann"}`}
	wireNames := []string{"anthropic", "chat", "responses", "gemini", "ollama", "bedrock", "vertex"}
	seen, ended := map[string]int{}, map[string]int{}
	for seed := range uint64(700) {
		r := rand.New(rand.NewPCG(seed, 6))
		wire, f := wireNames[r.IntN(len(wireNames))], faults[int(seed)%len(faults)]
		attempts := 1 + r.IntN(4) // 4 is more than the retry policy allows
		name := fmt.Sprintf("seed %d, %s, %s, %d times", seed, wire, f.name, attempts)
		synctest.Test(t, func(t *testing.T) {
			at := &faulty{r: r, wire: wire, fault: f, attempts: attempts}
			retries := 2
			cfg := model.Config{Model: "m", BaseURL: "http://localhost/v1", APIKey: tenon.NewSecret("k"), Retries: &retries, Timeout: 5 * time.Second}
			m := adapter(t, wire, cfg, model.Env{Transport: at, LookupEnv: func(string) (string, bool) { return "", false }})
			start := time.Now()
			a, err := generate(t.Context(), m, question)
			if took := time.Since(start); took > 5*time.Minute {
				t.Errorf("%s: it took %s", name, took)
			}
			if at.made > retries+1 {
				t.Errorf("%s: %d attempts", name, at.made)
			}
			if err != nil {
				ended["error"]++
				var e *tenon.Error
				if !errors.As(err, &e) || e.Code == tenon.CodeInternal || len(e.Message) < 10 || f.same {
					t.Errorf("%s: %v", name, err)
				}
				return
			}
			ended["answer"]++
			right := at.made > attempts || f.same // the last attempt had no fault
			if !right && !f.lost {
				t.Errorf("%s: taken for whole: %s", name, summary(a, nil))
			}
			calls := a.resp.Message.Calls()
			if right && (a.resp.Message.Text() != "Let me look." || a.text != "Let me look." || len(calls) != 2 || a.resp.Stop != tenon.StopToolUse || a.resp.Usage == nil || a.resp.Usage.Output != 9) {
				t.Errorf("%s: %s", name, summary(a, nil))
			}
			for _, c := range calls {
				if c.Malformed != "" || a.resp.Stop != tenon.StopToolUse && a.resp.Stop != tenon.StopEnd {
					continue // the call is not executed
				}
				var flat bytes.Buffer
				if json.Compact(&flat, c.Arguments) != nil || flat.String() != args[c.Name] && right {
					t.Errorf("%s: call %s%s", name, c.Name, c.Arguments)
				}
				if got := flat.String(); !right && got != args["look"] && got != args["pay"] {
					seen[fmt.Sprintf("%s: %s: %s%s", f.name, wire, c.Name, got)]++
				}
			}
		})
	}
	if ended["error"] < 100 || ended["answer"] < 100 {
		t.Errorf("the seeds show too little: %v", ended)
	}
	for k, n := range seen { // for example a missing event in a format without sequence numbers
		t.Logf("%d× %s", n, k)
	}
}
