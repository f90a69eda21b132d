package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// bodies has the request body of each route that reads more than an empty object, with every member that the route
// reads. A name in parentheses is a key of a map, so any name is accepted in its place.
var bodies = map[string]string{
	"POST /api/v1/runs": `{"question":"x","tool_table":"QQ==","tool_table_file":"f","tool_column":"c","agent":"a","session":"s","fork":true,"model":"m","no_tools":true,"output_schema":{"(a)":1},"tool_choice":"none","groups":["g"],"state":"s","max_turns":1,"mode":"native",
		"files":[{"name":"f","data":"AA==","uri":"","mime_type":""}],"resources":[{"server":"s","uri":"u"}],"data":["AA=="],"yes":"me"}`,
	"POST /api/v1/runs/{id}/cancel":               `{"reason":"x","withdraw":true}`,
	"POST /api/v1/runs/{id}/steer":                `{"text":"x"}`,
	"POST /api/v1/runs/{id}/decide":               `{"step":"1.0","verdict":"allow","cancel":true,"reason":"x","arguments":{"(a)":1},"remember":"session","if":"true","uses":1,"for":"1h"}`,
	"POST /api/v1/approvals/{id}/decide":          `{"step":"1.0","verdict":"allow","cancel":true,"reason":"x","arguments":{"(a)":1},"remember":"session","if":"true","uses":1,"for":"1h"}`,
	"POST /api/v1/workflows/{name}/run":           `{"parameters":{"(a)":1},"inputs":{"(in)":{"data":"AA==","file":"f","run":"r","table":"t"}}}`,
	"POST /api/v1/workflows/draft":                `{"name":"n","text":"t","changes":[{"path":["a",0],"value":{"(a)":1}}]}`,
	"PUT /api/v1/config/workflows/{name}":         `{"text":"t","digest":"d","add":true,"dry_run":true}`,
	"POST /api/v1/tables":                         `{"name":"a.arrow","data":"AA=="}`,
	"PATCH /api/v1/sessions/{id}":                 `{"title":"x"}`,
	"POST /api/v1/sessions/{id}/fork":             `{"at":"1","title":"x"}`,
	"POST /api/v1/sessions/{id}/compact":          `{"model":"m"}`,
	"POST /api/v1/grants/revoke":                  `{"id":"gr_x","server":"s","remote_name":"r"}`,
	"POST /api/v1/tools/{name}/call":              `{"arguments":{"(a)":1},"detach":true, "tool_table": "QVJST1cx", "tool_column": "c"}`,
	"POST /api/v1/prompts/get":                    `{"server":"s","name":"n","arguments":{"(a)":"x"}}`,
	"POST /api/v1/resources/read":                 `{"server":"s","uri":"u"}`,
	"PUT /api/v1/config/entries/{section}/{name}": `{"keys":{},"add":true,"digest":"d","dry_run":true}`,
	"PUT /api/v1/models/providers/{provider}/key": `{"key":"sk"}`,
	"POST /api/v1/models/test":                    `{"name":"m"}`,
	"POST /api/v1/doctor":                         `{"servers":["s"]}`,
	"PUT /api/v1/config/tools/{name}":             `{"name":"n","digest":"","arguments":[{"name":"a","type":"string","description":"d","required":true,"default":1,"enum":[1],"index":null}],"keys":{"(title)":"x"},"policy":{"(timeout)":"1s"},"dry_run":true}`,
	"POST /api/v1/config/proposals/{id}/accept":   `{"digest":"sha256:0"}`,
	"POST /api/v1/servers/{name}/logout":          `{"principal":"p"}`,
	"PUT /api/v1/config/servers/{name}":           `{"entry":{"(command)":"x"},"registry_name":"r","dry_run":true}`,
	"POST /chat":                                  `{"message":"x","model":"m","format":"JSON","sessionId":"s","temperature":1,"maxTokens":1,"providerId":"CLAUDE","systemPrompt":"s","parameters":{"topP":1},"busy":"queue"}`,
	"POST /chat/stream":                           `{"message":"x","model":"m","format":"JSON","sessionId":"s","temperature":1,"maxTokens":1,"providerId":"CLAUDE","systemPrompt":"s","parameters":{"topP":1},"busy":"queue"}`,
	"POST /mcp/tools/call":                        `{"toolName":"t","serverId":"s","arguments":{"(a)":1}}`,
	"POST /mcp/resources/read":                    `{"uri":"u","serverId":"s"}`,
	"POST /api/v1/prompts/complete":               `{"server":"s","prompt":"p","template":"t","argument":"a","value":"v","arguments":{"(a)":"x"}}`,
	"POST /mcp/prompts/get":                       `{"promptName":"p","serverId":"s","arguments":{"(a)":"x"}}`,
	"POST /v1/chat/completions": `{"model":"tenon","messages":[{"role":"system","content":[{"type":"text","text":"x"}]},{"role":"user","content":"x"}],"stream":false,"stream_options":{"include_usage":true},"max_tokens":1,
		"max_completion_tokens":1,"temperature":1,"top_p":1,"top_k":1,"n":1,"functions":[],"stop":[],"logprobs":false,"modalities":["text"],"presence_penalty":0,"frequency_penalty":0,
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"(type)":"object"}}}],"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":true,
		"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"(type)":"object"}}},"seed":1,"reasoning_effort":"low","function_call":{},"top_logprobs":0,"logit_bias":{},
		"audio":{},"prediction":{},"web_search_options":{},"verbosity":"medium"}`,
}

