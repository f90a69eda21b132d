package agent

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// odd has data in other forms than our executor writes. decode must read it as encoding/json does.
var odd = []string{``, `{}`, `null`, `[]`, ` {"kind":"model"}`, `{"kind":1}`, `{"kind":null}`, `{"Kind":"tool"}`, `{"kind":"a","kind":"b"}`, `{"more":1}`,
	`{"verdict":"allow","arguments":null,"timeout":1.0}`, `{"verdict":"allow","timeout":9223372036854775808}`, `{"duration_ns":-0}`, `{"idempotent":"true"}`,
	`{"message":null}`, `{"message":[]}`, `{"message":{"parts":null}}`, `{"message":{"parts":[]}}`, `{"message":{"parts":[{},null,1]}}`, `{"usage":{"input_tokens":1e2}}`,
	`{"cost":"x"}`, `{"cost":null}`, `{"result":null}`, `{"result":[1]}`, `{"result":{"content":[{"type":"text","text":"\ud800"}],"isError":true}}`, "{\"by\":\"\xff\"}", `{"b\u0079":"x"}`}

// written returns the data of the events of one turn, as the executor writes them.
func written() []any {
	cost := tenon.Dollars(0.0125)
	return []any{
		&started{tenon.StartedData{Kind: CommandModel, Idempotent: true}},
		&Answered{Response: tenon.Response{Stop: tenon.StopToolUse, RawStop: "tool_use", Model: "m", ID: "i", Cost: &cost, Usage: &tenon.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5},
			Message: &tenon.Message{Role: tenon.RoleAssistant, By: "a/m", Parts: []tenon.Part{
				{Type: tenon.PartText, Text: "see < \u2028 \\ 🌧"},
				{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "1", Name: "add", Arguments: json.RawMessage(`{"a":9007199254740993,"b":[1,{"c":"d"}]}`)}},
				{Type: "opaque", Wire: "w", Raw: json.RawMessage(`{"signature":"x"}`)}}}}},
		&Decision{Verdict: tenon.Allow, Kind: "k", By: ByPolicy, Reason: "r", Policy: "p", ToolKind: "t", Server: "s", Remote: "n", Arguments: json.RawMessage(`{"x":1}`), Idempotent: true,
			Timeout: time.Second, Expires: time.Hour, MaxCalls: 3, Rate: "10/m"},
		&Outcome{Result: &tenon.Result{Content: []tenon.Content{tenon.Text("ok")}, Structured: json.RawMessage(`{"n":1}`)}, Source: SourceCache, Of: "run_1/1.0", Duration: time.Second},
	}
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// FuzzRead compares decode with encoding/json.
func FuzzRead(f *testing.F) {
	for _, s := range odd {
		f.Add([]byte(s))
	}
	for _, v := range written() {
		f.Add(encoded(v))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, twice := rawjson.Twice(raw); twice && json.Valid(raw) {
			return // the readers use the last of two equal members; encoding/json merges the two
		}
		reads[started](t, raw)
		reads[Answered](t, raw)
		reads[Decision](t, raw)
		reads[Outcome](t, raw)
	})
}

func reads[T any](t *testing.T, raw []byte) {
	t.Helper()
	if len(raw) == 0 {
		return
	}
	got, want := new(T), new(T)
	err, werr := decode(tenon.Event{Data: raw}, got), json.Unmarshal(raw, want)
	if (err == nil) != (werr == nil) {
		t.Fatalf("%s: error %v, encoding/json has %v", raw, err, werr)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nread as %+v\nand by encoding/json %+v", raw, got, want)
	}
}

// TestReadsWhatIsWritten checks that the readers accept the data of a usual turn, so that encoding/json is not needed
// for it.
func TestReadsWhatIsWritten(t *testing.T) {
	for _, v := range written() {
		if fresh := reflect.New(reflect.TypeOf(v).Elem()).Interface().(reader); !fresh.read(encoded(v)) {
			t.Errorf("%T is left to encoding/json: %s", v, encoded(v))
		}
	}
}
