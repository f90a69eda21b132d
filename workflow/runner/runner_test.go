package runner_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/jsonschema"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/workflow"
	"github.com/tenonhq/tenon/workflow/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read returns a workflow with a file of data, as a tool.
func read(t *testing.T, body string) *runner.Flow {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "w.yaml")
	text := "kind: workflow\nversion: 1\nname: w\ndescription: does it\n" + body
	for path, text := range map[string]string{file: text, filepath.Join(dir, "data", "a.txt"): "a"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, pack, err := config.ReadWorkflow(file)
	if err != nil {
		t.Fatal(err)
	}
	return runner.NewFlow(runner.Workflow{Workflow: w, Pack: pack})
}

// TestArguments checks that the arguments of a call have the shape of the schema, and are separated again.
func TestArguments(t *testing.T) {
	const step = "steps: [{id: t, table: {rows: [{a: 1}]}}]\n"
	for name, tt := range map[string]struct {
		body, params, args, split string
		tables                    map[string]string
	}{
		"only parameters": {"parameters: {x: {type: string, description: X}}\n" + step, `{"x":"a"}`, `{"x":"a"}`, `{"x":"a"}`, nil},
		"only tables":     {"inputs: [{name: in, description: d}]\n" + step, ``, `{"data_inputs":{"in":0}}`, ``, map[string]string{"in": "0"}},
		"both": {"parameters: {x: {type: string, description: X}}\ninputs: [{name: in, description: d}]\n" + step, `{"x":"a"}`,
			`{"configuration":{"x":"a"},"data_inputs":{"in":0}}`, `{"x":"a"}`, map[string]string{"in": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, tt.body)
			args := f.Arguments(json.RawMessage(tt.params))
			if diff := cmp.Diff(tt.args, string(args)); diff != "" {
				t.Errorf("Arguments (-want +got):\n%s", diff)
			}
			params, tables, err := f.Split(args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.split, string(params)); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.tables, tables); diff != "" {
				t.Errorf("tables (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRP20CallSchema checks which forms of configuration a call of a workflow with input tables may have.
func TestRP20CallSchema(t *testing.T) {
	const in = "inputs: [{name: in, description: d}]\nsteps: [{id: t, table: {rows: [{a: 1}]}}]\n"
	for params, calls := range map[string]map[string]bool{
		"": {`{"data_inputs":{"in":0}}`: true, `{"configuration":{},"data_inputs":{"in":0}}`: true,
			`{"configuration":{"x":1},"data_inputs":{"in":0}}`: false, `{"configuration":{}}`: false},
		"parameters: {x: {type: string, description: X, default: a}}\n": {`{"data_inputs":{"in":0}}`: true,
			`{"configuration":{},"data_inputs":{"in":0}}`: true, `{"configuration":{"x":"b"},"data_inputs":{"in":0}}`: true},
		"parameters: {x: {type: string, description: X}}\n": {`{"data_inputs":{"in":0}}`: false,
			`{"configuration":{},"data_inputs":{"in":0}}`: false, `{"configuration":{"x":"b"},"data_inputs":{"in":0}}`: true},
	} {
		schema, err := jsonschema.Compile(read(t, params+in).CallSchema(), jsonschema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for call, valid := range calls {
			v, err := jsonschema.Decode([]byte(call))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); (err == nil) != valid {
				t.Errorf("%q: %s: %v", params, call, err)
			}
		}
	}
}

// requests count how often they are closed.
type requests struct {
	runner.Requests
	closed *int
}

func (r requests) Close() { *r.closed++ }

// TestKeep checks that a runner opens the requests of a workflow once, closes them, and reads workflows from the store.
func TestKeep(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "t.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	opened, closed := 0, 0
	r := runner.New(runner.Config{Store: s, Logger: slog.New(slog.DiscardHandler), Unpack: config.UnpackWorkflow,
		Requests: func(*workflow.Workflow) (runner.Requests, error) { opened++; return requests{closed: &closed}, nil },
		Cancel:   func(context.Context, string, string) error { return nil }})
	f := read(t, "steps: [{id: t, table: {rows: [{a: 1}]}}]\n")
	zip, digest, err := f.Zip()
	if err != nil || digest != store.Digest(zip) {
		t.Fatalf("digest %s, %v", digest, err)
	}
	if _, err := r.Stored(t.Context(), digest); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("the workflow is found before it is kept: %v", err)
	}
	for range 2 {
		if err := r.Keep(digest, f.Workflow.Workflow, f.Pack); err != nil {
			t.Fatal(err)
		}
	}
	p, err := r.Stored(t.Context(), digest)
	if err != nil || p.Workflow.Name != "w" {
		t.Errorf("%v %v", p, err)
	}
	r.Close()
	if opened != 1 || closed != 1 {
		t.Errorf("requests were opened %d and closed %d times, want once", opened, closed)
	}
}
