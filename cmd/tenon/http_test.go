package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdHTTP asks the tenon serve of .tenon, waiting until it is there, with the user's
// token: http STATUS FILE METHOD PATH [BODY | @FILE]. The answer's body is written to
// FILE, its headers to FILE.head.
func cmdHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: http STATUS FILE METHOD PATH [BODY]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var url []byte
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if url, err = os.ReadFile(ts.MkAbs(filepath.Join(".tenon", "serve.url"))); err == nil && len(url) > 0 {
			break
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no tenon serve within 30 s")
		}
	}
	body := strings.Join(args[4:], "")
	if file, ok := strings.CutPrefix(body, "@"); ok {
		body = ts.ReadFile(file)
	}
	req, err := http.NewRequest(args[2], strings.TrimSpace(string(url))+args[3], strings.NewReader(body))
	ts.Check(err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ts.ReadFile(filepath.Join(".tenon", "serve.token"))))
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ts.Check(err)
	var head strings.Builder
	ts.Check(res.Header.Write(&head))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]+".head"), []byte(head.String()), 0o600))
	if res.StatusCode != want {
		ts.Fatalf("status %d, want %d: %s", res.StatusCode, want, b)
	}
}

// cmdShape prints which keys a JSON file has and of what type their values are; of a
// list the first element counts: shape FILE.
func cmdShape(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shape FILE")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	b, err := json.Marshal(shapeOf(v))
	ts.Check(err)
	_, err = ts.Stdout().Write(append(b, '\n'))
	ts.Check(err)
}

func shapeOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if out[k] = shapeOf(e); k == "inputSchema" || k == "arguments" {
				out[k] = "any"
			}
		}
		return out
	case []any:
		if len(v) == 0 {
			return []any{}
		}
		return []any{shapeOf(v[0])}
	case string:
		return "text"
	case float64:
		return "number"
	case bool:
		return "bool"
	}
	return nil
}

// cmdOffers serves MCP with one tool, one resource and one prompt, until the script
// ends, at the URL in OFFERS.
func cmdOffers(ts *testscript.TestScript, neg bool, args []string) {
	results := map[string]string{
		"initialize":               `{"protocolVersion":"2025-06-18","serverInfo":{"name":"offers","version":"1"},"capabilities":{"tools":{},"resources":{},"prompts":{}}}`,
		"tools/list":               `{"tools":[{"name":"only","description":"The only one","inputSchema":{"type":"object","properties":{}}}]}`,
		"resources/list":           `{"resources":[{"uri":"mem://note","name":"note","description":"A note","mimeType":"text/plain"}]}`,
		"resources/templates/list": `{"resourceTemplates":[]}`,
		"resources/read":           `{"contents":[{"uri":"mem://note","mimeType":"text/plain","text":"buy milk"}]}`,
		"prompts/list":             `{"prompts":[{"name":"greet","description":"Greets","arguments":[{"name":"name","required":true}]}]}`,
		"prompts/get":              `{"description":"Greets","messages":[{"role":"user","content":{"type":"text","text":"Say hello to Ann"}}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if req.Method != http.MethodPost || json.NewDecoder(req.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if len(m.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer := `"error":{"code":-32601,"message":"no such method"}`
		if r, ok := results[m.Method]; ok {
			answer = `"result":` + r
		}
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,`+answer+`}`)
	}))
	ts.Defer(s.Close)
	ts.Setenv("OFFERS", s.URL)
}
