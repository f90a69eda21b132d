package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// workbenchTasks lists the tasks of web/app/figures/tasks.spec.ts.
var workbenchTasks = []struct{ id, name string }{
	{"tools", "see the tools of a server"},
	{"search", "find a tool by a word"},
	{"call", "call a tool with two arguments, and see the result"},
	{"again", "the same, and once more with another argument"},
	{"message", "the same call, and its message on the wire"},
	{"error", "call a tool that fails, and see why"},
	{"picture", "call a tool that returns a picture"},
	{"question", "call a tool that asks, and answer"},
	{"resource", "read a resource"},
	{"prompt", "fill in a prompt"},
}

// addTasks adds the clicks and the seconds of each task in the workbench against MCP Inspector, and of the task that is
// worst for the workbench. Both are driven by the same program, from a page that is just opened to the result.
func (s *session) addTasks(values map[string][]float64) error {
	for _, kind := range []string{"clicks", "seconds"} {
		worst := make([]float64, s.rounds)
		for _, t := range workbenchTasks {
			id := "WB.tasks." + t.id + "." + kind
			own, its := values[id], values[id+".inspector"]
			if len(own) != s.rounds || len(its) != s.rounds {
				return fmt.Errorf("%s was measured %d and %d times in %d rounds", id, len(own), len(its), s.rounds)
			}
			r := ratios(own, its)
			for i := range worst {
				worst[i] = max(worst[i], r[i])
			}
			s.add(id, fmt.Sprintf("%s: %s against MCP Inspector (%s and %s)", t.name, kind,
				number(rounded(median(own))), number(rounded(median(its)))), "ratio", r)
		}
		name := fmt.Sprintf("ten tasks: %s against MCP Inspector, the worst task", kind)
		s.add("WB.tasks."+kind, name, "ratio", worst)
	}
	return nil
}

// inspectorNode returns the Node that MCP Inspector's own server needs (22.19), or "" if the one of PATH will do. It is
// fetched from npm if it is not there.
func (s *session) inspectorNode() (string, error) {
	if node := os.Getenv("TENON_INSPECTOR_NODE"); node != "" {
		return node, nil
	}
	if out, err := exec.CommandContext(s.ctx, "node", "--version").Output(); err == nil && nodeFits(string(out)) {
		return "", nil
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	name := "node-" + runtime.GOOS + "-" + arch
	dir, err := cacheFolder(name + "-22")
	if err != nil {
		return "", err
	}
	node := filepath.Join(dir, "node_modules", name, "bin", "node")
	if _, err := os.Stat(node); err == nil {
		return node, nil
	}
	return node, s.npmInstall(dir, name+"@22")
}

// nodeFits reports whether a version such as v22.20.0 is at least 22.19.
func nodeFits(version string) bool {
	major, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, err2 := strconv.Atoi(minor)
	return err == nil && err2 == nil && (m > 22 || m == 22 && n >= 19)
}

// cacheFolder makes a folder for what is fetched once.
func cacheFolder(name string) (string, error) {
	cache := os.Getenv("TENON_CACHE")
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(dir, "tenon")
	}
	dir := filepath.Join(cache, name)
	return dir, os.MkdirAll(dir, 0o700)
}

// npmInstall installs a package into a folder.
func (s *session) npmInstall(dir, pkg string) error {
	cmd := exec.CommandContext(s.ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save",
		"--loglevel=error", "--prefix", dir, pkg)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm install %s: %w", pkg, err)
	}
	return nil
}
