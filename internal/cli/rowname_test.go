package cli

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// TestRowName checks which names a written table has: the server's, unless the configuration names the tool.
func TestRowName(t *testing.T) {
	underscore := "_"
	for name, tt := range map[string]struct {
		tool   tenon.Tool
		naming catalog.Naming
		want   string
	}{
		"the server's":    {tenon.Tool{Name: "add", Remote: "add"}, catalog.Naming{}, "add"},
		"made fit":        {tenon.Tool{Name: "read-file", Remote: "read.file"}, catalog.Naming{}, "read.file"},
		"made fit by _":   {tenon.Tool{Name: "read_file", Remote: "read.file"}, catalog.Naming{Replace: &underscore}, "read.file"},
		"cut":             {tenon.Tool{Name: "a-b_1f", Remote: "a/b", Rules: tenon.ToolRules{Wanted: "a-b"}}, catalog.Naming{}, "a/b"},
		"distinct":        {tenon.Tool{Name: "s_a-b", Remote: "a/b", Rules: tenon.ToolRules{Wanted: "a-b"}}, catalog.Naming{}, "a/b"},
		"given":           {tenon.Tool{Name: "plus", Remote: "add"}, catalog.Naming{}, "plus"},
		"given, made fit": {tenon.Tool{Name: "my-plus", Remote: "add.x"}, catalog.Naming{}, "my-plus"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rowName(&tt.tool, tt.naming); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
