package servers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// TestComplete asks servers of both eras to complete values of arguments.
func TestComplete(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		cfg := process("--stdio", "--prompts")
		cfg.Protocol = protocol
		s := started(t, cfg, Options{})
		for _, c := range []struct {
			name string
			ask  CompletionRequest
			want []string
			code tenon.Code
		}{
			{"prompt", CompletionRequest{Prompt: "review", Argument: "tone", Value: "ca"}, []string{"calm", "careful"}, ""},
			{"others", CompletionRequest{Prompt: "review", Argument: "tone", Value: "can",
				Others: map[string]string{"what": "poem"}}, []string{"cantabile"}, ""},
			{"none", CompletionRequest{Prompt: "review", Argument: "tone", Value: "x"}, []string{}, ""},
			{"template", CompletionRequest{Template: "test://day/{date}", Argument: "date", Value: "day-14"},
				[]string{"day-140", "day-141", "day-142", "day-143", "day-144", "day-145", "day-146", "day-147", "day-148", "day-149"}, ""},
			{"no_prompt", CompletionRequest{Prompt: "nope", Argument: "x"}, []string{}, tenon.CodeInvalid},
		} {
			t.Run("RP-11_"+protocol+"_"+c.name, func(t *testing.T) {
				found, err := s.Complete(t.Context(), c.ask)
				if (err != nil || c.code != "") && tenon.ErrorCode(err) != c.code {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, found.Values); diff != "" {
					t.Error(diff)
				}
			})
		}
		t.Run("RP-11_"+protocol+"_bound", func(t *testing.T) {
			found, err := s.Complete(t.Context(), CompletionRequest{Template: "test://day/{date}", Argument: "date"})
			if err != nil || len(found.Values) != 100 || !found.More || found.Total != 150 {
				t.Errorf("%d values, %+v, %v", len(found.Values), found.More, err)
			}
		})
	}
	t.Run("RP-11_not_declared", func(t *testing.T) {
		s := started(t, process("--stdio"), Options{})
		found, err := s.Complete(t.Context(), mcp.CompletionRequest{Prompt: "greet_user", Argument: "name"})
		if err != nil || len(found.Values) != 0 {
			t.Error(found, err)
		}
	})
}
