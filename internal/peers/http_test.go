package peers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/clitest"
)

// apiToken is the token of the tenon serve under test.
const apiToken = "referees-referees-referees"

// misbehaving lists tools whose calls correctly end with status 502 or wait for input. They are excluded from the
// tested server: schemathesis calls tools in an order that depends on earlier results, and treats every 502 as a
// finding.
const misbehaving = `crash, fail_rpc, "ask*", need_url, sample, roots, mutate, slow`

// testAPI tests tenon serve with other programs: OpenAI's SDK for Python, the parser of prometheus-client,
// and schemathesis, which generates requests from openapi.json and checks the responses.
func (p *peers) testAPI(t *testing.T) {
	bin := filepath.Join(filepath.Dir(p.modules), "python4", "bin")
	if _, err := os.Stat(filepath.Join(bin, "schemathesis")); err != nil {
		t.Fatalf("a peer is missing, make peers installs it: %v", err)
	}
	s := p.shell(t)
	s.WriteFile(t, "count.yaml",
		"steps:\n  - text: I count.\n    usage: {input_tokens: 10, output_tokens: 3}\n"+
			"    calls: [{name: counter, arguments: {}}]\n"+
			"  - text: Counted.\n    usage: {input_tokens: 20, output_tokens: 4}\n")
	s.WriteFile(t, "add.yaml",
		"steps:\n  - calls: [{name: add, arguments: {a: 2, b: 3}}]\n    usage: {input_tokens: 7, output_tokens: 2}\n"+
			"  - text: It is five.\n    usage: {input_tokens: 9, output_tokens: 4}\n")
	s.WriteFile(t, "tenon.yaml", "version: 1\nservers:\n  t: {command: "+p.tenon+
		", args: [testserver, --stdio, --prompts], exclude: ["+misbehaving+"]}\n"+
		"models:\n  count: {provider: script, path: count.yaml}\n  add: {provider: script, path: add.yaml}\n"+
		"agents:\n  helper: {model: count}\n  reader: {model: add}\n")
	token := s.WriteFile(t, "token", apiToken)
	port := clitest.FreePort(t)
	url := "http://127.0.0.1:" + port
	background(t, s.Env, p.tenon, "serve", "-c", filepath.Join(s.Dir, "tenon.yaml"), "--listen", "127.0.0.1:"+port,
		"--token-file", token, "--log-level", "warn")
	answers(t, url+"/healthz")
	python := func(t *testing.T, what string, into any) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "python"), absolute(t, "testdata", "clients.py"), what, url, apiToken)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, into)
		}
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, out, said.String())
		}
	}
	t.Run("OpenAI", func(t *testing.T) {
		var got map[string]any
		python(t, "openai", &got)
		waits, _ := got["waits"].(string)
		if !regexp.MustCompile(
			`(?s)^I count\..*Approval required: t\.counter.*Answer "approve run_\w+/1\.0"`).MatchString(waits) {
			t.Errorf("it waits: %q", waits)
		}
		delete(got, "waits")
		want := map[string]any{"models": []any{"helper", "reader"}, "model": "tenon", "waits_state": "input_required",
			"answer": "Counted.", "finish": "stop", "tokens": []any{20.0, 4.0, 24.0},
			"streamed": "It is five.", "streamed_tokens": 22.0, "reasons": []any{"stop"}, "async": []any{"It is five."},
			"errors": map[string]any{"no such model": "NotFoundError invalid_request_error",
				"no messages":      "BadRequestError invalid_request_error",
				"wrong token":      "AuthenticationError authentication_error",
				"no such approval": "NotFoundError invalid_request_error"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("Prometheus", func(t *testing.T) {
		var got struct {
			Type         string
			Families     map[string]string
			Undocumented []string
			Tools        map[string]float64
			Buckets      bool
		}
		python(t, "metrics", &got)
		if got.Families["tenon_tool_calls"] != "counter" ||
			got.Families["tenon_tool_duration_seconds"] != "histogram" || len(got.Undocumented) > 0 || !got.Buckets {
			t.Errorf("%+v", got)
		}
		if got.Tools["counter"] != 1 || got.Tools["add"] != 9 {
			t.Errorf("calls: %v", got.Tools)
		}
	})
	t.Run("schemathesis", func(t *testing.T) { p.testSchemathesis(t, bin, url, s) })
}

// testSchemathesis excludes streams without an end, operations that start processes, operations that wait for a
// browser, and operations that write the configuration. If tenon refuses a well-formed request for its content, such as
// arguments that violate a tool's schema or the id of a run that has ended, that is not a finding.
func (p *peers) testSchemathesis(t *testing.T, bin, url string, s shell) {
	cmd := exec.Command(filepath.Join(bin, "schemathesis"), "--no-color", "run", url+"/api/v1/openapi.json", "-H",
		"Authorization: Bearer "+apiToken,
		"--max-examples", "4", "--seed", "7", "--request-timeout", "60", "--suppress-health-check",
		"too_slow", // other tests run at the same time
		"--exclude-checks", "positive_data_acceptance",
		"--exclude-path-regex", "changes|restart|reconnect|login|/config|/events")
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), "HOME="+s.Home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := regexp.MustCompile(`Tested: (\d+)`).FindSubmatch(out)
	n := regexp.MustCompile(`(\d+) generated`).FindSubmatch(out)
	if m == nil || n == nil || len(m[1]) < 2 {
		t.Fatalf("too few tests were run:\n%s", out)
	}
	t.Logf("%s operations, %s requests", m[1], n[1])
}
