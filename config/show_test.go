package config

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestShow compares every value and its source with a golden file.
func TestShow(t *testing.T) {
	o := Options{File: filepath.Join("testdata", "good", "full.yaml"), Home: t.TempDir(),
		LookupEnv: env("TOKEN", "t0k", "HOST", "mcp.example.com", "DATA", "data")}
	c, err := Load(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	values, err := c.Show("")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, v := range values {
		fmt.Fprintf(&b, "%s: %s (%s)\n", v.Path, v.Value, v.Origin)
	}
	got := bytes.ReplaceAll(b.Bytes(), []byte(filepath.ToSlash(c.Dir)), []byte("DIR"))
	for _, secret := range []string{"t0k", "mcp.example.com"} {
		if bytes.Contains(got, []byte(secret)) {
			t.Errorf("the value of a variable, %q, is shown", secret)
		}
	}
	golden(t, filepath.Join("testdata", "good", "full.show.golden"), got)

	c, err = Parse("one.yaml", []byte("models: {m: {provider: openai, model: g, api: responses, tools: {w: {mcp: 'https://w.example', token: '${TOKEN}'}}}}\n"+
		"agents: {default: {provider_tools: {v: {mcp: 'https://v.example', token: '${TOKEN}'}}}}\n"), Options{Dir: t.TempDir(), LookupEnv: env("TOKEN", "geheim")})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := c.Show("")
	if err != nil || strings.Contains(fmt.Sprint(shown), "geheim") || !strings.Contains(fmt.Sprint(shown), "${TOKEN}") {
		t.Errorf("MD-6: %v %v", shown, err)
	}
	if s := fmt.Sprint(Redacted(shown)); strings.Contains(s, "w.example") || strings.Contains(s, "v.example") {
		t.Errorf("MD-6: tools of the provider are not redacted: %s", s)
	}

	for _, tt := range []struct{ name, file, want string }{
		{"HD-CL-1_HD-FR-012_default", "servers: {t: {command: x}}", "60s (default)"},
		{"HD-CL-1_HD-FR-012_number", "servers:\n  t: {command: x, request_timeout: 5}", "5s (one.yaml:2)"},
		{"a token is hidden", "servers: {t: {command: x, args: [ghp_0123456789abcdef], request_timeout: 9}}", "9s (one.yaml:1)"},
		{"HD-CL-1_HD-FR-012_minutes", "servers: {t: {command: x, request_timeout: 120s}}", "2m (one.yaml:1)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse("one.yaml", []byte(tt.file), Options{Dir: t.TempDir(), LookupEnv: env()})
			if err != nil {
				t.Fatal(err)
			}
			v, err := c.Show("servers.t.request_timeout")
			if err != nil || len(v) != 1 || fmt.Sprintf("%s (%s)", v[0].Value, v[0].Origin) != tt.want {
				t.Errorf("%v %v, want %s", v, err, tt.want)
			}
			if all, _ := c.Show(""); strings.Contains(fmt.Sprint(all), "ghp_") {
				t.Errorf("%v", all)
			}
			if _, err := c.Show("servers.u"); tenon.ErrorCode(err) != tenon.CodeNotFound {
				t.Error(err)
			}
		})
	}
}
