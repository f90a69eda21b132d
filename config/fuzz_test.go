package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
)

// FuzzForms reads anything as a configuration and as the files of other programs.
// Whatever is in it, each error has a place; what is read can be shown and exported;
// what is imported can be read again.
func FuzzForms(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml", "testdata/good/*.json", "testdata/import/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, text := range []string{
		`{"mcpServers":{"a":{"command":"x","oauth":{"scopes":"a b"}},"b c":{"url":"https://a","type":"http","disabled":true}}}`,
		`{"servers":{"a":{"type":"stdio","command":"${input:k}","env":{"A":"${input:k}"}}},"inputs":[{"id":"k","type":"promptString","description":"d","password":true}]} // c`,
		"name: x\nmodel: {provider: azure_openai, name: m, endpoint: https://e, api_key: k}\ninstructions: {inline: i}\ntools: [{type: mcp, name: a, description: d, server: \"@a/b\", config: {allowed_tools: [x]}}, {type: function, name: f}]\n",
		`{"mcp":{"a":{"url":"https://a","auth-token":"t"}},"tool":{"b":"{\"type\":\"mcp-tool\",\"name\":\"n\",\"mcp-tool\":\"a\",\"arguments\":[{\"name\":\"q\",\"type\":\"int\"}]}"}}`,
		`[{"serverName":"a","transport":"websocket","connection":{"url":"https://a"},"auth":{"type":"api_key","token":"t"},"toolPrefix":"p"}]`,
		`{"servers":[{"id":"a","name":"A","transport":"SSE","url":"https://a","enabled":false}]}`,
		"profile: strict\nservers: {a: {command: \"${secret:s}\", env: {A: \"${secret:s}\"}}}\nsecrets: {s: {keyring: a/b}}\n",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	o := Options{Dir: dir, Home: dir, LookupEnv: func(string) (string, bool) { return "v", true }}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		c, err := Parse("f.json", data, o)
		placed(t, err)
		if err == nil {
			if _, err := c.Show(""); err != nil && tenon.ErrorCode(err) != tenon.CodeNotFound {
				t.Error(err)
			}
			for _, kind := range Kinds() {
				if _, _, err := c.Export(kind); err != nil {
					t.Errorf("export to %s: %v", kind, err)
				}
			}
		}
		for _, kind := range append(Kinds(), "") {
			made, err := Import(Source{Label: "f.json", Data: data, Kind: kind, Extract: len(data)%2 == 0, Dir: dir, Home: dir})
			if err != nil {
				if code := tenon.ErrorCode(err); code != tenon.CodeConfig && code != tenon.CodeInvalid {
					t.Errorf("import from %s: %v", kind, err)
				}
				continue
			}
			s := &sink{}
			if parse(&source{label: "made"}, made.YAML(), s); len(s.errs) > 0 {
				t.Errorf("import from %s: %v\n%s", kind, Errors(s.errs), made.YAML())
			}
		}
	})
}

// placed holds that every error of a file says where it is.
func placed(t *testing.T, err error) {
	t.Helper()
	var list Errors
	if err == nil {
		return
	}
	if !errors.As(err, &list) || len(list) == 0 {
		t.Fatalf("error %T: %v", err, err)
	}
	for _, e := range list {
		if e.File == "" || e.Line < 1 || e.Col < 1 || e.Message == "" {
			t.Errorf("without a place: %+v", e)
		}
	}
}
