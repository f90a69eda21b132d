package cli

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVersionOf compares the text and the JSON keys of tenon version for each way of building tenon.
func TestVersionOf(t *testing.T) {
	const module = "github.com/tenonhq/tenon"
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"},
			{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
			{Key: "vcs.time", Value: "2026-11-24T11:25:37Z"}, {Key: "vcs.modified", Value: modified}}
	}
	tests := []struct {
		name, text, keys string
		info             debug.BuildInfo
	}{
		{name: "no information", text: "tenon devel GO", keys: "version go platform"},
		{name: "without a repository", text: "tenon devel GO", keys: "version go platform module",
			info: debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}},
		{name: "a tagged checkout", text: "tenon v1.2.3 (0123456789ab, 2026-11-24) GO",
			keys: "version revision time go platform module",
			info: debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}, Settings: vcs("false")}},
		{name: "a changed checkout", text: "tenon v1.2.3+dirty (0123456789ab, 2026-11-24, modified) GO",
			keys: "version revision time modified go platform module",
			info: debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3+dirty"}, Settings: vcs("true")}},
		{name: "go install", text: "tenon v1.2.3 GO", keys: "version go platform module sum",
			info: debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3", Sum: "h1:x="}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := versionOf(&tt.info)
			want := strings.Replace(tt.text, "GO", runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH, 1)
			if diff := cmp.Diff(want, b.String()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			var got []string
			text, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			dec := json.NewDecoder(strings.NewReader(string(text)))
			for i := -1; dec.More() || i < 0; i++ {
				tok, err := dec.Token()
				if err != nil {
					t.Fatal(err)
				}
				if i >= 0 && i%2 == 0 {
					got = append(got, tok.(string))
				}
			}
			if diff := cmp.Diff(tt.keys, strings.Join(got, " ")); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}