// variant is an ambiguous body. A reader that ignores case, or that uses the first of two equal members, understands it
// differently from a strict reader.
type variant struct {
	name, body string
	unknown    bool // has only an additional member, which clients of other APIs may send
}

// variants returns variants of a body for every name in it, at every depth.
func variants(t *testing.T, body string) []variant {
	t.Helper()
	plain := strings.NewReplacer(`"(`, `"`, `)":`, `":`).Replace(body)
	list := []variant{{"a member too much", strings.Replace(plain, "{", `{"x_unknown":1,`, 1), true}}
	if body == "{}" {
		list[0].body = `{"x_unknown":1}`
	}
	var walk func(raw []byte, before, after string)
	walk = func(raw []byte, before, after string) {
		members := map[string]string{}
		var names []string
		for key, v := range rawjson.Members(raw) {
			members[string(key)] = string(v)
			names = append(names, string(key))
		}
		object := func(change func(name string) string) string {
			var parts []string
			for _, n := range names {
				parts = append(parts, change(n))
			}
			return before + "{" + strings.Join(parts, ",") + "}" + after
		}
		same := func(n string) string {
			return `"` + strings.Trim(n, "()") + `":` + strings.NewReplacer(`"(`, `"`, `)":`, `":`).Replace(members[n])
		}
		for _, name := range names {
			isData := strings.HasPrefix(name, "(")
			with := func(how string, other string) {
				list = append(list, variant{how + " " + name, object(func(n string) string {
					if n != name {
						return same(n)
					}
					return other
				}), false})
			}
			if !isData {
				value := strings.TrimPrefix(same(name), `"`+name+`"`)
				with("upper case", `"`+strings.ToUpper(name)+`"`+value)
				with("both cases", same(name)+`,"`+strings.ToUpper(name[:1])+name[1:]+`"`+value)
				with("twice", same(name)+","+same(name))
				with("twice, escaped", same(name)+fmt.Sprintf(`,"\u%04x`, name[0])+name[1:]+`"`+value)
				if strings.Contains(name, "s") {
					with("long s", `"`+strings.Replace(name, "s", "ſ", 1)+`"`+value)
				}
			}
			inner := strings.TrimSpace(members[name])
			head, tail := object(func(n string) string {
				if n == name {
					return `"` + strings.Trim(n, "()") + `":@`
				}
				return same(n)
			}), ""
			head, tail, _ = strings.Cut(head, "@")
			switch {
			case strings.HasPrefix(inner, "{") && !strings.Contains(inner, `"(`), strings.HasPrefix(inner, "{") && strings.Contains(inner, `{"(in)"`):
				walk([]byte(inner), head, tail)
			case strings.HasPrefix(inner, "[{"):
				for e := range rawjson.Elements([]byte(inner)) {
					walk(e, head+"[", "]"+tail)
				}
			}
		}
	}
	walk([]byte(body), "", "")
	for _, v := range list {
		if !json.Valid([]byte(v.body)) {
			t.Fatalf("%s is no JSON: %s", v.name, v.body)
		}
	}
	return list
}

// TestBodiesAreExact sends ambiguous bodies to every route. A body is refused before it has any effect if a name has
// another case, or is there twice. In the native API, unknown names are refused, too.
func TestBodiesAreExact(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.Handler(h)
	walked := map[string]bool{}
	for _, r := range httpapi.Routes() {
		if r.Method == http.MethodGet {
			continue
		}
		key := r.Method + " " + r.Pattern
		if r.API == httpapi.ResearchAI {
			key = r.Method + " " + strings.TrimPrefix(r.Pattern, "/api")
		}
		if r.Raw {
			continue // its body is no JSON
		}
		body, ok := bodies[key]
		walked[key] = true
		if !ok {
			body = "{}"
		}
		t.Run("SEC-F11_"+r.Method+r.Pattern, func(t *testing.T) {
			for _, v := range variants(t, body) {
				status, _, got := request(t, handler, r.Method, fill(r.Pattern), "application/json", v.body)
				bad := status == http.StatusBadRequest && (strings.Contains(got, "has to be written") || strings.Contains(got, "is there twice") || strings.Contains(got, "unknown field"))
				switch {
				case v.unknown && r.API != httpapi.Native:
					if bad {
						t.Errorf("%s: %d %s, of a client that sends more", v.name, status, got)
					}
				case !bad:
					t.Errorf("%s: %d %s\n%s", v.name, status, got, v.body)
				}
			}
		})
	}
	for key := range bodies {
		if !walked[key] {
			t.Errorf("there is no route %s", key)
		}
	}
	runs, err := h.Runs().List(t.Context(), engine.Filter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		t.Errorf("a run was begun: %s %s", run.ID, run.Title)
	}
}

