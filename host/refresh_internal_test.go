package host

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// TestWithheldOf checks that the journal names a server that lost tools and whose present tools wait for a person.
func TestWithheldOf(t *testing.T) {
	input := json.RawMessage(`{"type":"object"}`)
	before, problems := catalog.Build([]catalog.Source{
		{Server: "disk", Tools: []tenon.Tool{{Remote: "read", Name: "read", Input: input}}},
		{Server: "mail", Tools: []tenon.Tool{{Remote: "send", Name: "send", Input: input}}},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	waits := map[string]error{"disk": errors.New("disk differs"), "mail": errors.New("mail differs")}
	for name, tt := range map[string]struct {
		removed []string
		waits   map[string]error
		want    []agent.WithheldTools
	}{
		"RP-8_withheld":        {[]string{"read"}, waits, []agent.WithheldTools{{Server: "disk", Reason: "disk differs"}}},
		"RP-8_nothing_removed": {nil, waits, nil},
		"RP-8_nothing_waits":   {[]string{"read", "send"}, nil, nil},
		"RP-8_unknown_tool":    {[]string{"gone"}, waits, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, withheldOf(before, tt.removed, tt.waits)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
