package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is the build information of this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version returns the build information that the Go toolchain wrote into the binary.
func version() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Prints the version, the revision that it was built from, the Go release and the platform.",
		Example: "  tenon version\n  tenon version -o json",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := version()
			text := "tenon " + v.Version
			if v.Revision != "" {
				text += " (" + v.Revision[:min(12, len(v.Revision))] + ")"
			}
			return a.did(v, "%s %s %s", text, v.Go, v.Platform)
		},
	}
}