// TestBodiesAreWhole compares the bodies in this file with openapi.json, so that a new member cannot be forgotten here.
func TestBodiesAreWhole(t *testing.T) {
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema json.RawMessage `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			key := strings.ToUpper(method) + " " + path
			schema := op.RequestBody.Content["application/json"].Schema
			var s struct {
				Ref        string                     `json:"$ref"`
				Properties map[string]json.RawMessage `json:"properties"`
			}
			_ = json.Unmarshal(schema, &s) // there may be none
			if s.Ref != "" {
				s.Properties = nil
				if err := json.Unmarshal(doc.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")], &s); err != nil {
					t.Fatal(err)
				}
			}
			var names []string
			for name := range rawjson.Members([]byte(bodies[key])) {
				names = append(names, string(name))
			}
			for name := range s.Properties {
				seen++
				if !strings.HasPrefix(path, "/api/v1") && bodies[key] == "" {
					continue
				}
				if !slices.Contains(names, name) {
					t.Errorf("%s: the member '%s' is not walked", key, name)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d members are described", seen)
	}
}

// TestBodiesAreOneObject sends bodies that are not exactly one JSON object to the routes of the native API.
func TestBodiesAreOneObject(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.Handler(h)
	wrong := map[string]func(body string) string{
		"two objects":          func(b string) string { return b + b },
		"an object and a text": func(b string) string { return b + ` "x"` },
		"a list of it":         func(b string) string { return "[" + b + "]" },
		"a text of it":         func(b string) string { return strconv.Quote(b) },
		"null":                 func(string) string { return "null" },
		"a comment":            func(b string) string { return b + " // x" },
		"a byte order mark":    func(b string) string { return "\ufeff" + b },
		"a NUL behind it":      func(b string) string { return b + "\x00" },
		"cut":                  func(b string) string { return strings.TrimSuffix(b, "}") },
		"a comma at its end":   func(b string) string { return strings.TrimSuffix(b, "}") + ",}" },
		"no UTF-8":             func(b string) string { return strings.TrimSuffix(b, "}") + "\xff}" },
		"deep":                 func(string) string { return strings.Repeat("[", 100_000) },
	}
	for _, r := range httpapi.Routes() {
		body := bodies[r.Method+" "+r.Pattern]
		if r.Method == http.MethodGet || r.API != httpapi.Native || body == "" || body == "{}" {
			continue
		}
		t.Run("SEC-F11_"+r.Method+r.Pattern, func(t *testing.T) {
			for name, change := range wrong {
				status, _, got := request(t, handler, r.Method, fill(r.Pattern), "application/json", change(body))
				if status/100 != 4 {
					t.Errorf("%s: %d %s", name, status, got)
				}
				if name == "null" {
					continue // "null" is valid JSON, so another error may come first
				}
				if status != http.StatusBadRequest {
					t.Errorf("%s: the body was read: %d %s", name, status, got)
				}
			}
		})
	}
	runs, err := h.Runs().List(t.Context(), engine.Filter{Limit: 10})
	if err != nil || len(runs) > 0 {
		t.Errorf("%d runs were begun, %v", len(runs), err)
	}
}

// TestDecisionsMeanOneThing sends a decision that is ambiguous: a proxy could read it as a denial, and tenon as an
// approval. It must be refused.
func TestDecisionsMeanOneThing(t *testing.T) {
	for _, tt := range []struct{ name, body string }{
		{"SEC-F11_two cases", `{"verdict":"deny","Verdict":"allow"}`},
		{"SEC-F11_upper case", `{"VERDICT":"allow"}`},
		{"SEC-F11_twice", `{"verdict":"deny","verdict":"allow"}`},
		{"SEC-F11_a reason beside", `{"verdict":"allow","note":"no"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, d, _ := serve(t)
			close(d.open)
			handler := httpapi.Handler(h)
			_, _, begun := request(t, handler, "POST", "/api/v1/runs", "application/json", `{"question":"open"}`)
			var started httpapi.StartResponse
			if err := json.Unmarshal([]byte(begun), &started); err != nil {
				t.Fatalf("%s: %v", begun, err)
			}
			for range h.Runs().Events(t.Context(), started.Run.ID, 0) { // until it waits
			}
			list, err := h.Approvals().List(t.Context(), "")
			if err != nil || len(list) != 1 {
				t.Fatalf("%v %v", list, err)
			}
			status, _, got := request(t, handler, "POST", "/api/v1/approvals/"+strings.ReplaceAll(list[0].ID, "/", "%2F")+"/decide", "application/json", tt.body)
			if status != http.StatusBadRequest {
				t.Errorf("%d %s", status, got)
			}
			if again, err := h.Approvals().List(t.Context(), ""); err != nil || len(again) != 1 {
				t.Errorf("it was decided: %v %v", again, err)
			}
			run, err := h.Runs().Get(t.Context(), started.Run.ID)
			if err != nil || run.State != tenon.RunInputRequired {
				t.Errorf("run %s: %v", run.State, err)
			}
		})
	}
}
