package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdHTTP sends a request to the tenon serve of the folder .tenon with the user's token, and waits until the server is
// there: http STATUS FILE METHOD PATH [BODY | @FILE]. It writes the body of the response to FILE and the headers to
// FILE.head. If HTTP_TOKEN and HTTP_CREDENTIALS are set, they replace the token and the header
// Tenon-Server-Credentials.
func cmdHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: http STATUS FILE METHOD PATH [BODY]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var base []byte
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if base, err = os.ReadFile(ts.MkAbs(filepath.Join(".tenon", "serve.url"))); err == nil && len(base) > 0 {
			break
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no tenon serve within a minute")
		}
	}
	body := strings.Join(args[4:], "")
	if file, ok := strings.CutPrefix(body, "@"); ok {
		body = ts.ReadFile(file)
	}
	req, err := http.NewRequest(args[2], strings.TrimSpace(string(base))+args[3], strings.NewReader(body))
	ts.Check(err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	token := ts.Getenv("HTTP_TOKEN")
	if token == "" {
		token = strings.TrimSpace(ts.ReadFile(filepath.Join(".tenon", "serve.token")))
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if own := ts.Getenv("HTTP_CREDENTIALS"); own != "" {
		req.Header.Set("Tenon-Server-Credentials", own)
	}
	c := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
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

// cmdShape prints the keys of a JSON file with the types of their values: shape FILE. Of a list, it prints the first
// element.
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

// cmdOffers starts an MCP server with one tool, one resource and one prompt. It runs until the script ends; its URL is
// in the variable OFFERS.
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

// cmdCanaries plants secrets and looks for them: canaries plant N FILE writes a
// configuration in which N secrets reach servers as bearer, basic, header and
// environment, and sets the variables that hold them; canaries find looks for each of
// them, in plain, JSON, base64 (at any place), hex and URL form, in all files of the
// script's folder.
func cmdCanaries(ts *testscript.TestScript, neg bool, args []string) {
	canary := func(i int) string { return fmt.Sprintf("cnry/%02d+%x", i, sha256.Sum256([]byte{byte(i)}))[:40] }
	if len(args) == 3 && args[0] == "plant" {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		var secrets, env strings.Builder
		for i := range n {
			ts.Setenv(fmt.Sprintf("CANARY_%d", i), canary(i))
			fmt.Fprintf(&secrets, "  c%d: {env: CANARY_%d}\n", i, i)
			if i > 2 {
				fmt.Fprintf(&env, "      V%d: \"${secret:c%d}\"\n", i, i)
			}
		}
		ts.Setenv("CANARY_1", "user:"+canary(1))
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte("version: 1\nsecrets:\n"+secrets.String()+`servers:
  bearer: {url: "${OFFERS}/b", protocol: "2025-06-18", auth: {type: bearer, secret: c0}}
  basic: {url: "${OFFERS}/c", protocol: "2025-06-18", auth: {type: basic, secret: c1}}
  header: {url: "${OFFERS}/d", protocol: "2025-06-18", auth: {type: header, header: X-Key, secret: c2}}
  t:
    command: tenon
    args: [testserver, --stdio]
    env:
`+env.String()), 0o600))
		ts.Setenv("CANARIES", args[1])
		return
	}
	n, err := strconv.Atoi(ts.Getenv("CANARIES"))
	ts.Check(err)
	files := 0
	err = filepath.WalkDir(ts.MkAbs("."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		files++
		for i := range n {
			for kind, form := range formsOf(canary(i)) {
				if bytes.Contains(b, []byte(form)) {
					ts.Logf("canary %d stands in %s, %s", i, path, kind)
					err = errors.Join(err, fmt.Errorf("a secret is in %s", path))
				}
			}
		}
		return err
	})
	ts.Check(err)
	ts.Logf("%d files", files)
	if files < 10 {
		ts.Fatalf("only %d files were looked at", files)
	}
}

// formsOf returns the forms of a secret that the test looks for. It makes them independently of the code that masks
// secrets.
func formsOf(secret string) map[string]string {
	forms := map[string]string{"plain": secret, "hex": fmt.Sprintf("%x", secret), "HEX": fmt.Sprintf("%X", secret), "URL": url.QueryEscape(secret), "path": url.PathEscape(secret)}
	for name, e := range map[string]*base64.Encoding{"base64": base64.StdEncoding, "base64url": base64.URLEncoding} {
		for k := range 3 {
			whole := e.EncodeToString([]byte("abc"[:k] + secret + "abc"[:(3-(k+len(secret))%3)%3]))
			forms[fmt.Sprintf("%s at %d", name, k)] = whole[4 : len(whole)-4] // independent of the neighbouring bytes
		}
	}
	return forms
}
