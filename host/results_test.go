package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
)

// oracle is a toolset whose only tool declares an output schema and returns the given structured content.
type oracle struct{ structured, declared string }

func (o oracle) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "tell", Input: json.RawMessage(`{"type":"object"}`),
		Output:      json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
		Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (o oracle) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("told")}, Structured: json.RawMessage(o.structured),
		Declared: json.RawMessage(o.declared)}, nil
}

// TestStructuredResults checks how structured results are compared with the output schema of their tool.
func TestStructuredResults(t *testing.T) {
	for _, tt := range []struct {
		name, structured, mode string
		declared               string // the structured content that result_format left out
		redact                 []string
		got                    string // part of the text that the model gets
		misfit                 string // part of the violation in the record
		fails                  bool
	}{
		{name: "RP-10_fits", structured: `{"n":9007199254740993}`, got: "told"},
		{name: "RP-10_reported", structured: `{"n":"x"}`, got: "told|[this result does not fit the output schema of the tool: at /n: it is a string, expected integer]",
			misfit: "at /n: it is a string"},
		{name: "RP-10_strict", structured: `{}`, mode: policy.ResultsStrict, got: "Error: the tool 'tell' was called, but its result is refused (results: strict)",
			misfit: `missing: "n"`, fails: true},
		{name: "RP-10_strict_fits", structured: `{"n":1}`, mode: policy.ResultsStrict, got: "told"},
		{name: "RP-10_off", structured: `{}`, mode: policy.ResultsOff, got: "told"},
		{name: "RP-10_masked", structured: `{"n":"secret"}`, redact: []string{"n"}, got: "details are not shown", misfit: "details are not shown"},
		{name: "RP-10_missing", got: "told|[this result does not fit the output schema of the tool: the result has no structured content]",
			misfit: "no structured content"},
		{name: "RP-10_missing_strict", mode: policy.ResultsStrict, got: "is refused (results: strict)", misfit: "no structured content",
			fails: true},
		{name: "RP-10_missing_off", mode: policy.ResultsOff, got: "told"},
		{name: "RP-10_other_format", declared: `{"n":1}`, got: "told"},
		{name: "RP-10_other_format_misfit", declared: `{"n":"x"}`, got: "at /n: it is a string", misfit: "at /n"},
		{name: "RP-10_other_format_masked", declared: `{"n":"secret"}`, redact: []string{"n"}, got: "details are not shown",
			misfit: "details are not shown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "m",
				Toolsets:  map[string]tenon.Toolset{"oracle": oracle{tt.structured, tt.declared}},
				Config:    &config.Config{Policy: policy.Config{Defaults: policy.Block{Results: tt.mode, Redact: tt.redact}}},
				LookupEnv: func(string) (string, bool) { return "", false },
				Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
					if last := req.Messages[len(req.Messages)-1].Parts[0].Result; last != nil {
						var texts []string
						for _, c := range last.Content {
							texts = append(texts, c.Text)
						}
						got = strings.Join(texts, "|")
						return says("done"), nil
					}
					return calls(`tell {}`), nil
				})}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			r, _ := ask(t, h, host.Question{Text: "q"})
			if len(r.ToolCalls) != 1 {
				t.Fatalf("%+v", r)
			}
			c := r.ToolCalls[0]
			if !strings.Contains(got, tt.got) || strings.Contains(got, "secret") || tt.misfit == "" && strings.Contains(got, "does not fit") {
				t.Errorf("the model got %q, want %q", got, tt.got)
			}
			if !strings.Contains(c.Misfit, tt.misfit) || tt.misfit == "" && c.Misfit != "" || c.Success == tt.fails {
				t.Errorf("the record says %q (success %v), want %q", c.Misfit, c.Success, tt.misfit)
			}
		})
	}
}

// TestStructuredResultsResumed checks the comparison with the output schema in a process that did not list the tools:
// it goes on with a workflow, a person's call, a client's call and an agent's run that waited.
func TestStructuredResultsResumed(t *testing.T) {
	flow := flowFile(t, "steps:\n  - {id: a, server: oracle, tool: tell}\n  - {id: m, template: 'ok={{ steps.a.ok }}'}\nmessage: m\n")
	open := func(t *testing.T, home, structured string) *host.Host {
		h, err := host.Open(t.Context(), host.Config{Home: home, Model: "m",
			Toolsets:  map[string]tenon.Toolset{"oracle": oracle{structured, ""}},
			LookupEnv: func(string) (string, bool) { return "", false },
			Config: &config.Config{Policy: policy.Config{Defaults: policy.Block{Results: policy.ResultsStrict,
				Approval: policy.Approval{Mode: policy.ApprovalAlways}}}},
			Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
				if req.Messages[len(req.Messages)-1].Parts[0].Result != nil {
					return says("done"), nil
				}
				return calls(`tell {}`), nil
			})}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	start := map[string]func(h *host.Host) (string, error){
		"workflow": func(h *host.Host) (string, error) {
			run, err := h.Workflows().Start(t.Context(), host.WorkflowCall{Workflow: flow})
			return run.ID, err
		},
		"client": func(h *host.Host) (string, error) {
			run, err := h.Tools().Start(t.Context(), host.ToolCall{Name: "tell", Ask: true})
			return run.ID, err
		},
		"agent": func(h *host.Host) (string, error) {
			run, err := h.Start(t.Context(), host.Question{Text: "q"})
			if err != nil {
				return "", err
			}
			return run.ID, nil
		},
	}
	for name, structured := range map[string]string{"fits": `{"n":1}`, "misfit": `{"n":"x"}`} {
		for kind, begin := range start {
			t.Run("RP-10_"+kind+"_"+name, func(t *testing.T) {
				home := t.TempDir()
				h := open(t, home, structured)
				run, err := begin(h)
				if err != nil {
					t.Fatal(err)
				}
				follow(t, h, run)
				list, err := h.Approvals().List(t.Context(), run)
				if err != nil || len(list) != 1 {
					t.Fatalf("%+v, %v", list, err)
				}
				if err := h.Close(); err != nil {
					t.Fatal(err)
				}
				h = open(t, home, structured)
				ruleOn(t, h, run, list[0].Step, tenon.Allow)
				resumeFlow(t, h, run)
				r, _ := follow(t, h, run)
				if len(r.ToolCalls) != 1 {
					t.Fatalf("%+v", r)
				}
				c := r.ToolCalls[0]
				if want := map[bool]string{true: "at /n: it is a string, expected integer"}[name == "misfit"]; c.Misfit != want ||
					c.Success != (want == "") {
					t.Errorf("the record says %q (success %v), want %q", c.Misfit, c.Success, want)
				}
			})
		}
	}
}
