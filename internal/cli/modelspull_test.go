package cli

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon/model"
)

// Test_MD10_PullProgress checks which progress reports of a download are printed.
func Test_MD10_PullProgress(t *testing.T) {
	var shown progressLines
	var lines []string
	for _, p := range []model.Pulled{{Status: "pulling manifest"}, {Status: "pulling manifest"},
		{Status: "pulling a", Total: 100 << 20}, {Status: "pulling a", Total: 100 << 20, Done: 5 << 20},
		{Status: "pulling a", Total: 100 << 20, Done: 31 << 20}, {Status: "pulling a", Total: 100 << 20, Done: 200 << 20},
		{Status: "pulling b", Total: 3, Done: 3}, {Status: "success", Done: -1}} {
		if line, ok := shown.next(p); ok {
			lines = append(lines, line)
		}
	}
	want := "pulling manifest|pulling a  0% of 100 MiB|pulling a  30% of 100 MiB|pulling a  100% of 100 MiB|" +
		"pulling b  30% of 0 MiB|success"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
