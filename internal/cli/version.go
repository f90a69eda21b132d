package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// build is the build information of this binary. A build from a checkout has the version that the Go toolchain derives
// from the commit's tag, its revision, time and modified; go install of a version has version, module and sum.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // full hash of the commit
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Modified bool   `json:"modified,omitempty"` // files differed from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"` // GOOS/GOARCH
	Module   string `json:"module,omitempty"`
	Sum      string `json:"sum,omitempty"` // of the module, as in go.sum
}

// version returns the build information that the Go toolchain wrote into the binary. No linker flag overrides it, so
// that a binary cannot name another version than its sources have.
func version() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Module: info.Main.Path, Sum: info.Main.Sum}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the line of tenon version.
func (b build) String() string {
	text := "tenon " + b.Version
	if b.Revision != "" {
		text += " (" + b.Revision[:min(12, len(b.Revision))]
		if day, _, ok := strings.Cut(b.Time, "T"); ok {
			text += ", " + day
		}
		if b.Modified {
			text += ", modified"
		}
		text += ")"
	}
	return text + " " + b.Go + " " + b.Platform
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: "Prints the version, the revision that it was built from with its day, the Go release and the\n" +
			"platform. 'modified' says that files differed from the revision. With -o json it also has the\n" +
			"module and its checksum.",
		Example: "  tenon version\n  tenon version -o json",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := version()
			return a.did(v, "%s", v)
		},
	}
}

var _ fmt.Stringer = build{}
